// One pass over the members, 128 at a time; what only pays for maps that repeat is looked into for those alone.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ranks/block_statistics.hpp"
#include "ranks/forms.hpp"
#include "ranks/make.hpp"

namespace longshore {

namespace ranks {

namespace {

/// Members put together to affine runs as they come. With `near`, the second of only two may begin the next run
/// instead, where that is by far the closer of its neighbours.
class RunCollector {
 public:
  explicit RunCollector(bool near) : near_(near) {}
  void push(Index value) {
    if (run_.count == 0) {
      run_ = {value, 1, 1};
      return;
    }
    const Index step = value - last_();
    if (run_.count > 1 && step == run_.step) {
      ++run_.count;
      return;
    }
    if (step == 0) broken_ = true;
    if (run_.count == 1) {
      run_ = {run_.first, step, 2};
    } else if (near_ && run_.count == 2 && std::abs(run_.step) >= 4 * std::abs(step)) {
      runs_.push_back({run_.first, 1, 1});
      run_ = {last_(), step, 2};
    } else {
      runs_.push_back(run_);
      run_ = {value, 1, 1};
    }
  }
  /// n values first, first + step, ... Steps are not 0.
  void push(Index first, Index step, Index n) {
    for (; n > 0 && !(run_.count > 2 && step == run_.step && first == last_() + step); --n, first += step) push(first);
    run_.count += n;
  }
  std::vector<AffineRun> finish() {
    if (run_.count > 0) runs_.push_back(run_);
    if (broken_) runs_.clear();
    return std::move(runs_);
  }
  std::size_t size() const { return runs_.size(); }

 private:
  Index last_() const { return run_.first + run_.step * (run_.count - 1); }
  std::vector<AffineRun> runs_;
  AffineRun run_;
  bool near_, broken_ = false;
};

/// Runs of one step cut to pieces of equal count, so that two that happen to continue one another are two again. Long
/// runs that share no long piece stay as they are: the pieces would be many more than the runs.
bool cut_to_equal(std::vector<AffineRun>& runs) {
  Index count = 0, pieces_in_all = 0;
  for (const auto& run : runs) count = std::gcd(count, run.step == runs[0].step ? run.count : 1);
  for (const auto& run : runs) pieces_in_all += run.count / std::max<Index>(count, 1);
  if (count < 2 || pieces_in_all > 4 * Index(runs.size()) + 1024) return false;
  std::vector<AffineRun> pieces;
  for (const auto& run : runs)
    for (Index k = 0; k < run.count; k += count) pieces.push_back({run.first + k * run.step, run.step, count});
  runs = std::move(pieces);
  return true;
}

/// Loops that the runs are, level by level; or, where the firsts of some level follow no rule, the list of them and the
/// loops inside.
void fold(Analysis& analysis) {
  if (analysis.runs.empty()) return;
  std::vector<AffineNest::Axis> axes;
  std::vector<AffineRun> level = analysis.runs;
  const Index base = level[0].first;
  for (;;) {
    Index count = level[0].count;
    const Index step = level[0].step;
    const bool uniform = std::all_of(level.begin(), level.end(), [&](const AffineRun& run) {
      return run.count == count && (count == 1 || run.step == step);
    });
    if (uniform ? count == 1 : !cut_to_equal(level)) break;
    count = level[0].count;
    axes.push_back({count, step});
    if (level.size() == 1) {
      analysis.nest = AffineNest::make(base, axes);
      return;
    }
    RunCollector collector(false);
    for (const auto& run : level) collector.push(run.first);
    auto next = collector.finish();
    if (next.empty()) return;  // a first comes twice: who asks for distinct ranks will say so
    if (next.size() == level.size()) {
      level = std::move(next);
      break;
    }
    level = std::move(next);
  }
  if (level.size() == 1 && axes.empty() && level[0].count == 1) {
    analysis.nest = AffineNest::make(base, {});
    return;
  }
  Index inner_size = 1;
  for (const auto& axis : axes) inner_size *= axis.count;
  constexpr Index worth = 4;
  if (inner_size < worth) return;
  // Inner loops begin at their lowest rank, firsts are on a lattice that keeps them apart.
  Index lowest = 0;
  for (const auto& axis : axes) lowest += std::min<Index>(axis.stride, 0) * (axis.count - 1);
  auto inner = AffineNest::make(-lowest, axes);
  if (!inner) return;
  OuterInner product{*inner, 0, 0, {}, nullptr};
  for (const auto& run : level)
    for (Index k = 0; k < run.count; ++k) product.outer.push_back(run.first + run.step * k + lowest);
  product.base = *std::min_element(product.outer.begin(), product.outer.end());
  for (auto& first : product.outer) first -= product.base, product.unit = std::gcd(product.unit, first);
  if (product.unit <= inner->highest()) return;
  for (auto& first : product.outer) first /= product.unit;
  const Index world = *std::max_element(product.outer.begin(), product.outer.end()) + 1;
  product.outer_analysis = std::make_shared<const Analysis>(analyse_order(Members(product.outer), world));
  analysis.product = std::move(product);
}

/// Members at random that all are some unit apart, as leaders of nodes are: as
/// the list of how many units. The sample tells most of those that are not.
void look_for_unit(Analysis& analysis, const Members& members) {
  constexpr Index least = 64, most = Index{1} << 24;
  if (analysis.nest || analysis.product || !analysis.runs.empty() || analysis.size < least || analysis.size > most)
    return;
  Index unit = 0;
  auto keeps = [&](Index apart) {
    if (unit == 0 || apart % unit != 0) unit = std::gcd(unit, apart);
    return unit != 1;
  };
  for (const Index w : analysis.sample)
    if (!keeps(w - analysis.lowest)) return;
  OuterInner product{AffineNest::stride(0, 1, 1), analysis.lowest, 0, {}, nullptr};
  product.outer.reserve(std::size_t(analysis.size));
  members.each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values)
      if (unit != 1 && keeps(w - analysis.lowest)) product.outer.push_back(w - analysis.lowest);
  });
  if (unit < 2) return;
  product.unit = unit;
  for (auto& first : product.outer) first /= unit;
  const Index world = (analysis.highest - analysis.lowest) / unit + 1;
  product.outer_analysis = std::make_shared<const Analysis>(analyse_order(Members(product.outer), world));
  analysis.product = std::move(product);
}

