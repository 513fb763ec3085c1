/// What one rank moves, from either kind of plan.
#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "longshore/model/predict.hpp"
#include "longshore/plans/footprint.hpp"
#include "plans/interleaving.hpp"
#include "plans/motion_relations.hpp"

namespace longshore {

namespace {

void check_rank(Index rank, Index world) {
  if (rank < 0 || rank >= world)
    throw Error(ErrorKind::argument, "rank " + std::to_string(rank) +
                                         " takes no part; the ranks of this plan lie in [0, " + std::to_string(world) +
                                         ")");
}

/// Those to one peer follow each other.
void add(std::vector<Traffic::Item>& items, Index peer, const CopyShape& shape, Index bytes) {
  for (auto item = items.rbegin(); item != items.rend() && item->peer == peer; ++item)
    if (item->shape == shape) {
      ++item->transfers, item->bytes = checked_add(item->bytes, bytes);
      return;
    }
  items.push_back({peer, shape, 1, bytes});
}

/// Of motions that are carried out with those of other ranks in the same cache lines, where their side is large: words
/// or short blocks that take turns there.
std::optional<CopyShape> joint_shape(const MotionPlan& plan) {
  const auto direction = joint_direction(plan);
  if (!direction) return {};
  const bool pull = *direction == Direction::pull;
  const auto where = *interleaved_dimension(plan);
  const auto& from = plan.source().dimensions()[plan.axes()[where.dimension]];
  const auto& to = plan.destination().dimensions()[where.dimension];
  const auto &dealt = pull ? from : to, &other = pull ? to : from;
  if (other.coordinates() > 1 && !other.intervals()) return {};  // its parts are in short pieces, too
  CopyShape shape;
  const Index run = dealt.block() * where.unit;
  shape.loops = CopyLoops::joint, shape.word_bytes = run % 8 ? std::min<Index>(run, 4) : 8;
  const ReferencePattern strided(dealt.coordinates() * run / shape.word_bytes, run / shape.word_bytes);
  (pull ? shape.write : shape.read) = strided;
  return strided.stride > strided.block ? std::optional(shape) : std::nullopt;
}

/// The largest that is no larger, so that lists that are about as sparse have one shape.
Index power_of_two(Index n) { return Index(std::bit_floor(std::uint64_t(std::max<Index>(n, 1)))); }

/// So many bytes are beyond any cache, and more are no different.
Index bounded(Wide bytes) { return Index(std::min(bytes, Wide{1} << 62)); }

/// Whether a list's points come in the order of memory, nearly all: asked of some that follow each other, all over it.
bool ascends(const PointList& points, Order order) {
  constexpr Index most_asked = 64;
  const Index neighbours = points.size() - 1, asked = std::min(neighbours, most_asked);
  Index ascending = 0;
  for (Index k = 0; k < asked; ++k) {
    const Index at = Index(Wide{k} * neighbours / asked);
    const Point a = points[at], b = points[at + 1];
    ascending += order == Order::C
                     ? std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end())
                     : std::lexicographical_compare(std::reverse_iterator(a.end()), std::reverse_iterator(a.begin()),
                                                    std::reverse_iterator(b.end()), std::reverse_iterator(b.begin()));
  }
  return 16 * ascending >= 15 * asked;
}

/// A side of a list of words, of which `gap` lie there for each that is listed: in order, they are visited as strided
/// ones are.
ReferencePattern listed_pattern(const PointList& points, Order order, Index gap) {
  if (!ascends(points, order)) return ReferencePattern::by_index;
  return gap > 1 ? ReferencePattern(gap) : ReferencePattern();
}

/// The shapes of motions between blocks: those whose boxes and grids are alike have one.
class BlockShapes {
 public:
  BlockShapes(const BlockPlan& plan, const GridFormat& format) : plan_(plan), format_(format) {
    const std::size_t dims = plan.source().dims();
    if (format_.ghost.below.dims() == 0) format_.ghost = {Point(dims), Point(dims)};
    if (plan.kind() != BlockPlan::Kind::halo) return;
    for (std::size_t d = 0; d < dims; ++d) {  // ghost cells that are filled are there
      format_.ghost.below[d] = std::max(format_.ghost.below[d], plan.halo().below[d]);
      format_.ghost.above[d] = std::max(format_.ghost.above[d], plan.halo().above[d]);
    }
  }

