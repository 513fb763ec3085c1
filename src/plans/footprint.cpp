#include "longshore/plans/footprint.hpp"

#include <algorithm>

namespace longshore {

namespace {

/// "point 3, (9, 4),": of a list that is not all in a region.
std::string first_outside(const PointList& points, const Region& region) {
  Index k = 0;
  while (region.contains(points[k])) ++k;
  return "point " + std::to_string(k) + ", " + points[k].to_string() + ",";
}

Footprint footprint(const BlockMotion& motion, const Region& region, const PointList& points, const Grid& grid,
                    const Axes& axes, const char* what, Index block) {
  if (!grid.region.contains(region))
    throw Error(ErrorKind::argument, motion.to_string() + ": the " + what + " " +
                                         (points.empty() ? std::string("region") : first_outside(points, grid.region)) +
                                         " is not within the storage of " + what + " block " + std::to_string(block) +
                                         ", " + grid.region.to_string() + "; give it more ghost cells");
  Footprint found{grid.element_bytes, 0, {}, {}, {}};
  if (points.empty()) {
    if (!region.empty()) found.offset = grid.offset_of(region.lower());
    found.extents = permuted(region.shape().to_vector(), axes),
    found.strides = permuted(grid.strides.to_vector(), axes);
    return found;
  }
  found.places = points.offsets(grid.region.lower(), grid.strides);
  found.offset = found.places[0];
  for (Index& place : found.places) place -= found.offset;
  return found;
}

/// Loops as relations have them, the last running fastest.
std::vector<Index> loops(std::vector<Index> values, Order visit) {
  if (visit == Order::F) std::reverse(values.begin(), values.end());
  return values;
}

AddressRelation listed(const Footprint& from, const Footprint& to, const Reduction& reduction) {
  AddressRelation::PairList pairs(from.places.size());
  for (std::size_t k = 0; k < pairs.size(); ++k) pairs[k] = {from.offset + from.places[k], to.offset + to.places[k]};
  auto relation = AddressRelation::from_pairs(from.element_bytes, pairs, reduction);
  constexpr std::size_t long_list = std::size_t{1} << 20;  // from which on packed lists are run as they are
  if (pairs.size() <= long_list) return relation;
  relation = relation.canonical();
  const auto& parts = relation.parts();
  if (std::any_of(parts.begin(), parts.end(), [](const auto& part) { return std::holds_alternative<LoopNest>(part); }))
    return relation;
  std::vector<AddressRelation::Part> packed;
  packed.push_back(
      PackedList(from.element_bytes, *relation.reader(), *relation.reader(), PackedIntegers::Scheme::offsets));
  return AddressRelation::from_parts(from.element_bytes, std::move(packed), reduction);
}

}  // namespace

Footprint Footprint::message(Order visit) const {
  Footprint dense{element_bytes, 0, extents, {}, {}};
  if (places.empty()) dense.strides = dense_strides(extents, visit, element_bytes).to_vector();
  for (std::size_t k = 0; k < places.size(); ++k) dense.places.push_back(Index(k) * element_bytes);
  return dense;
}

Footprint source_footprint(const BlockMotion& motion, const Grid& source) {
  return footprint(motion, motion.source_region, motion.source_points, source, motion.axes, "source", motion.source);
}

Footprint destination_footprint(const BlockMotion& motion, const Grid& destination) {
  return footprint(motion, motion.destination_region, motion.destination_points, destination, {}, "destination",
                   motion.destination);
}

AddressRelation relation_between(const Footprint& from, const Footprint& to, Order visit, const Reduction& reduction) {
  if (!from.places.empty()) return listed(from, to, reduction);
  auto strided = [&](const Footprint& a, const Footprint& b, const Reduction& how) {
    return AddressRelation::strided(a.element_bytes, loops(a.extents, visit), loops(a.strides, visit),
                                    loops(b.strides, visit), a.offset, b.offset, how);
  };
  if (from.extents == to.extents) return strided(from, to, reduction);
  // Other shapes meet in the message.
  return strided(from, from.message(visit), {}).compose(strided(to.message(visit), to, {}), reduction);
}

}  // namespace longshore
