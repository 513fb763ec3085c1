/// Values of the library as bytes: a name and a version, lists of
/// integers, a checksum. Little-endian, the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "longshore/core/checked.hpp"
#include "longshore/sequences/packed_integers.hpp"
#include "sequences/stored_kind.hpp"

namespace longshore {

class ListWriter {
 public:
  explicit ListWriter(const StoredKind& kind);
  void list(std::span<const Index> values);  ///< bit-packed
  void list(std::initializer_list<Index> values) { list(std::span(values.begin(), values.size())); }
  std::vector<std::byte> finish() &&;

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what `ListWriter` wrote. Throws `Error(argument)` for anything else: outside data is never trusted. Memory
/// stays in proportion to the bytes that are there.
class ListReader {
 public:
  ListReader(const StoredKind& kind, std::span<const std::byte> bytes);
  std::vector<Index> list();
  std::vector<Index> list(std::size_t n);  ///< refuses a list of any other length
  /// Refuses a longer one, saying what there are so many of.
  std::vector<Index> list_of_most(Index most, const char* what);
  void end() const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  PackedIntegers packed();

  const StoredKind& kind_;
  std::span<const std::byte> all_, left_;
};

}  // namespace longshore
