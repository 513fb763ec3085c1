/// Relations compiled for execution.
#include <algorithm>
#include <optional>

#include "longshore/copies/copy_program.hpp"

namespace longshore {

namespace {

/// Two nested strided loops in bytes, the inner one n0.
struct StridedPiece {
  Index source, destination;
  Index n0, s0, d0;
  Index n1, s1, d1;

  /// Fewer and longer loops that say the same.
  void simplify() {
    if (n0 == 1) n0 = n1, s0 = s1, d0 = d1, n1 = 1;
    if (n1 > 1 && s1 == n0 * s0 && d1 == n0 * d0) n0 *= n1, n1 = 1;
    if (n1 == 1) s1 = d1 = 0;
  }
};

struct Group {
  std::vector<StridedPiece> pieces;
  Index repeats, source_period, destination_period;
};

using Axis = std::vector<Group>;

Axis compile_axis(const RelationAxis& axis) {
  const Index ss = axis.source_stride, ds = axis.destination_stride;
  Axis result;
  for (const auto& period : axis.runs.periods()) {
    Group group{{}, period.repeats, period.source_period * ss, period.destination_period * ds};
    for (const auto& run : period.runs) {
      StridedPiece piece{run.source * ss,      run.destination * ds,     run.length, ss, ds, run.count,
                         run.source_step * ss, run.destination_step * ds};
      piece.simplify();
      group.pieces.push_back(piece);
    }
    if (group.pieces.size() == 1 && group.pieces[0].n1 == 1 && group.repeats > 1) {
      auto& piece = group.pieces[0];
      piece.n1 = group.repeats, piece.s1 = group.source_period, piece.d1 = group.destination_period;
      piece.simplify();
      group.repeats = 1;
    }
    result.push_back(std::move(group));
  }
  return result;
}

/// Calls f(piece, destination, source) for every repetition of every piece, in order.
template <class F>
void for_each_piece(const Axis& axis, std::byte* destination, const std::byte* source, F&& f) {
  for (const auto& group : axis)
    for (Index k = 0; k < group.repeats; ++k)
      for (const auto& piece : group.pieces)
        f(piece, destination + k * group.destination_period + piece.destination,
          source + k * group.source_period + piece.source);
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
    rows,        ///< the last axis, piece by piece
    fused_rows,  ///< the last axis is one loop: the last two axes make one call
    tiles,       ///< source and destination run fastest along different axes: transpose the last two
  };

  Options options;
  const KernelTable* table = nullptr;
  Index block = 0, source_base = 0, destination_base = 0, bytes = 0;
  std::vector<Axis> axes;  ///< outermost first
  Leaf leaf = Leaf::one_block;
  /// The one kernel call that is the whole program, where it is:
  /// small messages are over before loops over axes have begun.
  struct Call {
    decltype(KernelTable::blocks) kernel;
    BlockLoops loops;
    Index source, destination;
    decltype(PreparedBlocks::run) prepared = nullptr;  ///< instead of the kernel, where there is one
  };
  std::optional<Call> only;

  Implementation(const LoopNest& given, const Options& options_) : options(options_) {
    table = options.table ? options.table : &kernels();
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
    for (const auto& axis : order) axes.push_back(compile_axis(axis));
    if (leaf == Leaf::rows && axes.size() >= 2 && is_one_loop(axes.back())) leaf = Leaf::fused_rows;
    if (options.combine.is_copy()) find_only_call();
  }

