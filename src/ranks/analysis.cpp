// One pass over the members, 128 at a time; what only pays for maps that repeat is looked into for those alone.
#include "ranks/analysis.hpp"

#include <algorithm>

#include "ranks/block_statistics.hpp"
#include "ranks/forms.hpp"
#include "ranks/runs.hpp"

namespace longshore {

namespace ranks {

namespace {

/// Bytes that a chunk takes in the simplest way that holds it.
Index chunk_bytes(Index n, Index span, Index ranges, Index breaks, bool ascending, Index linear_bytes) {
  if (breaks == 0) return AffineNest::stride(0, n, 1).bytes();
  Index bytes = kept_bytes<LinearForm> + linear_bytes;
  auto or_else = [&bytes]<class Form>(std::type_identity<Form>, Index of_form) {
    bytes = std::min(bytes, kept_bytes<Form> + of_form);
  };
  or_else(std::type_identity<PackedForm>(), PackedForm::bytes_of(n, span));
  if (breaks < n / 8)
    or_else(std::type_identity<AffineRunsForm>(), AffineRunsForm::bytes_of(breaks / 2 + 1, n, span, 0));
  if (ascending) {
    or_else(std::type_identity<EliasFanoForm>(), EliasFanoForm::bytes_of(n, span));
    or_else(std::type_identity<RunsForm>(), RunsForm::bytes_of(ranges, n, span));
    if (span <= 64 * n) or_else(std::type_identity<BitmapForm>(), BitmapForm::bytes_of(n, span));
  }
  return bytes;
}

/// What is found block by block.
class Pass {
 public:
  Pass(Analysis& analysis, bool repetitive) : out_(analysis), repetitive_(repetitive) {}

  void piece(Index first, std::span<const Index> values) {
    chunk_ = {};
    for (std::size_t at = 0; at < values.size(); at += std::size_t(block_members))
      block(first + Index(at), values.data() + at, std::min(block_members, Index(values.size() - at)));
    out_.chunk_bytes += chunk_bytes(Index(values.size()), chunk_.highest - chunk_.lowest + 1, chunk_.ranges + 1,
                                    chunk_.breaks, chunk_.ascending, chunk_.linear) +
                        Index(sizeof(RankMap));
  }
  void finish() {
    if (collecting_) out_.runs = collector_.finish();
  }

 private:
  void block(Index first, const Index* v, Index n) {
    if (!values_.load(v, n)) refuse(first, v, n);
    double* x = values_.x + BlockValues::before;
    // The first member follows those that would have made the same step before it.
    if (first == 0) x[-1] = n > 1 ? 2 * x[0] - x[1] : x[0] - 1, x[-2] = 2 * x[-1] - x[0];
    const auto s = block_statistics(values_, n);
    if (first == 0)
      out_.lowest = s.lowest, out_.highest = s.highest, out_.least_step = s.least_step,
      out_.largest_step = s.largest_step;
    out_.lowest = std::min(out_.lowest, s.lowest), out_.highest = std::max(out_.highest, s.highest);
    if (s.highest >= out_.world) refuse(first, v, n);
    out_.least_step = std::min(out_.least_step, s.least_step),
    out_.largest_step = std::max(out_.largest_step, s.largest_step);
    // The step to the very first member is none.
    const bool first_up = first == 0 && x[0] > x[-1], first_one = first == 0 && x[0] - x[-1] == 1;
    out_.breaks += s.breaks;
    out_.ranges += n - s.ones + first_one;
    const Index descents = s.descents - (first == 0 && !first_up);
    out_.ascents += descents;
    out_.ascending = out_.ascending && descents == 0;
    const Index linear = LinearForm::block_bytes(s.width);
    out_.linear_bytes += linear;
    if (chunk_.empty) chunk_.lowest = s.lowest, chunk_.highest = s.highest, chunk_.empty = false;
    chunk_.lowest = std::min(chunk_.lowest, s.lowest), chunk_.highest = std::max(chunk_.highest, s.highest);
    chunk_.breaks += s.breaks, chunk_.ranges += n - s.ones, chunk_.linear += linear;
    chunk_.ascending = chunk_.ascending && descents == 0;
    if (collecting_) collect(v, n, s);
    values_.advance();
  }