  CopyShape operator()(const BlockMotion& motion) {
    const auto word = std::max<Index>(format_.element_bytes, 1);
    if (motion.is_list()) {
      const auto gap = [&](const Region& region) { return power_of_two(region.size() / motion.points()); };
      CopyShape listed{ReferencePattern::by_index, ReferencePattern::by_index, std::min<Index>(word, 8)};
      listed.gap = gap(motion.source_region), listed.write_gap = gap(motion.destination_region);
      const auto read = listed_pattern(motion.source_points, format_.order, listed.gap);
      const auto write = listed_pattern(motion.destination_points, format_.order, listed.write_gap);
      // Somebody has to follow the list.
      if (read == ReferencePattern::by_index || write == ReferencePattern::by_index)
        listed.read = read, listed.write = write;
      return listed;
    }
    const Grid from = grid(plan_.source().region(motion.source), motion.source_region);
    const Grid to = grid(plan_.destination().region(motion.destination), motion.destination_region);
    const auto read = source_footprint(motion, from), write = destination_footprint(motion, to);
    std::vector<Index> key;
    for (const auto& side : {read, write}) {
      key.insert(key.end(), side.extents.begin(), side.extents.end());
      key.insert(key.end(), side.strides.begin(), side.strides.end());
    }
    auto [known, is_new] = shapes_.try_emplace(std::move(key));
    if (is_new) known->second = copy_shape(relation_between(read, write, format_.order, {}));
    return known->second;
  }
  /// Of a block with its ghost cells.
  double bytes(const Region& block) const {
    const Region grown = block.grow(format_.ghost.below, format_.ghost.above);
    double bytes = double(std::max<Index>(format_.element_bytes, 1));
    for (std::size_t d = 0; d < grown.dims(); ++d) bytes *= double(grown.extent(d));
    return bytes;
  }

 private:
  /// What is touched beyond the ghost cells is there, too.
  Grid grid(const Region& block, const Region& touched) const {
    const std::array regions{block.grow(format_.ghost.below, format_.ghost.above), touched};
    Grid grid{bounding_region(regions, block.dims()), nullptr, {}, format_.element_bytes};
    grid.strides = dense_strides(grid.region.shape(), format_.order, format_.element_bytes);
    return grid;
  }

  const BlockPlan& plan_;
  GridFormat format_;
  std::map<std::vector<Index>, CopyShape> shapes_;
};

}  // namespace

Index Traffic::bytes(const std::vector<Item>& items) {
  Index sum = 0;
  for (const auto& item : items) sum = checked_add(sum, item.bytes);
  return sum;
}

Traffic traffic(const MotionPlan& plan, Index rank) {
  check_rank(rank, plan.world_size());
  Traffic found;
  found.rank = rank;
  MotionRelations relations(plan, MotionRelations::Extent::typical);
  const auto joint = joint_shape(plan);
  const Index joint_from = joint ? joint_from_bytes(plan) : 0;
  auto together = [&](const Layout& layout, Index of) {
    return layout.local_size(of) * plan.element_bytes() >= joint_from;
  };
  std::vector<CopyShape> shapes;
  const bool by_source = joint && joint->write == ReferencePattern();
  auto take = [&](std::vector<Traffic::Item>& items, Index peer, const Motion& motion) {
    if (joint &&
        together(by_source ? plan.source() : plan.destination(), by_source ? motion.source : motion.destination))
      return add(items, peer, *joint, checked_mul(motion.elements, plan.element_bytes()));
    const auto shape = relations.place(motion).shape;
    while (shapes.size() <= shape) shapes.push_back(copy_shape(relations.nest(shapes.size())));
    add(items, peer, shapes[shape], checked_mul(motion.elements, plan.element_bytes()));
  };
  plan.for_each_send(rank, [&](const Motion& motion) {
    if (motion.destination != rank) take(found.outgoing, motion.destination, motion);
  });
  plan.for_each_receive(rank, [&](const Motion& motion) {
    take(motion.source == rank ? found.local : found.incoming, motion.source, motion);
  });
  auto part = [&](const Layout& layout) {
    return layout.process_of(rank) ? checked_mul(layout.local_size(rank), plan.element_bytes()) : 0;
  };
  // Between two moves programs go over other arrays, too: one is computed from something, and something from the other.
  constexpr Index arrays_beside = 4;
  found.touched_bytes = bounded(Wide{arrays_beside} * std::max(part(plan.source()), part(plan.destination())));
  return found;
}

