/// `AffineNest`: nested loops over ranks in closed form; sub-meshes,
/// strides, transposes, block-cyclic grids. A few dozen bytes.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "longshore/sequences/affine_run.hpp"

namespace longshore {

/// What `rank` answers for those who are not members.
inline constexpr Index nobody = -1;

/// base + sum of digit[k] * stride[k], the digits counted as an odometer counts, axis 0 fastest. Each stride is larger
/// than the way that all smaller ones can go together, so that no rank comes twice and the digits of a rank can be read
/// off it. Up to four axes need no memory but the object itself.
class AffineNest {
 public:
  using Axis = Loop;

  /// Of no members.
  AffineNest() = default;
  /// Axis 0 is the fastest. Axes of one are dropped, axes that continue one another merged, so that
  /// equal maps of like axes are equal objects. Throws `Error(argument)` where a rank comes twice or
  /// may, or is negative; `Error(overflow)` beyond 64 bits.
  AffineNest(Index base, std::span<const Axis> axes);
  static AffineNest stride(Index first, Index count, Index step) {
    return AffineNest(first, std::array{Axis{count, step}});
  }
  /// Nothing instead of an error where the strides do not nest.
  static std::optional<AffineNest> make(Index base, std::span<const Axis> axes);

  Index size() const { return size_; }
  std::size_t depth() const { return depth_; }
  Index base() const { return base_; }
  Axis axis(std::size_t k) const { return {levels()[k].count, levels()[k].stride}; }
  Index lowest() const { return lowest_; }
  Index highest() const;
  /// Whether ranks ascend.
  bool ascending() const;

  /// The rank at a position, 0 <= i < size(). With q[k] = i / place[k] and digit[k] = q[k] - count[k] q[k + 1], the sum
  /// telescopes into one product for each q: no quotient waits for another.
  Index select(Index i) const {
    const Level* level = levels();
    std::uint64_t value = std::uint64_t(base_) + std::uint64_t(i) * std::uint64_t(level->stride);
    for (const Level* end = level + depth_; ++level < end;) value += quotient(std::uint64_t(i), *level) * level->jump;
    return Index(value);
  }
  /// Where a rank is, or `nobody`.
  Index rank(Index w) const;
  /// Positions [first, first + n).
  void read(Index first, Index n, Index* out) const;

  Index bytes() const { return Index(2 + 5 * depth_) * Index(sizeof(Index)); }
  std::string to_string() const;  ///< "5 + 1 x 50 + 64 x 57"
  bool operator==(const AffineNest& other) const;

 private:
  struct Level {
    Index count = 0, stride = 0;
    Index place = 1;          ///< positions that one step of the digit takes
    std::uint64_t magic = 0;  ///< ceil(2^64 / place)
    std::uint64_t jump = 0;   ///< stride less the way that the level below goes, modulo 2^64
  };
  static constexpr std::size_t near_levels = 4;

  /// i / place: the product with the rounded reciprocal is at most one too large.
  static std::uint64_t quotient(std::uint64_t i, const Level& level) {
    const auto q = std::uint64_t((unsigned __int128)(i)*level.magic >> 64);
    return q - (q * std::uint64_t(level.place) > i);
  }
  const Level* levels() const { return far_.empty() ? near_.data() : far_.data(); }
  const std::uint8_t* order() const { return far_.empty() ? near_order_.data() : far_order_.data(); }
  const char* assign(Index base, std::span<const Axis> axes);

  Index base_ = 0, size_ = 0, lowest_ = 0;
  std::size_t depth_ = 1;
  std::array<Level, near_levels> near_;
  std::vector<Level> far_;
  std::array<std::uint8_t, near_levels> near_order_{};  ///< levels, the largest stride first
  std::vector<std::uint8_t> far_order_;
};

}  // namespace longshore
