/// mpi: what every process brings, at all of them: the collectives by which this library makes up its mind. A process
/// of the node that ends meanwhile is `Error(transport)`.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "mpi/communicator.hpp"

namespace longshore::mpi {

enum class Among { world, node };

/// Everybody's bytes, in order of rank. For few: all of them together must be less than 2 GiB.
std::vector<std::string> gather_bytes(const Communicator& communicator, Among among, std::string_view mine);
/// As many bytes of everybody, one after the other.
void gather_equal(const Communicator& communicator, Among among, std::span<const std::byte> mine,
                  std::span<std::byte> all);
/// Each of `values` becomes the smallest that anybody has brought.
void find_smallest(const Communicator& communicator, Among among, std::span<Index> values);
/// Each of `values` becomes the sum of everybody's, modulo 2^64.
void add_up(const Communicator& communicator, std::span<std::uint64_t> values);
/// Each rank of the world has a number for each: `numbers[r]` goes to rank r, and rank r's for me takes its place.
void swap_numbers(const Communicator& communicator, std::span<Index> numbers);

template <class T>
std::vector<T> gather(const Communicator& communicator, Among among, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(std::size_t(among == Among::world ? communicator.size() : communicator.node_size()));
  gather_equal(communicator, among, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// Lists of any length, one after the other.
template <class T>
std::vector<T> gather_lists(const Communicator& communicator, Among among, const std::vector<T>& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const auto& bytes :
       gather_bytes(communicator, among, {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(T)})) {
    const std::size_t first = all.size();
    all.resize(first + bytes.size() / sizeof(T));
    std::memcpy(static_cast<void*>(all.data() + first), bytes.data(), bytes.size());
  }
  return all;
}

/// What keeps a process of the node from something, in words: those of the first that has any, behind its rank of
/// `world()`. `mine`: nothing where there is no obstacle here, no words where it is another's. Empty where nobody has
/// one.
std::string obstacle_of_node(const Communicator& communicator, const std::optional<std::string>& mine);

}  // namespace longshore::mpi
