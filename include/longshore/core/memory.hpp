/// Memory that arrays lie in, and who keeps it.
#pragma once

#include <memory>
#include <string>

#include "longshore/core/checked.hpp"

namespace longshore {

/// Keeps memory alive that moves read and write.
class MemoryOwner {
 public:
  virtual ~MemoryOwner() = default;
  MemoryOwner(const MemoryOwner&) = delete;
  MemoryOwner& operator=(const MemoryOwner&) = delete;
  /// What has become of the memory since it was given, in words
  /// ("was resized from ... to ..."); empty where it is as it was.
  virtual std::string change() const { return {}; }

 protected:
  MemoryOwner() = default;
};

/// An owner that holds on to anything and knows nothing of it.
std::shared_ptr<const MemoryOwner> memory_owner(std::shared_ptr<void> anything);

/// Memory that grids lie in; what kind of memory is its maker's affair.
class Memory : public MemoryOwner {
 public:
  std::byte* data() const { return data_; }
  Index bytes() const { return bytes_; }

  /// Ordinary memory on whole cache lines, all zeros. Throws `std::bad_alloc`.
  static std::shared_ptr<Memory> ordinary(Index bytes);

 protected:
  std::byte* data_ = nullptr;
  Index bytes_ = 0;
};

}  // namespace longshore
