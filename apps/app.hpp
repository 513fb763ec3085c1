/// What all applications have in common: who carries out the communication, what is timed, what a run has to say.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

#include "longshore/core/checked.hpp"

namespace longshore::apps {

/// Who carries out the communication. Kernels, arrays and arithmetic are the same for all.
enum class Variant {
  longshore,   ///< Longshore's movers: start, wait, compute
  overlapped,  ///< Longshore's movers at work while everything is computed that does not need what they bring
  twin,        ///< hand-written MPI, as a good engineer writes it
  windows      ///< mg alone: Longshore's windows, whole or in strips
};

inline const char* to_string(Variant variant) {
  constexpr const char* names[] = {"longshore", "overlapped", "twin", "windows"};
  return names[int(variant)];
}

/// Throws `Error(argument)` for other words.
inline Variant variant_named(std::string_view name) {
  for (const Variant variant : {Variant::longshore, Variant::overlapped, Variant::twin, Variant::windows})
    if (name == to_string(variant)) return variant;
  throw Error(ErrorKind::argument, "no variant \"" + std::string(name) + "\": longshore, overlapped, twin or windows");
}

/// One rank's timed part: its seconds, how many of them it spent in communication (packing and waiting included; what
/// goes on beside computing is not counted), and the bytes that other ranks sent to it.
struct Phases {
  double total_s = 0, communication_s = 0;
  Index payload_bytes = 0;
};

/// Adds the seconds that it lives to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum_s) : sum_s_(sum_s), start_s_(MPI_Wtime()) {}
  ~Stopwatch() { sum_s_ += MPI_Wtime() - start_s_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_s_;
  double start_s_;
};

/// What a run has to say, the same on all ranks but for `payload_bytes`.
struct Result {
  bool verified = false;
  std::string verification;                 ///< what was compared with what, in words
  double total_s = 0, communication_s = 0;  ///< of the slowest rank, each by itself
  double error = 0, tolerance = 0;          ///< verified: error <= tolerance
  Index payload_bytes = 0;                  ///< as in `Phases`, of this rank
  double flops = 0;                         ///< of the timed part on all ranks, as the benchmark counts them
};

/// The slowest rank's seconds, each by themselves; this rank's bytes. Collective.
inline Phases slowest(const Phases& phases, MPI_Comm comm) {
  const double here[] = {phases.total_s, phases.communication_s};
  double all[2];
  MPI_Allreduce(here, all, 2, MPI_DOUBLE, MPI_MAX, comm);
  return {all[0], all[1], phases.payload_bytes};
}

}  // namespace longshore::apps
