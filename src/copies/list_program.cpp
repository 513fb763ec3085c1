#include "copies/list_program.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace longshore {

namespace {

constexpr Index index_range = Index{1} << 32;

/// The least and the greatest offset of a window on one side.
struct Range {
  Index low = 0, high = 0;
  bool takes(Index offset, Index most) {
    const Index l = std::min(low, offset), h = std::max(high, offset);
    if (Wide(h) - l >= most) return false;
    low = l, high = h;
    return true;
  }
};

std::string words_of(bool dense_source, bool dense_destination, Index count, Index block) {
  const char* what = dense_source ? (dense_destination ? "dense" : "scatter") : dense_destination ? "gather" : "list";
  return std::string(what) + " of " + std::to_string(count) + " x " + std::to_string(block) + "-byte blocks";
}

}  // namespace

void move_blocks(const KernelTable& table, Stores stores, std::byte* destination, const BlockPlaces& to,
                 const std::byte* source, const BlockPlaces& from, Index n, Index block, Index unit) {
  destination += to.base, source += from.base;
  if (to.index && from.index)
    return table.relocate(destination, to.index, source, {from.index, n, block, unit}, stores);
  if (from.index) return table.gather(destination, source, {from.index, n, block, unit}, stores);
  if (to.index) return table.scatter(destination, source, {to.index, n, block, unit}, stores);
  table.copy(destination, source, n * block, stores);
}

ListProgram::ListProgram(Index block, std::span<const OffsetPair> pairs) : block_(block), count_(Index(pairs.size())) {
  if (pairs.empty()) return;
  const auto& origin = pairs.front();
  dense_source_ = dense_destination_ = true;
  Index common = block;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const Index s = pairs[k].source - origin.source, d = pairs[k].destination - origin.destination;
    dense_source_ = dense_source_ && s == Index(k) * block;
    dense_destination_ = dense_destination_ && d == Index(k) * block;
    // Most lists count in blocks; the others in what all offsets have in common.
    if (s % common != 0 || d % common != 0) common = std::gcd(std::gcd(common, s), d);
  }
  unit_ = common;

  const Index most =
      unit_ > std::numeric_limits<Index>::max() / index_range ? std::numeric_limits<Index>::max() : unit_ * index_range;
  Range s, d;
  for (Index k = 0; k < count_; ++k) {
    const auto& pair = pairs[std::size_t(k)];
    const bool open = !windows_.empty();
    if (open && (dense_source_ || s.takes(pair.source, most)) &&
        (dense_destination_ || d.takes(pair.destination, most))) {
      windows_.back().blocks.last = k + 1;
      windows_.back().source = s.low, windows_.back().destination = d.low;
      continue;
    }
    s = {pair.source, pair.source}, d = {pair.destination, pair.destination};
    windows_.push_back({{k, k + 1}, pair.source, pair.destination});
  }
  for (auto& window : windows_) {
    if (dense_source_) window.source = origin.source;
    if (dense_destination_) window.destination = origin.destination;
  }
  if (!dense_source_) source_.resize(pairs.size());
  if (!dense_destination_) destination_.resize(pairs.size());
  for (const auto& window : windows_)
    for (Index k = window.blocks.first; k < window.blocks.last; ++k) {
      const auto& pair = pairs[std::size_t(k)];
      if (!dense_source_) source_[std::size_t(k)] = std::uint32_t((pair.source - window.source) / unit_);
      if (!dense_destination_)
        destination_[std::size_t(k)] = std::uint32_t((pair.destination - window.destination) / unit_);
    }
}

