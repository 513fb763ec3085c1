#include "movers/block_copies.hpp"

#include <algorithm>
#include <map>

#include "core/digest.hpp"

namespace longshore {

namespace {

void append(std::vector<Index>& key, const Footprint& box) {
  key.insert(key.end(), box.extents.begin(), box.extents.end());
  key.insert(key.end(), box.strides.begin(), box.strides.end());
}

/// Whether elements lie as they do in their message.
bool in_order(const Footprint& elements, const Footprint& message) {
  for (std::size_t d = 0; d < elements.extents.size(); ++d)
    if (elements.extents[d] > 1 && elements.strides[d] != message.strides[d]) return false;
  return elements.places == message.places;
}

}  // namespace

std::size_t BlockCopies::Hash::operator()(const Key& key) const {
  Digest digest;
  digest.mix(key);
  return std::size_t(digest.value());
}

std::shared_ptr<const RelationProgram> BlockCopies::program(Footprint from, Footprint to, Order order, bool updates) {
  from.offset = to.offset = 0;
  auto make = [&] {
    RelationProgram::Options options;
    if (updates) options.combine = update_.combine();
    return std::make_shared<const RelationProgram>(
        relation_between(from, to, order, updates ? update_.reduction() : Reduction()), options);
  };
  if (!from.places.empty()) {  // there is hardly another like it
    auto made = make();
    others_.push_back(made);
    return made;
  }
  key_.assign({updates && !update_.is_copy(), Index(order)});
  append(key_, from), append(key_, to);
  auto& known = programs_[key_];
  if (!known) known = make();
  return known;
}

Index BlockCopies::workspace_bytes() const {
  Index bytes = 0;
  for (const auto& [key, program] : programs_)
    if (program.use_count() > 1) bytes += program->workspace_bytes();
  for (const auto& other : others_)
    if (const auto program = other.lock()) bytes += program->workspace_bytes();
  return bytes;
}

Order BlockCopies::order_of(const BlockMotion& motion) const {
  return permuted(motion.source_region, motion.axes).shape() == motion.destination_region.shape() ? memory_ : visit_;
}

Stretch BlockCopies::direct(const BlockMotion& motion, const Grid& source, const Grid& destination) {
  const auto from = source_footprint(motion, source), to = destination_footprint(motion, destination);
  auto copy = program(from, to, order_of(motion), true);
  const Index n = copy->elements();
  return {std::move(copy), 0, n, destination.data + to.offset, source.data + from.offset, false};
}

Stretch BlockCopies::packed(const BlockMotion& motion, const Footprint& from, const Grid& grid) {
  const auto message = from.message(order_of(motion));
  auto pack = program(from, message, order_of(motion), false);
  const Index n = pack->elements();
  return {std::move(pack), 0, n, nullptr, grid.data + from.offset, in_order(from, message)};
}

Stretch BlockCopies::assembly(const BlockMotion& motion, const Grid& source) {
  return packed(motion, source_footprint(motion, source), source);
}

Stretch BlockCopies::arrival(const BlockMotion& motion, const Grid& destination) {
  return packed(motion, destination_footprint(motion, destination), destination);
}

Stretch BlockCopies::disassembly(const BlockMotion& motion, const Grid& destination) {
  const Order order = order_of(motion);
  const auto to = destination_footprint(motion, destination), message = to.message(order);
  auto unpack = program(message, to, order, true);
  const Index n = unpack->elements();
  return {std::move(unpack), 0, n, destination.data + to.offset, nullptr, update_.is_copy() && in_order(to, message)};
}

Index run_bytes(const Region& region, const Region& grid, const GridFormat& format) {
  Index run = format.element_bytes;
  const std::size_t dims = region.dims();
  for (std::size_t k = 0; k < dims; ++k) {
    const std::size_t d = format.order == Order::C ? dims - 1 - k : k;
    run = checked_mul(run, region.extent(d));
    if (region.extent(d) != grid.extent(d)) break;
  }
  return run;
}

namespace {

/// The slowest dimension of a box that has more than one place.
std::size_t slowest_dim(const Region& region, Order order) {
  const std::size_t dims = region.dims();
  for (std::size_t k = 0; k < dims; ++k)
    if (const std::size_t d = order == Order::C ? k : dims - 1 - k; region.extent(d) > 1) return d;
  return 0;
}

Region slab(const Region& region, std::size_t d, Index first, Index last) {
  Point lower = region.lower(), upper = region.upper();
  upper[d] = lower[d] + std::min(last, region.extent(d)), lower[d] += first;
  return Region(std::move(lower), std::move(upper));
}

/// Motions of short runs that touch the same blocks, directly or
/// by way of others of the same shape, such as a row of boxes.
class ConnectedBlocks {
 public:
  using Shape = std::vector<Index>;

