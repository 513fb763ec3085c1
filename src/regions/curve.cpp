#include "regions/curve.hpp"

#include <algorithm>
#include <bit>

namespace longshore {

namespace {

constexpr std::size_t most_dims = 64;

}  // namespace

CurveKeys::CurveKeys(std::vector<Index> lower, const std::vector<Index>& upper)
    : lower_(std::move(lower)), dims_(std::min(lower_.size(), most_dims)), bits_(dims_ == 0 ? 0 : int(64 / dims_)) {
  // One resolution for all dimensions, or the curve would run along thin slices.
  int widest = 0;
  for (std::size_t d = 0; d < dims_; ++d)
    widest = std::max(widest, int(std::bit_width(std::uint64_t(upper[d]) - std::uint64_t(lower_[d]))));
  shift_.assign(dims_, std::max(0, widest - bits_));
}

std::uint64_t CurveKeys::interleave(const std::uint64_t* cells, std::size_t dims, int bits) {
  std::uint64_t key = 0;
  for (int bit = bits; bit-- > 0;)
    for (std::size_t d = 0; d < dims; ++d) key = key << 1 | (cells[d] >> bit & 1);
  return key;
}

std::uint64_t CurveKeys::morton(const Index* point) const {
  std::uint64_t cells[most_dims];
  for (std::size_t d = 0; d < dims_; ++d) cells[d] = cell(point, d);
  return interleave(cells, dims_, bits_);
}

std::uint64_t CurveKeys::hilbert(const Index* point) const {
  if (dims_ == 0) return 0;
  std::uint64_t x[most_dims];
  for (std::size_t d = 0; d < dims_; ++d) x[d] = cell(point, d);
  // From the coarsest cells down, undo how each cell's curve is turned and mirrored in its parent's.
  for (std::uint64_t half = std::uint64_t(1) << (bits_ - 1); half > 1; half >>= 1) {
    const std::uint64_t below = half - 1;
    for (std::size_t d = 0; d < dims_; ++d) {
      if (x[d] & half) {
        x[0] ^= below;
      } else {
        const std::uint64_t swapped = (x[0] ^ x[d]) & below;
        x[0] ^= swapped, x[d] ^= swapped;
      }
    }
  }
  // Gray code, which leads from cell to neighbouring cell.
  for (std::size_t d = 1; d < dims_; ++d) x[d] ^= x[d - 1];
  std::uint64_t turned = 0;
  for (std::uint64_t half = std::uint64_t(1) << (bits_ - 1); half > 1; half >>= 1)
    if (x[dims_ - 1] & half) turned ^= half - 1;
  for (std::size_t d = 0; d < dims_; ++d) x[d] ^= turned;
  return interleave(x, dims_, bits_);
}

}  // namespace longshore
