/// Relations compiled for execution.
#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "copies/gathered_tiles.hpp"
#include "copies/list_program.hpp"
#include "longshore/copies/copy_program.hpp"

namespace longshore {

namespace {

/// Fewer and longer loops that say the same.
void simplify(BlockLoops& loops) {
  auto& [block, n0, s0, d0, n1, s1, d1] = loops;
  if (n0 == 1) n0 = n1, s0 = s1, d0 = d1, n1 = 1;
  if (n1 > 1 && s1 == n0 * s0 && d1 == n0 * d0) n0 *= n1, n1 = 1;
  if (n1 == 1) s1 = d1 = 0;
}

/// A period of an axis in bytes: its runs, and how often and how far apart they come again.
struct Period {
  std::vector<PlacedLoops> runs;
  Index repeats, source_period, destination_period;
};

using Axis = std::vector<Period>;

/// Runs of one period are repeated by themselves as long as their lines are in the first-level cache.
constexpr Index repeated_bytes = 8192;

/// Blocks of a list that is repeated, and their bytes: it and what they are of stay in the first-level cache.
constexpr Index most_listed = 1024, longest_listed = 32;

/// The axis as loops over blocks of `block` bytes, which are what is inside it. On the innermost one, elements that
/// follow each other are longer blocks, so that a loop is left for the repetitions: a kernel's call for each of them
/// would take longer than what it moves.
Axis compile_axis(const RelationAxis& axis, Index block, bool innermost) {
  const Index ss = axis.source_stride, ds = axis.destination_stride;
  const bool dense = innermost && ss == block && ds == block;
  Axis result;
  for (const auto& given : axis.runs.periods()) {
    Period period{{}, given.repeats, given.source_period * ss, given.destination_period * ds};
    bool repeatable = period.repeats > 1;
    for (const auto& run : given.runs) {
      const Index s1 = run.source_step * ss, d1 = run.destination_step * ds;
      period.runs.push_back({run.source * ss, run.destination * ds,
                             dense ? BlockLoops{block * run.length, run.count, s1, d1, 1, 0, 0}
                                   : BlockLoops{block, run.length, ss, ds, run.count, s1, d1}});
      simplify(period.runs.back().loops);
      repeatable &= period.runs.back().loops.n1 == 1;
    }
    const Index span = std::max(std::abs(period.source_period), std::abs(period.destination_period));
    Index together = period.repeats;
    if (period.runs.size() > 1)
      together = innermost ? std::min(together, repeated_bytes / std::max<Index>(span, 1)) : 1;
    if (!repeatable || together < 2) {
      result.push_back(std::move(period));
      continue;
    }
    const auto repeat = [&](Index n, Index times, Index first) {
      Period one{period.runs, times, together * period.source_period, together * period.destination_period};
      for (auto& [source, destination, loops] : one.runs) {
        source += first * period.source_period, destination += first * period.destination_period;
        loops.n1 = n, loops.s1 = period.source_period, loops.d1 = period.destination_period;
        simplify(loops);
      }
      result.push_back(std::move(one));
    };
    const Index times = period.repeats / together, rest = period.repeats % together;
    repeat(together, times, 0);
    if (rest > 0) repeat(rest, 1, times * together);
  }
  return result;
}

/// The loops of an axis that is no more than two.
const PlacedLoops* only_loops(const Axis& axis) {
  return axis.size() == 1 && axis[0].repeats == 1 && axis[0].runs.size() == 1 ? &axis[0].runs[0] : nullptr;
}

/// Calls f(loops, destination, source) for every repetition of every run, in order.
template <class F>
void for_each_run(const Axis& axis, std::byte* destination, const std::byte* source, F&& f) {
  for (const auto& period : axis)
    for (Index k = 0; k < period.repeats; ++k)
      for (const auto& run : period.runs)
        f(run.loops, destination + k * period.destination_period + run.destination,
          source + k * period.source_period + run.source);
}

/// What the leaves call: the kernels, or the arithmetic of a Combine.
struct CopyLeaf {
  const KernelTable& table;
  Stores stores;
  void blocks(std::byte* d, const std::byte* s, const BlockLoops& loops) const { table.blocks(d, s, loops, stores); }
  void transpose(std::byte* d, const std::byte* s, const BlockLoops& loops) const {
    table.transpose(d, s, loops, stores);
  }
  void copy(std::byte* d, const std::byte* s, Index n) const { table.copy(d, s, n, stores); }
};

struct CombineLeaf {
  const Combine& combine;
  void blocks(std::byte* d, const std::byte* s, const BlockLoops& loops) const { combine.apply(d, s, loops); }
  void transpose(std::byte* d, const std::byte* s, const BlockLoops& loops) const { combine.apply(d, s, loops); }
  void copy(std::byte* d, const std::byte* s, Index n) const { combine.apply(d, s, {n, 1, 0, 0, 1, 0, 0}); }
};

}  // namespace

struct CopyProgram::Implementation {
  enum class Leaf {
    one_block,   ///< nothing but one contiguous block
    rows,        ///< the last axis, run by run
    fused_rows,  ///< the last axis is one loop: the last two axes make one call
    tiles,       ///< source and destination run fastest along different axes: transpose the last two
    gathered,    ///< the same where these are too short: all loops that make them longer are one leaf
    listed,      ///< all of these would be of a few blocks: as many as make a list
  };

