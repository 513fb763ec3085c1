// What kernels keep in the second-level cache while they run.
#include <memory>
#include <new>

#include "tables.hpp"

namespace longshore {
namespace {

constexpr std::align_val_t alignment{64};
struct Free {
  void operator()(std::byte* data) const { ::operator delete(data, alignment); }
};

}  // namespace

std::byte* kernel_scratch() {
  thread_local std::unique_ptr<std::byte, Free> memory;
  if (memory == nullptr)
    memory.reset(static_cast<std::byte*>(
        ::operator new(std::size_t(scratch_bytes + tile_scratch_bytes), alignment, std::nothrow)));
  return memory.get();
}

std::byte* tile_scratch() {
  std::byte* const memory = kernel_scratch();
  return memory == nullptr ? nullptr : memory + scratch_bytes;
}

}  // namespace longshore
