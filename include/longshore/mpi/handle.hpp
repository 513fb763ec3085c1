/// mpi: MPI's handles without mpi.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace longshore::mpi {

/// An `MPI_Comm` or `MPI_Datatype` of any MPI (an int in MPICH's ABI, a pointer in Open MPI's and in the standard ABI),
/// kept as its bits. `Tag` keeps one kind of handle from being taken for another once it is wrapped.
template <class Tag>
class Handle {
 public:
  template <class Given>
  Handle(Given given) {  // NOLINT: implicit, so that bind(plan, MPI_COMM_WORLD, ...) reads as it should
    static_assert(std::is_trivially_copyable_v<Given> && sizeof(Given) <= sizeof bits_, "not an MPI handle");
    std::memcpy(&bits_, &given, sizeof given);
  }
  /// From the handle's bytes padded to eight with zeros, as another language gives them.
  static Handle from_bits(std::uint64_t bits) { return Handle(bits); }
  std::uint64_t bits() const { return bits_; }
  template <class Wanted>
  Wanted get() const {
    Wanted wanted;
    std::memcpy(&wanted, &bits_, sizeof wanted);
    return wanted;
  }

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace longshore::mpi