void ListProgram::run(const KernelTable& table, Stores stores, std::byte* destination, const std::byte* source,
                      Index first, Index last) const {
  for (const auto& window : windows_) {
    const Index from = std::max(first, window.blocks.first), to = std::min(last, window.blocks.last);
    if (from >= to) continue;
    const BlockPlaces s = dense_source_ ? BlockPlaces{window.source + from * block_}
                                        : BlockPlaces{window.source, &source_[std::size_t(from)]};
    const BlockPlaces d = dense_destination_ ? BlockPlaces{window.destination + from * block_}
                                             : BlockPlaces{window.destination, &destination_[std::size_t(from)]};
    move_blocks(table, stores, destination, d, source, s, to - from, block_, unit_);
  }
}

OffsetPair ListProgram::at(Index k) const {
  const auto window = std::upper_bound(windows_.begin(), windows_.end(), k,
                                       [](Index x, const Window& y) { return x < y.blocks.first; }) -
                      1;
  return {window->source + (dense_source_ ? k * block_ : Index(source_[std::size_t(k)]) * unit_),
          window->destination + (dense_destination_ ? k * block_ : Index(destination_[std::size_t(k)]) * unit_)};
}

Index ListProgram::workspace_bytes() const {
  return Index(sizeof *this + windows_.size() * sizeof(Window) +
               (source_.size() + destination_.size()) * sizeof(std::uint32_t));
}

std::string ListProgram::describe() const { return words_of(dense_source_, dense_destination_, count_, block_); }

namespace {

/// Is every value the one before and `step` more?
bool goes_on(const PackedIntegers& values, Index step) {
  constexpr Index chunk = 1024;
  Index some[chunk], last = 0;
  for (Index first = 0; first < values.size(); first += chunk) {
    const Index n = std::min(chunk, values.size() - first);
    values.read(first, n, some);
    bool dense = first == 0 || some[0] - last == step;
    for (Index k = 1; k < n; ++k) dense &= some[k] - some[k - 1] == step;
    if (!dense) return false;
    last = some[n - 1];
  }
  return true;
}

bool fits(const PackedIntegers& values) {
  return values.empty() || Wide(values.maximum()) - values.minimum() < index_range;
}

}  // namespace

PackedProgram::PackedProgram(const PackedList& list)
    : list_(list),
      block_(list.block() * list.element_bytes()),
      dense_source_(goes_on(list.source(), block_ / list.unit())),
      dense_destination_(goes_on(list.destination(), block_ / list.unit())),
      narrow_((dense_source_ || fits(list.source())) && (dense_destination_ || fits(list.destination()))) {}

OffsetPair PackedProgram::at(Index k) const {
  return {list_.source_base() + list_.source()[k] * list_.unit(),
          list_.destination_base() + list_.destination()[k] * list_.unit()};
}

void PackedProgram::run(const KernelTable& table, Stores stores, std::byte* destination, const std::byte* source,
                        Index first, Index last) const {
  const Index unit = list_.unit(), element = list_.element_bytes();
  if (!narrow_) {
    const auto blocks = list_.reader(first * list_.block(), last * list_.block());
    return for_each_run(*blocks, [&](const OffsetRun& run) {
      table.copy(destination + run.destination, source + run.source, run.count * element, stores);
    });
  }
  constexpr Index chunk = 4096;  // indices that stay in the first-level cache, and enough for kernels that look ahead
  std::uint32_t from[chunk], to[chunk];
  for (; first < last; first += chunk) {
    const Index n = std::min(chunk, last - first);
    auto places = [&](bool dense, Index base, const PackedIntegers& values, std::uint32_t* index) {
      if (dense) return BlockPlaces{base + values.minimum() * unit + first * block_};
      values.read(first, n, index, values.minimum());
      return BlockPlaces{base + values.minimum() * unit, index};
    };
    const auto s = places(dense_source_, list_.source_base(), list_.source(), from);
    const auto d = places(dense_destination_, list_.destination_base(), list_.destination(), to);
    move_blocks(table, stores, destination, d, source, s, n, block_, unit);
  }
}

std::string PackedProgram::describe() const {
  return words_of(dense_source_, dense_destination_, list_.source().size(), block_) + ", bit-packed";
}

}  // namespace longshore
