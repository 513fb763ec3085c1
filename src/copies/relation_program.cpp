#include "longshore/copies/relation_program.hpp"

#include <algorithm>
#include <numeric>

#include "copies/list_program.hpp"
#include "copies/marked_program.hpp"
#include "longshore/relations/update.hpp"
#include "relations/parts.hpp"

namespace longshore {

namespace {

/// Runs that are neither alike nor many in a loop: one kernel call each.
struct RunsProgram {
  AddressRelation::RunList runs;
  std::vector<Index> starts;  ///< the first element of each run

  explicit RunsProgram(const AddressRelation::RunList& list) : runs(list) {
    Index n = 0;
    for (const auto& run : runs) starts.push_back(n), n += run.count;
  }

  template <class F>
  void for_each(Index first, Index last, F&& f) const {
    if (first >= last) return;
    auto k = std::size_t(std::upper_bound(starts.begin(), starts.end(), first) - starts.begin()) - 1;
    for (; k < runs.size() && starts[k] < last; ++k)
      f(runs[k].slice(std::max(first - starts[k], Index{0}), std::min(last - starts[k], runs[k].count)));
  }
};

/// The stretches of a nest of plain loops, which are cut anew at every call: no more than two kernel calls a loop.
class LoopWalk {
 public:
  LoopWalk(const LoopNest& nest, const KernelTable& table, const Combine& combine)
      : element_(nest.element_bytes()), table_(table), combine_(combine) {
    source_ = nest.source_base(), destination_ = nest.destination_base();
    for (const auto& axis : nest.axes()) {
      const auto& periods = axis.runs.periods();
      plain_ = plain_ && periods.size() == 1 && periods[0].repeats == 1 && periods[0].runs.size() == 1;
      if (!plain_) return;
      const auto& run = periods[0].runs[0];
      source_ += run.source * axis.source_stride, destination_ += run.destination * axis.destination_stride;
      if (run.length == 1 || run.count == 1) {
        const bool single = run.length == 1 && run.count > 1;  // elements in step
        loops_.push_back({run.length * run.count, axis.source_stride * (single ? run.source_step : 1),
                          axis.destination_stride * (single ? run.destination_step : 1)});
      } else {
        loops_.push_back(
            {run.count, run.source_step * axis.source_stride, run.destination_step * axis.destination_stride});
        loops_.push_back({run.length, axis.source_stride, axis.destination_stride});
      }
    }
    for (std::size_t k = loops_.size(); k-- > 1;) loops_[k - 1].inner = loops_[k].inner * loops_[k].count;
  }

  bool plain() const { return plain_ && !loops_.empty(); }
  void run(Index first, Index last, std::byte* d, const std::byte* s, Stores stores) const {
    walk(0, first, last, d + destination_, s + source_, stores);
  }

 private:
  struct PairLoop {
    Index count, source_step, destination_step;
    Index inner = 1;  ///< elements of one step
  };

  void walk(std::size_t k, Index first, Index last, std::byte* d, const std::byte* s, Stores stores) const {
    const auto& loop = loops_[k];
    if (k + 1 == loops_.size())
      return blocks(d + first * loop.destination_step, s + first * loop.source_step,
                    {element_, last - first, loop.source_step, loop.destination_step}, stores);
    const Index head = first / loop.inner, tail = last / loop.inner;
    auto at = [&](Index i, Index from, Index to) {
      walk(k + 1, from, to, d + i * loop.destination_step, s + i * loop.source_step, stores);
    };
    if (head == tail) return at(head, first % loop.inner, last % loop.inner);
    const Index whole = head + (first % loop.inner != 0);
    if (whole > head) at(head, first % loop.inner, loop.inner);
    if (k + 2 < loops_.size())
      for (Index i = whole; i < tail; ++i) at(i, 0, loop.inner);
    else if (tail > whole)
      plane(loop, loops_[k + 1], tail - whole, d + whole * loop.destination_step, s + whole * loop.source_step, stores);
    if (last % loop.inner != 0) at(tail, 0, last % loop.inner);
  }

