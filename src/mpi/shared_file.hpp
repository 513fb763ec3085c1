/// mpi: `SharedFile`, memory without a name that the processes of a node can map, and how parts of it are mapped.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "longshore/core/error.hpp"
#include "longshore/mpi/shared_segment.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace longshore::mpi {

/// A file descriptor that is closed again unless somebody takes it.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  int take() { return std::exchange(number, -1); }
};

/// What the page tables of most machines can map by one entry.
/// Only mappings that begin at a multiple of it get such pages.
constexpr Index huge_page = Index{2} << 20;

/// Maps a part of a file, aligned so that huge pages can be used. MAP_FAILED with errno as mmap.
void* map_file(int descriptor, Index offset, Index bytes, int protection, int flags);

/// Huge pages, all zeros, where the kernel has them to give. Most systems refuse them to shared memory
/// when it is touched, but not when asked to make one of the small pages that are there: so
/// there is one for each, which costs less than having all.
void ask_for_huge_pages(std::byte* data, Index bytes);

/// What a system call has said no to.
Error refusal(const std::string& what);
/// Throws that, or `std::bad_alloc` where it was for want of memory.
[[noreturn]] void fail(const char* call);
bool out_of_memory(int error);

/// Memory that ends where it was last asked to reach. Its first page holds a token.
class SharedFile : public std::enable_shared_from_this<SharedFile> {
 public:
  SharedFile();

  /// A forked child has none: its parent gives the places away.
  bool is_ours() const { return process_ == getpid(); }
  Index end() const { return end_; }
  /// Throws what `fail` throws.
  void reach(Index end);
  /// Whether so large a file is allowed here.
  bool may_reach(Index end) const;
  int descriptor() const { return descriptor_.number; }
  SharedMemory::Address address(Index offset, Index bytes) const {
    return {process_, descriptor_.number, offset, bytes, {token_[0], token_[1]}};
  }
  /// The machine may have this part of the memory for others; it holds zeros.
  void give_back(Index offset, Index bytes);
  void seal() {
    if (descriptor_.number >= 0) close(descriptor_.take());
  }

 private:
  Descriptor descriptor_;
  std::int64_t process_;
  Index end_;
  std::uint64_t token_[2] = {0, 0};
};

}  // namespace longshore::mpi