Traffic traffic(const BlockPlan& plan, Index rank, const GridFormat& format) {
  check_rank(rank, plan.world_size());
  Traffic found;
  found.rank = rank, found.blocks = true, found.halo = plan.kind() == BlockPlan::Kind::halo;
  BlockShapes shapes(plan, format);
  auto take = [&](std::vector<Traffic::Item>& items, Index peer, const BlockMotion& motion) {
    add(items, peer, shapes(motion), checked_mul(motion.points(), format.element_bytes));
  };
  for (const auto& motion : plan.sends(rank))
    if (const Index peer = plan.destination().owner(motion.destination); peer != rank)
      take(found.outgoing, peer, motion);
  for (const auto& motion : plan.receives(rank)) {
    const Index peer = plan.source().owner(motion.source);
    take(peer == rank ? found.local : found.incoming, peer, motion);
  }
  // Elements that are far apart touch a cache line each.
  auto touched = [&](const std::vector<Traffic::Item>& items) {
    double sum = 0;
    for (const auto& item : items) {
      const auto& shape = item.shape;
      auto spread = [&](const ReferencePattern& pattern, Index gap) {
        const Index line = std::max<Index>(64 / shape.word_bytes, 1);
        if (shape.loops == CopyLoops::tiles) return 1.0;
        if (!pattern.strided()) return double(pattern.stride == ReferencePattern::by_index ? std::min(gap, line) : 1);
        return std::max(1.0, double(std::min(pattern.stride, line)) / double(pattern.block));
      };
      sum += double(item.bytes) * std::max(spread(shape.read, shape.gap), spread(shape.write, shape.write_gap));
    }
    return sum;
  };
  // Nor can more be touched than the blocks have, or what a plan reaches beyond them.
  double own = 0;
  for (const auto* blocks : {&plan.source(), &plan.destination()}) {
    double bytes = 0;
    for (const Index block : blocks->owned_by(rank)) bytes += shapes.bytes(blocks->region(block));
    own = std::max(own, bytes);
  }
  const auto moved = double(Traffic::bytes(found.local)) +
                     double(std::max(Traffic::bytes(found.outgoing), Traffic::bytes(found.incoming)));
  const double both = touched(found.local) + std::max(touched(found.outgoing), touched(found.incoming));
  found.touched_bytes = Index(std::min({both, std::max(own, moved), 0x1p62}));  // beyond any cache
  return found;
}

Traffic in_one_process(const std::vector<Traffic>& ranks) {
  Traffic all;
  if (!ranks.empty()) all.blocks = ranks.front().blocks, all.halo = ranks.front().halo;
  for (const auto& one : ranks) {
    for (const auto* items : {&one.local, &one.incoming})
      all.local.insert(all.local.end(), items->begin(), items->end());
    all.touched_bytes = bounded(Wide{all.touched_bytes} + one.touched_bytes);
  }
  return all;
}

NodeVolume node_volume(const MotionPlan& plan, Index node, Index ranks_per_node) {
  if (node < 0 || ranks_per_node < 1)
    throw Error(ErrorKind::argument, "node " + std::to_string(node) + " of " + std::to_string(ranks_per_node) +
                                         " ranks a node: there are nodes from 0 on, of one rank or more");
  const Index first = checked_mul(node, ranks_per_node);
  const Index last = std::min(checked_add(first, ranks_per_node), plan.world_size());
  if (first >= plan.world_size())
    throw Error(ErrorKind::argument, "node " + std::to_string(node) + " begins with rank " + std::to_string(first) +
                                         ", the ranks of this plan lie in [0, " + std::to_string(plan.world_size()) +
                                         ")");
  NodeVolume found{node, 0, 0, 0, 0};
  auto elsewhere = [&](Index rank) { return rank < first || rank >= last; };
  auto add = [&](const Motion& motion, Index& bytes, Index& messages) {
    bytes = checked_add(bytes, checked_mul(motion.elements, plan.element_bytes())), ++messages;
  };
  for (Index rank = first; rank < last; ++rank) {
    plan.for_each_send(rank, [&](const Motion& m) {
      if (elsewhere(m.destination)) add(m, found.bytes_out, found.messages_out);
    });
    plan.for_each_receive(rank, [&](const Motion& m) {
      if (elsewhere(m.source)) add(m, found.bytes_in, found.messages_in);
    });
  }
  return found;
}

}  // namespace longshore
