/// tune: in which strips a loop over remote elements should get them. Bounds and a first guess come from the model, the
/// rest from a short search among the loops that are run anyway (Iancu, Husbands & Chen, "Message strip mining
/// heuristics for high speed networks", section 4.5).
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "longshore/model/strips.hpp"
#include "longshore/movers/strips.hpp"
#include "longshore/tune/strip_choices.hpp"

namespace longshore {

/// Finds schedules by trying them: `schedule` says what the next loop should take, `record` is told what came of it.
/// After some eighty loops, 200 of less than 2 ms, the choice is settled: the best of what was tried, or `vectorized`
/// where nothing is clearly better. Threads may share it.
class StripTuner {
 public:
  /// `overheads`: what a get takes the processor at least, o and g; the rest is found from the loops. `file`: where
  /// choices are kept (see `strip_choices_path`): those in it are known from the beginning, and what is settled is
  /// written there, with what others have written meanwhile. Where that fails, nothing is thrown: `trouble` says so.
  explicit StripTuner(const LogGP& overheads = least_overheads, std::string file = {});
  /// With what was found before on this machine, by this program or another one, in C++ or Python.
  static StripTuner of_this_machine() { return StripTuner(least_overheads, strip_choices_path()); }
  static constexpr LogGP least_overheads{.o_s = 1e-6, .o_r = 1e-6, .g = 1e-6};

  StripSchedule schedule(const TunedLoop& loop);
  /// A loop took so many seconds, of which so many were spent in asking for strips and waiting for them. Loops of
  /// schedules that nobody asked for here count too.
  void record(const TunedLoop& loop, const StripSchedule& schedule, double seconds, double communication);
  bool settled(const TunedLoop& loop) const;
  /// All that is settled, to be kept; and what was kept.
  std::vector<StripChoice> choices() const;
  void remember(const StripChoice& choice);
  /// Writes all that is settled to the file. Throws what `keep_strip_choices` throws.
  void keep() const;
  /// Why choices were not read or not kept the last time, in words; empty where all went well. Told once.
  std::string trouble();

 private:
  using Key = std::tuple<std::string, Index, Index>;  ///< pattern, rows as a power of two, bytes of a row
  struct Trial {
    StripSchedule schedule;
    double seconds, communication;  ///< a row, of the fastest; of most of the finals when they are over
    int loops = 0;
    std::vector<double> finals{};  ///< seconds a row
  };
  struct Search {
    std::vector<Trial> trials;           ///< the first is `vectorized`
    std::vector<StripSchedule> waiting;  ///< to be tried, the last first
    enum class Stage { first, guesses, neighbours, finals, settled } stage = Stage::first;
    int steps = 0;
    std::size_t finals = 0;  ///< that have begun
  };
  static Key key_of(const TunedLoop& loop);
  static bool faster(const Trial& a, const Trial& b) { return a.seconds < b.seconds; }
  static const Trial& chosen(const Search& search);
  void go_on(Search& search, const TunedLoop& loop);
  std::vector<StripChoice> settled_choices() const;
  struct Estimate {
    LogGP link;
    StripLoop loop;
  };
  static StripSchedule probe(const TunedLoop& loop, Index strips);
  Estimate estimate(const Search& search, const TunedLoop& loop) const;
  std::vector<StripSchedule> guesses(const Search& search, const TunedLoop& loop) const;
  Index smallest(const Search& search, const TunedLoop& loop) const;

  LogGP overheads_;
  std::string file_, trouble_;
  mutable std::mutex mutex_;
  std::map<Key, Search> searches_;
  std::mt19937 random_{std::random_device{}()};
};

/// The name of a loop over this section for a tuner: where the elements come from makes loops of one pattern others.
std::string pattern_of(const std::string& pattern, const Section& section);

/// `for_each_strip` with the schedule that `tuner` wants, which is told what came of it. `pattern` names the loop; that
/// of Python's loops over the same is the same.
template <class T, class Body>
void for_each_strip(const Section& section, StripTuner& tuner, const std::string& pattern, Body&& body) {
  const TunedLoop loop{pattern_of(pattern, section), section.elements(), section.element_bytes()};
  const auto schedule = tuner.schedule(loop);
  const auto begin = std::chrono::steady_clock::now();
  const double communication = for_each_strip<T>(section, schedule, body);
  tuner.record(loop, schedule, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
               communication);
}

}  // namespace longshore
