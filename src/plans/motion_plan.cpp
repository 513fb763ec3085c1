#include "longshore/plans/motion_plan.hpp"

#include <numeric>

#include "core/digest.hpp"
#include "longshore/regions/axes.hpp"

namespace longshore {

namespace {

std::string text_of(const std::vector<Index>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? "x" : "") + std::to_string(values[i]);
  return text;
}

/// The process of a (possibly replicated) source that serves a destination: the destination's own copy where it has
/// one, else the replicas take turns. A pure function, so that sender and receiver agree without asking.
Index serving_process(const Layout& source, const Point& coordinates, Index destination_rank,
                      Index destination_process) {
  const auto own = source.replicas() > 1 ? source.process_of(destination_rank) : std::nullopt;
  if (own && source.owner_coordinates(*own) == coordinates) return *own;
  return source.process_at(coordinates, destination_process % source.replicas());
}

/// The coordinates of one dimension that share indices with a given one, and how many.
struct Partners {
  std::vector<Index> coordinates, counts;
};

/// Calls f(elements) for every combination of partners, which `coordinates` are then.
template <class F>
void for_each_combination(const std::vector<Partners>& dimensions, Point& coordinates, F&& f) {
  for (const auto& dimension : dimensions)
    if (dimension.coordinates.empty()) return;
  Point at(dimensions.size());
  coordinates = Point(dimensions.size());
  while (true) {
    Index elements = 1;
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      coordinates[d] = dimensions[d].coordinates[std::size_t(at[d])];
      elements *= dimensions[d].counts[std::size_t(at[d])];
    }
    f(elements);
    std::size_t d = dimensions.size();
    while (d > 0 && ++at[d - 1] == Index(dimensions[d - 1].coordinates.size())) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

MotionPlan::MotionPlan(Layout source, Layout destination, Index element_bytes, std::vector<std::size_t> axes)
    : source_(std::move(source)),
      destination_(std::move(destination)),
      element_bytes_(element_bytes),
      axes_(std::move(axes)) {
  const std::size_t n = source_.rank_of_array();
  if (element_bytes_ < 1)
    throw Error(ErrorKind::type, "an element of " + std::to_string(element_bytes_) + " bytes cannot be moved");
  if (destination_.rank_of_array() != n)
    throw Error(ErrorKind::shape, "the source has " + std::to_string(n) + " dimensions, the destination " +
                                      std::to_string(destination_.rank_of_array()));
  if (axes_.empty()) {
    axes_.resize(n);
    std::iota(axes_.begin(), axes_.end(), std::size_t{0});
  }
  check_axes(axes_, n);
  for (std::size_t d = 0; d < n; ++d)
    if (destination_.shape()[d] != source_.shape()[axes_[d]])
      throw Error(ErrorKind::shape, "destination dimension " + std::to_string(d) + " has extent " +
                                        std::to_string(destination_.shape()[d]) + ", source dimension " +
                                        std::to_string(axes_[d]) + " has " + std::to_string(source_.shape()[axes_[d]]) +
                                        " (shapes " + text_of(source_.shape()) + " and " +
                                        text_of(destination_.shape()) + ")");
  checked_mul(source_.size(), element_bytes_);
}

Index MotionPlan::world_size() const { return std::max(source().world_size(), destination().world_size()); }

void MotionPlan::for_each_send(Index rank, const std::function<void(const Motion&)>& f) const {
  const auto process = source().process_of(rank);
  if (!process) return;
  Motion motion;
  motion.source = rank;
  motion.source_coordinates = source().owner_coordinates(*process);
  std::vector<Partners> dimensions(axes().size());
  for (std::size_t d = 0; d < axes().size(); ++d) {
    const auto& a = source().dimensions()[axes()[d]];
    const auto& b = destination().dimensions()[d];
    const Index ca = motion.source_coordinates[axes()[d]];
    dimensions[d].coordinates = partners(a, ca, b);
    for (const Index cb : dimensions[d].coordinates) dimensions[d].counts.push_back(common_indices(a, ca, b, cb));
  }
  for_each_combination(dimensions, motion.destination_coordinates, [&](Index elements) {
    motion.elements = elements;
    for (Index replica = 0; replica < destination().replicas(); ++replica) {
      const Index q = destination().process_at(motion.destination_coordinates, replica);
      motion.destination = destination().grid().world_rank(q);
      if (source().replicas() == 1 ||
          serving_process(source(), motion.source_coordinates, motion.destination, q) == *process)
        f(motion);
    }
  });
}

void MotionPlan::for_each_receive(Index rank, const std::function<void(const Motion&)>& f) const {
  const auto process = destination().process_of(rank);
  if (!process) return;
  Motion motion;
  motion.destination = rank;
  motion.destination_coordinates = destination().owner_coordinates(*process);
  std::vector<Partners> dimensions(axes().size());  // in source order
  for (std::size_t d = 0; d < axes().size(); ++d) {
    const auto& a = source().dimensions()[axes()[d]];
    const auto& b = destination().dimensions()[d];
    const Index cb = motion.destination_coordinates[d];
    auto& mine = dimensions[axes()[d]];
    mine.coordinates = partners(b, cb, a);
    for (const Index ca : mine.coordinates) mine.counts.push_back(common_indices(a, ca, b, cb));
  }
  for_each_combination(dimensions, motion.source_coordinates, [&](Index elements) {
    motion.elements = elements;
    motion.source = source().grid().world_rank(serving_process(source(), motion.source_coordinates, rank, *process));
    f(motion);
  });
}

List<Motion> MotionPlan::sends(Index rank) const {
  List<Motion> result;
  for_each_send(rank, [&](const Motion& motion) { result.push_back(motion); });
  return result;
}

List<Motion> MotionPlan::receives(Index rank) const {
  List<Motion> result;
  for_each_receive(rank, [&](const Motion& motion) { result.push_back(motion); });
  return result;
}

LoopNest MotionPlan::relation(const Motion& motion) const { return relation_by_dimension(motion).canonical(); }

LoopNest MotionPlan::relation_by_dimension(const Motion& motion) const {
  const auto source_strides = source().local_strides(motion.source, element_bytes());
  const auto destination_strides = destination().local_strides(motion.destination, element_bytes());
  const std::size_t n = axes().size();
  std::vector<RelationAxis> relation;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t d = destination().order() == Order::C ? k : n - 1 - k;
    const std::size_t s = axes()[d];
    relation.push_back({intersect(source().dimensions()[s], motion.source_coordinates[s], destination().dimensions()[d],
                                  motion.destination_coordinates[d]),
                        source_strides[s], destination_strides[d]});
  }
  return LoopNest(element_bytes(), std::move(relation));
}

std::string MotionPlan::to_string() const {
  std::string text = "move " + text_of(source().shape()) + " elements of " + std::to_string(element_bytes()) +
                     " bytes from " + source().to_string() + " to " + destination().to_string();
  bool permuted = false;
  for (std::size_t d = 0; d < axes().size(); ++d) permuted |= axes()[d] != d;
  if (permuted) {
    text += ", axes=";
    for (std::size_t d = 0; d < axes().size(); ++d) text += (d ? "x" : "") + std::to_string(axes()[d]);
  }
  return text;
}

std::uint64_t MotionPlan::digest() const {
  Digest digest;
  digest.mix(source().digest());
  digest.mix(destination().digest());
  digest.mix(std::uint64_t(element_bytes()));
  for (const std::size_t axis : axes()) digest.mix(axis);
  return digest.value();
}

}  // namespace longshore
