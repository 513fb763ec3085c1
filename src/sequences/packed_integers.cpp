#include "longshore/sequences/packed_integers.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "bit_packing.hpp"
#include "longshore/sequences/interval.hpp"

namespace longshore {
namespace {

using bit_packing::block_values;
using bit_packing::unit_bytes;

std::uint64_t modular(Index value) { return static_cast<std::uint64_t>(value); }
Index difference(Index a, Index b) { return static_cast<Index>(modular(a) - modular(b)); }

}  // namespace

PackedIntegers PackedIntegers::measured(std::span<const Index> values, Scheme scheme) {
  PackedIntegers list;
  list.scheme_ = scheme;
  list.size_ = static_cast<Index>(values.size());
  if (values.empty()) return list;
  list.minimum_ = list.maximum_ = values[0];
  list.blocks_.reserve(static_cast<std::size_t>(ceil_div(list.size_, block_values)));
  std::uint64_t unit = 0;
  for (Index first = 0; first < list.size_; first += block_values) {
    const Index* v = values.data() + first;
    const Index n = std::min(block_values, list.size_ - first);
    Index least = v[0], largest = v[0];
    for (Index i = 1; i < n; ++i) {
      least = std::min(least, v[i]);
      largest = std::max(largest, v[i]);
    }
    list.minimum_ = std::min(list.minimum_, least);
    list.maximum_ = std::max(list.maximum_, largest);
    Block block;
    block.base = least;
    if (scheme == Scheme::deltas) {
      block.base = v[0];
      least = largest = n > 1 ? difference(v[1], v[0]) : 0;
      for (Index i = 2; i < n; ++i) {
        const Index delta = difference(v[i], v[i - 1]);
        least = std::min(least, delta);
        largest = std::max(largest, delta);
      }
      block.step = least;
    }
    block.unit = unit;
    const int width = bit_packing::bits(modular(largest) - modular(least));
    block.width = static_cast<std::uint64_t>(width);
    unit += static_cast<std::uint64_t>(bit_packing::units(n, width));
    list.blocks_.push_back(block);
  }
  return list;
}

void PackedIntegers::pack(std::span<const Index> values) {
  packed_.resize(static_cast<std::size_t>(packed_bytes()));
  std::array<std::uint64_t, block_values> rest;
  for (Index b = 0; b < static_cast<Index>(blocks_.size()); ++b) {
    const Block& block = blocks_[static_cast<std::size_t>(b)];
    const Index* v = values.data() + b * block_values;
    const Index n = count(b);
    if (scheme_ == Scheme::offsets) {
      for (Index i = 0; i < n; ++i) rest[static_cast<std::size_t>(i)] = modular(v[i]) - modular(block.base);
    } else {
      rest[0] = 0;
      for (Index i = 1; i < n; ++i)
        rest[static_cast<std::size_t>(i)] = modular(v[i]) - modular(v[i - 1]) - modular(block.step);
    }
    bit_packing::pack(rest.data(), n, block.width, packed_.data() + block.unit * unit_bytes);
  }
}

PackedIntegers::PackedIntegers(std::span<const Index> values, Scheme scheme)
    : PackedIntegers(measured(values, scheme)) {
  pack(values);
}

PackedIntegers PackedIntegers::smallest(std::span<const Index> values) {
  auto list = measured(values, Scheme::offsets);
  auto deltas = measured(values, Scheme::deltas);
  if (deltas.stored_bytes() < list.stored_bytes()) list = std::move(deltas);
  list.pack(values);
  return list;
}

Index PackedIntegers::count(Index b) const { return std::min(block_values, size_ - b * block_values); }

Index PackedIntegers::packed_bytes() const {
  if (blocks_.empty()) return 0;
  const Index last = static_cast<Index>(blocks_.size()) - 1;
  return unit_bytes * (static_cast<Index>(blocks_.back().unit) + bit_packing::units(count(last), blocks_.back().width));
}

Index PackedIntegers::memory_bytes() const {
  return static_cast<Index>(blocks_.capacity() * sizeof(Block) + packed_.capacity());
}

Index PackedIntegers::minimum() const {
  if (empty()) throw Error(ErrorKind::argument, "a list of no integers has no minimum; ask empty() first");
  return minimum_;
}

Index PackedIntegers::maximum() const {
  if (empty()) throw Error(ErrorKind::argument, "a list of no integers has no maximum; ask empty() first");
  return maximum_;
}

Index PackedIntegers::operator[](Index position) const {
  check_position(position, size_);
  const Block& block = blocks_[static_cast<std::size_t>(position / block_values)];
  const std::byte* bits = packed_.data() + block.unit * unit_bytes;
  const Index within = position % block_values;
  if (scheme_ == Scheme::offsets)
    return static_cast<Index>(modular(block.base) + bit_packing::packed_value(bits, block.width, within));
  std::uint64_t value = modular(block.base);
  for (Index i = 1; i <= within; ++i) value += modular(block.step) + bit_packing::packed_value(bits, block.width, i);
  return static_cast<Index>(value);
}

const std::byte* PackedIntegers::full_block(Index b, FullBlock& room) const {
  const Block& block = blocks_[static_cast<std::size_t>(b)];
  const std::byte* bits = packed_.data() + block.unit * unit_bytes;
  const Index n = count(b);
  if (n == block_values) return bits;
  const auto there = static_cast<std::size_t>(unit_bytes * bit_packing::units(n, block.width));
  const auto full = static_cast<std::size_t>(unit_bytes * bit_packing::units(block_values, block.width));
  if (there > 0) std::memcpy(room.data(), bits, there);
  std::memset(room.data() + there, 0, full - there);
  return room.data();
}

template <class Out>
void PackedIntegers::decode_block(Index b, Index base, Out* out) const {
  const Block& block = blocks_[static_cast<std::size_t>(b)];
  FullBlock room;
  const std::byte* bits = full_block(b, room);
  const std::uint64_t from = modular(block.base) - modular(base);
  if (scheme_ == Scheme::offsets)
    bit_packing::decode_offsets(bits, block.width, from, out);
  else
    bit_packing::decode_deltas(bits, block.width, from, modular(block.step), out);
}
template void PackedIntegers::decode_block(Index, Index, std::uint64_t*) const;

template <class Out>
void PackedIntegers::decode(Index first, Index n, Index base, Out* out) const {
  check_stretch(first, n);
  std::array<Out, block_values> whole;
  while (n > 0) {
    const Index b = first / block_values, within = first % block_values;
    const Index here = std::min(block_values - within, n);
    if (here == block_values) {
      decode_block(b, base, out);
    } else {
      decode_block(b, base, whole.data());
      std::memcpy(out, whole.data() + within, static_cast<std::size_t>(here) * sizeof(Out));
    }
    first += here;
    n -= here;
    out += here;
  }
}

void PackedIntegers::check_stretch(Index first, Index n) const {
  if (first < 0 || n < 0 || first > size_ || n > size_ - first)
    throw Error(ErrorKind::argument, std::to_string(n) + " positions from " + std::to_string(first) +
                                         " on are not all in [0, " + std::to_string(size_) + ")");
}

void PackedIntegers::read(Index first, Index n, Index* out) const {
  decode(first, n, 0, reinterpret_cast<std::uint64_t*>(out));
}

void PackedIntegers::read(Index first, Index n, std::uint32_t* out, Index base) const { decode(first, n, base, out); }

}  // namespace longshore
