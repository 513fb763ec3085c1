#include "longshore/relations/packed_list.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace longshore {

namespace {

/// n values from 0 on in one stride.
std::vector<Index> progression(Index n, Index stride) {
  std::vector<Index> values(static_cast<std::size_t>(n));
  for (Index k = 0; k < n; ++k) values[std::size_t(k)] = k * stride;
  return values;
}

PackedIntegers packed(const std::vector<Index>& values, PackedIntegers::Scheme scheme) {
  bool one_stride = values.size() > 1;
  for (std::size_t k = 2; k < values.size() && one_stride; ++k) one_stride = values[k] - values[k - 1] == values[1] - values[0];
  return PackedIntegers(values, one_stride ? PackedIntegers::Scheme::deltas : scheme);
}

class PackedListReader : public RunReader {
 public:
  PackedListReader(const PackedList& list, Index first, Index last) : list_(list), at_(first), last_(last) {}
  std::size_t read(std::span<OffsetRun> out) override {
    const Index block = list_.block(), element = list_.element_bytes();
    std::size_t n = 0;
    while (n < out.size() && at_ < last_) {
      const Index entry = at_ / block;
      if (entry < filled_first_ || entry >= filled_last_) fill(entry);
      const auto k = std::size_t(entry - filled_first_);
      const Index from = at_ % block, to = std::min(block, from + (last_ - at_));
      const OffsetRun whole{list_.source_base() + source_[k] * list_.unit(), list_.destination_base() + destination_[k] * list_.unit(),
                            block, element, element};
      out[n++] = whole.slice(from, to);
      at_ += to - from;
    }
    return n;
  }

 private:
  void fill(Index entry) {
    filled_first_ = entry;
    filled_last_ = std::min(entry + chunk, list_.source().size());
    list_.source().read(entry, filled_last_ - entry, source_);
    list_.destination().read(entry, filled_last_ - entry, destination_);
  }

  static constexpr Index chunk = 128;
  const PackedList& list_;
  Index at_, last_, filled_first_ = 0, filled_last_ = 0;
  Index source_[chunk], destination_[chunk];
};

}  // namespace

PackedList::PackedList(Index element_bytes, RunReader& pairs, PackedIntegers::Scheme scheme)
    : element_bytes_(element_bytes), block_(0), unit_(1) {
  std::vector<OffsetRun> stretches;  // contiguous on both sides, as long as they go
  auto add = [&](Index source, Index destination, Index count) {
    if (!stretches.empty()) {
      auto& last = stretches.back();
      const Index bytes = last.count * element_bytes;
      if (last.source + bytes == source && last.destination + bytes == destination) return void(last.count += count);
    }
    stretches.push_back({source, destination, count, element_bytes, element_bytes});
  };
  for_each_run(pairs, [&](const OffsetRun& run) {
    if (run.count == 1 || (run.source_step == element_bytes && run.destination_step == element_bytes))
      return add(run.source, run.destination, run.count);
    for (Index k = 0; k < run.count; ++k) add(run.at(k).source, run.at(k).destination, 1);
  });
  for (const auto& stretch : stretches) block_ = std::gcd(block_, stretch.count);
  block_ = std::max<Index>(block_, 1);

  std::vector<Index> source, destination;
  for (const auto& stretch : stretches)
    for (Index k = 0; k < stretch.count; k += block_) {
      source.push_back(stretch.at(k).source);
      destination.push_back(stretch.at(k).destination);
    }
  if (!source.empty()) {
    source_base_ = *std::min_element(source.begin(), source.end());
    destination_base_ = *std::min_element(destination.begin(), destination.end());
    unit_ = block_ * element_bytes;
    for (std::size_t k = 0; k < source.size(); ++k) {
      source[k] -= source_base_, destination[k] -= destination_base_;
      if (source[k] % unit_ != 0 || destination[k] % unit_ != 0) unit_ = std::gcd(std::gcd(unit_, source[k]), destination[k]);
    }
    for (std::size_t k = 0; k < source.size(); ++k) source[k] /= unit_, destination[k] /= unit_;
  }
  source_ = packed(source, scheme), destination_ = packed(destination, scheme);
}

PackedList::PackedList(Index element_bytes, Index block, Index unit, Index source_base, Index destination_base, PackedIntegers source,
                       PackedIntegers destination)
    : element_bytes_(element_bytes),
      block_(block),
      unit_(unit),
      source_base_(source_base),
      destination_base_(destination_base),
      source_(std::move(source)),
      destination_(std::move(destination)) {
  if (block < 1 || unit < 1 || checked_mul(block, element_bytes) % unit != 0 || source_.size() != destination_.size())
    throw Error(ErrorKind::argument, "a packed list of " + std::to_string(source_.size()) + " and " +
                                         std::to_string(destination_.size()) + " blocks of " + std::to_string(block) +
                                         " elements, in units of " + std::to_string(unit) + " bytes");
  checked_mul(checked_mul(block, element_bytes), std::max<Index>(source_.size(), 1));
  source_extent(), destination_extent();
}

Extent PackedList::source_extent() const {
  if (source_.empty()) return {};
  return {checked_add(source_base_, checked_mul(source_.minimum(), unit_)),
          checked_add(checked_add(source_base_, checked_mul(source_.maximum(), unit_)), block_ * element_bytes_)};
}

PackedList PackedList::inverse() const {
  PackedList result = *this;
  std::swap(result.source_base_, result.destination_base_);
  std::swap(result.source_, result.destination_);
  return result;
}

PackedList PackedList::assembly() const {
  PackedList result = *this;
  result.destination_base_ = 0;
  result.destination_ =
      packed(progression(source_.size(), block_ * element_bytes_ / unit_), PackedIntegers::Scheme::deltas);
  return result;
}

std::unique_ptr<RunReader> PackedList::reader(Index first, Index last) const {
  if (first < 0 || last > elements() || first > last)
    throw Error(ErrorKind::argument, "positions [" + std::to_string(first) + ", " + std::to_string(last) + ") are not within [0, " +
                                         std::to_string(elements()) + ")");
  return std::make_unique<PackedListReader>(*this, first, last);
}

}  // namespace longshore
