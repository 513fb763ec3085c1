/// What the kernels of a CPU want beyond its instruction set: a few numbers, known of its family or measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

struct KernelTable;

/// How kernels go about streaming copies. Whatever the numbers are, the same bytes are copied.
struct KernelProfile {
  static constexpr Index never = INT64_MAX;

  /// How many long rows are copied side by side (1, 2 or 4), how much of each at a time, and how far ahead of each
  /// other they are: a load waits for the non-temporal stores under way to the same place of another page.
  Index rows = 4, burst_bytes = 256, stagger_bytes = 1024;
  /// From how many bytes on a contiguous run is copied four pages at a time, a burst of each by turns.
  Index paged_bytes = Index{256} << 10;
  /// The same of the processor's own instruction for it (`rep movsb`).
  Index string_bytes = never;
  /// How many rows are put together from several sources side by side (1 or 4).
  Index merged_rows = 4;
  /// Whether lines of several sources are put together by loads that expand, where the instruction set has them: else
  /// by way of some lines in the first-level cache.
  bool expands = true;
  /// How far ahead of the loads a long contiguous source is prefetched. None: 0.
  Index ahead_bytes = 1024;
  /// How many lines of a source row the tiles of a transpose are wide; four times as many where the destination's rows
  /// do not begin at the same place of a page.
  Index tile_lines = 64;
  /// From how many bytes an element transposes whose destination rows are a multiple of 512 bytes apart go by way of
  /// two tiles in the second-level cache, `long_burst` bytes of a row at a time; others go line by line from registers.
  Index tiled_from = never;
  static constexpr Index long_burst = 256;
  /// How much of each row is put together before it is the next one's turn, where several rows are side by side.
  Index merged_bytes = 64;
  /// How many bytes the destinations of a move may have together, those of all ranks, to stay in a cache that cores
  /// share, beside as much of sources: they are written with ordinary stores then, however large each is. None: 0.
  Index cached_bytes = 0;

  bool operator==(const KernelProfile&) const = default;
};

/// Throws `Error(argument)` where a number is none that kernels can work with.
void check(const KernelProfile& profile);

/// A profile and whence it comes, in words.
struct KernelChoice {
  KernelProfile profile;
  std::string by;
};

/// The CPU that this runs on, as it calls itself: "AuthenticAMD family 25 model 17".
std::string cpu_name();

/// A family of CPUs that the library knows a profile of.
struct KnownCpu {
  std::string family;  ///< "AMD Zen 3"
  std::string source;  ///< who measured it, and where that is written
  KernelProfile profile;
};
const std::vector<KnownCpu>& known_cpus();
/// Of a CPU's name; none where it is of no family that is known.
std::optional<KnownCpu> known_cpu(std::string_view cpu);

/// A candidate for some of a profile's numbers, timed beside the others.
struct KernelTrial {
  std::string copies;                                     ///< what was copied: "long rows"
  KernelProfile profile;                                  ///< with the candidate's numbers
  double seconds = 0, seconds_low = 0, seconds_high = 0;  ///< of a sample: the median, and a quarter from either end
  bool chosen = false;
};
struct KernelMeasurement {
  KernelProfile profile;
  std::vector<KernelTrial> trials;
};
/// Finds out which profile is best for a table on this machine, copying between arrays that are beyond the caches (for
/// `cached_bytes`: between the same ones in a loop), with so many threads at once, in about so many seconds: kind of
/// copy after kind of copy, all candidates by turns, each of them three times at least. The table's own profile stays
/// where nothing is clearly better. Each thread takes 128 MiB.
KernelMeasurement measure_kernels(const KernelTable& table, int threads, double seconds);

/// For the kernels that this process uses from now on. False where it is too late: they have been chosen already.
bool choose_kernel_profile(const KernelChoice& choice);
/// The profile of the kernels that this process uses, taken when it first makes a program that streams: the one given
/// to `choose_kernel_profile`, else what is known of this CPU, else what a probe finds, which takes 50 ms at most, 8
/// MiB and one thread. LONGSHORE_KERNEL_PROBE=always in the environment probes whatever is known, =never does not
/// probe; then and where there was no time to try anything three times the general profile is taken.
const KernelChoice& kernel_choice();
/// Whether nothing has been chosen yet, and a probe would be made for it.
bool kernels_await_probe();
/// The file in which a probe leaves what it found, if it had the time to try everything; none by default. Where that
/// cannot be written nothing is said.
void keep_kernel_probe(const std::string& path);

}  // namespace longshore
