// Which profile: the one given, one that is known, or what a probe finds. Apart from what asks for it, so that a module
// which brings `kernel_choice` from elsewhere is linked without.
#include <cstdlib>
#include <mutex>

#include "copies/kernel_probe.hpp"
#include "longshore/copies/kernels.hpp"

namespace longshore {
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

/// With the lock held.
KernelKnowledge knowledge() {
  const char* asked = std::getenv("LONGSHORE_KERNEL_PROBE");
  // Plain kernels are alike whatever the profile.
  const bool plain = kernels().name == plain_kernels().name;
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
    KernelProbe found = probe_kernels(kernels());
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

}  // namespace longshore