  /// Two whole loops, in the order that suits memory, as `CopyProgram` would have it.
  void plane(const PairLoop& outer, const PairLoop& inner, Index n, std::byte* d, const std::byte* s,
             Stores stores) const {
    const bool exchange = std::abs(outer.destination_step) < std::abs(inner.destination_step);
    const auto &slow = exchange ? inner : outer, &fast = exchange ? outer : inner;
    const Index n_slow = exchange ? inner.count : n, n_fast = exchange ? n : inner.count;
    const BlockLoops both{element_, n_fast,           fast.source_step,     fast.destination_step,
                          n_slow,   slow.source_step, slow.destination_step};
    if (combine_.is_copy() && std::abs(fast.source_step) > std::abs(slow.source_step))
      return table_.transpose(d, s, both, stores);
    blocks(d, s, both, stores);
  }
  void blocks(std::byte* d, const std::byte* s, const BlockLoops& loops, Stores stores) const {
    combine_.is_copy() ? table_.blocks(d, s, loops, stores) : combine_.apply(d, s, loops);
  }

  Index element_, source_ = 0, destination_ = 0;
  const KernelTable& table_;
  const Combine& combine_;
  std::vector<PairLoop> loops_;
  bool plain_ = true;
};

/// A nest as a whole, and its stretches.
struct NestProgram {
  LoopNest nest;
  CopyProgram program;
  LoopWalk walk;
};

/// What has a reduction: strictly in message order, so that sums do not depend on how the relation is kept. And lists
/// that are not just copied.
struct OrderedProgram {
  AddressRelation relation;
};

using Executable = std::variant<NestProgram, ListProgram, MarkedProgram, PackedProgram, RunsProgram, OrderedProgram>;

/// Packed lists of so many blocks are unpacked once, to 4 MiB of indices at most: in cache, unpacking anew every time
/// costs a fifth. Longer ones stay packed, and are unpacked as they are used.
constexpr Index unpacked_entries = Index{1} << 20;

std::vector<OffsetPair> blocks_of(const PackedList& list) {
  std::vector<OffsetPair> starts;
  starts.reserve(std::size_t(list.source().size()));
  for_each_run(*list.reader(0, list.elements()), [&](const OffsetRun& block) { starts.push_back(block.at(0)); });
  return starts;
}

/// The elements of the largest block that all runs are made of: 1 where a run has gaps.
Index common_block(const AddressRelation::RunList& runs, Index element) {
  Index block = 0;
  for (const auto& run : runs) {
    if (run.count > 1 && (run.source_step != element || run.destination_step != element)) return 1;
    block = std::gcd(block, run.count);
  }
  return block;
}

/// A kernel call takes as long as so many listed blocks: shorter runs are listed.
constexpr Index blocks_a_call = 16;

}  // namespace

struct RelationProgram::Implementation {
  Stores stores;  ///< of a stretch of near_bytes and more
  const KernelTable* table;
  Index element, elements, near_bytes;
  Interval source, destination;
  Update update;
  struct Step {
    Index first, last;  ///< positions
    Executable executable;
  };
  std::vector<Step> steps;

