/// The dense owner array: HPF's and ScaLAPACK's definitions written out index by index, for tests to compare with.
/// Nothing here calls the code under test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "longshore/layouts/layout.hpp"

namespace longshore::test {

using Indices = std::vector<Index>;
using Bytes = std::vector<std::byte>;

/// What one dimension is asked to be.
struct DimensionSpec {
  using Kind = Distribution::Kind;
  Kind kind = Kind::collapsed;
  Index extent = 0, coordinates = 1;
  std::optional<Index> block;  ///< none: BLOCK's and CYCLIC's own
  Index source = 0, origin = 0;
  Indices sizes;  ///< of GEN_BLOCK

  Index block_size() const {
    if (block) return *block;
    return kind == Kind::block ? std::max<Index>((extent + origin + coordinates - 1) / coordinates, 1) : 1;
  }
  std::string words() const;
};

/// One dimension in full: who owns every index, and the how-manieth of its owner's indices it is.
struct DenseDimension {
  Indices owner, local;
  std::vector<Indices> owned;  ///< of every coordinate, ascending

  explicit DenseDimension(const DimensionSpec& spec);
};

/// What a layout is asked to be.
struct LayoutSpec {
  struct GridExtent {
    Index extent;
    bool replicated;
  };
  std::vector<DimensionSpec> dimensions;
  std::vector<GridExtent> grid;  ///< the non-replicated ones belong, in order, to the dimensions that are not `*`
  bool fortran = false, column_major_ranks = false;
  Index first_rank = 0;
  Indices ranks;
  Index padding = 0;  ///< of the fastest dimension of every local array, beyond the largest; 0: no `ld`

  Indices shape() const;
  Index ld() const;  ///< 0: none
  std::string text() const;
};

std::ostream& operator<<(std::ostream& out, const DimensionSpec& spec);
std::ostream& operator<<(std::ostream& out, const LayoutSpec& spec);

struct DenseProcess {
  Index rank, replica;
  Indices coordinates;  ///< along every array dimension
};

/// A layout in full.
struct DenseLayout {
  LayoutSpec spec;
  Indices shape;
  std::vector<DenseDimension> dimensions;
  std::vector<DenseProcess> processes;  ///< by number
  Index replicas = 1;

  explicit DenseLayout(const LayoutSpec& spec);

