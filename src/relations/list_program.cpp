#include "relations/list_program.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace longshore {

namespace {

constexpr Index index_range = Index{1} << 32;

/// The stretch's own range of offsets on one side.
struct Range {
  Index low = 0, high = 0;
  bool takes(Index offset, Index most) {
    const Index l = std::min(low, offset), h = std::max(high, offset);
    if (Wide(h) - l >= most) return false;
    low = l, high = h;
    return true;
  }
};

}  // namespace

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

  const Index most = unit_ > std::numeric_limits<Index>::max() / index_range ? std::numeric_limits<Index>::max() : unit_ * index_range;
  Range s, d;
  for (Index k = 0; k < count_; ++k) {
    const auto& pair = pairs[std::size_t(k)];
    const bool open = !stretches_.empty();
    if (open && (dense_source_ || s.takes(pair.source, most)) && (dense_destination_ || d.takes(pair.destination, most))) {
      stretches_.back().last = k + 1;
      stretches_.back().source = s.low, stretches_.back().destination = d.low;
      continue;
    }
    s = {pair.source, pair.source}, d = {pair.destination, pair.destination};
    stretches_.push_back({k, k + 1, pair.source, pair.destination});
  }
  for (auto& stretch : stretches_) {
    if (dense_source_) stretch.source = origin.source;
    if (dense_destination_) stretch.destination = origin.destination;
  }
  if (!dense_source_) source_.resize(pairs.size());
  if (!dense_destination_) destination_.resize(pairs.size());
  for (const auto& stretch : stretches_)
    for (Index k = stretch.first; k < stretch.last; ++k) {
      const auto& pair = pairs[std::size_t(k)];
      if (!dense_source_) source_[std::size_t(k)] = std::uint32_t((pair.source - stretch.source) / unit_);
      if (!dense_destination_) destination_[std::size_t(k)] = std::uint32_t((pair.destination - stretch.destination) / unit_);
    }
}

void ListProgram::run(const KernelTable&, Stores, std::byte* destination, const std::byte* source, Index first, Index last) const {
  for (const auto& stretch : stretches_) {
    const Index from = std::max(first, stretch.first), to = std::min(last, stretch.last);
    for (Index k = from; k < to; ++k) {
      const auto pair = at(k);
      std::memcpy(destination + pair.destination, source + pair.source, std::size_t(block_));
    }
  }
}

OffsetPair ListProgram::at(Index k) const {
  const auto stretch = std::upper_bound(stretches_.begin(), stretches_.end(), k, [](Index x, const Stretch& y) { return x < y.first; }) - 1;
  return {stretch->source + (dense_source_ ? k * block_ : Index(source_[std::size_t(k)]) * unit_),
          stretch->destination + (dense_destination_ ? k * block_ : Index(destination_[std::size_t(k)]) * unit_)};
}

Index ListProgram::workspace_bytes() const {
  return Index(sizeof *this + stretches_.size() * sizeof(Stretch) + (source_.size() + destination_.size()) * sizeof(std::uint32_t));
}

std::string ListProgram::describe() const {
  const char* what = dense_source_ ? (dense_destination_ ? "dense" : "scatter") : dense_destination_ ? "gather" : "list";
  return std::string(what) + " of " + std::to_string(count_) + " x " + std::to_string(block_) + "-byte blocks";
}

}  // namespace longshore
