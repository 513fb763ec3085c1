#include "longshore/core/memory.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace longshore {

namespace {

constexpr Index cache_line = 64, huge_page = Index{2} << 20;

class OrdinaryMemory final : public Memory {
 public:
  explicit OrdinaryMemory(Index bytes) : alignment_{std::size_t(bytes < huge_page ? cache_line : huge_page)} {
    bytes_ = bytes;
    if (bytes == 0) return;
    data_ = static_cast<std::byte*>(::operator new(std::size_t(bytes), alignment_));
    // Faces of a block lie in as many pages as it has rows: with small pages, each costs a translation of its own.
    if (bytes >= huge_page) madvise(data_, std::size_t(bytes), MADV_HUGEPAGE);
    std::memset(data_, 0, std::size_t(bytes));
  }
  ~OrdinaryMemory() override { ::operator delete(data_, alignment_); }

 private:
  std::align_val_t alignment_;
};

class Kept final : public MemoryOwner {
 public:
  explicit Kept(std::shared_ptr<void> anything) : anything_(std::move(anything)) {}

 private:
  std::shared_ptr<void> anything_;
};

}  // namespace

std::shared_ptr<const MemoryOwner> memory_owner(std::shared_ptr<void> anything) {
  return std::make_shared<Kept>(std::move(anything));
}

std::shared_ptr<Memory> Memory::ordinary(Index bytes) { return std::make_shared<OrdinaryMemory>(bytes); }

}  // namespace longshore