  void find_only_call() {
    for (const auto& axis : axes)
      if (axis.size() != 1 || axis[0].repeats != 1 || axis[0].pieces.size() != 1) return;
    if (axes.size() == 1 && leaf == Leaf::rows) {
      const auto& piece = axes[0][0].pieces[0];
      only = Call{table->blocks, loops_of(piece), source_base + piece.source, destination_base + piece.destination};
    } else if (axes.size() == 2 && leaf != Leaf::rows) {
      const auto &outer = axes[0][0].pieces[0], &inner = axes[1][0].pieces[0];
      if (outer.n1 != 1 || (leaf == Leaf::tiles && inner.n1 != 1)) return;
      const BlockLoops row = loops_of(inner);
      only = leaf == Leaf::tiles
                 ? Call{table->transpose, {block, inner.n0, inner.s0, inner.d0, outer.n0, outer.s0, outer.d0}, 0, 0}
                 : Call{table->blocks, {row.block, row.n0, row.s0, row.d0, outer.n0, outer.s0, outer.d0}, 0, 0};
      only->source = source_base + outer.source + inner.source;
      only->destination = destination_base + outer.destination + inner.destination;
    } else if (leaf == Leaf::one_block) {
      only = Call{table->blocks, {block}, source_base, destination_base};
    }
    if (!only || only->kernel != table->blocks || options.stores != Stores::cached) return;
    const auto prepared = table->prepare(only->loops);
    if (prepared.run != nullptr) only->prepared = prepared.run, only->loops = prepared.loops;
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

  bool is_one_loop(const Axis& axis) const {
    if (axis.size() != 1 || axis[0].repeats != 1 || axis[0].pieces.size() != 1) return false;
    const auto& piece = axis[0].pieces[0];
    return piece.n1 == 1 || (piece.s0 == block && piece.d0 == block);
  }

  /// A piece as the kernels want it: contiguous elements are one longer block.
  BlockLoops loops_of(const StridedPiece& piece) const {
    if (piece.s0 == block && piece.d0 == block) return {block * piece.n0, piece.n1, piece.s1, piece.d1, 1, 0, 0};
    return {block, piece.n0, piece.s0, piece.d0, piece.n1, piece.s1, piece.d1};
  }

  template <class L>
  void run(const L& leaf_calls, std::size_t k, std::byte* destination, const std::byte* source) const {
    const std::size_t left = axes.size() - k;
    if (left == 0) return leaf_calls.copy(destination, source, block);
    if (left == 1 && leaf == Leaf::rows)
      return for_each_piece(axes[k], destination, source,
                            [&](const StridedPiece& piece, std::byte* d, const std::byte* s) {
                              leaf_calls.blocks(d, s, loops_of(piece));
                            });
    if (left == 2 && leaf == Leaf::fused_rows) {
      const auto& inner = axes[k + 1][0].pieces[0];
      const BlockLoops row = loops_of(inner);
      return for_each_piece(axes[k], destination, source,
                            [&](const StridedPiece& outer, std::byte* d, const std::byte* s) {
                              for (Index j = 0; j < outer.n1; ++j)
                                leaf_calls.blocks(d + inner.destination + j * outer.d1, s + inner.source + j * outer.s1,
                                                  {row.block, row.n0, row.s0, row.d0, outer.n0, outer.s0, outer.d0});
                            });
    }
    if (left == 2 && leaf == Leaf::tiles)
      return for_each_piece(
          axes[k], destination, source, [&](const StridedPiece& a, std::byte* da, const std::byte* sa) {
            for_each_piece(axes[k + 1], da, sa, [&](const StridedPiece& b, std::byte* db, const std::byte* sb) {
              for (Index i = 0; i < a.n1; ++i)
                for (Index j = 0; j < b.n1; ++j)
                  leaf_calls.transpose(db + i * a.d1 + j * b.d1, sb + i * a.s1 + j * b.s1,
                                       {block, b.n0, b.s0, b.d0, a.n0, a.s0, a.d0});
            });
          });
    for_each_piece(axes[k], destination, source, [&](const StridedPiece& piece, std::byte* d, const std::byte* s) {
      for (Index j = 0; j < piece.n1; ++j)
        for (Index i = 0; i < piece.n0; ++i)
          run(leaf_calls, k + 1, d + j * piece.d1 + i * piece.d0, s + j * piece.s1 + i * piece.s0);
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
    if (self.only->prepared)
      return self.only->prepared(destination + self.only->destination, source + self.only->source, self.only->loops);
    self.only->kernel(destination + self.only->destination, source + self.only->source, self.only->loops,
                      self.options.stores);
    if (self.options.stores == Stores::streaming) self.table->fence();
    return;
  }
  if (self.bytes == 0) return;
  destination += self.destination_base, source += self.source_base;
  if (!self.options.combine.is_copy()) return self.run(CombineLeaf{self.options.combine}, 0, destination, source);
  self.run(CopyLeaf{*self.table, self.options.stores}, 0, destination, source);
  if (self.options.stores == Stores::streaming) self.table->fence();
}

Index CopyProgram::bytes() const { return implementation_->bytes; }

std::string CopyProgram::describe() const {
  using Leaf = Implementation::Leaf;
  const auto& self = *implementation_;
  if (self.bytes == 0) return "nothing";
  static constexpr const char* leaf_name[] = {"one block", "rows", "fused rows", "tiles"};
  std::string text = std::string(leaf_name[int(self.leaf)]) + " of " + std::to_string(self.block) + "-byte blocks";
  if (self.leaf != Leaf::one_block) {
    text += " in";
    for (std::size_t k = 0; k < self.axes.size(); ++k) {
      Index visits = 0;
      for (const auto& group : self.axes[k])
        for (const auto& piece : group.pieces) visits += piece.n0 * piece.n1 * group.repeats;
      text += (k ? " x " : " ") + std::to_string(visits);
    }
  }
  return text + (self.options.stores == Stores::streaming ? ", streaming" : "");
}

Index CopyProgram::workspace_bytes() const {
  Index bytes = sizeof(Implementation);
  for (const auto& axis : implementation_->axes)
    for (const auto& group : axis) bytes += Index(sizeof(Group) + group.pieces.size() * sizeof(StridedPiece));
  return bytes;
}

}  // namespace longshore
