#include "longshore/layouts/distribution.hpp"

#include <algorithm>

namespace longshore {

namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::layout, message); }

void require_dealing(Index extent, Index coordinates, Index block, Index source, Index origin) {
  if (extent < 0) fail("extent " + std::to_string(extent) + " is negative");
  if (coordinates < 1)
    fail("a grid dimension of " + std::to_string(coordinates) + " cannot own anything; it must be at least 1");
  if (block < 1) fail("block size " + std::to_string(block) + " must be at least 1");
  if (source < 0 || source >= coordinates)
    fail("source offset " + std::to_string(source) + " is outside the grid dimension [0, " +
         std::to_string(coordinates) + ")");
  if (origin < 0) fail("origin " + std::to_string(origin) + " is negative");
  checked_add(extent, origin);
}

}  // namespace

Distribution Distribution::collapsed(Index extent) {
  require_dealing(extent, 1, 1, 0, 0);
  Distribution d;
  d.kind_ = Kind::collapsed;
  d.extent_ = extent;
  d.block_ = std::max<Index>(extent, 1);
  return d;
}

Distribution Distribution::block(Index extent, Index coordinates, Index block, Index source, Index origin) {
  Distribution d;
  d.kind_ = Kind::block;
  const Index ceiling = coordinates >= 1 && extent >= 0 && origin >= 0
                            ? std::max<Index>(ceil_div(checked_add(extent, origin), coordinates), 1)
                            : 1;  // one of them is wrong, and refused below
  if (block < 0) block = ceiling;
  d.explicit_block_ = block != ceiling;  // BLOCK(25) of 100 on 4 is BLOCK: equal dealings compare equal
  require_dealing(extent, coordinates, block, source, origin);
  if (Wide(block) * coordinates < Wide(extent) + origin)
    fail("BLOCK(" + std::to_string(block) + ") on " + std::to_string(coordinates) + " holds " +
         std::to_string(Index(Wide(block) * coordinates)) + " of " + std::to_string(extent + origin) +
         " indices; use BLOCK, a block of at least " + std::to_string(ceil_div(extent + origin, coordinates)) +
         ", or CYCLIC(" + std::to_string(block) + ")");
  d.extent_ = extent, d.coordinates_ = coordinates, d.block_ = block, d.source_ = source, d.origin_ = origin;
  return d;
}

Distribution Distribution::cyclic(Index extent, Index coordinates, Index block, Index source, Index origin) {
  require_dealing(extent, coordinates, block, source, origin);
  Distribution d;
  d.kind_ = Kind::cyclic;
  d.extent_ = extent, d.coordinates_ = coordinates, d.block_ = block, d.source_ = source, d.origin_ = origin;
  return d;
}

Distribution Distribution::general_block(Index extent, std::vector<Index> sizes) {
  require_dealing(extent, std::max<Index>(Index(sizes.size()), 1), 1, 0, 0);
  if (sizes.empty()) fail("GEN_BLOCK needs one size for every coordinate of its grid dimension");
  Distribution d;
  d.kind_ = Kind::general_block;
  d.extent_ = extent;
  d.coordinates_ = Index(sizes.size());
  d.starts_.push_back(0);
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    if (sizes[c] < 0)
      fail("GEN_BLOCK size " + std::to_string(sizes[c]) + " of coordinate " + std::to_string(c) + " is negative");
    d.starts_.push_back(checked_add(d.starts_.back(), sizes[c]));
  }
  if (d.starts_.back() != extent)
    fail("GEN_BLOCK sizes add up to " + std::to_string(d.starts_.back()) + ", the dimension has " +
         std::to_string(extent));
  d.sizes_ = std::move(sizes);
  return d;
}

bool Distribution::intervals() const {
  if (kind_ != Kind::cyclic || coordinates_ == 1) return true;
  return Wide(block_) * coordinates_ >= Wide(extent_) + origin_;
}

Index Distribution::template_coordinate(Index coordinate) const {
  const Index c = coordinate - source_;
  return c < 0 ? c + coordinates_ : c;
}

namespace {

/// Cells of the template below t that the coordinate with template position c owns.
Index owned_below(Index t, Index c, Index block, Index coordinates) {
  const Wide cycle = Wide(block) * coordinates;
  Index whole = 0, rest = t;
  if (cycle <= t) whole = t / Index(cycle), rest = t % Index(cycle);
  return whole * block + Index(std::clamp<Wide>(rest - Wide(c) * block, 0, block));
}

}  // namespace

