/// tune: measures the machine. A `CopyTimer` runs a compiled relation again and again, alone or on several threads.
#pragma once

#include <memory>
#include <vector>

#include "longshore/copies/relation_program.hpp"

namespace longshore {

/// Two arrays for each of some threads, between which copies are timed. Threads that copy at the same time share what
/// memory is shared by (the copy-transfer model's resource constraints, Stricker & Gross, section 3.3).
class CopyTimer {
 public:
  enum class Writer {
    nobody,  ///< the sources stay as they are
    itself,  ///< the thread that copies
    another  ///< another one, as a peer does; needs a timer of two threads or more
  };
  struct Options {
    /// Each run has other places in the arrays, so that what it touches has left the caches when its turn comes again.
    /// Else all runs have the same.
    bool cold = false;
    /// Who writes what will be read before each sample, which is one run then: as programs compute what they move.
    Writer writer = Writer::nobody;
    int samples = 7;               ///< at most; no further one begins after `seconds`
    double sample_seconds = 2e-5;  ///< a sample is as many runs as take so long
    double seconds = 0.02;
    RelationProgram::Options program{};
  };
  /// Arrays of so many bytes each, all of which are written. Throws `Error(argument)` where a number is not positive.
  CopyTimer(int threads, Index bytes);
  ~CopyTimer();
  CopyTimer(const CopyTimer&) = delete;
  CopyTimer& operator=(const CopyTimer&) = delete;

  int threads() const { return threads_; }
  Index bytes() const { return bytes_; }  ///< of an array
  /// Seconds of one run, a number a sample, of the thread that took longest: `at_once` of the threads run the relation
  /// at the same time. Throws `Error(argument)` where there are fewer threads or the relation does not fit the arrays.
  /// One call at a time.
  std::vector<double> time(const AddressRelation& relation, int at_once, const Options& options);

 private:
  class Arrays;
  int threads_;
  Index bytes_;
  std::vector<std::unique_ptr<Arrays>> arrays_;
};

}  // namespace longshore
