#include "movers/overlap_check.hpp"

#include <algorithm>
#include <string_view>

namespace longshore {

namespace {

/// Where the elements of a grid that has some begin and end.
std::pair<const std::byte*, const std::byte*> ends_of(const Grid& grid) {
  Index low = 0, high = grid.element_bytes;
  for (std::size_t d = 0; d < grid.region.dims(); ++d) {
    const Index reach = checked_mul(grid.region.extent(d) - 1, grid.strides[d]);
    (reach < 0 ? low : high) = checked_add(reach < 0 ? low : high, reach);
  }
  return {grid.data + low, grid.data + high};
}

std::string_view word(OverlapCheck::Role role) {
  switch (role) {
    case OverlapCheck::Role::source: return "source ";
    case OverlapCheck::Role::destination: return "destination ";
    case OverlapCheck::Role::both: break;
  }
  return "";
}

}  // namespace

std::string OverlapCheck::Span::name(const Span& other) const {
  std::string text = "the " + std::string(word(role)) + "array of ";
  if (array)
    for (std::size_t i = 0; i < array->grids().size(); ++i) {
      if (array->grids()[i].region.empty()) continue;
      const auto [begin, end] = ends_of(array->grids()[i]);
      if (begin < other.last && other.first < end) return text + "block " + std::to_string(array->owned()[i]);
    }
  if (block == no_block) return text + (array ? "blocks" : "rank " + std::to_string(rank));
  return text + "block " + std::to_string(block) + (rank == nobody ? "" : " (rank " + std::to_string(rank) + ")");
}

void OverlapCheck::add(const Grid& grid, Role role, Index block, Index rank) {
  if (grid.region.empty()) return;
  const auto [first, last] = ends_of(grid);
  spans_.push_back({first, last, role, block, rank});
}

void OverlapCheck::add(const XArray& array, Role role) {
  const auto& memory = *array.memory();
  if (memory.bytes() > 0)
    spans_.push_back({memory.data(), memory.data() + memory.bytes(), role, no_block, nobody, &array});
}

void OverlapCheck::add(const LocalArray& array, const Layout& layout, Index rank, Index element_bytes, Role role) {
  const Index bytes = checked_mul(layout.allocated_size(rank), element_bytes);
  if (bytes > 0) spans_.push_back({array.data, array.data + bytes, role, no_block, rank});
}

void OverlapCheck::check() {
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  // What is only read may share memory with other such things.
  const Span *reach = nullptr, *reach_written = nullptr;
  for (const auto& span : spans_) {
    const Span* before = span.written() ? reach : reach_written;
    if (before && before->last > span.first)
      throw Error(ErrorKind::buffer,
                  before->name(span) + " and " + span.name(*before) + " share memory; give what is written its own");
    if (!reach || span.last > reach->last) reach = &span;
    if (span.written() && (!reach_written || span.last > reach_written->last)) reach_written = &span;
  }
}

}  // namespace longshore