Index Distribution::count_below(Index coordinate, Index index) const {
  if (kind_ == Kind::collapsed) return index;
  if (kind_ == Kind::general_block) return std::clamp<Index>(index - starts_[coordinate], 0, sizes_[coordinate]);
  const Index c = template_coordinate(coordinate);
  return owned_below(index + origin_, c, block_, coordinates_) - owned_below(origin_, c, block_, coordinates_);
}

Index Distribution::count(Index coordinate) const { return count_below(coordinate, extent_); }

Index Distribution::largest_count() const {
  if (kind_ == Kind::collapsed) return extent_;
  if (kind_ == Kind::general_block) return *std::max_element(sizes_.begin(), sizes_.end());
  // count() is linear in the template position but for kinks where the array
  // begins and ends in its cycle, so the maximum is at a kink or beside one.
  Index largest = 0;
  for (const Index cell : {Index{0}, origin_, extent_ + origin_})
    for (const Index step : {-1, 0, 1})
      largest = std::max(largest, count(Index(floor_mod(Wide(cell / block_) + step + source_, coordinates_))));
  return largest;
}

Index Distribution::owner(Index index) const {
  if (kind_ == Kind::collapsed) return 0;
  if (kind_ == Kind::general_block)
    return Index(std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin()) - 1;
  return Index((Wide((index + origin_) / block_) + source_) % coordinates_);
}

Index Distribution::local(Index index) const { return count_below(owner(index), index); }

Index Distribution::global(Index coordinate, Index local) const {
  if (kind_ == Kind::collapsed) return local;
  if (kind_ == Kind::general_block) return starts_[coordinate] + local;
  const Index c = template_coordinate(coordinate);
  const Index cell = local + owned_below(origin_, c, block_, coordinates_);
  return Index((Wide(cell / block_) * coordinates_ + c) * block_ + cell % block_ - origin_);
}

Interval Distribution::interval(Index coordinate) const {
  const Index n = count(coordinate);
  if (n == 0) return {0, 0};
  const Index first = global(coordinate, 0);
  return {first, first + n};
}

Runs Distribution::owned(Index coordinate) const {
  const Index n = count(coordinate);
  if (n == 0) return Runs();
  if (intervals()) {
    const auto [first, last] = interval(coordinate);
    return Runs::interval(first, last);
  }
  // A cut first block (where a window begins inside it), whole blocks, a cut last one.
  const Index first = global(coordinate, 0);
  const Index head = std::min(block_ - (first + origin_) % block_, n);
  std::vector<Run> runs;
  Index done = 0;
  if (head < block_) runs.push_back({first, head, 1, 0}), done = head;
  if (const Index whole = (n - done) / block_) {
    runs.push_back({global(coordinate, done), block_, whole, whole > 1 ? checked_mul(block_, coordinates_) : 0});
    done += whole * block_;
  }
  if (done < n) runs.push_back({global(coordinate, done), n - done, 1, 0});
  return Runs(std::move(runs));
}

Distribution Distribution::window(Index first, Index last) const {
  if (first < 0 || last < first || last > extent_)
    throw Error(ErrorKind::argument, "window [" + std::to_string(first) + ", " + std::to_string(last) +
                                         ") is not within the dimension [0, " + std::to_string(extent_) + ")");
  if (kind_ == Kind::general_block) {
    std::vector<Index> sizes;
    for (Index c = 0; c < coordinates_; ++c) sizes.push_back(count_below(c, last) - count_below(c, first));
    return general_block(last - first, std::move(sizes));
  }
  if (kind_ == Kind::collapsed) return collapsed(last - first);
  // Whole cycles in front of the window change nothing: a small origin keeps the arithmetic far from overflow.
  const Index origin = Index(Wide(origin_ + first) % (Wide(block_) * coordinates_));
  return kind_ == Kind::block ? block(last - first, coordinates_, block_, source_, origin)
                              : cyclic(last - first, coordinates_, block_, source_, origin);
}

std::string Distribution::to_string() const {
  switch (kind_) {
    case Kind::collapsed: return "*";
    case Kind::block: return explicit_block_ ? "BLOCK(" + std::to_string(block_) + ")" : "BLOCK";
    case Kind::cyclic: return block_ == 1 ? "CYCLIC" : "CYCLIC(" + std::to_string(block_) + ")";
    case Kind::general_block: {
      std::string text = "GEN_BLOCK(";
      for (std::size_t c = 0; c < sizes_.size(); ++c) text += (c ? ", " : "") + std::to_string(sizes_[c]);
      return text + ")";
    }
  }
  return "";
}

}  // namespace longshore
