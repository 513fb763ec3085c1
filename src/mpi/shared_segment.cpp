#include "mpi/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "mpi/attribute.hpp"
#include "mpi/shared_file.hpp"
#include "mpi/shared_heap.hpp"
#include "mpi/unshared_memory.hpp"

namespace longshore::mpi {

namespace {

/// Really gives the pages, so that running out of memory is an error here and not a signal later. Kernels before 5.14
/// cannot populate through the mapping.
bool provide_pages(int descriptor, Index offset, std::byte* data, Index bytes) {
  ask_for_huge_pages(data, bytes);
  if (madvise(data, std::size_t(bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (out_of_memory(errno)) return false;
  if (fallocate(descriptor, 0, offset, bytes) != 0) return !out_of_memory(errno);
  return true;
}

/// The file of a communicator's arrays at this process.
class ArrayFile {
 public:
  std::shared_ptr<SharedSegment> place(Index bytes) {
    const std::lock_guard lock(mutex_);
    if (!file_ || !file_->is_ours() || !has_room(bytes)) file_ = std::make_shared<SharedFile>();
    if (!has_room(bytes))
      throw Error(ErrorKind::transport, std::to_string(bytes) + " bytes are beyond the limit on files (ulimit -f)");
    return SharedSegment::create_in(file_, bytes);
  }

 private:
  bool has_room(Index bytes) const {
    return file_->may_reach(checked_add(file_->end(), checked_add(bytes, 2 * huge_page)));
  }

  std::mutex mutex_;
  std::shared_ptr<SharedFile> file_;
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
    const auto ordinary = Memory::ordinary(bytes);
    memory = std::make_shared<UnsharedMemory>(ordinary->data(), bytes, error.what(), ordinary);
  }
  array_memories()->add(memory);
  return memory;
}

std::shared_ptr<const Memory> array_memory_at(const std::byte* first, Index bytes) {
  if (const auto heap = SharedHeap::of_this_process())
    if (auto memory = heap->at(first, bytes)) return memory;
  return array_memories()->at(first, bytes);
}

std::string sharing_refusal(const Memory* memory) {
  const auto* unshared = dynamic_cast<const UnsharedMemory*>(memory);
  return unshared ? unshared->refusal() : "";
}

std::shared_ptr<SharedSegment> SharedSegment::create(Index bytes) {
  return create_in(std::make_shared<SharedFile>(), bytes);
}

/// No place is given twice, so that who still maps a segment that is gone sees nobody else's.
std::shared_ptr<SharedSegment> SharedSegment::create_in(const std::shared_ptr<SharedFile>& file, Index bytes) {
  const Index page = sysconf(_SC_PAGESIZE), mapped = checked_mul(std::max<Index>(1, ceil_div(bytes, page)), page);
  const Index step = mapped < huge_page ? page : huge_page;
  std::shared_ptr<SharedSegment> segment(new SharedSegment);
  segment->offset_ = ceil_div(file->end(), step) * step;
  file->reach(checked_add(segment->offset_, mapped));
  void* address = map_file(file->descriptor(), segment->offset_, mapped, PROT_READ | PROT_WRITE, MAP_SHARED);
  if (address == MAP_FAILED) fail("mmap");
  segment->file_ = file;
  segment->data_ = static_cast<std::byte*>(address);
  segment->bytes_ = bytes;
  segment->mapped_bytes_ = mapped;
  if (!provide_pages(file->descriptor(), segment->offset_, segment->data_, mapped)) throw std::bad_alloc();
  return segment;
}

SharedSegment::~SharedSegment() {
  if (!data_) return;
  munmap(data_, std::size_t(mapped_bytes_));
  file_->give_back(offset_, mapped_bytes_);
}

SharedMemory::Address SharedSegment::address() const { return file_->address(offset_, mapped_bytes_); }

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