  Implementation(const AddressRelation& given, const Options& options)
      : stores(options.stores.value_or(given.bytes() >= far_bytes ? Stores::streaming : Stores::cached)),
        table(options.table ? options.table : &kernels(stores)),
        element(given.element_bytes()),
        elements(given.elements()),
        near_bytes(options.near_bytes),
        source(given.source_extent()),
        destination(given.destination_extent()),
        update(given.reduction().is_replace() ? Update(options.combine) : Update(given.reduction())) {
    if (update.is_reduction()) {
      steps.push_back({0, elements, OrderedProgram{given}});
      return;
    }
    const auto relation = given.canonical();
    const auto is_nest = [](const auto& part) { return std::holds_alternative<LoopNest>(part); };
    if (!update.is_copy() && !std::all_of(relation.parts().begin(), relation.parts().end(), is_nest)) {
      steps.push_back({0, elements, OrderedProgram{relation}});
      return;
    }
    Index at = 0;
    for (const auto& part : relation.parts()) {
      Index n = 0;
      if (const auto* nest = std::get_if<LoopNest>(&part)) {
        n = nest->elements();
        steps.push_back({at, at + n,
                         NestProgram{*nest, CopyProgram(*nest, {stores, table, update.combine()}),
                                     LoopWalk(*nest, *table, update.combine())}});
      } else if (const auto* list = std::get_if<PackedList>(&part)) {
        n = list->elements();
        if (list->source().size() <= unpacked_entries)
          steps.push_back({at, at + n, listed(list->block() * element, blocks_of(*list))});
        else if (auto marked = MarkedProgram::make(*table, list->block() * element, *list->reader(0, n)))
          steps.push_back({at, at + n, *std::move(marked)});
        else
          steps.push_back({at, at + n, PackedProgram(*list)});
      } else if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) {
        n = Index(pairs->size());
        steps.push_back({at, at + n, listed(element, *pairs)});
      } else {
        const auto& runs = std::get<AddressRelation::RunList>(part);
        for (const auto& run : runs) n += run.count;
        const Index block = common_block(runs, element);
        if (n / block < blocks_a_call * Index(runs.size())) {
          std::vector<OffsetPair> starts;
          starts.reserve(std::size_t(n / block));
          for (const auto& run : runs)
            for (Index k = 0; k < run.count; k += block) starts.push_back(run.at(k));
          steps.push_back({at, at + n, listed(block * element, starts)});
        } else {
          steps.push_back({at, at + n, RunsProgram(runs)});
        }
      }
      at += n;
    }
  }

  /// Blocks of `block` bytes at these pairs.
  Executable listed(Index block, std::span<const OffsetPair> pairs) const {
    PairReader blocks(pairs);
    if (auto marked = MarkedProgram::make(*table, block, blocks)) return *std::move(marked);
    return ListProgram(block, pairs);
  }

  void run_some(const NestProgram& program, Index first, Index last, std::byte* d, const std::byte* s,
                Stores how) const {
    if (first == 0 && last == program.nest.elements() && how == stores) return program.program.run(d, s);
    if (program.walk.plain()) return program.walk.run(first, last, d, s, how);
    for (const auto& piece : program.nest.slice(first, last))
      CopyProgram(piece, {how, table, update.combine()}).run(d, s);
  }

  /// Lists of blocks, which a stretch of elements may cut.
  template <class Blocks>
  void run_some(const Blocks& program, Index first, Index last, std::byte* d, const std::byte* s, Stores how) const {
    const Index each = program.block() / element;  // elements
    const Index whole = ceil_div(first, each), end = last / each;
    auto cut = [&](Index k, Index from, Index to) {
      const auto at = program.at(k);
      table->copy(d + at.destination + from * element, s + at.source + from * element, (to - from) * element,
                  Stores::cached);
    };
    if (whole > end) return cut(first / each, first % each, last - first / each * each);
    if (first % each != 0) cut(first / each, first % each, each);
    program.run(*table, how, d, s, whole, end);
    if (last % each != 0) cut(end, 0, last % each);
  }

  void run_some(const RunsProgram& program, Index first, Index last, std::byte* d, const std::byte* s, Stores) const {
    program.for_each(first, last, [&](const OffsetRun& run) {
      std::byte* to = d + run.destination;
      const std::byte* from = s + run.source;
      if (run.count == 1 || (run.source_step == element && run.destination_step == element))
        return table->copy(to, from, run.count * element, Stores::cached);
      table->blocks(to, from, {element, run.count, run.source_step, run.destination_step}, Stores::cached);
    });
  }

  void run_some(const OrderedProgram& program, Index first, Index last, std::byte* d, const std::byte* s,
                Stores) const {
    const auto some = program.relation.reader(first, last);
    for_each_run(*some, [&](const OffsetRun& run) {
      std::byte* const to = d + run.destination;
      const std::byte* const from = s + run.source;
      if (update.is_reduction())
        update.reduction().apply(to, from, run.count, run.destination_step, run.source_step);
      else
        update.combine().apply(to, from, {element, run.count, run.source_step, run.destination_step});
    });
  }

