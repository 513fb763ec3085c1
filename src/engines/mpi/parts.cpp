#include "engines/mpi/parts.hpp"

#include <algorithm>
#include <tuple>

namespace longshore::mpi {

namespace {

/// Checks one side: exactly the parts that this process should hold, each as its layout says. Sorts them by rank.
void check_side(std::vector<Part>& parts, const Layout& layout, Index element_bytes, const Holders& holders, int me,
                const char* what) {
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
  std::vector<Part> kept;
  for (auto& part : parts) {
    const std::string name = std::string(what) + " part of layout rank " + std::to_string(part.rank);
    if (part.rank < 0) throw Error(ErrorKind::argument, name + ": ranks are not negative");
    if (!kept.empty() && kept.back().rank == part.rank) throw Error(ErrorKind::argument, "two arrays for the " + name);
    if (holders.of(part.rank) != me && layout.process_of(part.rank))
      throw Error(ErrorKind::argument, "the " + name + " belongs in process " + std::to_string(holders.of(part.rank)) +
                                           ", not in process " + std::to_string(me));
    if (!layout.process_of(part.rank)) {
      check_no_array(part.array, layout, part.rank, what);
      continue;
    }
    check_local_array(part.array, layout, part.rank, element_bytes, what);
    const auto segment = std::dynamic_pointer_cast<const SharedSegment>(part.memory);
    if (segment && !segment->contains(part.array.data, checked_mul(layout.allocated_size(part.rank), element_bytes)))
      throw Error(ErrorKind::buffer, "the " + name + " does not lie in the shared segment it comes with");
    kept.push_back(std::move(part));
  }
  parts = std::move(kept);

  const Index step = holders.placement == Placement::wrap ? holders.size : layout.world_size();
  for (Index rank = me; rank < layout.world_size(); rank += step) {
    if (!layout.process_of(rank)) continue;
    const auto place =
        std::lower_bound(parts.begin(), parts.end(), rank, [](const Part& p, Index r) { return p.rank < r; });
    if ((place == parts.end() || place->rank != rank) && layout.local_size(rank) > 0)
      throw Error(ErrorKind::argument, "no " + std::string(what) + " array for layout rank " + std::to_string(rank) +
                                           ", which owns " + std::to_string(layout.local_size(rank)) + " elements");
  }
}

void sort_motions(std::vector<HeldMotion>& motions) {
  auto key = [](const HeldMotion& m) { return std::tuple(m.peer, m.motion.source, m.motion.destination); };
  std::stable_sort(motions.begin(), motions.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

}  // namespace

HeldParts::HeldParts(const MotionPlan& plan, Holders holders, int me, std::vector<Part> sources,
                     std::vector<Part> destinations)
    : holders_(holders), me_(me), sources_(std::move(sources)), destinations_(std::move(destinations)) {
  if (holders.placement == Placement::direct) {
    for (const auto& [layout, what] : {std::pair{&plan.source(), "source"}, {&plan.destination(), "destination"}})
      if (layout->world_size() > holders.size)
        throw Error(ErrorKind::argument, std::string(what) + " layout " + layout->to_string() + " needs " +
                                             std::to_string(layout->world_size()) + " ranks, the communicator has " +
                                             std::to_string(holders.size));
  }
  check_side(sources_, plan.source(), plan.element_bytes(), holders, me, "source");
  check_side(destinations_, plan.destination(), plan.element_bytes(), holders, me, "destination");
  for (const auto& source : sources_)
    for (const auto& destination : destinations_)
      check_no_overlap(source.array, source.rank, destination.array, destination.rank);

  for (const auto& part : sources_)
    plan.for_each_send(part.rank, [&](const Motion& motion) {
      const int peer = holders_.of(motion.destination);
      if (peer != me_) outgoing_.push_back({motion, peer, part.array.data});
    });
  for (const auto& part : destinations_)
    plan.for_each_receive(part.rank, [&](const Motion& motion) {
      moved_bytes_ = checked_add(moved_bytes_, checked_mul(motion.elements, plan.element_bytes()));
      const int peer = holders_.of(motion.source);
      if (peer != me_) incoming_.push_back({motion, peer, part.array.data});
    });
  sort_motions(outgoing_);
  sort_motions(incoming_);
}

Part allocate(const Layout& layout, Index rank, Index element_bytes, CommHandle comm) {
  const auto memory = array_memory(comm, checked_mul(layout.allocated_size(rank), element_bytes));
  return {rank,
          {memory->data(), layout.local_shape(rank), layout.local_strides(rank, element_bytes), false, memory},
          memory};
}

}  // namespace longshore::mpi