  void join(const Shape& shape, Index source, Index destination) {
    const Index a = of(shape, source), b = of(shape, destination);
    parents_[{shape, std::max(a, b)}] = std::min(a, b);
  }
  /// A block that stands for all that motions of this shape connect.
  Index of(const Shape& shape, Index block) const {
    for (auto at = parents_.find({shape, block}); at != parents_.end() && at->second != block;
         at = parents_.find({shape, block}))
      block = at->second;
    return block;
  }

 private:
  std::map<std::pair<Shape, Index>, Index> parents_;
};

}  // namespace

std::vector<BlockMotion> BlockCopies::woven(std::vector<BlockMotion> motions, const XArray& source) const {
  constexpr Index turn_runs = 2048, least_turn_runs = 32;  // whose lines stay in the second-level cache
  constexpr Index least_runs = 512;                        // that are worth cutting
  if (update_.is_reduction()) return motions;              // sums are made in the plan's order
  const auto& format = source.format();
  std::vector<Index> lengths(motions.size()),
      runs(motions.size());  // bytes of a run; how many, or 0: carried out by itself
  ConnectedBlocks connected;
  for (std::size_t k = 0; k < motions.size(); ++k) {
    const auto& motion = motions[k];
    const Region& box = motion.source_region;
    if (motion.is_list() || !motion.axes.empty() || box.shape() != motion.destination_region.shape()) continue;
    const Index run = lengths[k] = run_bytes(box, source.blocks().region(motion.source).grow(format.ghost), format);
    if (run >= short_run_bytes || box.size() * format.element_bytes < least_runs * run) continue;
    runs[k] = box.size() * format.element_bytes / run;
    connected.join(box.shape().to_vector(), motion.source, motion.destination);
  }
  std::vector<std::vector<std::size_t>> members;
  std::map<std::pair<ConnectedBlocks::Shape, Index>, std::size_t> known;
  for (std::size_t k = 0; k < motions.size(); ++k) {
    std::size_t place = members.size();
    if (runs[k] > 0) {
      auto shape = motions[k].source_region.shape().to_vector();
      const Index representative = connected.of(shape, motions[k].source);
      place = known.try_emplace({std::move(shape), representative}, place).first->second;
    }
    if (place == members.size()) members.emplace_back();
    members[place].push_back(k);
  }
  // Motions alike follow each other: the faces of one direction leave lines behind that the next box begins with.
  std::stable_sort(members.begin(), members.end(),
                   [&](const auto& a, const auto& b) { return lengths[a[0]] < lengths[b[0]]; });
  std::vector<BlockMotion> all;
  for (const auto& some : members) {
    if (some.size() == 1) {
      all.push_back(std::move(motions[some[0]]));
      continue;
    }
    const Region& box = motions[some[0]].source_region;
    const std::size_t d = slowest_dim(box, format.order);
    const Index extent = box.extent(d), runs_a_turn = std::max(least_turn_runs, turn_runs / Index(some.size()));
    const Index turn = std::max<Index>(1, runs_a_turn * extent / runs[some[0]]);
    for (Index first = 0; first < extent; first += turn)
      for (const std::size_t k : some) {
        auto& part = all.emplace_back(motions[k]);
        part.source_region = slab(part.source_region, d, first, first + turn);
        part.destination_region = slab(part.destination_region, d, first, first + turn);
      }
  }
  return all;
}

std::vector<CopyTask> batch(const std::vector<Stretch>& stretches, Index task_bytes) {
  std::vector<CopyTask> tasks;
  CopyTask::Batch open;
  Index bytes = 0;
  auto flush = [&] {
    if (open.stretches.empty()) return;
    tasks.push_back({std::exchange(open, {}), {}, {}, std::exchange(bytes, 0)});
  };
  for (const auto& stretch : stretches) {
    const Index element = stretch.program->element_bytes();
    for (Index first = stretch.first; first < stretch.last;) {
      const Index n = std::min(stretch.last - first, std::max<Index>(1, (task_bytes - bytes) / element));
      open.stretches.push_back(
          {stretch.program, first, first + n, stretch.destination, stretch.source, stretch.in_order});
      bytes += n * element;
      first += n;
      if (bytes >= task_bytes) flush();
    }
  }
  flush();
  return tasks;
}

}  // namespace longshore
