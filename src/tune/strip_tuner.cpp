#include "longshore/tune/strip_tuner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace longshore {

namespace {

constexpr int first_loops = 3;  // of `vectorized`, which show what the link and the loop take
// Strips of the loops that show what a strip takes beyond its bytes; the second where the first is no loss. Links have
// sizes that they are slow with, so that one alone may mislead.
constexpr Index probe_strips[] = {32, 256};
constexpr int tries = 2;       // of each schedule: the faster one counts
constexpr int most_steps = 8;  // to neighbours
// Schedules that are run again at the end in turns with `vectorized`, and how often: some, and the best of these again.
// What most of them take counts, for links let single loops pass in bursts.
constexpr struct Finals {
  std::size_t schedules;
  int turns;
} all_finals[] = {{4, 7}, {2, 8}};
// Loops that take less swing more, and have more turns, in proportion, thrice as many at most.
constexpr double long_loop = 5e-3;
constexpr double most_turns = 3;
constexpr Index most_strips = 4096;  // of a loop: more are never worth it
constexpr double clearly = 0.96;     // of the time of `vectorized`: what is not less is noise, or not worth the risk

constexpr double growths[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};  // the paper's range of 1 + f
constexpr Index depths[] = {1, 2, 4};

/// The mean without the slowest eighth, which are others' doing. A median would take a schedule that is slow every
/// third time, as messages are that a transport sends now at once and now when asked to, for one that never is.
double mean_of_most(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto most = std::span(values).first(values.size() - values.size() / 8);
  return std::accumulate(most.begin(), most.end(), 0.0) / double(most.size());
}

/// Whether the first is less in two of three turns, so that it is no accident where both swing.
bool wins(const std::vector<double>& some, const std::vector<double>& others) {
  const std::size_t turns = std::min(some.size(), others.size());
  std::size_t won = 0;
  for (std::size_t k = 0; k < turns; ++k) won += some[k] < others[k];
  return 3 * won >= 2 * turns;
}

}  // namespace

StripTuner::StripTuner(const LogGP& overheads, std::string file) : overheads_(overheads), file_(std::move(file)) {
  check(overheads);
  if (file_.empty()) return;
  try {
    for (const auto& choice : read_strip_choices(file_)) remember(choice);
  } catch (const Error& error) {
    trouble_ = std::string("what was found about strips before is not used: ") + error.what();
  }
}

StripTuner::Key StripTuner::key_of(const TunedLoop& loop) {
  if (loop.rows < 0 || loop.row_bytes < 1)
    throw Error(ErrorKind::argument,
                "a loop over " + std::to_string(loop.rows) + " rows of " + std::to_string(loop.row_bytes) + " bytes");
  return {loop.pattern, Index(std::bit_floor(std::uint64_t(loop.rows))), loop.row_bytes};
}

StripSchedule StripTuner::probe(const TunedLoop& loop, Index strips) {
  return StripSchedule::fixed(ceil_div(loop.rows, strips), strips == probe_strips[0] ? 1 : 2);
}

/// What the loops so far say of the link and of the loop: G from `vectorized`, and o such that the model gives what the
/// loop of many strips took.
StripTuner::Estimate StripTuner::estimate(const Search& search, const TunedLoop& loop) const {
  const auto& whole = search.trials.front();
  const double row_bytes = double(loop.row_bytes);
  Estimate found{overheads_,
                 {.elements = loop.rows,
                  .element_bytes = loop.row_bytes,
                  .compute = std::max(whole.seconds - whole.communication, 0.0) / row_bytes,
                  .memory = 0,  // what loading takes is in `compute`, for that was timed
                  .link = Link::shared,
                  .rolling = true}};
  found.link.G = whole.communication / row_bytes;
  std::optional<double> least;
  for (const Index strips : probe_strips) {
    const auto schedule = probe(loop, strips);
    const auto probed = std::find_if(search.trials.begin(), search.trials.end(),
                                     [&](const Trial& trial) { return trial.schedule == schedule; });
    if (probed == search.trials.end()) continue;
    double low = overheads_.o(), high = std::max(low, probed->seconds * double(loop.rows));
    for (int k = 0; k < 30; ++k) {
      const double middle = (low + high) / 2;
      found.link.o_s = middle, found.link.o_r = 0;
      const bool too_much =
          strip_cost(schedule, found.loop, found.link).seconds() > probed->seconds * double(loop.rows);
      (too_much ? high : low) = middle;
    }
    least = std::min(low, least.value_or(low));
  }
  found.link.o_s = least.value_or(overheads_.o_s), found.link.o_r = least ? 0 : overheads_.o_r;
  return found;
}