  void run(Index first, Index last, std::byte* d, const std::byte* s) const {
    const Stores how = (last - first) * element < near_bytes ? Stores::cached : stores;
    for (const auto& step : steps) {
      const Index from = std::max(first, step.first), to = std::min(last, step.last);
      if (from >= to) continue;
      std::visit([&](const auto& program) { run_some(program, from - step.first, to - step.first, d, s, how); },
                 step.executable);
    }
    if (how == Stores::streaming) table->fence();
  }
};

RelationProgram::RelationProgram(const AddressRelation& relation, const Options& options)
    : implementation_(std::make_unique<const Implementation>(relation, options)) {}
RelationProgram::~RelationProgram() = default;
RelationProgram::RelationProgram(RelationProgram&&) noexcept = default;
RelationProgram& RelationProgram::operator=(RelationProgram&&) noexcept = default;

void RelationProgram::run(std::byte* destination, const std::byte* source) const {
  const auto& self = *implementation_;
  if (self.steps.size() == 1)
    if (const auto* nest = std::get_if<NestProgram>(&self.steps[0].executable))
      return nest->program.run(destination, source);
  self.run(0, self.elements, destination, source);
}

void RelationProgram::run(Index first, Index last, std::byte* destination, const std::byte* source) const {
  check_positions(first, last, implementation_->elements);
  implementation_->run(first, last, destination, source);
}

Index RelationProgram::elements() const { return implementation_->elements; }
Index RelationProgram::element_bytes() const { return implementation_->element; }
Interval RelationProgram::source_extent() const { return implementation_->source; }
Interval RelationProgram::destination_extent() const { return implementation_->destination; }

std::string RelationProgram::describe() const {
  struct Words {
    std::string operator()(const NestProgram& p) const { return p.program.describe(); }
    std::string operator()(const ListProgram& p) const { return p.describe(); }
    std::string operator()(const MarkedProgram& p) const { return p.describe(); }
    std::string operator()(const PackedProgram& p) const { return p.describe(); }
    std::string operator()(const RunsProgram& p) const { return std::to_string(p.runs.size()) + " separate runs"; }
    std::string operator()(const OrderedProgram& p) const {
      const auto& reduction = p.relation.reduction();
      return (reduction.is_replace() ? "scaled" : std::string(reduce_name(reduction.op()))) + " in message order";
    }
  };
  const auto& steps = implementation_->steps;
  if (implementation_->elements == 0) return "nothing";
  std::string text;
  for (std::size_t k = 0; k < steps.size() && k < 3; ++k)
    text += (k ? "; " : "") + std::visit(Words{}, steps[k].executable);
  return steps.size() > 3 ? text + "; and " + std::to_string(steps.size() - 3) + " more" : text;
}

Index RelationProgram::workspace_bytes() const {
  struct Size {
    Index operator()(const NestProgram& p) const { return Index(sizeof p) + p.program.workspace_bytes(); }
    Index operator()(const ListProgram& p) const { return p.workspace_bytes(); }
    Index operator()(const MarkedProgram& p) const { return p.workspace_bytes(); }
    Index operator()(const PackedProgram& p) const { return p.workspace_bytes(); }
    Index operator()(const RunsProgram& p) const {
      return Index(sizeof p + p.runs.size() * sizeof(OffsetRun) + p.starts.size() * sizeof(Index));
    }
    Index operator()(const OrderedProgram& p) const { return p.relation.workspace_bytes(); }
  };
  Index bytes = sizeof(Implementation);
  for (const auto& step : implementation_->steps) bytes += std::visit(Size{}, step.executable);
  return bytes;
}

Assembler::Assembler(const AddressRelation& relation, const RelationProgram::Options& options)
    : program_(relation.assembly(), {options.stores, options.table, std::max(options.near_bytes, far_bytes)}) {}

Disassembler::Disassembler(const AddressRelation& relation, const RelationProgram::Options& options)
    : program_(relation.disassembly(), options) {}

}  // namespace longshore
