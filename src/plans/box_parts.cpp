#include "longshore/plans/box_parts.hpp"

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

}  // namespace longshore
