/// mpi: memory of another process of this node, which the kernel copies from and to: once, and while its owner does
/// something else.
#pragma once

#include <cstdint>
#include <memory>

#include "longshore/relations/address_relation.hpp"
#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// A number in a process's memory, by which another one sees that it looks at the right process.
struct MemoryProof {
  std::uint64_t place = 0, value = 0;
};

class ProcessMemory {
 public:
  /// None where the machine forbids it, or the process cannot be told. `rank` is one of this node.
  static std::shared_ptr<const ProcessMemory> of(const Communicator& communicator, int rank, const MemoryProof& proof);

  /// Moves the relation's pairs; `there` is an address in the other process. Throw `Error(transport)` where that has
  /// ended, or has let go of the memory.
  void read(const AddressRelation& relation, std::uint64_t there, std::byte* here) const;
  void write(const AddressRelation& relation, const std::byte* here, std::uint64_t there) const;

 private:
  ProcessMemory(int rank, std::int64_t process) : rank_(rank), process_(process) {}
  class Batch;
  int rank_;
  std::int64_t process_;
};

}  // namespace longshore::mpi