  Options options;
  const KernelTable* table = nullptr;
  Index block = 0, source_base = 0, destination_base = 0, bytes = 0;
  std::vector<Axis> axes;  ///< outermost first; without those of gathered tiles
  std::optional<GatheredTiles> gathered;
  /// The list of some turns of a loop, and that loop; without the axes that it is of.
  struct Listed {
    ListProgram turns;
    Index blocks, some;  ///< of a turn, and turns
    BlockStep loop;
  };
  std::optional<Listed> listed;
  Leaf leaf = Leaf::one_block;
  /// The one kernel call that is the whole program, where it is:
  /// small messages are over before loops over axes have begun.
  struct Call {
    decltype(&KernelTable::blocks) kernel;
    PlacedLoops at;
    decltype(PreparedBlocks::run) prepared = nullptr;  ///< instead of the kernel, where there is one
  };
  std::optional<Call> only;

  Implementation(const LoopNest& given, const Options& options_) : options(options_) {
    table = options.table ? options.table : &kernels(options.stores);
    bytes = given.bytes();
    if (given.empty()) return;
    auto relation = by_destination(given);
    block = relation.element_bytes();
    source_base = relation.source_base(), destination_base = relation.destination_base();
    auto order = relation.axes();
    if (!order.empty()) {  // a last axis that is contiguous on both sides is a longer block
      const auto& last = order.back();
      if (last.runs.single_run() && last.source_stride == block && last.destination_stride == block) {
        const auto& run = last.runs.periods()[0].runs[0];
        source_base += run.source * block, destination_base += run.destination * block;
        block *= run.length;
        order.pop_back();
      }
    }
    choose_leaf(order);
    for (const auto& axis : order) axes.push_back(compile_axis(axis, block, &axis == &order.back()));
    if (leaf == Leaf::rows && axes.size() >= 2 && is_one_loop(axes.back())) leaf = Leaf::fused_rows;
    if (!options.combine.is_copy()) return;
    // A list is worth making of small blocks only, and of many times as many as it has.
    if (block <= longest_listed && bytes / block >= 4 * most_listed) {
      const auto plain = std::tuple(axes, leaf, source_base, destination_base);
      find_gathered_tiles();
      if (calls_are_short()) {
        const auto before = std::tuple(axes, leaf, source_base, destination_base);
        std::tie(axes, leaf, source_base, destination_base) = plain;
        if (!find_list()) std::tie(axes, leaf, source_base, destination_base) = before;
      }
    } else {
      find_gathered_tiles();
    }
    if (leaf != Leaf::gathered && leaf != Leaf::listed) find_only_call();
  }

  /// How often what is inside an axis is done.
  static Index visits(const Axis& axis) {
    Index n = 0;
    for (const auto& period : axis)
      for (const auto& run : period.runs) n += period.repeats * run.loops.n0 * run.loops.n1;
    return n;
  }
  /// How many calls of a kernel an axis is that is the leaf's.
  static Index calls(const Axis& axis, bool with_second_loop) {
    Index n = 0;
    for (const auto& period : axis)
      for (const auto& run : period.runs) n += period.repeats * (with_second_loop ? run.loops.n1 : 1);
    return n;
  }

  /// Whether the leaf moves so few blocks at a time that a list of them is faster: a kernel's call takes as long as a
  /// score of a list's.
  bool calls_are_short() const {
    constexpr Index least_call = 20;
    if (axes.empty()) return false;
    const std::size_t inner = leaf == Leaf::gathered ? 0 : leaf == Leaf::rows ? 1 : 2;
    Index done = 1;
    for (std::size_t k = 0; k + inner < axes.size(); ++k) done *= visits(axes[k]);
    if (inner == 1) done *= calls(axes.back(), false);
    if (inner == 2) done *= calls(axes[axes.size() - 2], true);
    if (leaf == Leaf::tiles) done *= calls(axes.back(), true);
    return bytes / block / least_call < done;
  }

