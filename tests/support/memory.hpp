/// Memory to copy from and to: recognisable bytes, and pages that end where nobody may read on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "longshore/core/checked.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define LONGSHORE_HAVE_MMAP 1
#else
#define LONGSHORE_HAVE_MMAP 0
#endif

namespace longshore::test {

using Bytes = std::vector<std::byte>;

inline std::byte noise(Index i) {
  return static_cast<std::byte>((static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u) >> 56);
}

#if LONGSHORE_HAVE_MMAP
/// Readable pages between two pages that nobody may touch.
class Fenced {
 public:
  explicit Fenced(Index bytes) : page_(sysconf(_SC_PAGESIZE)), size_((bytes + page_ - 1) / page_ * page_) {
    void* p = mmap(nullptr, static_cast<std::size_t>(size_ + 2 * page_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = static_cast<std::byte*>(p);
    mprotect(base_ + page_, static_cast<std::size_t>(size_), PROT_READ | PROT_WRITE);
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { munmap(base_, static_cast<std::size_t>(size_ + 2 * page_)); }
  std::byte* begin() const { return base_ + page_; }
  std::byte* end() const { return base_ + page_ + size_; }

 private:
  Index page_, size_;
  std::byte* base_;
};
#endif

}  // namespace longshore::test