  bool owns(const DenseProcess& process, const Indices& index) const;
  Indices local(const Indices& index) const;
  Indices local_shape(const DenseProcess& process) const;
  /// Elements between the beginning of the local array and an element of it.
  Index offset(const DenseProcess& process, const Indices& local) const;
  Index allocated(const DenseProcess& process) const;  ///< elements
};

/// Calls f(index) for every index of a box, the last dimension fastest.
template <class F>
void for_each_index(const Indices& shape, F&& f) {
  for (const Index extent : shape)
    if (extent <= 0) return;
  Indices index(shape.size(), 0);
  while (true) {
    f(static_cast<const Indices&>(index));
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

inline Index product(const Indices& values) {
  Index n = 1;
  for (const Index value : values) n *= value;
  return n;
}

/// Position of an index in the whole array, C order.
inline Index linear(const Indices& shape, const Indices& index) {
  Index position = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) position = position * shape[d] + index[d];
  return position;
}

/// Byte k of the element at a linear position: different everywhere that matters.
inline std::byte element_byte(Index position, Index k) {
  return std::byte((std::uint64_t(position * 64 + k + 1) * 0x9E3779B97F4A7C15u) >> 56);
}

inline constexpr std::byte untouched{0xEE};

/// Every process's local array, filled with the elements it owns; padding is `untouched`.
std::vector<Bytes> scatter(const DenseLayout& layout, Index element_bytes);
/// The same of an array whose dimension d is dimension axes[d] of the array that `scatter` fills: what a move must
/// deliver.
std::vector<Bytes> scatter_permuted(const DenseLayout& layout, Index element_bytes,
                                    const std::vector<std::size_t>& axes);

// ---- in full --------------------------------------------------------------------------------------------------------

inline std::string join(const Indices& values, const char* separator) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text.append(i ? separator : "").append(std::to_string(values[i]));
  return text;
}

inline std::string DimensionSpec::words() const {
  std::string size;
  if (block) size.append("(").append(std::to_string(*block)).append(")");
  switch (kind) {
    case Kind::collapsed: return "*";
    case Kind::block: return "BLOCK" + size;
    case Kind::cyclic: return "CYCLIC" + size;
    case Kind::general_block: return "GEN_BLOCK(" + join(sizes, ",") + ")";
  }
  return "";
}

inline DenseDimension::DenseDimension(const DimensionSpec& spec) : owned(std::size_t(spec.coordinates)) {
  for (Index index = 0; index < spec.extent; ++index) {
    Index coordinate = 0;
    if (spec.kind == DimensionSpec::Kind::general_block) {
      Index last = spec.sizes[0];
      while (index >= last) last += spec.sizes[std::size_t(++coordinate)];
    } else if (spec.kind != DimensionSpec::Kind::collapsed) {
      coordinate = ((index + spec.origin) / spec.block_size() + spec.source) % spec.coordinates;
    }
    auto& mine = owned[std::size_t(coordinate)];
    owner.push_back(coordinate);
    local.push_back(Index(mine.size()));
    mine.push_back(index);
  }
}

inline Indices LayoutSpec::shape() const {
  Indices result;
  for (const auto& dimension : dimensions) result.push_back(dimension.extent);
  return result;
}

inline Index LayoutSpec::ld() const {
  if (padding == 0) return 0;
  std::size_t largest = 0;
  for (const auto& mine : DenseDimension(fortran ? dimensions.front() : dimensions.back()).owned)
    largest = std::max(largest, mine.size());
  return Index(largest) + padding;
}

inline std::string LayoutSpec::text() const {
  std::string text = "(";
  Indices sources, origins;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    text.append(d ? ", " : "").append(dimensions[d].words());
    if (dimensions[d].kind != DimensionSpec::Kind::collapsed) sources.push_back(dimensions[d].source);
    origins.push_back(dimensions[d].origin);
  }
  text += ") on ";
  for (std::size_t g = 0; g < grid.size(); ++g) {
    text += g ? "x" : "";
    text += grid[g].replicated ? "REPLICATED(" : "";
    text += std::to_string(grid[g].extent);
    text += grid[g].replicated ? ")" : "";
  }
  if (fortran) text += ", order=F";
  if (column_major_ranks) text += ", rank_order=F";
  if (std::count(sources.begin(), sources.end(), 0) != Index(sources.size())) text += ", source=" + join(sources, "x");
  if (std::count(origins.begin(), origins.end(), 0) != Index(origins.size())) text += ", origin=" + join(origins, "x");
  if (!ranks.empty()) text += ", ranks=[" + join(ranks, ",") + "]";
  if (first_rank > 0) {
    Index processes = 1;
    for (const auto& g : grid) processes *= g.extent;
    text += ", ranks=" + std::to_string(first_rank) + ":" + std::to_string(first_rank + processes);
  }
  if (ld() > 0) text += ", ld=" + std::to_string(ld());
  return text;
}

inline std::ostream& operator<<(std::ostream& out, const DimensionSpec& spec) {
  return out << spec.words() << " of " << spec.extent << " on " << spec.coordinates << ", source " << spec.source
             << ", origin " << spec.origin;
}

inline std::ostream& operator<<(std::ostream& out, const LayoutSpec& spec) {
  return out << '"' << spec.text() << "\" of " << join(spec.shape(), "x");
}