/// Whether stretches of some steps come again and again: looked at in a few places.
/// They are long enough not to in sets that are dense, but otherwise at random.
bool is_repetitive(const Members& members) {
  constexpr Index places = 8, stretch = 512, window = 24;
  if (members.size() < 64) return false;
  const bool short_map = members.size() < 2 * places * stretch;  // looked at as one stretch from its beginning
  const Index n = short_map ? std::min(places * stretch, members.size()) : stretch;
  std::vector<Index> values(std::size_t(n), 0);
  // Hashes share a bit now and then: a table of sixteen bits for each keeps that rare.
  constexpr int table_bits = 16;
  std::vector<bool> seen(std::size_t{1} << table_bits);
  Index looked = 0, distinct = 0;
  for (Index place = 0; place < places; ++place) {
    const Index first = short_map ? 0 : (members.size() - n) / (places - 1) * place;
    members.read(first, n, values.data());
    // The sum over a window of each step's hash times a power of its place, which rolls on from one window to the next.
    constexpr std::uint64_t power = 0xD6E8FEB86659FD93u;
    std::uint64_t sum = 0, oldest = 1;
    for (Index k = 0; k < window; ++k) oldest *= power;
    auto step_hash = [&](Index k) {
      const auto mixed =
          (std::uint64_t(values[std::size_t(k)]) - std::uint64_t(values[std::size_t(k - 1)])) * 0x9E3779B97F4A7C15u;
      return mixed ^ mixed >> 29;
    };
    for (Index k = 1; k < n; ++k) {
      sum = sum * power + step_hash(k);
      if (k > window) sum -= oldest * step_hash(k - window);
      if (k < window) continue;
      const auto slot = std::size_t((sum ^ sum >> 31) * 0x9E3779B97F4A7C15u >> (64 - table_bits));
      distinct += !seen[slot];
      seen[slot] = true;
      ++looked;
    }
    if (short_map) break;
  }
  return distinct * 2 < looked;
}

