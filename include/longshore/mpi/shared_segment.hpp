/// mpi: memory that the processes of a node have in common.
#pragma once

#include <cstdint>
#include <memory>

#include "longshore/core/memory.hpp"

namespace longshore::mpi {

/// Memory that the other processes of this node can map: an array here is moved with a single copy. It has no name in
/// any file system, so a killed process leaves nothing behind. Not collective; freed when the last owner lets go.
class SharedSegment final : public Memory {
 public:
  /// Null where the machine forbids such memory; throws `std::bad_alloc` where there is not enough of it. Holds zeros.
  static std::shared_ptr<SharedSegment> create(Index bytes);
  ~SharedSegment() override;

  bool contains(const std::byte* first, Index bytes) const;

  /// Where another process finds it, and how it knows that it found the right one.
  struct Address {
    std::int64_t process = 0, descriptor = -1, bytes = 0;
    std::uint64_t token[2] = {0, 0};
  };
  const Address& address() const { return address_; }
  /// Gives the descriptor back: those who have mapped it keep it, nobody else can.
  void seal();

 private:
  SharedSegment() = default;
  Index mapped_bytes_ = 0;
  Address address_;
};

}  // namespace longshore::mpi
