#include "relations/datatype_contents.hpp"

#include <string>

namespace longshore {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::argument, "an MPI datatype's contents make no sense: " + what);
}

/// Reads the numbers one after the other. Integers, addresses and large counts follow each
/// other, which is the order that the standard's tables have for all combiners but the arrays,
/// whether a datatype was made with small or with large counts.
class Numbers {
 public:
  explicit Numbers(const DatatypeContents& contents) {
    for (const auto* list : {&contents.integers, &contents.addresses, &contents.counts})
      all_.insert(all_.end(), list->begin(), list->end());
  }
  Index one() {
    if (at_ == all_.size()) refuse("there are only " + std::to_string(at_) + " numbers");
    return all_[at_++];
  }
  std::span<const Index> some(Index n) {
    if (n < 0 || n > Index(all_.size() - at_))
      refuse(std::to_string(n) + " numbers wanted of " + std::to_string(all_.size() - at_));
    at_ += std::size_t(n);
    return std::span<const Index>(all_).subspan(at_ - std::size_t(n), std::size_t(n));
  }

 private:
  std::vector<Index> all_;
  std::size_t at_ = 0;
};

/// `length` elements one after the other.
Typemap block(const InnerType& type, Index length) { return type.map.repeated(length, type.extent); }

/// The indices along one dimension that a process has, one index `stride` bytes.
using Level = Typemap::Level;

Level block_level(Index size, Index argument, Index processes, Index coordinate, Index stride) {
  if (checked_mul(argument, processes) < size)
    refuse("blocks of " + std::to_string(argument) + " on " + std::to_string(processes) + " processes do not hold " +
           std::to_string(size) + " elements");
  const Index first = checked_mul(coordinate, argument);
  const Index n = std::max<Index>(std::min(argument, size - first), 0);
  return {{n > 0 ? checked_mul(first, stride) : 0, n, stride}};
}

Level cyclic_level(Index size, Index argument, Index processes, Index coordinate, Index stride) {
  const Index cycle = checked_mul(argument, processes), first = checked_mul(coordinate, argument);
  if (first >= size) return {};
  const Index whole = (size - first) / cycle, rest = std::min((size - first) % cycle, argument);
  // What is left after the whole cycles is a block or a part of one.
  const Index count = whole + (rest == argument), remainder = rest == argument ? 0 : rest;
  const Index offset = checked_mul(first, stride), step = checked_mul(cycle, stride);
  Level level;
  if (count > 0) level.push_back({offset, argument, stride, count, count > 1 ? step : 0});
  if (remainder > 0) level.push_back({checked_add(offset, checked_mul(count, step)), remainder, stride});
  return level;
}

/// The product of one level a dimension, where dimension d is the `level(d, stride)` of a stride in bytes.
template <class LevelOf>
Typemap array_of(const InnerType& type, std::span<const Index> sizes, ArrayOrder order, LevelOf&& level_of) {
  Typemap map = type.map;
  Index stride = type.extent;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::size_t d = order == ArrayOrder::c ? sizes.size() - 1 - k : k;
    map = map.repeated(level_of(d, stride));
    stride = checked_mul(stride, sizes[d]);
  }
  return map;
}

ArrayOrder order_of(Index number, const ArrayConstants& constants) {
  if (number == constants.order_c) return ArrayOrder::c;
  if (number == constants.order_fortran) return ArrayOrder::fortran;
  refuse("array order " + std::to_string(number));
}

ArrayDistribution distribution_of(Index number, const ArrayConstants& constants) {
  if (number == constants.distribute_none) return ArrayDistribution::none;
  if (number == constants.distribute_block) return ArrayDistribution::block;
  if (number == constants.distribute_cyclic) return ArrayDistribution::cyclic;
  refuse("distribution " + std::to_string(number));
}

Typemap subarray(const DatatypeContents& contents, const InnerType& type, const ArrayConstants& constants) {
  Numbers numbers(contents);
  const Index dimensions = numbers.one();
  // The order stands after the sizes, or before them where those are large counts.
  const bool large = !contents.counts.empty();
  Index order = large ? numbers.one() : 0;
  const auto sizes = numbers.some(dimensions), extents = numbers.some(dimensions), starts = numbers.some(dimensions);
  if (!large) order = numbers.one();
  return array_of(type, sizes, order_of(order, constants), [&](std::size_t d, Index stride) {
    return Level{{checked_mul(starts[d], stride), extents[d], stride}};
  });
}

