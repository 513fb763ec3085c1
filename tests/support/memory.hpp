/// Memory to copy from and to: recognisable bytes, and pages that end where nobody may read on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "longshore/core/checked.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define LONGSHORE_HAVE_MMAP 1
#else
#define LONGSHORE_HAVE_MMAP 0
#endif

namespace longshore::test {

using Bytes = std::vector<std::byte>;

/// Recognisable bytes: so many from the one with number `first` on, and room for no more. They are copied from those
/// that were made once, since tests that are not optimised make bytes slowly. For one thread at a time.
inline Bytes noisy(std::size_t size, std::size_t first = 0) {
  static Bytes made;
  const std::size_t end = first + size;
  if (made.size() < end) made.reserve(std::max(end, 2 * made.size()));
  for (std::uint64_t i = made.size(); i < end; ++i) made.push_back(std::byte((i * 0x9E3779B97F4A7C15u) >> 56));
  return Bytes(made.data() + first, made.data() + end);
}

#if LONGSHORE_HAVE_MMAP
/// Readable pages between two pages that nobody may touch.
class Fenced {
 public:
  explicit Fenced(Index bytes) : page_(sysconf(_SC_PAGESIZE)), size_((bytes + page_ - 1) / page_ * page_) {
    void* p = mmap(nullptr, static_cast<std::size_t>(size_ + 2 * page_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = static_cast<std::byte*>(p);
    mprotect(base_ + page_, static_cast<std::size_t>(size_), PROT_READ | PROT_WRITE);
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { munmap(base_, static_cast<std::size_t>(size_ + 2 * page_)); }
  std::byte* begin() const { return base_ + page_; }
  std::byte* end() const { return base_ + page_ + size_; }

 private:
  Index page_, size_;
  std::byte* base_;
};
#endif

}  // namespace longshore::test
