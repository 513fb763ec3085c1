// Which table: the widest registers this CPU has, unless the environment asks for another. Which profile: the one
// given, one that is known, or what a probe finds.
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "copies/kernel_probe.hpp"
#include "tables.hpp"

namespace longshore {
namespace {

const KernelTable& choose() {
  const std::vector<const KernelTable*> tables = available_kernels();
  if (const char* wanted = std::getenv("LONGSHORE_KERNELS"))
    for (const KernelTable* table : tables)
      if (std::string_view(table->name) == wanted) return *table;
  return *tables.back();
}

}  // namespace

std::vector<const KernelTable*> available_kernels() {
#if LONGSHORE_KERNELS_NEON
  std::vector<const KernelTable*> tables{&plain_kernels(), &neon_kernel_table};
#else
  std::vector<const KernelTable*> tables{&plain_kernels(), &baseline_kernel_table};
#endif
#if LONGSHORE_KERNELS_X86
  // These ask the operating system too: registers it does not save are not reported.
  if (__builtin_cpu_supports("avx2")) tables.push_back(&avx2_kernel_table);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt"))
    tables.push_back(&avx512_kernel_table);
#endif
  return tables;
}

namespace {

/// A process chooses its profile once.
struct Chosen {
  std::mutex mutex;
  std::optional<KernelChoice> given;
  std::string kept;  ///< the file for what a probe finds
  bool taken = false;
};
Chosen& chosen() {
  static Chosen one;
  return one;
}

const KernelTable& unprofiled() {
  static const KernelTable& table = choose();
  return table;
}

/// With the lock held.
KernelKnowledge knowledge() {
  const char* asked = std::getenv("LONGSHORE_KERNEL_PROBE");
  // Plain kernels are alike whatever the profile.
  const bool plain = &unprofiled() == &plain_kernels();
  return {chosen().given, known_cpu(cpu_name()), plain ? "never" : asked ? asked : ""};
}

KernelChoice find_choice() {
  KernelKnowledge known;
  std::string path;
  {
    const std::lock_guard lock(chosen().mutex);
    chosen().taken = true;
    known = knowledge(), path = chosen().kept;
  }
  return choice_of(known, [&](const std::string& now) {
    KernelProbe found = probe_kernels(unprofiled());
    if (found.untried.empty() && !path.empty()) keep_probe(path, found, now);
    return found;
  });
}

}  // namespace

const KernelChoice& kernel_choice() {
  static const KernelChoice choice = find_choice();
  return choice;
}

bool kernels_await_probe() {
  const std::lock_guard lock(chosen().mutex);
  return !chosen().taken && knowledge().probes();
}

bool choose_kernel_profile(const KernelChoice& choice) {
  check(choice.profile);
  const std::lock_guard lock(chosen().mutex);
  if (chosen().taken) return false;
  chosen().given = choice;
  return true;
}

void keep_kernel_probe(const std::string& path) {
  const std::lock_guard lock(chosen().mutex);
  chosen().kept = path;
}

const KernelTable& kernels(Stores stores) {
  if (stores == Stores::cached) return unprofiled();
  static const KernelTable table = [] {
    KernelTable profiled = unprofiled();
    profiled.profile = kernel_choice().profile;
    return profiled;
  }();
  return table;
}

}  // namespace longshore