  /// The blocks of axes from the k-th on, for a list.
  void add_pairs(std::size_t k, OffsetPair at, std::vector<OffsetPair>& pairs) const {
    if (k == axes.size()) return pairs.push_back(at);
    const bool last = k + 1 == axes.size();
    for (const auto& period : axes[k])
      for (Index r = 0; r < period.repeats; ++r)
        for (const auto& [source, destination, x] : period.runs)
          for (Index j = 0; j < x.n1; ++j)
            for (Index i = 0; i < x.n0; ++i) {
              const OffsetPair here{at.source + r * period.source_period + source + j * x.s1 + i * x.s0,
                                    at.destination + r * period.destination_period + destination + j * x.d1 + i * x.d0};
              if (!last) add_pairs(k + 1, here, pairs);
              for (Index b = 0; last && b < x.block; b += block)
                pairs.push_back({here.source + b, here.destination + b});
            }
  }

  /// The axes as the loops that they are, the innermost in the destination last; what is no loop stays an axis.
  void split_into_loops() {
    std::vector<Axis> loops;
    const auto add = [&](Index n, Index s, Index d) {
      if (n > 1) loops.push_back({Period{{{0, 0, {block, n, s, d, 1, 0, 0}}}, 1, 0, 0}});
    };
    for (auto& axis : axes) {
      const PlacedLoops* at = only_loops(axis);
      if (at == nullptr) {
        loops.push_back(std::move(axis));
        continue;
      }
      const auto [source, destination, x] = *at;
      source_base += source, destination_base += destination;
      add(x.n1, x.s1, x.d1), add(x.n0, x.s0, x.d0);
      if (&axis == &axes.back()) add(x.block / block, block, block);
    }
    const auto last = only_loops(loops.back()) != nullptr ? loops.end() : loops.end() - 1;
    const auto reach = [](const Axis& axis) { return std::abs(axis[0].runs[0].loops.d0); };
    std::stable_sort(loops.begin(), last, [&](const auto& a, const auto& b) { return reach(a) > reach(b); });
    axes = std::move(loops);
  }

  /// As many of the innermost loops as make a list of `most_listed` blocks, and some turns of the one outside them.
  /// False where they make a short one.
  bool find_list() {
    split_into_loops();
    std::size_t k = axes.size();
    Index blocks = 1;
    const auto inside = [&](const Axis& axis) {
      Index n = 0;
      for (const auto& period : axis)
        for (const auto& run : period.runs)
          n += period.repeats * run.loops.n0 * run.loops.n1 * (&axis == &axes.back() ? run.loops.block / block : 1);
      return n;
    };
    while (k > 0 && inside(axes[k - 1]) <= most_listed / blocks) blocks *= inside(axes[--k]);
    BlockStep loop;
    Index some = 1;
    if (k > 0)
      if (const auto* at = only_loops(axes[k - 1]); at != nullptr) {
        loop = {at->loops.n0, at->loops.s0, at->loops.d0};
        some = std::min(loop.n, most_listed / blocks);
      }
    if (blocks * some < most_listed / 8) return false;
    std::vector<OffsetPair> pairs, turn;
    add_pairs(k, {0, 0}, turn);
    std::sort(turn.begin(), turn.end(), [](const auto& a, const auto& b) { return a.destination < b.destination; });
    for (Index i = 0; i < some; ++i)
      for (const auto& [source, destination] : turn)
        pairs.push_back({source + i * loop.source, destination + i * loop.destination});
    listed.emplace(Listed{ListProgram(block, pairs), blocks, some, loop});
    leaf = Leaf::listed, gathered.reset();
    axes.resize(loop.n > 1 ? k - 1 : k);
    return true;
  }

  void run_list(std::byte* destination, const std::byte* source) const {
    const auto& [turns, blocks, some, loop] = *listed;
    for (Index i = 0; i < loop.n; i += some)
      turns.run(*table, options.stores, destination + i * loop.destination, source + i * loop.source, 0,
                std::min(some, loop.n - i) * blocks);
  }

