#include "longshore/plans/box_parts.hpp"

#include <map>

namespace longshore {

std::vector<BoxPart> parts_of_box(const Layout& layout, const std::vector<Index>& first, const std::vector<Index>& last,
                                  Index element_bytes) {
  const Layout box = layout.window(first, last);
  std::string text = "(";
  for (std::size_t d = 0; d < box.rank_of_array(); ++d) text += d ? ", *" : "*";
  const MotionPlan plan(box, Layout::parse(text + ") on 1", box.shape()), element_bytes);
  std::vector<BoxPart> parts;
  plan.for_each_receive(0, [&](const Motion& motion) {
    // The same pairs, but in the whole local array, where the box begins somewhere and has the strides of that.
    const auto dense = plan.relation_by_dimension(motion);
    const auto strides = layout.local_strides(motion.source, element_bytes);
    const auto start = layout.local_start(motion.source, first);
    auto axes = dense.axes();
    Index base = 0;
    for (std::size_t d = 0; d < axes.size(); ++d) {
      axes[d].source_stride = strides[d];
      base = checked_add(base, checked_mul(start[d], strides[d]));
    }
    parts.push_back({motion.source, LoopNest(element_bytes, std::move(axes), base).canonical()});
  });
  return parts;
}

std::vector<BoxPart> incoming_parts(const MotionPlan& plan, Index rank) {
  if (const auto& to = plan.destination(); to.ld() > 0 && to.allocated_size(rank) != to.local_size(rank))
    throw Error(ErrorKind::argument, "the destination layout " + to.to_string() + " leaves gaps between rows (ld=" +
                                         std::to_string(to.ld()) + "); give one without ld");
  std::vector<BoxPart> parts;
  plan.for_each_receive(rank, [&](const Motion& motion) { parts.push_back({motion.source, plan.relation(motion)}); });
  return parts;
}

std::vector<BlockPart> incoming_parts(const std::vector<BlockMotion>& motions,
                                      const std::function<Grid(Index block)>& grid, Order visit, const Grid* to) {
  std::map<Index, std::pair<Grid, std::vector<AddressRelation>>> from;
  Index at = 0;
  for (const auto& motion : motions) {
    auto known = from.find(motion.source);
    if (known == from.end())
      known = from.emplace(motion.source, std::pair{grid(motion.source), std::vector<AddressRelation>()}).first;
    const auto there = source_footprint(motion, known->second.first);
    auto here = to ? destination_footprint(motion, *to) : there.message(visit);
    if (!to) {
      here.offset = at;
      at = checked_add(at, checked_mul(motion.points(), there.element_bytes));
    }
    known->second.second.push_back(relation_between(there, here, visit, {}));
  }
  std::vector<BlockPart> parts;
  for (const auto& [block, relations] : from) parts.push_back({block, AddressRelation::concatenate(relations.second)});
  return parts;
}

}  // namespace longshore
