/// What a loop does that looks again and again for what another thread or process is about to write.
#pragma once

namespace longshore {

/// Tells the processor that this is such a loop, so that it leaves more to others.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // `yield` does nothing on most of these processors
#endif
}

}  // namespace longshore
