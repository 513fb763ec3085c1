#include "longshore/relations/packed_list.hpp"

#include <algorithm>
#include <bit>
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
  for (std::size_t k = 2; k < values.size() && one_stride; ++k)
    one_stride = values[k] - values[k - 1] == values[1] - values[0];
  return PackedIntegers(values, one_stride ? PackedIntegers::Scheme::deltas : scheme);
}

void count_in_units(std::vector<Index>& offsets, Index unit) {
  if ((unit & (unit - 1)) == 0)
    for (auto& offset : offsets) offset >>= std::countr_zero(std::uint64_t(unit));
  else
    for (auto& offset : offsets) offset /= unit;
}

class PackedListReader : public RunReader {
 public:
  PackedListReader(const PackedList& list, Index first, Index last)
      : list_(list), left_(last - first), entry_(first / list.block()), filled_(entry_), skip_(first % list.block()) {}
  std::size_t read(std::span<OffsetRun> out) override {
    const Index block = list_.block(), element = list_.element_bytes();
    std::size_t n = 0;
    for (; n < out.size() && left_ > 0; ++n) {
      if (entry_ == filled_) fill();
      const auto k = std::size_t(entry_++ - (filled_ - in_chunk_));
      const OffsetRun whole{list_.source_base() + source_[k] * list_.unit(),
                            list_.destination_base() + destination_[k] * list_.unit(), block, element, element};
      out[n] = whole.slice(skip_, std::min(block, skip_ + left_));
      left_ -= out[n].count;
      skip_ = 0;
    }
    return n;
  }

 private:
  void fill() {
    in_chunk_ = std::min(chunk, list_.source().size() - entry_);
    filled_ = entry_ + in_chunk_;
    list_.source().read(entry_, in_chunk_, source_);
    list_.destination().read(entry_, in_chunk_, destination_);
  }

  static constexpr Index chunk = 512;
  const PackedList& list_;
  Index left_;            ///< elements
  Index entry_, filled_;  ///< blocks: the next, and one past the last that is unpacked
  Index skip_;            ///< elements of the next block that come before the stretch
  Index in_chunk_ = 0;
  Index source_[chunk], destination_[chunk];
};

}  // namespace

PackedList::PackedList(Index element_bytes, RunReader& pairs, RunReader& again, PackedIntegers::Scheme scheme)
    : element_bytes_(element_bytes), block_(0), unit_(1) {
  OffsetRun stretch;  // contiguous on both sides, as long as it goes
  auto add = [&](Index source, Index destination, Index count) {
    const Index bytes = stretch.count * element_bytes;
    if (stretch.source + bytes == source && stretch.destination + bytes == destination)
      return void(stretch.count += count);
    block_ = std::gcd(block_, stretch.count);
    stretch = {source, destination, count, element_bytes, element_bytes};
  };
  for_each_run(pairs, [&](const OffsetRun& run) {
    if (run.count == 1 || (run.source_step == element_bytes && run.destination_step == element_bytes))
      return add(run.source, run.destination, run.count);
    for (Index k = 0; k < run.count; ++k) add(run.at(k).source, run.at(k).destination, 1);
  });
  block_ = std::max<Index>(std::gcd(block_, stretch.count), 1);

  std::vector<Index> source, destination;
  Index in_block = 0;
  for_each_run(again, [&](const OffsetRun& run) {
    // A block's first element is listed; runs may cut blocks.
    for (Index k = in_block == 0 ? 0 : block_ - in_block; k < run.count; k += block_) {
      source.push_back(run.at(k).source);
      destination.push_back(run.at(k).destination);
    }
    in_block = (in_block + run.count) % block_;
  });
  if (!source.empty()) {
    source_base_ = *std::min_element(source.begin(), source.end());
    destination_base_ = *std::min_element(destination.begin(), destination.end());
    unit_ = block_ * element_bytes;
    for (std::size_t k = 0; k < source.size(); ++k) {
      source[k] -= source_base_, destination[k] -= destination_base_;
      // A division costs more than all the rest; most units are powers of two.
      const bool power_of_two = (unit_ & (unit_ - 1)) == 0;
      const Index both = source[k] | destination[k];
      if (power_of_two ? (both & (unit_ - 1)) != 0 : source[k] % unit_ != 0 || destination[k] % unit_ != 0)
        unit_ = std::gcd(std::gcd(unit_, source[k]), destination[k]);
    }
    count_in_units(source, unit_), count_in_units(destination, unit_);
  }
  source_ = packed(source, scheme), destination_ = packed(destination, scheme);
}

PackedList::PackedList(Index element_bytes, Index block, Index unit, Index source_base, Index destination_base,
                       PackedIntegers source, PackedIntegers destination)
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

Interval PackedList::source_extent() const {
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
  check_positions(first, last, elements());
  return std::make_unique<PackedListReader>(*this, first, last);
}

}  // namespace longshore
