#include "plans/motion_relations.hpp"

#include "core/find_or_add.hpp"
#include "plans/intersect.hpp"

namespace longshore {

const MotionRelations::Meeting& MotionRelations::meeting(std::size_t d, const Motion& motion) {
  const std::size_t s = plan_.axes()[d];
  const Index ca = motion.source_coordinates[s], cb = motion.destination_coordinates[d];
  auto& dimension = dimensions_[d];
  const auto [place, fresh] = dimension.meetings.try_emplace({ca, cb});
  if (fresh) {
    const auto &a = plan_.source().dimensions()[s], &b = plan_.destination().dimensions()[d];
    constexpr Index enough_blocks = 1024;
    auto runs =
        extent_ == Extent::whole ? intersect(a, ca, b, cb) : beginning_of_intersection(a, ca, b, cb, enough_blocks);
    const auto first = runs.at(0);
    runs = std::move(runs).from_origin();
    place->second = {
        find_or_add(
            dimension.runs, [&](const PairedRuns& known) { return known == runs; }, [&] { return std::move(runs); }),
        first.source, first.destination};
  }
  return place->second;
}

std::size_t MotionRelations::strides(Strides& side, const Layout& layout, Index rank) const {
  const auto [place, fresh] = side.of_rank.try_emplace(rank);
  if (fresh) {
    auto strides = layout.local_strides(rank, plan_.element_bytes());
    place->second = find_or_add(
        side.different, [&](const auto& known) { return known == strides; }, [&] { return std::move(strides); });
  }
  return place->second;
}

MotionRelations::Placed MotionRelations::place(const Motion& motion) {
  const std::size_t n = plan_.axes().size();
  const std::size_t from = strides(source_, plan_.source(), motion.source);
  const std::size_t to = strides(destination_, plan_.destination(), motion.destination);
  const auto &source_strides = source_.different[from], &destination_strides = destination_.different[to];
  Placed placed;
  key_.assign({from, to});
  for (std::size_t d = 0; d < n; ++d) {
    const auto& common = meeting(d, motion);
    key_.push_back(common.runs);
    placed.source += common.source * source_strides[plan_.axes()[d]];
    placed.destination += common.destination * destination_strides[d];
  }
  auto make = [&] {
    std::vector<RelationAxis> axes;
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t d = plan_.destination().order() == Order::C ? k : n - 1 - k;
      axes.push_back({dimensions_[d].runs[key_[2 + d]], source_strides[plan_.axes()[d]], destination_strides[d]});
    }
    return Shape{key_, LoopNest(plan_.element_bytes(), std::move(axes)).canonical()};
  };
  placed.shape = find_or_add(
      shapes_, [&](const Shape& known) { return known.key == key_; }, make);
  return placed;
}

LoopNest MotionPlan::typical_relation(const Motion& motion) const {
  MotionRelations relations(*this, MotionRelations::Extent::typical);
  const auto shape = relations.place(motion).shape;
  return relations.nest(shape);
}

}  // namespace longshore
