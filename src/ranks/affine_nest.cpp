#include "longshore/ranks/affine_nest.hpp"

#include <algorithm>
#include <numeric>

namespace longshore {

namespace {

constexpr std::size_t most_axes = 62;  // each has two members at least, and there are fewer than 2^63

}  // namespace

/// What is wrong with the axes, or nullptr.
const char* AffineNest::assign(Index base, std::span<const Axis> axes) {
  std::vector<Axis> kept;
  size_ = 1;
  for (const auto& axis : axes) {
    if (axis.count < 0) return "an axis of fewer than no members";
    size_ = axis.count == 0 || size_ == 0 ? 0 : checked_mul(size_, axis.count);
    if (axis.count < 2) continue;
    if (!kept.empty() && axis.stride == checked_mul(kept.back().stride, kept.back().count))
      kept.back().count = checked_mul(kept.back().count, axis.count);
    else
      kept.push_back(axis);
  }
  if (size_ == 0) return *this = AffineNest(), nullptr;
  if (kept.size() > most_axes) return "too many axes";
  base_ = lowest_ = base;
  depth_ = std::max<std::size_t>(kept.size(), 1);
  if (depth_ > near_levels) far_.resize(depth_), far_order_.resize(depth_);
  Level* levels = far_.empty() ? near_.data() : far_.data();
  std::uint8_t* order = far_.empty() ? near_order_.data() : far_order_.data();
  levels[0].count = 1;
  Index place = 1;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    auto& level = levels[k];
    level.count = kept[k].count, level.stride = kept[k].stride, level.place = place;
    if (level.stride == 0 || level.stride == INT64_MIN) return "an axis whose stride is no stride";
    const Index way = checked_mul(level.count - 1, level.stride);
    if (way < 0) lowest_ = checked_add(lowest_, way);
    if (k > 0) {
      level.magic = ~std::uint64_t{0} / std::uint64_t(place) + 1;
      level.jump =
          std::uint64_t(level.stride) - std::uint64_t(levels[k - 1].stride) * std::uint64_t(levels[k - 1].count);
    }
    place *= level.count;
  }
  if (lowest_ < 0) return "negative ranks";
  std::iota(order, order + depth_, std::uint8_t{0});
  std::sort(order, order + depth_,
            [&](auto a, auto b) { return std::abs(levels[a].stride) > std::abs(levels[b].stride); });
  Index below = 0;  // how far all smaller strides go together
  for (std::size_t k = kept.size(); k-- > 0;) {
    const auto& level = levels[order[k]];
    if (std::abs(level.stride) <= below) return "strides that do not nest, so that a rank may come twice";
    below = checked_add(below, checked_mul(level.count - 1, std::abs(level.stride)));
  }
  checked_add(lowest_, below);
  return nullptr;
}

AffineNest::AffineNest(Index base, std::span<const Axis> axes) {
  if (const char* wrong = assign(base, axes)) {
    std::string text = "loops from rank " + std::to_string(base);
    for (const auto& axis : axes) text += ", " + std::to_string(axis.count) + " by " + std::to_string(axis.stride);
    throw Error(ErrorKind::argument, text + " have " + wrong);
  }
}

std::optional<AffineNest> AffineNest::make(Index base, std::span<const Axis> axes) {
  AffineNest nest;
  if (nest.assign(base, axes) != nullptr) return std::nullopt;
  return nest;
}

Index AffineNest::highest() const {
  Index highest = base_;
  for (std::size_t k = 0; k < depth_; ++k)
    highest += std::max<Index>(levels()[k].stride, 0) * (std::max<Index>(levels()[k].count, 1) - 1);
  return highest;
}

bool AffineNest::ascending() const {
  const Level* level = levels();
  for (std::size_t k = 0; k < depth_; ++k)
    if (level[k].count > 1 && (level[k].stride < 0 || (k > 0 && level[k].stride <= level[k - 1].stride))) return false;
  return true;
}

Index AffineNest::rank(Index w) const {
  if (w < lowest_ || size_ == 0) return nobody;
  const Level* level = levels();
  Index rest = w - lowest_, i = 0;
  for (std::size_t k = 0; k < depth_; ++k) {
    const auto& l = level[order()[k]];
    if (l.count < 2) break;
    const Index stride = std::abs(l.stride), t = rest / stride;
    if (t >= l.count) return nobody;
    rest -= t * stride;
    i += (l.stride > 0 ? t : l.count - 1 - t) * l.place;
  }
  return rest == 0 ? i : nobody;
}

void AffineNest::read(Index first, Index n, Index* out) const {
  const Level& inner = levels()[0];
  for (Index end = first + n; first < end;) {
    const Index here = std::min(end - first, inner.count - first % inner.count), value = select(first);
    for (Index k = 0; k < here; ++k) out[k] = value + k * inner.stride;
    first += here, out += here;
  }
}

std::string AffineNest::to_string() const {
  std::string text = std::to_string(base_);
  if (size_ == 0) return "none";
  for (std::size_t k = 0; k < depth_; ++k)
    if (levels()[k].count > 1)
      text += " + " + std::to_string(levels()[k].stride) + " x " + std::to_string(levels()[k].count);
  return text;
}

bool AffineNest::operator==(const AffineNest& other) const {
  if (size_ != other.size_ || base_ != other.base_ || depth_ != other.depth_) return false;
  for (std::size_t k = 0; k < depth_; ++k)
    if (axis(k) != other.axis(k)) return false;
  return true;
}

}  // namespace longshore