/// Rows of the smallest strip that is tried: its transfer takes as long as asking for it (section 4.3).
Index StripTuner::smallest(const Search& search, const TunedLoop& loop) const {
  const auto link = estimate(search, loop).link;
  const double bytes = link.G > 0 ? smallest_strip(link) : 0;
  const Index rows = Index(std::min(bytes / double(loop.row_bytes), 1e18));
  return std::max<Index>({1, rows, ceil_div(loop.rows, most_strips)});
}

/// The middle of the decompositions that make sense, and the model's best of strips that grow and that do not.
std::vector<StripSchedule> StripTuner::guesses(const Search& search, const TunedLoop& loop) const {
  const Index least = smallest(search, loop);
  if (least > loop.rows / 2) return {};
  const auto [link, body] = estimate(search, loop);
  const auto best = [&, &link = link, &body = body](auto&& all) {
    std::optional<StripSchedule> found;
    double least_seconds = 0;
    for (const auto& schedule : all)
      if (const double seconds = strip_cost(schedule, body, link).seconds(); !found || seconds < least_seconds)
        found = schedule, least_seconds = seconds;
    return *found;
  };
  std::vector<StripSchedule> fixed, variable;
  std::vector<Index> sizes;
  for (Index parts = 2; ceil_div(loop.rows, parts) >= least && parts <= most_strips; parts *= 2)
    sizes.push_back(ceil_div(loop.rows, parts));
  for (const Index size : sizes)
    for (const Index depth : depths) {
      fixed.push_back(StripSchedule::fixed(size, depth));
      for (const double growth : growths) variable.push_back(StripSchedule::variable(size, growth, depth));
    }
  return {best(variable), best(fixed), StripSchedule::fixed(sizes[sizes.size() / 2], 2)};
}

/// Finds out what to try next. `waiting` is empty and all of it has been tried.
void StripTuner::go_on(Search& search, const TunedLoop& loop) {
  auto& trials = search.trials;
  const auto add = [&](const StripSchedule& schedule) {
    const auto known = [&](const Trial& trial) { return trial.schedule == schedule; };
    const bool waits = std::find(search.waiting.begin(), search.waiting.end(), schedule) != search.waiting.end();
    if (!waits && std::none_of(trials.begin(), trials.end(), known))
      search.waiting.insert(search.waiting.end(), tries, schedule);
  };
  using Stage = Search::Stage;
  if (search.stage == Stage::first) {
    if (trials.empty() || trials.front().loops < first_loops) {
      search.waiting.push_back(StripSchedule::vectorized());
      return;
    }
    add(probe(loop, probe_strips[0]));
    if (!search.waiting.empty()) return;
    if (trials.back().seconds < trials.front().seconds && loop.rows >= 2 * probe_strips[1])
      add(probe(loop, probe_strips[1]));
    if (!search.waiting.empty()) return;
    search.stage = Stage::guesses;
    for (const auto& schedule : guesses(search, loop)) add(schedule);
    if (!search.waiting.empty()) return;
    search.stage = Stage::settled;  // too little for strips
    return;
  }
  if (search.stage == Stage::guesses) search.stage = Stage::neighbours;
  if (search.stage == Stage::neighbours) {
    const auto now = std::min_element(trials.begin(), trials.end(), faster)->schedule;
    if (search.steps < most_steps && now.depth() > 0) {
      const Index size = now.size(), depth = now.depth(), least = smallest(search, loop);
      const bool grows = now.kind() == StripSchedule::Kind::variable;
      const auto near = [&](Index s, double f, Index u) {
        if (s < least || s > loop.rows / 2 || u < 1 || (grows && !(f >= growths[0] - 1e-9 && f <= 0.6 + 1e-9))) return;
        // Growth in steps of a tenth, as texts have it, so that what was tried is known again.
        add(grows ? StripSchedule::variable(s, std::round(f * 10) / 10, u) : StripSchedule::fixed(s, u));
      };
      near(size, now.growth(), 2 * depth), near(size, now.growth(), depth / 2);
      near(2 * size, now.growth(), depth), near(size / 2, now.growth(), depth);
      if (grows) near(size, now.growth() + 0.1, depth), near(size, now.growth() - 0.1, depth);
      search.steps += int(search.waiting.size()) / tries;
      if (!search.waiting.empty()) return;
    }
    search.stage = Stage::finals;
  } else {
    std::erase_if(trials, [](const Trial& trial) { return trial.finals.empty(); });
    for (auto& trial : trials) trial.seconds = mean_of_most(trial.finals);
  }
  if (search.finals < std::size(all_finals)) {
    const auto [schedules, turns] = all_finals[search.finals++];
    std::sort(trials.begin() + 1, trials.end(), faster);
    trials.resize(std::min(trials.size(), 1 + schedules), trials.front());
    const double seconds = trials.front().seconds * double(loop.rows);
    const int all_turns =
        int(turns * (seconds > long_loop / most_turns ? std::max(long_loop / seconds, 1.0) : most_turns));
    // In a random order each time: where ranks disturb each other, none is tried beside the same one of theirs always.
    std::vector<StripSchedule> turn;
    for (const auto& trial : trials) turn.push_back(trial.schedule);
    for (int k = 0; k < all_turns; ++k) {
      std::shuffle(turn.begin(), turn.end(), random_);
      search.waiting.insert(search.waiting.end(), turn.begin(), turn.end());
    }
    return;
  }
  search.stage = Stage::settled;
  const auto& whole = trials.front().finals;
  std::erase_if(trials, [&](const Trial& trial) { return &trial != &trials.front() && !wins(trial.finals, whole); });
}

