#include "movers/block_copies.hpp"

#include <algorithm>
#include <map>

#include "longshore/plans/block_relation.hpp"

namespace longshore {

namespace {

/// A region of a grid as a grid of its own, so that what differs in nothing but its place looks alike.
Grid part(const Grid& grid, const Region& region) {
  return {Region::of_shape(region.shape()), grid.data + grid.offset_of(region.lower()), grid.strides, grid.element_bytes};
}

/// The message of a region, as a grid that has its points in the order in which they are visited.
Grid message_grid(const Region& shape, Order visit, Index element_bytes) {
  return {shape, nullptr, Grid::dense_strides(shape, visit, element_bytes), element_bytes};
}

void check_storage(const BlockMotion& motion, const Region& region, const Grid& grid, const char* what, Index block) {
  if (!grid.region.contains(region))
    throw Error(ErrorKind::argument, motion.to_string() + ": the " + what + " region is not within the storage of " + what +
                                         " block " + std::to_string(block) + ", " + grid.region.to_string() +
                                         "; give it more ghost cells");
}

bool in_order(const Grid& grid, Order visit) {
  const auto dense = Grid::dense_strides(grid.region, visit, grid.element_bytes);
  for (std::size_t d = 0; d < dense.size(); ++d)
    if (grid.region.extent(d) > 1 && grid.strides[d] != dense[d]) return false;
  return true;
}

void append(std::vector<Index>& key, const Grid& grid) {
  for (std::size_t d = 0; d < grid.region.dims(); ++d) key.push_back(grid.region.extent(d)), key.push_back(grid.strides[d]);
}

}  // namespace

std::size_t BlockCopies::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const Index x : key) hash = (hash ^ std::uint64_t(x)) * 0x100000001b3u, hash ^= hash >> 29;
  return std::size_t(hash);
}

template <class Make>
const std::shared_ptr<const RelationProgram>& BlockCopies::program(Make&& make) {
  auto& known = programs_[key_];
  if (!known) {
    known = std::make_shared<const RelationProgram>(make());
    workspace_bytes_ += known->workspace_bytes();
  }
  return known;
}

Order BlockCopies::order_of(const BlockMotion& motion) const {
  return motion.source_region.shape() == motion.destination_region.shape() ? memory_ : visit_;
}

Stretch BlockCopies::direct(const BlockMotion& motion, const Grid& source, const Grid& destination) {
  check_storage(motion, motion.source_region, source, "source", motion.source);
  check_storage(motion, motion.destination_region, destination, "destination", motion.destination);
  const Grid from = part(source, motion.source_region), to = part(destination, motion.destination_region);
  const Order order = order_of(motion);
  key_.assign({0, Index(order)});
  append(key_, from), append(key_, to);
  const auto& copy = program([&] {
    const BlockMotion in_place{motion.source, motion.destination, from.region, to.region};
    return block_relation(in_place, from, to, order, reduction_);
  });
  return {copy, 0, copy->elements(), to.data, from.data, false};
}

Stretch BlockCopies::assembly(const BlockMotion& motion, const Grid& source) {
  check_storage(motion, motion.source_region, source, "source", motion.source);
  const Grid from = part(source, motion.source_region);
  const Order order = order_of(motion);
  key_.assign({1, Index(order)});
  append(key_, from);
  const auto& pack = program([&] {
    const BlockMotion in_place{motion.source, motion.destination, from.region, from.region};
    return block_relation(in_place, from, message_grid(from.region, order, from.element_bytes), order);
  });
  return {pack, 0, pack->elements(), nullptr, from.data, in_order(from, order)};
}