Typemap darray(const DatatypeContents& contents, const InnerType& type, const ArrayConstants& constants) {
  Numbers numbers(contents);
  const Index processes = numbers.one(), rank = numbers.one(), dimensions = numbers.one();
  const bool large = !contents.counts.empty();
  std::span<const Index> sizes;
  if (!large) sizes = numbers.some(dimensions);
  const auto distributions = numbers.some(dimensions), arguments = numbers.some(dimensions),
             grid = numbers.some(dimensions);
  const Index order = numbers.one();
  if (large) sizes = numbers.some(dimensions);

  // The grid is in C order, whatever the array's is.
  std::vector<Index> coordinates(grid.size());
  Index left = rank, product = 1;
  for (std::size_t d = grid.size(); d-- > 0;) {
    if (grid[d] < 1) refuse("a process grid of extent " + std::to_string(grid[d]));
    coordinates[d] = left % grid[d], left /= grid[d];
    product = checked_mul(product, grid[d]);
  }
  if (product != processes || rank < 0 || left != 0)
    refuse("rank " + std::to_string(rank) + " of " + std::to_string(processes) + " on a grid of " +
           std::to_string(product));

  return array_of(type, sizes, order_of(order, constants), [&](std::size_t d, Index stride) -> Level {
    const bool by_default = arguments[d] == constants.default_argument;
    if (!by_default && arguments[d] < 1) refuse("distribution argument " + std::to_string(arguments[d]));
    switch (distribution_of(distributions[d], constants)) {
      case ArrayDistribution::none: return {{0, sizes[d], stride}};
      case ArrayDistribution::block:
        return block_level(sizes[d], by_default ? ceil_div(sizes[d], grid[d]) : arguments[d], grid[d], coordinates[d],
                           stride);
      case ArrayDistribution::cyclic:
        return cyclic_level(sizes[d], by_default ? 1 : arguments[d], grid[d], coordinates[d], stride);
    }
    return {};
  });
}

/// Blocks of lengths at displacements, in units of bytes.
template <class LengthOf, class DisplacementOf>
Typemap blocks(const InnerType& type, Index count, LengthOf&& length_of, DisplacementOf&& displacement_of) {
  Typemap map, same;
  Index length = -1;
  for (Index k = 0; k < count; ++k) {
    if (length_of(k) != length) length = length_of(k), same = block(type, length);
    if (length > 0) map.append(same.shifted(displacement_of(k)));
  }
  return map;
}

}  // namespace

Typemap typemap_of(const DatatypeContents& contents, const ArrayConstants& constants) {
  Numbers numbers(contents);
  auto type = [&](std::size_t k) -> const InnerType& {
    if (k >= contents.types.size()) refuse("there are only " + std::to_string(contents.types.size()) + " datatypes");
    return contents.types[k];
  };
  const Combiner combiner = contents.combiner;
  switch (combiner) {
    case Combiner::named:
    case Combiner::f90_real:
    case Combiner::f90_complex:
    case Combiner::f90_integer: refuse("a predefined datatype has none");
    case Combiner::dup:
    case Combiner::resized: return type(0).map;
    case Combiner::contiguous: return block(type(0), numbers.one());
    case Combiner::vector:
    case Combiner::hvector: {
      const Index count = numbers.one(), length = numbers.one(), stride = numbers.one();
      return block(type(0), length)
          .repeated(count, combiner == Combiner::hvector ? stride : checked_mul(stride, type(0).extent));
    }
    case Combiner::indexed:
    case Combiner::hindexed: {
      const Index count = numbers.one(), unit = combiner == Combiner::hindexed ? 1 : type(0).extent;
      const auto lengths = numbers.some(count), places = numbers.some(count);
      return blocks(
          type(0), count, [&](Index k) { return lengths[std::size_t(k)]; },
          [&](Index k) { return checked_mul(places[std::size_t(k)], unit); });
    }
    case Combiner::indexed_block:
    case Combiner::hindexed_block: {
      const Index count = numbers.one(), length = numbers.one(),
                  unit = combiner == Combiner::hindexed_block ? 1 : type(0).extent;
      const auto places = numbers.some(count);
      return blocks(
          type(0), count, [&](Index) { return length; },
          [&](Index k) { return checked_mul(places[std::size_t(k)], unit); });
    }
    case Combiner::structure: {
      const Index count = numbers.one();
      const auto lengths = numbers.some(count), places = numbers.some(count);
      Typemap map;
      for (std::size_t k = 0; k < lengths.size(); ++k) map.append(block(type(k), lengths[k]).shifted(places[k]));
      return map;
    }
    case Combiner::subarray: return subarray(contents, type(0), constants);
    case Combiner::darray: return darray(contents, type(0), constants);
    case Combiner::value_index: {
      // As a C struct of the two: the index is at the next multiple of its own size.
      const Index size = type(1).extent;
      if (size < 1) refuse("an index of " + std::to_string(size) + " bytes");
      Typemap map = type(0).map;
      map.append(type(1).map.shifted(checked_mul(ceil_div(type(0).extent, size), size)));
      return map;
    }
  }
  refuse("combiner " + std::to_string(int(combiner)));
}

}  // namespace longshore
