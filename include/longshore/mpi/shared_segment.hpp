/// mpi: memory that the processes of a node have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "longshore/core/memory.hpp"
#include "longshore/mpi/communicator.hpp"

namespace longshore::mpi {

class SharedFile;

/// Memory that the other processes of this node can map: an array here is moved with a single copy.
class SharedMemory : public Memory {
 public:
  /// Where another process finds it, and how it knows that it found the right one.
  struct Address {
    std::int64_t process = 0, descriptor = -1, offset = 0, bytes = 0;
    std::uint64_t token[2] = {0, 0};
  };
  virtual Address address() const = 0;
};

/// Shared memory with a mapping of its own. It has no name in any file system, so a killed process leaves nothing
/// behind. Freed when the last owner lets go.
class SharedSegment final : public SharedMemory {
 public:
  /// In a file of its own, which `seal` closes. Holds zeros. Throws `Error(transport)` that says why where the machine
  /// forbids such memory, `std::bad_alloc` where there is not enough of it.
  static std::shared_ptr<SharedSegment> create(Index bytes);
  /// The same behind all others of a file.
  static std::shared_ptr<SharedSegment> create_in(const std::shared_ptr<SharedFile>& file, Index bytes);
  ~SharedSegment() override;

  bool contains(const std::byte* first, Index bytes) const;
  /// Of no descriptor once it is sealed.
  Address address() const override;
  /// What is taken of the machine's memory.
  Index held_bytes() const { return mapped_bytes_; }
  /// Gives the descriptor back: those who have mapped it keep it, nobody else can.
  void seal();

 private:
  SharedSegment() = default;
  std::shared_ptr<SharedFile> file_;
  Index offset_ = 0, mapped_bytes_ = 0;
};

/// Memory for an array, all zeros, where the processes of the node can map it: all that a process makes for one
/// communicator are segments that have one file descriptor together. Ordinary memory where the machine forbids that.
/// Not collective. Throws `std::bad_alloc`.
std::shared_ptr<Memory> array_memory(CommHandle comm, Index bytes);
/// The memory that `array_memory` or the `SharedHeap` has made in this process and that all of these bytes lie in,
/// whoever brings them; null where they lie elsewhere. Whoever shows it to other processes keeps it as long as these
/// look.
std::shared_ptr<const Memory> array_memory_at(const std::byte* first, Index bytes);
/// Why memory that should have been shared is not, in words; empty of all other memory.
std::string sharing_refusal(const Memory* memory);

}  // namespace longshore::mpi
