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

std::shared_ptr<const RelationProgram> BlockCopies::made(const Footprint& from, const Footprint& to, Order order,
                                                         bool updates) const {
  RelationProgram::Options options;
  if (updates) options.combine = update_.combine();
  return std::make_shared<const RelationProgram>(
      relation_between(from, to, order, updates ? update_.reduction() : Reduction()), options);
}

const std::shared_ptr<const RelationProgram>& BlockCopies::known(Footprint from, Footprint to, Order order,
                                                                 bool updates) {
  from.offset = to.offset = 0;
  key_.assign({updates && !update_.is_copy(), Index(order)});
  append(key_, from), append(key_, to);
  auto& program = programs_[key_];
  if (!program) program = made(from, to, order, updates);
  return program;
}

std::shared_ptr<const RelationProgram> BlockCopies::program(Footprint from, Footprint to, Order order, bool updates) {
  if (from.places.empty()) return known(std::move(from), std::move(to), order, updates);
  from.offset = to.offset = 0;
  auto program = made(from, to, order, updates);  // there is hardly another like it
  others_.push_back(program);
  return program;
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
std::size_t slowest_dim(std::span<const Index> extents, Order order) {
  const std::size_t dims = extents.size();
  for (std::size_t k = 0; k < dims; ++k)
    if (const std::size_t d = order == Order::C ? k : dims - 1 - k; extents[d] > 1) return d;
  return 0;
}

/// Motions of short runs that touch the same blocks, directly or
/// by way of others of the same shape, such as a row of boxes.
class ConnectedBlocks {
 public:
  using Extents = std::vector<Index>;

  void join(const Extents& extents, Index source, Index destination) {
    const Index a = of(extents, source), b = of(extents, destination);
    parents_[{extents, std::max(a, b)}] = std::min(a, b);
  }
  /// A block that stands for all that motions of this shape connect.
  Index of(const Extents& extents, Index block) const {
    for (auto at = parents_.find({extents, block}); at != parents_.end() && at->second != block;
         at = parents_.find({extents, block}))
      block = at->second;
    return block;
  }

 private:
  std::map<std::pair<Extents, Index>, Index> parents_;
};

// What a shape's key begins with.
constexpr std::size_t run_word = 0, straight_word = 1, words_before = 2;

}  // namespace

Footprint BlockCopies::footprint(const Shape& shape, Side side) const {
  const std::size_t dims = (shape.key.size() - words_before) / 3;
  const auto at = [&](std::size_t k) { return shape.key.begin() + Index(words_before + k * dims); };
  return {element_bytes_, 0, {at(0), at(1)}, side == Side::source ? Key(at(1), at(2)) : Key(at(2), at(3)), {}};
}

/// The number of the shape that shape_key_ is of.
std::uint32_t BlockCopies::shape_of_key() {
  auto hash = [](const Key& key) {
    std::uint64_t h = 0;
    for (const Index word : key) h = (h ^ (h >> 29) ^ std::uint64_t(word)) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 32);
  };
  auto mask = [this] { return shape_table_.size() - 1; };
  if (2 * shapes_.size() >= shape_table_.size()) {
    shape_table_.assign(std::max<std::size_t>(256, 2 * shape_table_.size()), 0);
    for (std::size_t k = 0; k < shapes_.size(); ++k) {
      if (shapes_[k].whole >= 0) continue;
      std::size_t at = hash(shapes_[k].key) & mask();
      while (shape_table_[at] > 0) at = (at + 1) & mask();
      shape_table_[at] = std::uint32_t(k + 1);
    }
  }
  std::size_t at = hash(shape_key_) & mask();
  for (; shape_table_[at] > 0; at = (at + 1) & mask())
    if (shapes_[shape_table_[at] - 1].key == shape_key_) return shape_table_[at] - 1;
  Shape shape;
  shape.key = shape_key_;
  shape.run = shape_key_[run_word], shape.length = shape_key_[straight_word] != 0 ? shape.run : 0;
  shape.points = 1;
  for (const Index n : footprint(shape, Side::source).extents) shape.points = checked_mul(shape.points, n);
  shapes_.push_back(std::move(shape));
  return (shape_table_[at] = std::uint32_t(shapes_.size())) - 1;
}

