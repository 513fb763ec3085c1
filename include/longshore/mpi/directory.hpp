/// mpi: `Directory`, who owns which global number, kept by all ranks together.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longshore/core/checked.hpp"
#include "longshore/mpi/communicator.hpp"

namespace longshore::mpi {

/// Who owns what is asked for, in its order: the rank, and the place among what it owns. -1, both: nobody.
struct Owners {
  std::vector<Index> ranks, places;
};

/// Which rank owns a global number, and where in its list: Zoltan's distributed directory. Every rank keeps a share of
/// the entries, of numbers that a hash gives it, 24 bytes each: about as many as a rank owns, however numbers are
/// distributed. Questions and answers are messages between those who ask and those whose share it is, which for numbers
/// of no order are nearly all ranks; 8 bytes there and 16 back a number, and one number a rank for how many will come.
///
/// A value: immutable, cheap to copy. Not to be used after the communicator has been freed.
class Directory {
 public:
  /// Of what this rank owns: any numbers that are not negative, in the order of its local places. Collective. Throws
  /// `Error(argument)` on every rank where one has a negative number, and where a number is owned twice, naming the
  /// ranks and the places.
  Directory(CommHandle comm, std::span<const Index> owned);

  /// Collective, also for those who need nothing. Any numbers, in any order, repeated ones too. Throws
  /// `Error(transport)` where a rank of this node has ended.
  Owners find(std::span<const Index> numbers) const;

  CommHandle comm() const;
  Index owned() const;            ///< how many numbers this rank owns
  Index workspace_bytes() const;  ///< of this rank's share

 private:
  struct Share;
  std::shared_ptr<const Share> share_;
};

}  // namespace longshore::mpi
