#include "longshore/model/copy_shape.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <variant>

namespace longshore {

namespace {

constexpr Index line_bytes = 64, lines_in_reach = 2048;

const Loop* first_loop(const AccessPattern& side) {
  const auto loop = std::find_if(side.loops.begin(), side.loops.end(), [](const Loop& l) { return l.count > 1; });
  return loop == side.loops.end() ? nullptr : &*loop;
}

Index innermost_stride(const AccessPattern& side) {
  const Loop* loop = first_loop(side);
  return loop ? std::abs(loop->stride) : 0;
}

/// The loop outside the innermost one that goes into the gaps of its stride, where single elements are visited: lines
/// are used whole, but not at once.
const Loop* filling_loop(const AccessPattern& side, Index element_bytes) {
  const Loop* inner = first_loop(side);
  if (!inner || side.block_bytes != element_bytes) return nullptr;
  const Loop* found = nullptr;
  for (const Loop& loop : side.loops)
    if (&loop > inner && loop.count > 1 && 2 * std::abs(loop.stride) <= std::abs(inner->stride) &&
        (!found || std::abs(loop.stride) < std::abs(found->stride)))
      found = &loop;
  return found && std::abs(found->stride) <= line_bytes ? found : nullptr;
}

/// Bytes of a line that are used before it leaves the caches: a run, or as many as a loop further out finds there which
/// goes on within the lines of the innermost one.
Index used_of_line(const AccessPattern& side) {
  Index lines = 1;
  const Loop* inner = first_loop(side);
  for (const Loop& loop : side.loops) {
    const Index stride = std::abs(loop.stride);
    if (&loop > inner && loop.count > 1 && stride > 0 && 2 * stride <= std::abs(inner->stride) && stride < line_bytes)
      return std::max(side.block_bytes, line_bytes * std::min(side.block_bytes, stride) / stride);
    lines = std::min(lines * std::min(loop.count, lines_in_reach + 1), lines_in_reach + 1);
    if (lines > lines_in_reach) break;
  }
  return side.block_bytes;
}

/// Runs and strides in words, rounded up: a run takes as long as the words that it needs.
ReferencePattern reference_pattern(Index stride, Index run_bytes, Index word_bytes) {
  if (stride <= run_bytes) return {};
  const Index block = ceil_div(run_bytes, word_bytes);
  return ReferencePattern(std::max(ceil_div(stride, word_bytes), block + 1), block);
}

/// What an innermost loop and one call of a kernel move, by the side with more loops.
void count_loops(CopyShape& shape, const LoopNest& nest, const AccessPattern& read, const AccessPattern& write) {
  const auto& side = read.block_bytes < write.block_bytes || read.loops.size() > write.loops.size() ? read : write;
  Index bytes = side.block_bytes, loops = 0;
  for (const Loop& loop : side.loops) {
    if (loop.count <= 1) continue;
    bytes *= loop.count;
    if (++loops == 1) shape.row_bytes = bytes;
    if (loops == 2) shape.leaf_bytes = bytes;
  }
  if (loops <= 1 && bytes == nest.bytes()) shape.row_bytes = 0;
  if (loops <= 2 && bytes == nest.bytes()) shape.leaf_bytes = 0;
}

}  // namespace

bool CopyShape::in_short_runs() const { return read.strided() && write.strided() && run_bytes < line_bytes; }

CopyShape copy_shape(const LoopNest& nest) {
  const auto read = nest.source_pattern(), write = nest.destination_pattern();
  const Index element = nest.element_bytes(), run = std::min(read.block_bytes, write.block_bytes);
  CopyShape shape;
  const Loop *from = filling_loop(read, element), *to = filling_loop(write, element);
  if ((from != nullptr) != (to != nullptr) && element <= 16) {
    const Loop &filling = from ? *from : *to, &inner = *first_loop(from ? read : write);
    shape.loops = CopyLoops::tiles, shape.word_bytes = element;
    (from ? shape.gap : shape.write_gap) = std::max<Index>(std::abs(filling.stride) / element, 1);
    (from ? shape.write_gap : shape.gap) = 0;
    // The other side's runs count where they are shorter than a line.
    if (from || read.block_bytes < line_bytes)
      shape.read = reference_pattern(innermost_stride(read), read.block_bytes, element);
    if (to || write.block_bytes < line_bytes)
      shape.write = reference_pattern(innermost_stride(write), write.block_bytes, element);
    shape.leaf_bytes = inner.count * filling.count * element;
    if (shape.leaf_bytes == nest.bytes()) shape.leaf_bytes = 0;
    return shape;
  }
  if (run < 8) shape.word_bytes = Index(std::bit_ceil(std::uint64_t(std::max<Index>(run, 1))));
  shape.run_bytes = run;
  shape.read = reference_pattern(innermost_stride(read), used_of_line(read), shape.word_bytes);
  shape.write = reference_pattern(innermost_stride(write), used_of_line(write), shape.word_bytes);
  count_loops(shape, nest, read, write);
  return shape;
}

CopyShape copy_shape(const AddressRelation& relation) {
  const LoopNest* nest = nullptr;
  Index in_nest = 0;
  for (const auto& part : relation.parts())
    if (const auto* one = std::get_if<LoopNest>(&part); one && one->elements() > in_nest)
      nest = one, in_nest = one->elements();
  if (nest && 2 * in_nest >= relation.elements()) return copy_shape(*nest);
  const Index word = std::min<Index>(std::max<Index>(relation.element_bytes(), 1), 8);
  auto gap = [&](Interval extent) { return std::max<Index>((extent.last - extent.first) / relation.bytes(), 1); };
  CopyShape shape{ReferencePattern::by_index, ReferencePattern::by_index, word};
  if (!relation.empty())
    shape.gap = gap(relation.source_extent()), shape.write_gap = gap(relation.destination_extent());
  return shape;
}

}  // namespace longshore
