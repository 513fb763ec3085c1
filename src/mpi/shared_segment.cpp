#include "mpi/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace longshore::mpi {

namespace {

constexpr const char* segment_name = "longshore";

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

/// Maps a file from its beginning, aligned so that huge pages can be used. MAP_FAILED with errno as mmap.
void* map_file(int descriptor, Index bytes, int protection, int flags) {
  if (bytes < huge_page) return mmap(nullptr, std::size_t(bytes), protection, flags, descriptor, 0);
  const Index page = sysconf(_SC_PAGESIZE), length = ceil_div(bytes, page) * page,
              reserved = checked_add(length, huge_page);
  void* const place =
      mmap(nullptr, std::size_t(reserved), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(place);
  const Index before = -Index(reinterpret_cast<std::uintptr_t>(begin)) & (huge_page - 1);
  void* const data = mmap(begin + before, std::size_t(bytes), protection, flags | MAP_FIXED, descriptor, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    munmap(begin, std::size_t(reserved));
    errno = error;
    return MAP_FAILED;
  }
  if (before > 0) munmap(begin, std::size_t(before));
  if (const Index after = reserved - before - length; after > 0) munmap(begin + before + length, std::size_t(after));
  return data;
}

bool out_of_memory(int error) { return error == ENOMEM || error == ENOSPC || error == EFAULT || error == EFBIG; }

/// Huge pages where the kernel has them to give. Most systems refuse them to shared memory
/// when it is touched, but not when asked to make one of the small pages that are there: so
/// there is one for each, which costs less than having all.
void ask_for_huge_pages(std::byte* data, Index bytes) {
  const Index whole = bytes & -huge_page, page = sysconf(_SC_PAGESIZE);
  if (whole == 0) return;
  madvise(data, std::size_t(whole), MADV_HUGEPAGE);
  for (Index at = 0; at < whole; at += huge_page)
    if (madvise(data + at, std::size_t(page), MADV_POPULATE_WRITE) != 0) return;
  madvise(data, std::size_t(whole), MADV_COLLAPSE);
}

/// Really gives the pages, so that running out of memory is an error here and not a signal later. Kernels before 5.14
/// cannot populate through the mapping.
bool provide_pages(int descriptor, std::byte* data, Index bytes) {
  ask_for_huge_pages(data, bytes);
  if (madvise(data, std::size_t(bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (out_of_memory(errno)) return false;
  if (fallocate(descriptor, 0, 0, bytes) != 0) return !out_of_memory(errno);
  return true;
}

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::create(Index bytes) {
  const Index page = sysconf(_SC_PAGESIZE);
  // One page more, which holds the token.
  const Index data_bytes = checked_mul(ceil_div(bytes, page), page), mapped = checked_add(data_bytes, page);
  Descriptor descriptor{memfd_create(segment_name, MFD_CLOEXEC)};
  if (descriptor.number < 0) return nullptr;
  if (ftruncate(descriptor.number, mapped) != 0) {
    if (out_of_memory(errno)) throw std::bad_alloc();
    return nullptr;
  }
  void* address = map_file(descriptor.number, mapped, PROT_READ | PROT_WRITE, MAP_SHARED);
  if (address == MAP_FAILED) {
    if (out_of_memory(errno)) throw std::bad_alloc();
    return nullptr;
  }
  std::shared_ptr<SharedSegment> segment(new SharedSegment);
  segment->data_ = static_cast<std::byte*>(address);
  segment->bytes_ = bytes;
  segment->mapped_bytes_ = mapped;
  if (!provide_pages(descriptor.number, segment->data_, mapped)) throw std::bad_alloc();

  auto& where = segment->address_;
  if (getrandom(where.token, sizeof where.token, 0) != ssize_t(sizeof where.token)) return nullptr;
  std::memcpy(segment->data_ + data_bytes, where.token, sizeof where.token);
  where.process = getpid();
  where.bytes = mapped;
  where.descriptor = descriptor.take();
  return segment;
}

SharedSegment::~SharedSegment() {
  if (data_) munmap(data_, std::size_t(mapped_bytes_));
  // A forked child that lets go of its copy must close its own descriptor only, which this is.
  seal();
}

void SharedSegment::seal() {
  if (address_.descriptor >= 0) close(int(std::exchange(address_.descriptor, -1)));
}

bool SharedSegment::contains(const std::byte* first, Index bytes) const {
  return first >= data_ && bytes <= bytes_ && first - data_ <= bytes_ - bytes;
}

std::shared_ptr<SegmentView> SegmentView::map(const SharedSegment::Address& address, bool writable) {
  char path[64], target[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%lld", static_cast<long long>(address.process),
                static_cast<long long>(address.descriptor));
  // Look before opening: in another process namespace the path may lead to anything.
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length < 0) return nullptr;
  target[length] = '\0';
  if (std::strncmp(target, "/memfd:longshore", 16) != 0) return nullptr;
  Descriptor descriptor{open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK)};
  struct stat facts {};
  if (descriptor.number < 0 || fstat(descriptor.number, &facts) != 0 || facts.st_size != address.bytes) return nullptr;
  void* data = map_file(descriptor.number, address.bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                        MAP_SHARED | MAP_POPULATE);
  if (data == MAP_FAILED) return nullptr;
  std::shared_ptr<SegmentView> view(new SegmentView(static_cast<std::byte*>(data), address.bytes));
  const Index page = sysconf(_SC_PAGESIZE);
  if (std::memcmp(view->data_ + address.bytes - page, address.token, sizeof address.token) != 0) return nullptr;
  return view;
}

SegmentView::~SegmentView() { munmap(data_, std::size_t(mapped_bytes_)); }

}  // namespace longshore::mpi
