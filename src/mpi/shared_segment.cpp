#include "mpi/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "mpi/attribute.hpp"

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

/// Maps a part of a file, aligned so that huge pages can be used. MAP_FAILED with errno as mmap.
void* map_file(int descriptor, Index offset, Index bytes, int protection, int flags) {
  if (bytes < huge_page) return mmap(nullptr, std::size_t(bytes), protection, flags, descriptor, offset);
  const Index page = sysconf(_SC_PAGESIZE), length = ceil_div(bytes, page) * page,
              reserved = checked_add(length, huge_page);
  void* const place =
      mmap(nullptr, std::size_t(reserved), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(place);
  const Index before = -Index(reinterpret_cast<std::uintptr_t>(begin)) & (huge_page - 1);
  void* const data = mmap(begin + before, std::size_t(bytes), protection, flags | MAP_FIXED, descriptor, offset);
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

/// What a system call has said no to.
Error refusal(const std::string& what) {
  return Error(ErrorKind::transport, what + ": " + std::string(std::strerror(errno)));
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
bool provide_pages(int descriptor, Index offset, std::byte* data, Index bytes) {
  ask_for_huge_pages(data, bytes);
  if (madvise(data, std::size_t(bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (out_of_memory(errno)) return false;
  if (fallocate(descriptor, 0, offset, bytes) != 0) return !out_of_memory(errno);
  return true;
}

}  // namespace

/// Memory in which segments have their places, one behind the other: no place is given twice, so that who still maps a
/// segment that is gone sees nobody else's. The first page holds a token.
class SharedFile : public std::enable_shared_from_this<SharedFile> {
 public:
  SharedFile() : descriptor_{memfd_create(segment_name, MFD_CLOEXEC)}, process_(getpid()), end_(sysconf(_SC_PAGESIZE)) {
    if (descriptor_.number < 0) throw refusal("memfd_create");
    if (getrandom(token_, sizeof token_, 0) != ssize_t(sizeof token_)) throw refusal("getrandom");
    grow(end_);
    if (pwrite(descriptor_.number, token_, sizeof token_, 0) != ssize_t(sizeof token_)) fail("pwrite");
  }

  /// A forked child has none: its parent gives the places away.
  bool is_ours() const { return process_ == getpid(); }
  /// Whether so large a file is allowed here.
  bool has_room(Index bytes) const {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    return checked_add(end_, checked_add(bytes, 2 * huge_page)) <= Index(limit.rlim_cur);
  }
  std::shared_ptr<SharedSegment> place(Index bytes) {
    const Index page = sysconf(_SC_PAGESIZE), mapped = checked_mul(std::max<Index>(1, ceil_div(bytes, page)), page);
    std::shared_ptr<SharedSegment> segment(new SharedSegment);
    segment->offset_ = ceil_div(end_, mapped < huge_page ? page : huge_page) * (mapped < huge_page ? page : huge_page);
    grow(checked_add(segment->offset_, mapped));
    void* address = map_file(descriptor_.number, segment->offset_, mapped, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (address == MAP_FAILED) fail("mmap");
    segment->file_ = shared_from_this();
    segment->data_ = static_cast<std::byte*>(address);
    segment->bytes_ = bytes;
    segment->mapped_bytes_ = mapped;
    if (!provide_pages(descriptor_.number, segment->offset_, segment->data_, mapped)) throw std::bad_alloc();
    return segment;
  }
  void give_back(Index offset, Index bytes) {
    if (is_ours() && descriptor_.number >= 0)
      fallocate(descriptor_.number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  }
  SharedSegment::Address address(Index offset, Index bytes) const {
    return {process_, descriptor_.number, offset, bytes, {token_[0], token_[1]}};
  }
  void seal() {
    if (descriptor_.number >= 0) close(descriptor_.take());
  }

 private:
  [[noreturn]] static void fail(const char* call) {
    if (out_of_memory(errno)) throw std::bad_alloc();
    throw refusal(call);
  }
  void grow(Index end) {
    if (ftruncate(descriptor_.number, end) != 0) fail("ftruncate");
    end_ = end;
  }

  Descriptor descriptor_;
  std::int64_t process_;
  Index end_;
  std::uint64_t token_[2] = {0, 0};
};

namespace {

/// The file of a communicator's arrays at this process.
class ArrayFile {
 public:
  std::shared_ptr<SharedSegment> place(Index bytes) {
    const std::lock_guard lock(mutex_);
    if (!file_ || !file_->is_ours() || !file_->has_room(bytes)) file_ = std::make_shared<SharedFile>();
    if (!file_->has_room(bytes))
      throw Error(ErrorKind::transport, std::to_string(bytes) + " bytes are beyond the limit on files (ulimit -f)");
    return file_->place(bytes);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<SharedFile> file_;
};

/// What an array has where it cannot have a segment.
class UnsharedMemory final : public Memory {
 public:
  UnsharedMemory(Index bytes, std::string refusal) : memory_(Memory::ordinary(bytes)), refusal_(std::move(refusal)) {
    data_ = memory_->data(), bytes_ = bytes;
  }
  const std::string& refusal() const { return refusal_; }

 private:
  std::shared_ptr<Memory> memory_;
  std::string refusal_;
};

/// What arrays have been given in this process, by address.
class ArrayMemories {
 public:
  void add(const std::shared_ptr<Memory>& memory) {
    const std::lock_guard lock(mutex_);
    if (made_.size() >= enough_) {
      std::erase_if(made_, [](const auto& one) { return one.second.expired(); });
      enough_ = 2 * made_.size() + 64;
    }
    made_[memory->data()] = memory;
  }
  std::shared_ptr<const Memory> at(const std::byte* first, Index bytes) {
    const std::lock_guard lock(mutex_);
    // What is gone may have begun anywhere in what has been made in its place.
    for (auto next = made_.upper_bound(first); next != made_.begin();) {
      const auto memory = (--next)->second.lock();
      if (!memory) {
        next = made_.erase(next);
        continue;
      }
      const Index before = first - memory->data();
      return bytes <= memory->bytes() && before <= memory->bytes() - bytes ? memory : nullptr;
    }
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, std::weak_ptr<const Memory>> made_;
  std::size_t enough_ = 64;
};

/// Those of this process, whichever communicator they were made for.
std::shared_ptr<ArrayMemories> array_memories() {
  return kept_with<ArrayMemories>(MPI_COMM_SELF, [] { return std::make_shared<ArrayMemories>(); });
}

}  // namespace

std::shared_ptr<Memory> array_memory(CommHandle comm, Index bytes) {
  const auto file = kept_with<ArrayFile>(usable(comm), [] { return std::make_shared<ArrayFile>(); });
  std::shared_ptr<Memory> memory;
  try {
    memory = file->place(bytes);
  } catch (const Error& error) {
    memory = std::make_shared<UnsharedMemory>(bytes, error.what());
  }
  array_memories()->add(memory);
  return memory;
}

std::shared_ptr<const Memory> array_memory_at(const std::byte* first, Index bytes) {
  return array_memories()->at(first, bytes);
}

std::string sharing_refusal(const Memory* memory) {
  const auto* unshared = dynamic_cast<const UnsharedMemory*>(memory);
  return unshared ? unshared->refusal() : "";
}

std::shared_ptr<SharedSegment> SharedSegment::create(Index bytes) {
  return std::make_shared<SharedFile>()->place(bytes);
}

SharedSegment::~SharedSegment() {
  if (!data_) return;
  munmap(data_, std::size_t(mapped_bytes_));
  file_->give_back(offset_, mapped_bytes_);
}

SharedSegment::Address SharedSegment::address() const { return file_->address(offset_, mapped_bytes_); }

void SharedSegment::seal() { file_->seal(); }

bool SharedSegment::contains(const std::byte* first, Index bytes) const {
  return first >= data_ && bytes <= bytes_ && first - data_ <= bytes_ - bytes;
}

std::shared_ptr<SegmentView> SegmentView::map(const SharedSegment::Address& address, bool writable) {
  const std::string whose = "the memory of process " + std::to_string(address.process) + " cannot be reached";
  const auto elsewhere = [&] { return Error(ErrorKind::transport, whose + ": it is in another process namespace"); };
  char path[64], target[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%lld", static_cast<long long>(address.process),
                static_cast<long long>(address.descriptor));
  // Look before opening: in another process namespace the path may lead to anything.
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length < 0) throw refusal(whose + ": readlink");
  target[length] = '\0';
  if (std::strncmp(target, "/memfd:longshore", 16) != 0) throw elsewhere();
  Descriptor descriptor{open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK)};
  if (descriptor.number < 0) throw refusal(whose + ": open");
  std::uint64_t token[2];
  if (pread(descriptor.number, token, sizeof token, 0) != ssize_t(sizeof token) ||
      std::memcmp(token, address.token, sizeof token) != 0)
    throw elsewhere();
  void* data = map_file(descriptor.number, address.offset, address.bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                        MAP_SHARED | MAP_POPULATE);
  if (data == MAP_FAILED) throw refusal(whose + ": mmap");
  return std::shared_ptr<SegmentView>(new SegmentView(static_cast<std::byte*>(data), address.bytes));
}

SegmentView::~SegmentView() { munmap(data_, std::size_t(mapped_bytes_)); }

}  // namespace longshore::mpi
