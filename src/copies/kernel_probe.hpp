/// A quick look at what this CPU's kernels want, made unasked where nothing is known of it.
#pragma once

#include <functional>

#include "longshore/copies/kernels.hpp"

namespace longshore {

/// A time by which something is over. Nothing is begun that would not be, by what such things have taken so far.
struct Watch {
  std::function<double()> now;  ///< seconds
  double end;
  double longest = 0;  ///< of all that was begun so far
  bool fits() const { return now() + longest < end; }
};

struct KernelProbe {
  KernelMeasurement found;
  std::vector<std::string> untried;  ///< the kinds of copies for which there was no time, whose numbers are the table's
  double seconds = 0;                ///< that it took
};

/// A process may be kept from what it does for 50 ms, in which memory is given back, too.
inline constexpr double probe_seconds = 0.045;

/// `measure_kernels` in at most so many seconds of a clock, by the caller alone, between two arrays of 4 MiB that are
/// put out of the caches before each sample. A number is changed only where that was faster by 15 %, round by round,
/// three times at least.
KernelProbe probe_kernels(const KernelTable& table, double seconds = probe_seconds,
                          const std::function<double()>& now = {});

/// Whether one is clearly below the other in three quarters of the rounds, of which there are three at least.
bool steadily_faster(const std::vector<double>& one, const std::vector<double>& other, double clearly_below);

/// What there is to go by when a process first streams.
struct KernelKnowledge {
  std::optional<KernelChoice> given;  ///< what was measured on this model of CPU
  std::optional<KnownCpu> known;
  std::string asked;  ///< LONGSHORE_KERNEL_PROBE: "always", "never", or nothing
  bool probes() const { return asked == "always" || (asked != "never" && !given && !known); }
};
/// A profile that was given, else one that is known, else the general one; or what a probe finds, which is told when it
/// begins.
KernelChoice choice_of(const KernelKnowledge& knowledge,
                       const std::function<KernelProbe(const std::string& now)>& probe);

/// Writes what a probe found to a file, as `longshore calibrate` does, whole or not at all. False where that cannot be,
/// or somebody else is about to.
bool keep_probe(const std::string& path, const KernelProbe& probe, const std::string& measured);

}  // namespace longshore