KeptMotion BlockCopies::keep(const BlockMotion& motion, const Grid& source, const Grid& destination,
                             const GridFormat& format, std::uint32_t number) {
  KeptMotion kept{std::uint32_t(motion.source), std::uint32_t(motion.destination), 0, number, 0, 0};
  const Region &from = motion.source_region, &to = motion.destination_region;
  const std::size_t dims = from.dims();
  const bool straight = motion.axes.empty();
  auto source_dim = [&](std::size_t d) { return straight ? d : motion.axes[d]; };
  bool within = source.region.contains(from) && destination.region.contains(to), alike = !motion.is_list();
  for (std::size_t d = 0; d < dims && alike; ++d) alike = to.extent(d) == from.extent(source_dim(d));
  if (!within) source_footprint(motion, source), destination_footprint(motion, destination);
  element_bytes_ = source.element_bytes;
  if (!alike) {
    Shape shape;
    shape.points = motion.points(), shape.whole = Index(whole_.size());
    if (!motion.is_list()) shape.run = longshore::run_bytes(from, source.region, format);
    whole_.push_back(motion), shapes_.push_back(std::move(shape));
    kept.shape = std::uint32_t(shapes_.size() - 1);
    return kept;
  }
  shape_key_.resize(words_before + 3 * dims);
  Index* const words = shape_key_.data() + words_before;
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t s = source_dim(d);
    words[d] = to.extent(d), words[dims + d] = source.strides[s], words[2 * dims + d] = destination.strides[d];
    kept.from += (from.lower()[s] - source.region.lower()[s]) * source.strides[s];
    kept.to += (to.lower()[d] - destination.region.lower()[d]) * destination.strides[d];
  }
  shape_key_[run_word] = longshore::run_bytes(from, source.region, format), shape_key_[straight_word] = straight;
  kept.shape = shape_of_key();
  return kept;
}

/// The shape of slabs of another one.
std::uint32_t BlockCopies::slab(std::uint32_t shape, std::size_t d, Index extent) {
  shape_key_ = shapes_[shape].key;
  shape_key_[words_before + d] = extent;
  return shape_of_key();
}

Stretch BlockCopies::direct(const KeptMotion& motion, const Grid& source, const Grid& destination) {
  Shape& shape = shapes_[motion.shape];
  if (shape.whole >= 0) return direct(whole_[std::size_t(shape.whole)], source, destination);
  Prepared& prepared = shape.direct;
  if (!prepared.program)
    prepared.program = &known(footprint(shape, Side::source), footprint(shape, Side::destination), memory_, true);
  return {*prepared.program, 0, shape.points, destination.data + motion.to, source.data + motion.from, false};
}

Stretch BlockCopies::message(const KeptMotion& motion, const Grid& grid, MessageEnd end) {
  Shape& shape = shapes_[motion.shape];
  if (shape.whole >= 0) {
    const BlockMotion& whole = whole_[std::size_t(shape.whole)];
    return end == MessageEnd::assembly      ? assembly(whole, grid)
           : end == MessageEnd::disassembly ? disassembly(whole, grid)
                                            : arrival(whole, grid);
  }
  const bool packs = end != MessageEnd::disassembly;
  Prepared& prepared = shape.ends[std::size_t(end)];
  if (!prepared.program) {
    const Footprint elements = footprint(shape, end == MessageEnd::assembly ? Side::source : Side::destination);
    const Footprint message = elements.message(memory_);
    prepared.program = packs ? &known(elements, message, memory_, false) : &known(message, elements, memory_, true);
    prepared.in_order = (packs || update_.is_copy()) && in_order(elements, message);
  }
  std::byte* const data = grid.data + (end == MessageEnd::assembly ? motion.from : motion.to);
  return {*prepared.program, 0, shape.points, packs ? nullptr : data, packs ? data : nullptr, prepared.in_order};
}