  /// Whether loops that are no more than that make up for a short last axis.
  void find_gathered_tiles() {
    if (leaf != Leaf::tiles) return;
    const auto is_long = [&](const Axis& axis) {
      return axis[0].runs[0].loops.n0 * block >= GatheredTiles::long_enough;
    };
    if (is_long(axes.back()) && is_long(axes[axes.size() - 2])) return;
    std::vector<BlockStep> steps;
    std::vector<Axis> others;
    Index source = source_base, destination = destination_base;
    for (const auto& axis : axes) {
      const PlacedLoops* at = only_loops(axis);
      if (at == nullptr) {
        others.push_back(axis);
        continue;
      }
      const auto& [block_, n0, s0, d0, n1, s1, d1] = at->loops;
      source += at->source, destination += at->destination;
      if (n1 > 1) steps.push_back({n1, s1, d1});
      if (n0 > 1) steps.push_back({n0, s0, d0});
    }
    gathered = GatheredTiles::find(steps, block);
    if (!gathered) return;
    leaf = Leaf::gathered, source_base = source, destination_base = destination, axes = std::move(others);
    for (const auto& [n, s, d] : steps) axes.push_back({Period{{{0, 0, {block, n, s, d, 1, 0, 0}}}, 1, 0, 0}});
    const auto reach = [](const Axis& axis) { return std::abs(axis[0].runs[0].loops.d0); };
    std::stable_sort(axes.begin(), axes.end(), [&](const auto& a, const auto& b) { return reach(a) > reach(b); });
  }

  void find_only_call() {
    PlacedLoops at{source_base, destination_base, {block}};
    for (const auto& axis : axes) {
      const auto* run = only_loops(axis);
      if (run == nullptr) return;
      at.source += run->source, at.destination += run->destination;
    }
    if (axes.size() == 1 && leaf == Leaf::rows) {
      at.loops = with_blocks(only_loops(axes[0])->loops);
    } else if (axes.size() == 2 && leaf != Leaf::rows) {
      const auto &outer = only_loops(axes[0])->loops, &inner = only_loops(axes[1])->loops;
      if (outer.n1 != 1 || (leaf == Leaf::tiles && inner.n1 != 1)) return;
      at.loops = around(leaf == Leaf::tiles ? inner : with_blocks(inner), outer);
    } else if (leaf != Leaf::one_block) {
      return;
    }
    only = Call{leaf == Leaf::tiles ? &KernelTable::transpose : &KernelTable::blocks, at};
    if (leaf == Leaf::tiles || options.stores != Stores::cached) return;
    const auto prepared = table->prepare(at.loops);
    if (prepared.run != nullptr) only->prepared = prepared.run, only->at.loops = prepared.loops;
  }

  /// The same pairs visited in the destination's memory order: a write costs more than a read, and streams better.
  static LoopNest by_destination(const LoopNest& given) {
    auto axes = given.axes();
    std::stable_sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) {
      return std::abs(a.destination_stride) > std::abs(b.destination_stride);
    });
    return LoopNest(given.element_bytes(), std::move(axes), given.source_base(), given.destination_base()).canonical();
  }

  void choose_leaf(std::vector<RelationAxis>& order) {
    if (order.empty()) return;
    leaf = Leaf::rows;
    const auto fastest = std::min_element(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::abs(a.source_stride) < std::abs(b.source_stride);
    });
    const auto last = order.end() - 1;
    if (fastest == last || std::abs(fastest->source_stride) >= std::abs(last->source_stride)) return;
    leaf = Leaf::tiles;
    std::rotate(fastest, fastest + 1, last);  // bring it next to last
  }

  static bool is_one_loop(const Axis& axis) {
    const auto* run = only_loops(axis);
    return run != nullptr && with_blocks(run->loops).n1 == 1;
  }

  /// Loops as the kernels want them: contiguous blocks are one longer block.
  static BlockLoops with_blocks(const BlockLoops& x) {
    return x.s0 == x.block && x.d0 == x.block ? BlockLoops{x.block * x.n0, x.n1, x.s1, x.d1, 1, 0, 0} : x;
  }
  /// One loop within the other.
  static BlockLoops around(const BlockLoops& inner, const BlockLoops& outer) {
    return {inner.block, inner.n0, inner.s0, inner.d0, outer.n0, outer.s0, outer.d0};
  }

  template <class L>
  void run(const L& leaf_calls, std::size_t k, std::byte* destination, const std::byte* source) const {
    const std::size_t left = axes.size() - k;
    if constexpr (std::is_same_v<L, CopyLeaf>) {
      if (left == 0 && gathered) return gathered->run(*table, options.stores, destination, source);
      if (left == 0 && listed) return run_list(destination, source);
    }
    if (left == 0) return leaf_calls.copy(destination, source, block);
    if (left == 1 && leaf == Leaf::rows)
      return for_each_run(axes[k], destination, source, [&](const BlockLoops& x, std::byte* d, const std::byte* s) {
        leaf_calls.blocks(d, s, with_blocks(x));
      });
    if (left == 2 && leaf == Leaf::fused_rows) {
      const auto& inner = *only_loops(axes[k + 1]);
      const BlockLoops row = with_blocks(inner.loops);
      return for_each_run(axes[k], destination, source, [&](const BlockLoops& x, std::byte* d, const std::byte* s) {
        for (Index j = 0; j < x.n1; ++j)
          leaf_calls.blocks(d + inner.destination + j * x.d1, s + inner.source + j * x.s1, around(row, x));
      });
    }
    if (left == 2 && leaf == Leaf::tiles)
      return for_each_run(axes[k], destination, source, [&](const BlockLoops& a, std::byte* da, const std::byte* sa) {
        for_each_run(axes[k + 1], da, sa, [&](const BlockLoops& b, std::byte* db, const std::byte* sb) {
          for (Index i = 0; i < a.n1; ++i)
            for (Index j = 0; j < b.n1; ++j)
              leaf_calls.transpose(db + i * a.d1 + j * b.d1, sb + i * a.s1 + j * b.s1, around(b, a));
        });
      });
    for_each_run(axes[k], destination, source, [&](const BlockLoops& x, std::byte* d, const std::byte* s) {
      for (Index j = 0; j < x.n1; ++j)
        for (Index i = 0; i < x.n0; ++i) run(leaf_calls, k + 1, d + j * x.d1 + i * x.d0, s + j * x.s1 + i * x.s0);
    });
  }
};

