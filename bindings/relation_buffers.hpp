/// What relations take from Python and give back: index arrays, element types, memory with its bounds.
#pragma once

#include <nanobind/ndarray.h>

#include "longshore/copies/relation_program.hpp"
#include "rooms.hpp"

namespace longshore::python {

inline nb::object arrays_module() { return nb::module_::import_("longshore._arrays"); }

/// A NumPy array of (n, Columns) 64-bit integers that owns its memory; (n,) for one column.
template <std::size_t Columns>
nb::object to_array(std::vector<Index> values) {
  auto* owned = new std::vector<Index>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<Index>*>(p); });
  const std::size_t shape[2] = {owned->size() / Columns, Columns};
  // Viewed, because what arrives is C's `long long`, which NumPy prints another way than its own int64.
  return nb::cast(nb::ndarray<nb::numpy, Index>(owned->data(), Columns == 1 ? 1 : 2, shape, owner))
      .attr("view")("int64");
}

/// An integer array of one or two dimensions as `longshore._arrays.index_array` makes it.
struct IndexArray {
  nb::object holder;
  const void* data;
  std::size_t rows, columns;
  bool narrow;  ///< 32 bits an integer

  IndexArray(const nb::object& values, const char* name, int columns_wanted) {
    const nb::tuple made = nb::cast<nb::tuple>(arrays_module().attr("index_array")(values, name, columns_wanted));
    holder = made[0];
    data = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(made[1]));
    rows = nb::cast<std::size_t>(made[2]);
    columns = std::size_t(columns_wanted);
    narrow = nb::cast<bool>(made[3]);
  }
  std::span<const std::int64_t> wide_values() const { return {static_cast<const std::int64_t*>(data), rows * columns}; }
  std::span<const std::int32_t> narrow_values() const {
    return {static_cast<const std::int32_t*>(data), rows * columns};
  }
};

/// The end of the stretch of positions that somebody asks for.
/// Throws `Error(argument)` where there are no such positions.
inline Index end_of_stretch(Index first, const std::optional<Index>& last, Index elements) {
  const Index end = last.value_or(elements);
  check_positions(first, end, elements);
  return end;
}

/// A dtype, or a number of bytes, and the name of a combining operation or None.
struct Element {
  Index bytes;
  Reduction reduction;
  Element(const nb::object& dtype, const nb::object& reduce) {
    const nb::tuple made = nb::cast<nb::tuple>(arrays_module().attr("relation_element")(dtype, reduce));
    bytes = nb::cast<Index>(made[0]);
    if (!reduce.is_none())
      reduction = Reduction(nb::cast<ElementType>(made[1]), reduce_op(nb::cast<std::string>(reduce)));
  }
};

/// An array's memory: where its first element is, and the bytes before and behind it that are its own.
struct Memory {
  nb::object holder;
  std::byte* data;
  Index low, high;  ///< relative to data
  bool writeable, contiguous;

  Memory(const nb::object& array) {
    const nb::tuple made = nb::cast<nb::tuple>(arrays_module().attr("memory")(array));
    holder = made[0];
    data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(made[1]));
    low = nb::cast<Index>(made[2]), high = nb::cast<Index>(made[3]);
    writeable = nb::cast<bool>(made[4]), contiguous = nb::cast<bool>(made[5]);
  }

  void check(const Interval& extent, const char* name, bool write) const {
    if (write && !writeable) throw Error(ErrorKind::buffer, std::string("the ") + name + " array is read-only");
    if (extent.first == extent.last || (extent.first >= low && extent.last <= high)) return;
    throw Error(ErrorKind::buffer, std::string("the relation touches bytes [") + std::to_string(extent.first) + ", " +
                                       std::to_string(extent.last) + ") of the " + name + " array, which has [" +
                                       std::to_string(low) + ", " + std::to_string(high) + ")");
  }
  /// Bytes [first, last) of this memory and of another must be different bytes.
  void check_apart(const Interval& mine, const Memory& other, const Interval& theirs) const {
    if (mine.first == mine.last || theirs.first == theirs.last) return;
    if (data + mine.first < other.data + theirs.last && other.data + theirs.first < data + mine.last)
      throw Error(ErrorKind::buffer, "source and destination overlap in memory; move through a message, or copy first");
  }
};

}  // namespace longshore::python