void BlockCopies::for_each_woven(std::span<const KeptMotion> motions, Order order,
                                 const std::function<void(const KeptMotion&)>& f) {
  constexpr Index turn_runs = 2048, least_turn_runs = 32;  // whose lines stay in the second-level cache
  constexpr Index least_runs = 512;                        // that are worth cutting
  if (update_.is_reduction()) {                            // sums are made in the plan's order
    for (const auto& motion : motions) f(motion);
    return;
  }
  auto extents = [&](const KeptMotion& motion) { return footprint(shapes_[motion.shape], Side::source).extents; };
  // How many runs, or 0: carried out by itself.
  auto runs = [&](const Shape& shape) {
    const Index bytes = shape.points * element_bytes_;
    return shape.length == 0 || shape.length >= short_run_bytes || bytes < least_runs * shape.length
               ? Index{0}
               : bytes / shape.length;
  };
  ConnectedBlocks connected;
  for (const auto& motion : motions)
    if (runs(shapes_[motion.shape]) > 0) connected.join(extents(motion), motion.source, motion.destination);
  // Those that take turns, and of all others and the first of these, by the length of their runs: motions alike follow
  // each other, for the faces of one direction leave lines behind that the next box begins with.
  std::map<std::pair<ConnectedBlocks::Extents, Index>, std::vector<std::uint32_t>> groups;
  std::map<Index, std::vector<std::uint32_t>> by_length;
  for (std::size_t k = 0; k < motions.size(); ++k) {
    const Shape& shape = shapes_[motions[k].shape];
    if (runs(shape) > 0) {
      auto box = extents(motions[k]);
      const Index representative = connected.of(box, motions[k].source);
      auto& group = groups[{std::move(box), representative}];
      group.push_back(std::uint32_t(k));
      if (group.size() > 1) continue;
    }
    by_length[shape.length].push_back(std::uint32_t(k));
  }
  for (const auto& [length, firsts] : by_length)
    for (const std::uint32_t first : firsts) {
      const Index all_runs = runs(shapes_[motions[first].shape]);
      if (all_runs == 0) {
        f(motions[first]);
        continue;
      }
      const auto box = extents(motions[first]);
      const auto& some = groups.at({box, connected.of(box, motions[first].source)});
      if (some.size() == 1) {
        f(motions[first]);
        continue;
      }
      const std::size_t d = slowest_dim(box, order);
      const Index extent = box[d], runs_a_turn = std::max(least_turn_runs, turn_runs / Index(some.size()));
      const Index turn = std::max<Index>(1, runs_a_turn * extent / all_runs);
      for (Index begin = 0; begin < extent; begin += turn)
        for (const std::uint32_t k : some) {
          KeptMotion part = motions[k];
          const std::size_t dims = box.size();
          const auto& key = shapes_[part.shape].key;
          part.from += begin * key[words_before + dims + d], part.to += begin * key[words_before + 2 * dims + d];
          part.shape = slab(part.shape, d, std::min(turn, extent - begin));
          f(part);
        }
    }
}

void Batches::flush() {
  if (open_.empty()) return;
  auto stretches = std::make_shared<const std::vector<Stretch>>(std::exchange(open_, {}));
  tasks_.push_back({CopyTask::Batch{std::move(stretches)}, std::exchange(bytes_, 0)});
}

void Batches::add(Stretch stretch) {
  const Index element = stretch.program->element_bytes();
  while (true) {
    const Index n = std::min(stretch.last - stretch.first, std::max<Index>(1, (task_bytes_ - bytes_) / element));
    bytes_ += n * element;
    if (stretch.first + n == stretch.last) break;
    open_.push_back(stretch);
    open_.back().last = stretch.first += n;
    if (bytes_ >= task_bytes_) flush();
  }
  open_.push_back(std::move(stretch));
  if (bytes_ >= task_bytes_) flush();
}

std::vector<CopyTask> Batches::take() {
  flush();
  return std::move(tasks_);
}

}  // namespace longshore