/// The fastest, if it is clearly faster than `vectorized`.
const StripTuner::Trial& StripTuner::chosen(const Search& search) {
  const auto& whole = search.trials.front();
  const auto best = std::min_element(search.trials.begin(), search.trials.end(), faster);
  return best->seconds < clearly * whole.seconds ? *best : whole;
}

StripSchedule StripTuner::schedule(const TunedLoop& loop) {
  const std::lock_guard lock(mutex_);
  if (loop.rows < 2) return StripSchedule::vectorized();
  auto& search = searches_[key_of(loop)];
  const bool searched = search.stage != Search::Stage::settled;
  while (search.stage != Search::Stage::settled && search.waiting.empty()) go_on(search, loop);
  if (searched && search.stage == Search::Stage::settled && !file_.empty()) try {
      keep_strip_choices(file_, settled_choices());
    } catch (const Error& error) {
      trouble_ = std::string("what was found about strips is not kept: ") + error.what();
    }
  if (!search.waiting.empty()) return search.waiting.back();
  return chosen(search).schedule;
}

void StripTuner::record(const TunedLoop& loop, const StripSchedule& schedule, double seconds, double communication) {
  const std::lock_guard lock(mutex_);
  if (loop.rows < 2) return;
  auto& search = searches_[key_of(loop)];
  if (search.stage == Search::Stage::settled) return;
  const double rows = double(loop.rows);
  auto trial = std::find_if(search.trials.begin(), search.trials.end(),
                            [&](const Trial& one) { return one.schedule == schedule; });
  if (trial == search.trials.end()) {
    if (search.trials.empty() && !(schedule == StripSchedule::vectorized())) return;
    trial = search.trials.insert(trial, {schedule, seconds / rows, communication / rows});
  }
  ++trial->loops;
  if (search.stage == Search::Stage::finals) trial->finals.push_back(seconds / rows);
  if (seconds / rows < trial->seconds) trial->seconds = seconds / rows, trial->communication = communication / rows;
  if (!search.waiting.empty() && search.waiting.back() == schedule) search.waiting.pop_back();
}

bool StripTuner::settled(const TunedLoop& loop) const {
  const std::lock_guard lock(mutex_);
  const auto found = searches_.find(key_of(loop));
  return found != searches_.end() && found->second.stage == Search::Stage::settled;
}

std::vector<StripChoice> StripTuner::choices() const {
  const std::lock_guard lock(mutex_);
  return settled_choices();
}

void StripTuner::keep() const { keep_strip_choices(file_, choices()); }

std::string StripTuner::trouble() {
  const std::lock_guard lock(mutex_);
  return std::exchange(trouble_, {});
}

std::vector<StripChoice> StripTuner::settled_choices() const {
  std::vector<StripChoice> all;
  for (const auto& [key, search] : searches_) {
    if (search.stage != Search::Stage::settled) continue;
    const auto& [pattern, rows, row_bytes] = key;
    const auto& best = chosen(search);
    all.push_back({{pattern, rows, row_bytes}, best.schedule, best.seconds, search.trials.front().seconds});
  }
  return all;
}

void StripTuner::remember(const StripChoice& choice) {
  const std::lock_guard lock(mutex_);
  Search search;
  search.stage = Search::Stage::settled;
  search.trials.push_back({StripSchedule::vectorized(), choice.vectorized_seconds, 0});
  search.trials.push_back({choice.schedule, choice.seconds, 0});
  searches_[key_of(choice.loop)] = std::move(search);
}

std::string pattern_of(const std::string& pattern, const Section& section) {
  return pattern + ", " + reach_name(section.reach());
}

}  // namespace longshore
