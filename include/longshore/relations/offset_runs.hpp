/// Pairs of offsets one after the other, as runs: what encodings and relations tell each other.
#pragma once

#include <cstddef>
#include <span>

#include "longshore/sequences/interval.hpp"

namespace longshore {

/// One element's way: byte offsets in the source and in the destination.
struct OffsetPair {
  Index source = 0, destination = 0;
  bool operator==(const OffsetPair&) const = default;
};

/// `count` elements in step: element k goes from source + k *
/// source_step to destination + k * destination_step, in bytes.
struct OffsetRun {
  Index source = 0, destination = 0, count = 0, source_step = 0, destination_step = 0;
  bool operator==(const OffsetRun&) const = default;

  OffsetPair at(Index k) const { return {source + k * source_step, destination + k * destination_step}; }
  /// The elements [first, last) of the run.
  OffsetRun slice(Index first, Index last) const {
    const auto begin = at(first);
    return {begin.source, begin.destination, last - first, source_step, destination_step};
  }
};

/// Reads a sequence of pairs as runs, in order. Runs need not be as long as they could be.
class RunReader {
 public:
  virtual ~RunReader() = default;
  /// Fills `out` with the next runs, each of at least one element; the number of them, 0 at the end.
  virtual std::size_t read(std::span<OffsetRun> out) = 0;
};

/// Calls f(run) for every run that the reader has left.
template <class F>
void for_each_run(RunReader& reader, F&& f) {
  OffsetRun batch[64];
  while (const std::size_t n = reader.read(batch))
    for (std::size_t k = 0; k < n; ++k) f(batch[k]);
}

}  // namespace longshore
