#include "longshore/relations/paired_runs.hpp"

#include <algorithm>

namespace longshore {

namespace {

/// Repetitions that touch on all sides are one longer run. A run of one repetition says nothing with its steps: keep
/// them zero, so that equal relations compare equal.
PairedRun tidy(PairedRun run) {
  if (run.count > 1 && run.global_step == run.length && run.source_step == run.length &&
      run.destination_step == run.length)
    run.length = checked_mul(run.length, run.count), run.count = 1;
  if (run.count == 1) run.global_step = run.source_step = run.destination_step = 0;
  return run;
}

Index elements_of(const PairedRun& run) { return checked_mul(run.length, run.count); }

/// The pairs of `run` at its positions [first, last), as up to three runs: a cut repetition, whole ones, a cut one.
void append_slice(std::vector<PairedRun>& out, const PairedRun& run, Index first, Index last) {
  auto part = [&](Index repetition, Index skip, Index length, Index count) {
    if (length <= 0 || count <= 0) return;
    PairedRun piece = run;
    piece.global += repetition * run.global_step + skip;
    piece.source += repetition * run.source_step + skip;
    piece.destination += repetition * run.destination_step + skip;
    piece.length = length;
    piece.count = count;
    out.push_back(tidy(piece));
  };
  const Index head = first / run.length, tail = last / run.length;
  if (head == tail) return part(head, first % run.length, last - first, 1);
  const bool cut = first % run.length != 0;
  if (cut) part(head, first % run.length, run.length - first % run.length, 1);
  part(head + cut, 0, run.length, tail - head - cut);
  part(tail, 0, last % run.length, 1);
}

}  // namespace

Index PairedPeriod::elements_per_period() const {
  Index n = 0;
  for (const auto& run : runs) n = checked_add(n, elements_of(run));
  return n;
}

PairedRuns::PairedRuns(std::vector<PairedPeriod> periods) {
  for (auto& period : periods) {
    std::erase_if(period.runs, [](const PairedRun& run) { return run.length <= 0 || run.count <= 0; });
    for (auto& run : period.runs) run = tidy(run);
    if (period.runs.empty() || period.repeats <= 0) continue;
    if (period.runs.size() == 1 && period.runs[0].count == 1 && period.repeats > 1) {
      // One run repeated is a run with a count: the shorter way to say it.
      auto& run = period.runs[0];
      run.count = period.repeats;
      run.global_step = period.global_period;
      run.source_step = period.source_period;
      run.destination_step = period.destination_period;
      run = tidy(run);
      period.repeats = 1;
    }
    if (period.repeats == 1) period.global_period = period.source_period = period.destination_period = 0;
    elements_ = checked_add(elements_, checked_mul(period.elements_per_period(), period.repeats));
    periods_.push_back(std::move(period));
  }
  if (periods_.size() > 1 &&
      std::all_of(periods_.begin(), periods_.end(), [](const auto& p) { return p.repeats == 1; })) {
    std::vector<PairedRun> all;
    for (const auto& period : periods_) all.insert(all.end(), period.runs.begin(), period.runs.end());
    periods_ = {PairedPeriod{compress(all), 1, 0, 0, 0}};
  }
}

PairedRuns PairedRuns::run(Index n, Index source, Index destination, Index global) {
  PairedRuns runs;
  if (n <= 0) return runs;
  runs.periods_.emplace_back().runs.push_back({global, source, destination, n, 1, 0, 0, 0});
  runs.elements_ = n;
  return runs;
}

bool PairedRuns::single_run() const {
  return periods_.size() == 1 && periods_[0].repeats == 1 && periods_[0].runs.size() == 1 &&
         periods_[0].runs[0].count == 1;
}

Index PairedRuns::run_count() const {
  Index n = 0;
  for (const auto& period : periods_) {
    Index runs = 0;
    for (const auto& run : period.runs) runs += run.count;
    n += runs * period.repeats;
  }
  return n;
}

PairedRuns::Place PairedRuns::find(Index position) const {
  check_position(position, elements_);
  Place place;
  Index each = 0;
  for (;; ++place.period) {
    each = periods_[place.period].elements_per_period();
    const Index all = each * periods_[place.period].repeats;
    if (position < all) break;
    position -= all;
  }
  place.repeat = position / each;
  position %= each;
  const auto* run = periods_[place.period].runs.data();
  for (; position >= run->length * run->count; ++run, ++place.run) position -= run->length * run->count;
  place.count = position / run->length;
  place.element = position % run->length;
  return place;
}

Index PairedRuns::position_of_destination(Index index) const {
  Index low = 0, high = elements_;
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (at(middle).destination < index)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

PairedRuns PairedRuns::restrict(Index first, Index last) const {
  check_positions(first, last, elements_);
  if (first == 0 && last == elements_) return *this;
  std::vector<PairedPeriod> out;
  Index begin = 0;  // position where the current period list begins
  for (const auto& period : periods_) {
    const Index each = period.elements_per_period();
    const Index lo = std::max<Index>(first - begin, 0), hi = std::min(last - begin, each * period.repeats);
    begin += each * period.repeats;
    if (lo >= hi) continue;
    auto slice = [&](Index k, Index from, Index to) {  // positions [from, to) of repetition k
      PairedPeriod piece;
      Index at = 0;
      for (const auto& run : period.runs) {
        const Index n = run.length * run.count;
        const Index a = std::max(from - at, Index{0}), b = std::min(to - at, n);
        if (a < b) append_slice(piece.runs, run, a, b);
        at += n;
      }
      for (auto& run : piece.runs) {
        run.global += k * period.global_period;
        run.source += k * period.source_period;
        run.destination += k * period.destination_period;
      }
      out.push_back(std::move(piece));
    };
    const Index head = lo / each, tail = hi / each;
    if (head == tail) {
      slice(head, lo % each, hi % each);
      continue;
    }
    const Index whole = head + (lo % each != 0);
    if (whole > head) slice(head, lo % each, each);
    if (tail > whole) {
      slice(whole, 0, each);
      out.back().repeats = tail - whole;
      out.back().global_period = period.global_period;
      out.back().source_period = period.source_period;
      out.back().destination_period = period.destination_period;
    }
    if (hi % each) slice(tail, 0, hi % each);
  }
  return PairedRuns(std::move(out));
}

PairedRuns PairedRuns::from_origin() && {
  if (empty()) return std::move(*this);
  const Pair first = at(0);
  for (auto& period : periods_)
    for (auto& run : period.runs)
      run.global -= first.global, run.source -= first.source, run.destination -= first.destination;
  return std::move(*this);
}

PairedRuns PairedRuns::inverse() const {
  PairedRuns result = *this;
  for (auto& period : result.periods_) {
    std::swap(period.source_period, period.destination_period);
    for (auto& run : period.runs) {
      std::swap(run.source, run.destination);
      std::swap(run.source_step, run.destination_step);
    }
  }
  return result;
}

PairedRuns PairedRuns::source_to_position() const {
  PairedRuns result = *this;
  Index position = 0;
  for (auto& period : result.periods_) {
    const Index each = period.elements_per_period(), begin = position;
    for (auto& run : period.runs) {
      run.destination = position;
      run.destination_step = run.count > 1 ? run.length : 0;
      position += run.length * run.count;
    }
    period.destination_period = period.repeats > 1 ? each : 0;
    position = begin + each * period.repeats;
  }
  return result;
}

PairedRuns PairedRuns::scaled(Index n) const {
  PairedRuns result = *this;
  auto scale = [n](Index& x) { x = checked_mul(x, n); };
  for (auto& period : result.periods_) {
    scale(period.global_period), scale(period.source_period), scale(period.destination_period);
    for (auto& run : period.runs) {
      scale(run.global), scale(run.source), scale(run.destination), scale(run.length);
      scale(run.global_step), scale(run.source_step), scale(run.destination_step);
    }
  }
  scale(result.elements_);
  return result;
}

PairedRuns PairedRuns::joined() const {
  if (single_run()) return run(elements_, periods_[0].runs[0].source, periods_[0].runs[0].destination);
  auto periods = periods_;
  Index position = 0;
  for (auto& period : periods) {
    const Index each = period.elements_per_period();
    Index at = position;
    for (auto& run : period.runs) {
      run.global = at, run.global_step = run.length;
      at += run.length * run.count;
      run = tidy(run);
    }
    period.runs = compress(period.runs);
    period.global_period = each;
    position += each * period.repeats;
  }
  return PairedRuns(std::move(periods));
}

std::vector<PairedRun> compress(const std::vector<PairedRun>& runs) {
  // First join runs that touch on both sides ...
  std::vector<PairedRun> joined;
  for (const auto& run : runs) {
    if (run.length <= 0 || run.count <= 0) continue;
    if (!joined.empty() && run.count == 1 && joined.back().count == 1) {
      auto& last = joined.back();
      if (run.global == last.global + last.length && run.source == last.source + last.length &&
          run.destination == last.destination + last.length) {
        last.length += run.length;
        continue;
      }
    }
    joined.push_back(run);
  }
  // ... then fold equal runs at equal steps into counts.
  std::vector<PairedRun> folded;
  for (const auto& run : joined) {
    if (!folded.empty() && folded.back().length == run.length) {
      auto& last = folded.back();
      const Index g = run.global - last.global, s = run.source - last.source, d = run.destination - last.destination;
      const bool continues =
          last.count == 1 || (g == last.count * last.global_step && s == last.count * last.source_step &&
                              d == last.count * last.destination_step);
      const Index gs = last.count == 1 ? g : last.global_step, ss = last.count == 1 ? s : last.source_step,
                  ds = last.count == 1 ? d : last.destination_step;
      const bool same_steps =
          run.count == 1 || (run.global_step == gs && run.source_step == ss && run.destination_step == ds);
      if (continues && same_steps) {
        last.count += run.count;
        last.global_step = gs, last.source_step = ss, last.destination_step = ds;
        continue;
      }
    }
    folded.push_back(run);
  }
  return folded;
}

}  // namespace longshore