CopyProgram::CopyProgram(const LoopNest& relation, const Options& options)
    : implementation_(std::make_unique<const Implementation>(relation, options)) {}
CopyProgram::~CopyProgram() = default;
CopyProgram::CopyProgram(CopyProgram&&) noexcept = default;
CopyProgram& CopyProgram::operator=(CopyProgram&&) noexcept = default;

void CopyProgram::run(std::byte* destination, const std::byte* source) const {
  const auto& self = *implementation_;
  if (self.only) {
    const auto& [kernel, at, prepared] = *self.only;
    if (prepared) return prepared(destination + at.destination, source + at.source, at.loops);
    (self.table->*kernel)(destination + at.destination, source + at.source, at.loops, self.options.stores);
    if (self.options.stores == Stores::streaming) self.table->fence();
    return;
  }
  if (self.bytes == 0) return;
  destination += self.destination_base, source += self.source_base;
  if (!self.options.combine.is_copy()) return self.run(CombineLeaf{self.options.combine}, 0, destination, source);
  self.run(CopyLeaf{*self.table, self.options.stores}, 0, destination, source);
  if (self.options.stores == Stores::streaming) self.table->fence();
}

std::string CopyProgram::describe() const {
  using Leaf = Implementation::Leaf;
  const auto& self = *implementation_;
  if (self.bytes == 0) return "nothing";
  static constexpr const char* leaf_name[] = {"one block", "rows", "fused rows", "tiles", "gathered tiles", "lists"};
  std::string text = std::string(leaf_name[int(self.leaf)]) + " of " + std::to_string(self.block) + "-byte blocks";
  if (self.leaf != Leaf::one_block) {
    text += " in";
    for (std::size_t k = 0; k < self.axes.size(); ++k) {
      Index visits = 0;
      for (const auto& period : self.axes[k])
        for (const auto& run : period.runs) visits += run.loops.n0 * run.loops.n1 * period.repeats;
      text += (k ? " x " : " ") + std::to_string(visits);
    }
    if (self.listed)
      text += (self.axes.empty() ? " " : " x ") + std::to_string(self.listed->loop.n) + " x " +
              std::to_string(self.listed->blocks);
    if (self.gathered)
      text += (self.axes.empty() ? " " : " x ") + std::to_string(self.gathered->columns()) + " x " +
              std::to_string(self.gathered->rows());
  }
  return text + (self.options.stores == Stores::streaming ? ", streaming" : "");
}

Index CopyProgram::workspace_bytes() const {
  Index bytes = sizeof(Implementation);
  if (implementation_->listed) bytes += implementation_->listed->turns.workspace_bytes();
  for (const auto& axis : implementation_->axes)
    for (const auto& period : axis) bytes += Index(sizeof(Period) + period.runs.size() * sizeof(PlacedLoops));
  return bytes;
}

}  // namespace longshore