Stretch BlockCopies::disassembly(const BlockMotion& motion, const Grid& destination) {
  check_storage(motion, motion.destination_region, destination, "destination", motion.destination);
  const Grid to = part(destination, motion.destination_region);
  const Order order = order_of(motion);
  key_.assign({2, Index(order)});
  append(key_, to);
  const auto& unpack = program([&] {
    const BlockMotion in_place{motion.source, motion.destination, to.region, to.region};
    return block_relation(in_place, message_grid(to.region, order, to.element_bytes), to, order, reduction_);
  });
  return {unpack, 0, unpack->elements(), to.data, nullptr, reduction_.is_replace() && in_order(to, order)};
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

std::vector<Stretch> weave(const std::vector<BlockMotion>& motions, std::vector<Stretch> stretches, const FloorPlan& sources,
                           const GridFormat& format) {
  constexpr Index turn_runs = 256;  // lines of both blocks for so many runs stay in the first cache
  struct Strand {
    Index run = 0;  ///< elements; 0: carried out by itself
    std::vector<std::size_t> members;
  };
  std::vector<Strand> strands;
  std::map<std::vector<Index>, std::size_t> known;
  bool any = false;
  for (std::size_t k = 0; k < motions.size(); ++k) {
    const auto& motion = motions[k];
    const Index run = run_bytes(motion.source_region, sources.region(motion.source).grow(format.ghost), format);
    if (run >= short_run_bytes || stretches[k].last * format.element_bytes < 2 * turn_runs * run) {
      strands.push_back({0, {k}});
      continue;
    }
    std::vector<Index> key = motion.source_region.shape().to_vector();
    key.push_back(std::min(motion.source, motion.destination)), key.push_back(std::max(motion.source, motion.destination));
    const auto [place, fresh] = known.try_emplace(std::move(key), strands.size());
    if (fresh) strands.push_back({run / format.element_bytes, {}});
    strands[place->second].members.push_back(k);
    any = any || !fresh;
  }
  if (!any) return stretches;
  std::vector<Stretch> woven;
  for (const auto& strand : strands) {
    const Index all = stretches[strand.members[0]].last;
    const Index turn = strand.members.size() == 1 ? all : strand.run * turn_runs;
    for (Index first = 0; first < all; first += turn)
      for (const auto k : strand.members) {
        woven.push_back(stretches[k]);
        woven.back().first = first, woven.back().last = std::min(all, first + turn);
      }
  }
  return woven;
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
      open.stretches.push_back({stretch.program, first, first + n, stretch.destination, stretch.source, stretch.in_order});
      bytes += n * element;
      first += n;
      if (bytes >= task_bytes) flush();
    }
  }
  flush();
  return tasks;
}

void check_arrays(const BlockPlan& plan, const XArray& source, const XArray& destination, const BlockOptions& options) {
  auto check = [](const XArray& array, const FloorPlan& blocks, const char* what) {
    if (!(array.blocks() == blocks))
      throw Error(ErrorKind::shape, std::string("the ") + what + " array has other blocks than the plan: " +
                                        array.blocks().to_string(2) + ", not " + blocks.to_string(2));
  };
  check(source, plan.source(), "source");
  check(destination, plan.destination(), "destination");
  if (source.element_bytes() != destination.element_bytes())
    throw Error(ErrorKind::type, "the source array has elements of " + std::to_string(source.element_bytes()) +
                                     " bytes, the destination array of " + std::to_string(destination.element_bytes()));
  if (!options.reduction.is_replace() && options.reduction.element_bytes() != source.element_bytes())
    throw Error(ErrorKind::type, std::string(reduce_name(options.reduction.op())) + " is for elements of " +
                                     std::to_string(options.reduction.element_bytes()) + " bytes, the arrays' have " +
                                     std::to_string(source.element_bytes()));
  if (options.max_mem < 0)
    throw Error(ErrorKind::argument, "max_mem is " + std::to_string(options.max_mem) + " bytes; it must not be negative");
  plan.check_races(source.same_storage(destination), !options.reduction.is_replace());
}

void check_apart(const XArray& source, const XArray& destination) {
  struct Span {
    const std::byte *first, *last;
    bool written;
    std::string what;
    Index block;
    std::string name() const { return "the " + what + "array of block " + std::to_string(block); }
  };
  std::vector<Span> spans;
  auto add = [&](const XArray& array, bool written, const char* what) {
    for (std::size_t i = 0; i < array.grids().size(); ++i) {
      const Grid& grid = array.grids()[i];
      if (grid.region.empty()) continue;
      Index low = 0, high = grid.element_bytes;
      for (std::size_t d = 0; d < grid.region.dims(); ++d) {
        const Index reach = checked_mul(grid.region.extent(d) - 1, grid.strides[d]);
        (reach < 0 ? low : high) = checked_add(reach < 0 ? low : high, reach);
      }
      spans.push_back({grid.data + low, grid.data + high, written, what, array.owned()[i]});
    }
  };
  const bool same = source.same_storage(destination);
  if (!same) add(source, false, "source ");
  add(destination, true, same ? "" : "destination ");
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  const Span *reach = nullptr, *reach_written = nullptr;
  for (const auto& span : spans) {
    const Span* before = span.written ? reach : reach_written;
    if (before && before->last > span.first)
      throw Error(ErrorKind::buffer, before->name() + " and " + span.name() + " share memory; give every block its own");
    if (!reach || span.last > reach->last) reach = &span;
    if (span.written && (!reach_written || span.last > reach_written->last)) reach_written = &span;
  }
}

}  // namespace longshore