  void collect(const Index* v, Index n, const BlockStatistics& s) {
    const Index most_breaks = repetitive_ ? n : n / 4;
    if (s.breaks > most_breaks || (s.least_step == 0 && s.largest_step == 0) ||
        Index(collector_.size()) > out_.size / (repetitive_ ? 1 : 8) + 64) {
      collecting_ = false;
      collector_ = RunCollector(true);
    } else if (s.least_step == s.largest_step) {
      collector_.push(v[0], s.least_step, n);
    } else {
      for (Index k = 0; k < n; ++k) collector_.push(v[k]);
    }
  }

  [[noreturn]] void refuse(Index first, const Index* v, Index n) const {
    const auto bad = std::find_if(v, v + n, [&](Index w) { return w < 0 || w >= out_.world; });
    refuse_rank(*bad, first + (bad - v), out_.world);
  }

  struct Chunk {
    bool empty = true, ascending = true;
    Index lowest = 0, highest = 0, ranges = 0, breaks = 0, linear = 0;
  };
  Analysis& out_;
  BlockValues values_;
  Chunk chunk_;
  RunCollector collector_{true};
  bool repetitive_, collecting_ = true;
};

/// What the runs themselves say, of maps that are too large to look at each member.
void analyse_runs(Analysis& out, std::span<const AffineRun> given) {
  RunCollector collector(true);
  Index position = 0;
  for (const auto& run : given) {
    if (run.count == 0) continue;
    if (run.lowest() < 0 || run.highest() >= out.world) {
      const bool first = run.first < 0 || run.first >= out.world;
      refuse_rank(first ? run.first : run.last(), first ? position : position + run.count - 1, out.world);
    }
    position += run.count;
    collector.push(run.first, run.count > 1 ? run.step : 1, run.count);
  }
  out.runs = collector.finish();
  if (out.runs.empty()) check_distinct_runs(given);  // a rank followed itself
  bool first = true;
  Index before = 0;
  for (const auto& run : out.runs) {
    auto step = [&](Index by, Index times) {
      if (times == 0) return;
      out.least_step = first ? by : std::min(out.least_step, by),
      out.largest_step = first ? by : std::max(out.largest_step, by);
      first = false;
      out.ascending = out.ascending && by > 0;
      out.ranges += by == 1 ? 0 : times, out.ascents += by > 0 ? 0 : times;
    };
    if (out.ranges == 0 && out.ascents == 0) {
      out.lowest = run.lowest(), out.highest = run.highest(), out.ranges = out.ascents = 1;
    } else {
      step(run.first - before, 1), ++out.breaks;
    }
    step(run.step, run.count - 1);
    out.breaks += run.count > 2;
    out.lowest = std::min(out.lowest, run.lowest()), out.highest = std::max(out.highest, run.highest());
    before = run.last();
  }
}

/// What the loops themselves say, of a map of them that is too large to look at each member.
void analyse_nest(Analysis& out, const AffineNest& nest) {
  out.nest = nest, out.lowest = nest.lowest(), out.highest = nest.highest(), out.ascending = nest.ascending();
  out.least_step = INT64_MAX, out.largest_step = INT64_MIN;
  out.ranges = out.ascents = 1;
  Index above = out.size, way = 0;  // how often the axes from here on step, and how far those below have gone by then
  for (std::size_t k = 0; k < nest.depth(); ++k) {
    const auto [count, stride] = nest.axis(k);
    const Index times = above - above / count, step = stride - way;
    above /= count, way += stride * (count - 1);
    out.least_step = std::min(out.least_step, step), out.largest_step = std::max(out.largest_step, step);
    out.ranges += step == 1 ? 0 : times, out.ascents += step > 0 ? 0 : times;
  }
  constexpr Index most_runs = Index{1} << 16;
  const auto inner = nest.axis(0);
  const Index runs = out.size / inner.count;
  out.breaks = 2 * (runs - 1);
  for (Index j = 0; j < runs && runs <= most_runs; ++j)
    out.runs.push_back({nest.select(j * inner.count), inner.stride, inner.count});
}

/// The decision diagram, where there is reason to hope for a small one.
void look_for_diagram(Analysis& out, const Members& members) {
  constexpr Index few_ranges = 2048, most_ranges = Index{1} << 20, most_nodes = Index{1} << 15;
  if (!out.ascending || out.size == 0 || out.ranges > (out.repetitive ? most_ranges : few_ranges) || out.nest) return;
  const int bits = FixedIntegers::bits_of(out.highest);
  try {
    DagForm dag((out.runs.empty() ? members : Members(out.runs)).intervals(), bits, most_nodes);
    out.dag_nodes = dag.nodes(), out.dag_leaves = dag.leaves();
    out.diagram = std::get<1>(keep(std::move(dag)));
  } catch (const Error&) {
    // More nodes than are worth it.
  }
}

}  // namespace

Analysis analyse_simply(const Members& members, Index world, bool repetitive) {
  Analysis out;
  out.size = members.size(), out.world = world;
  if (out.size == 0) {
    out.nest = AffineNest();
    return out;
  }
  // Beyond this many members, loops are taken at their word.
  constexpr Index large_nest = Index{1} << 22;
  if (members.map() != nullptr && members.map()->nest() != nullptr && out.size > large_nest) {
    analyse_nest(out, *members.map()->nest());
    return out;
  }
  // And so are runs, where they are few for what they stand for.
  constexpr Index most_looked_at = Index{1} << 24, long_runs = 4096, short_runs = 16;
  std::optional<std::vector<AffineRun>> known;
  constexpr Index most_runs = Index{1} << 20, most_members = Index{1} << 33;
  if (members.map() != nullptr && out.size >= long_runs)
    known = known_runs(*members.map(), std::min(out.size / long_runs, most_runs));
  if (members.map() != nullptr && !known && out.size > most_members)
    throw Error(ErrorKind::memory_limit,
                "a map of " + std::to_string(out.size) +
                    " members that are no loops and no few runs is not looked through; at most " +
                    std::to_string(most_members));
  const auto runs = known ? std::span<const AffineRun>(*known) : members.runs();
  const auto n = Index(runs.size());
  if (n > 0 && n < out.size / short_runs) {
    analyse_runs(out, runs);
    find_loops(out);
    if (out.nest || out.size > most_looked_at || n < out.size / long_runs) return out;
    out = {};
    out.size = members.size(), out.world = world;
  }
  out.enumerated = true;
  out.repetitive = repetitive;
  out.ascents = 1;
  Pass pass(out, repetitive);
  members.each_piece([&](Index first, std::span<const Index> values) { pass.piece(first, values); });
  pass.finish();
  find_loops(out);
  return out;
}

}  // namespace ranks

Analysis analyse_order(const Members& members, Index world) {
  auto out = ranks::analyse_simply(members, world, ranks::is_repetitive(members));
  if (!out.enumerated) return out;
  ranks::find_unit(out, members);
  constexpr std::size_t most_runs = std::size_t{1} << 20;
  if (!out.runs.empty() && !out.nest && out.runs.size() <= most_runs) ranks::estimate_grammar(out);
  ranks::look_for_diagram(out, members);
  return out;
}

Analysis analyse(const Members& members, Index world) {
  auto out = analyse_order(members, world);
  if (out.ascending || out.nest) return out;
  if (!out.runs.empty())
    ranks::check_distinct_runs(out.runs);
  else
    ranks::check_distinct(members, out.lowest, out.highest);
  return out;
}

}  // namespace longshore