/// About how large a grammar of the steps is. The number of distinct stretches of k symbols, over k, at its
/// largest (the substring complexity of Raskhodnikova and others, and of Kociumaka, Navarro and Prezza) is
/// what any such grammar needs at least, and what good ones exceed by a logarithm. Of a long text, stretches
/// from the beginning, the middle and the end are looked at.
void estimate_grammar(Analysis& out) {
  constexpr std::size_t most_runs = std::size_t{1} << 14;
  std::vector<std::uint64_t> text;
  auto mix = [](std::uint64_t a, std::uint64_t b) {
    a = (a ^ b * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
    return a ^ a >> 29;
  };
  const auto& runs = out.runs;
  const std::size_t looked = std::min(runs.size(), most_runs), places = looked < runs.size() ? 4 : 1;
  for (std::size_t k = 0; k < looked; ++k) {
    const std::size_t stretch = looked / places, place = std::min(k / stretch, places - 1);
    const std::size_t j = k + (places > 1 ? (runs.size() - looked) / (places - 1) * place : 0);
    if (j > 0) text.push_back(mix(std::uint64_t(runs[j].first - runs[j - 1].last()), 1));
    if (runs[j].count > 1) text.push_back(mix(std::uint64_t(runs[j].step), std::uint64_t(runs[j].count)));
  }
  const double times = double(runs.size()) / double(looked);
  double complexity = 1, terminals = 1;
  std::vector<std::uint64_t> hashes = text;  // of the stretches of `length` that begin at each place
  std::vector<bool> seen;
  int table_bits = 4;
  while ((std::size_t{1} << table_bits) < 8 * text.size()) ++table_bits;
  for (std::size_t length = 1; length <= text.size(); length *= 2) {
    seen.assign(std::size_t{1} << table_bits, false);
    Index distinct = 0;
    for (const auto hash : hashes) {
      const auto slot = std::size_t(mix(hash, length) >> (64 - table_bits));
      distinct += !seen[slot];
      seen[slot] = true;
    }
    if (length == 1) terminals = double(distinct);
    complexity = std::max(complexity, double(distinct) / double(length));
    if (2 * length > text.size()) break;
    for (std::size_t k = 0; k + 2 * length <= text.size(); ++k) hashes[k] = mix(hashes[k], hashes[k + length]);
    hashes.resize(text.size() - 2 * length + 1);
  }
  // What does not repeat in the beginning is taken to go on so.
  const double size = double(text.size()), growth = complexity > size / 16 ? times : 1;
  const double logarithm = std::log2(std::max(size * times / (complexity * growth), 2.0));
  const double symbols = complexity * growth * std::max(0.75 * logarithm, 2.0);
  out.grammar_rules = Index(terminals * growth + symbols / 3) + 1,
  out.grammar_top = Index(std::min(symbols, size * times)) + 1;
}

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
    DagForm dag(intervals_of(out.runs.empty() ? members : Members(out.runs)), bits, most_nodes);
    out.dag_nodes = dag.nodes(), out.dag_leaves = dag.leaves();
    out.paths = dag.paths(BddForm::most_paths);
    out.diagram = std::get<1>(keep(std::move(dag)));
  } catch (const Error&) {
    // More nodes than are worth it.
  }
}

}  // namespace

std::vector<AffineRun> merged_runs(std::span<const AffineRun> runs) {
  RunCollector collector(false);
  for (const auto& run : runs)
    if (run.count > 0) collector.push(run.first, run.count > 1 ? run.step : 1, run.count);
  return collector.finish();
}

Analysis analyse_simply(const Members& members, Index world, bool repetitive) {
  Analysis out;
  out.size = members.size(), out.world = world;
  if (out.size == 0) {
    out.nest = AffineNest();
    return out;
  }
  auto take_sample = [&] {
    out.sample.resize(std::size_t(std::min<Index>(out.size, 1000)));
    members.read((out.size - Index(out.sample.size())) / 2, Index(out.sample.size()), out.sample.data());
  };
  // Beyond this many members, loops are taken at their word.
  constexpr Index large_nest = Index{1} << 22;
  if (members.map() != nullptr && members.map()->nest() != nullptr && out.size > large_nest) {
    analyse_nest(out, *members.map()->nest());
    take_sample();
    return out;
  }
  // And so are runs, where they are few for what they stand for.
  constexpr Index most_looked_at = Index{1} << 24, long_runs = 4096, short_runs = 16;
  std::optional<std::vector<AffineRun>> known;
  constexpr Index most_runs = Index{1} << 20, most_members = Index{1} << 33;
  if (members.map() != nullptr && out.size >= long_runs)
    known = known_runs(*members.map(), std::min(out.size / long_runs, most_runs));
  if (members.map() != nullptr && !known && out.size > most_members)
    throw Error(ErrorKind::memory_limit, "a map of " + std::to_string(out.size) +
                                             " members that are no loops and no few runs is "
                                             "not looked through; at most " +
                                             std::to_string(most_members));
  const auto runs = known ? std::span<const AffineRun>(*known) : members.runs();
  const auto n = Index(runs.size());
  if (n > 0 && n < out.size / short_runs) {
    analyse_runs(out, runs);
    fold(out);
    if (out.nest || out.size > most_looked_at || n < out.size / long_runs) {
      take_sample();
      return out;
    }
    out = {};
    out.size = members.size(), out.world = world;
  }
  out.enumerated = true;
  take_sample();
  out.repetitive = repetitive;
  out.ascents = 1;
  Pass pass(out, repetitive);
  members.each_piece([&](Index first, std::span<const Index> values) { pass.piece(first, values); });
  pass.finish();
  fold(out);
  return out;
}

}  // namespace ranks

Analysis analyse_order(const Members& members, Index world) {
  auto out = ranks::analyse_simply(members, world, ranks::is_repetitive(members));
  if (!out.enumerated) return out;
  ranks::look_for_unit(out, members);
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
