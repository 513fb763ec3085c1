/// relations: `Typemap`: where the elements of a message lie in one memory, in message order, as MPI's datatypes say
/// it. What is regular is kept as a product of loops and never enumerated; relations are made of one typemap or of two.
#pragma once

#include <vector>

#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// `count` repetitions, `step` bytes apart, of `length` things `stride` bytes apart; the first thing is at `offset`.
struct TypemapRun {
  Index offset = 0, length = 1, stride = 0, count = 1, step = 0;
  Index places() const { return length * count; }
  bool operator==(const TypemapRun&) const = default;
};

/// A sequence of blocks of contiguous bytes, and the size that all basic elements in them are multiples of.
class Typemap {
 public:
  /// One loop, or several one after the other: the places of one factor of a product.
  using Level = std::vector<TypemapRun>;

  /// `block` contiguous bytes at `displacement`, repeated at the places of each level, the outermost first.
  struct Piece {
    Index displacement = 0, block = 0;
    std::vector<Level> levels;
    Index bytes() const;
  };

  Typemap() = default;  ///< nothing
  /// One basic element at 0 (none if it has no bytes).
  static Typemap basic(Index bytes);

  bool empty() const { return pieces_.empty(); }
  Index bytes() const { return bytes_; }
  /// The greatest common divisor of the basic elements' sizes; 0 where there is none.
  Index element_bytes() const { return element_bytes_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  Typemap shifted(Index displacement) const;
  /// n copies, `stride` bytes apart. Throws `Error(argument)` for n < 0, `Error(overflow)` where
  /// there are more than 2^63 - 1 bytes or some lie beyond 2^61, `Error(memory_limit)` where
  /// copies of irregular content are too many to be listed.
  Typemap repeated(Index n, Index stride) const;
  /// A copy at each place of a level.
  Typemap repeated(const Level& places) const;
  /// `other` after what is here.
  void append(const Typemap& other);

  /// From this memory to a dense message.
  AddressRelation assembly() const;
  /// From this memory to another's: the k-th byte here goes to the k-th byte there. Throws `Error(shape)` where there
  /// are not equally many bytes, `Error(argument)` where the destination has overlapping elements.
  AddressRelation to(const Typemap& destination) const;

 private:
  void append(Piece piece);
  /// Notes the memory that is touched, so that no offset in here can overflow. Throws `Error(overflow)`.
  void reach(Wide first, Wide last);

  std::vector<Piece> pieces_;
  Index bytes_ = 0, element_bytes_ = 0;
  Interval extent_;  ///< of the memory
};

/// So many lines at most where something irregular has to be listed.
constexpr Index most_typemap_lines = Index{1} << 26;

/// One loop, and only that.
bool is_loop(const Typemap::Level& level);
Index places_of(const Typemap::Level& level);
/// Pieces as one list of runs over things of `unit` bytes, which divides every block. Throws `Error(memory_limit)`.
Typemap::Level listed(std::span<const Typemap::Piece> pieces, Index unit);
/// Where one piece alone lies and where another of as many bytes does, in the same order, as a product of loops.
LoopNest pair_pieces(const Typemap::Piece& source, const Typemap::Piece& destination, Index element_bytes);

}  // namespace longshore