inline DenseLayout::DenseLayout(const LayoutSpec& given) : spec(given), shape(given.shape()) {
  for (const auto& dimension : spec.dimensions) dimensions.emplace_back(dimension);
  Indices extents;
  for (const auto& g : spec.grid) extents.push_back(g.extent);
  // Row-major numbering is the order in which the last coordinate runs fastest; column-major, the first.
  if (spec.column_major_ranks) std::reverse(extents.begin(), extents.end());
  for_each_index(extents, [&](Indices at) {
    if (spec.column_major_ranks) std::reverse(at.begin(), at.end());
    const Index number = Index(processes.size());
    DenseProcess process{spec.ranks.empty() ? spec.first_rank + number : spec.ranks[std::size_t(number)], 0, {}};
    std::size_t g = 0;
    auto pass_replicas = [&] {
      for (; g < at.size() && spec.grid[g].replicated; ++g)
        process.replica = process.replica * spec.grid[g].extent + at[g];
    };
    for (const auto& dimension : spec.dimensions) {
      if (dimension.kind == DimensionSpec::Kind::collapsed) {
        process.coordinates.push_back(0);
        continue;
      }
      pass_replicas();
      process.coordinates.push_back(at[g++]);
    }
    if (g < at.size() && !spec.grid[g].replicated) ++g;  // the lone 1 of "(*) on 1"
    pass_replicas();
    processes.push_back(process);
  });
  for (const auto& g : spec.grid)
    if (g.replicated) replicas *= g.extent;
}

inline bool DenseLayout::owns(const DenseProcess& process, const Indices& index) const {
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (dimensions[d].owner[std::size_t(index[d])] != process.coordinates[d]) return false;
  return true;
}

inline Indices DenseLayout::local(const Indices& index) const {
  Indices result;
  for (std::size_t d = 0; d < shape.size(); ++d) result.push_back(dimensions[d].local[std::size_t(index[d])]);
  return result;
}

inline Indices DenseLayout::local_shape(const DenseProcess& process) const {
  Indices result;
  for (std::size_t d = 0; d < shape.size(); ++d)
    result.push_back(Index(dimensions[d].owned[std::size_t(process.coordinates[d])].size()));
  return result;
}

inline Index DenseLayout::offset(const DenseProcess& process, const Indices& local) const {
  auto extents = local_shape(process);
  auto at = local;
  if (spec.fortran) std::reverse(extents.begin(), extents.end()), std::reverse(at.begin(), at.end());
  if (spec.ld() > 0) extents.back() = spec.ld();
  return linear(extents, at);
}

inline Index DenseLayout::allocated(const DenseProcess& process) const {
  auto extents = local_shape(process);
  if (product(extents) == 0) return 0;
  if (spec.ld() > 0) (spec.fortran ? extents.front() : extents.back()) = spec.ld();
  return product(extents);
}

inline std::vector<Bytes> scatter_permuted(const DenseLayout& layout, Index element_bytes,
                                           const std::vector<std::size_t>& axes) {
  Indices source_shape(axes.size());
  for (std::size_t d = 0; d < axes.size(); ++d) source_shape[axes[d]] = layout.shape[d];
  std::vector<Bytes> parts;
  for (const auto& process : layout.processes) {
    Bytes part(std::size_t(layout.allocated(process) * element_bytes), untouched);
    for_each_index(layout.shape, [&](const Indices& index) {
      if (!layout.owns(process, index)) return;
      Indices source(axes.size());
      for (std::size_t d = 0; d < axes.size(); ++d) source[axes[d]] = index[d];
      const Index at = layout.offset(process, layout.local(index)) * element_bytes;
      for (Index k = 0; k < element_bytes; ++k)
        part[std::size_t(at + k)] = element_byte(linear(source_shape, source), k);
    });
    parts.push_back(std::move(part));
  }
  return parts;
}

inline std::vector<Bytes> scatter(const DenseLayout& layout, Index element_bytes) {
  std::vector<std::size_t> axes;
  for (std::size_t d = 0; d < layout.shape.size(); ++d) axes.push_back(d);
  return scatter_permuted(layout, element_bytes, axes);
}

}  // namespace longshore::test
