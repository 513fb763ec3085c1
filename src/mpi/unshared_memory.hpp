/// mpi: what an array has where its memory cannot be shared.
#pragma once

#include <string>
#include <utility>

#include "longshore/core/memory.hpp"

namespace longshore::mpi {

/// Memory that no other process can see, and why.
class UnsharedMemory final : public Memory {
 public:
  UnsharedMemory(std::byte* data, Index bytes, std::string refusal, std::shared_ptr<Memory> kept = {})
      : refusal_(std::move(refusal)), kept_(std::move(kept)) {
    data_ = data, bytes_ = bytes;
  }
  const std::string& refusal() const { return refusal_; }

 private:
  std::string refusal_;
  std::shared_ptr<Memory> kept_;
};

}  // namespace longshore::mpi
