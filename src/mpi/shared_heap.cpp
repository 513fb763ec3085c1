#include "mpi/shared_heap.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <utility>

#include "mpi/available_memory.hpp"
#include "mpi/shared_file.hpp"
#include "mpi/unshared_memory.hpp"

namespace longshore::mpi {

namespace {

const Index page = sysconf(_SC_PAGESIZE);
constexpr Index fewest_addresses = Index{1} << 30, always_provided = Index{64} << 20;

/// Eight sizes between two powers of two, in whole pages, so that what is freed fits what comes next. Memory that is
/// not touched costs nothing.
Index rounded(Index bytes) {
  const Index least = std::max(bytes, page);
  const Index step = std::max(Index(std::bit_floor(std::uint64_t(least))) / 8, least < huge_page ? page : huge_page);
  return checked_mul(ceil_div(least, step), step);
}

Index machine_memory() {
  struct sysinfo told {};
  sysinfo(&told);
  return checked_mul(checked_add(Index(told.totalram), Index(told.totalswap)), told.mem_unit);
}

/// So many addresses a heap asks for: more than it can have memory for, since places lie scattered.
Index addresses() {
  const Index wanted = Index(std::bit_ceil(std::uint64_t(checked_mul(machine_memory(), 16))));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::min(wanted, Index(std::bit_floor(std::uint64_t(limit.rlim_cur))) / 4);
}

Error no_addresses(Index bytes) {
  return Error(ErrorKind::transport, "there are no addresses left for " + std::to_string(bytes) + " bytes");
}

/// Where every page is promised, one that is not there would be a signal and no error.
void check_promises() {
  std::ifstream file("/proc/sys/vm/overcommit_memory");
  if (char policy = 0; file >> policy && policy == '2')
    throw Error(ErrorKind::transport, "the machine promises no more memory than it has (vm.overcommit_memory is 2)");
}

/// What the process has, and what forks have to know of.
struct Registry {
  std::mutex mutex;
  std::weak_ptr<SharedHeap> heap;
  std::shared_ptr<SharedHeap> forking;
};

/// It outlives what is destroyed when the process ends: arrays may be freed after that.
Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

}  // namespace

void FreeRanges::add(Index first, Index length) {
  if (length == 0) return;
  const auto next = by_place_.lower_bound(first);
  if (next != by_place_.begin())
    if (const auto [before, bytes] = *std::prev(next); before + bytes == first) {
      remove(before, bytes);
      first = before, length += bytes;
    }
  if (next != by_place_.end())
    if (const auto [behind, bytes] = *next; behind == first + length) {
      remove(behind, bytes);
      length += bytes;
    }
  by_place_[first] = length, by_length_.insert({length, first});
}

std::optional<Index> FreeRanges::take(Index length, Index alignment) {
  for (auto next = by_length_.lower_bound({length, 0}); next != by_length_.end(); ++next) {
    const auto [room, first] = *next;
    const Index begin = ceil_div(first, alignment) * alignment;
    if (begin - first > room - length) continue;
    remove(first, room);
    add(first, begin - first), add(begin + length, first + room - begin - length);
    return begin;
  }
  return std::nullopt;
}

/// A block, while others look at it.
class SharedHeap::Shown final : public SharedMemory {
 public:
  Shown(std::shared_ptr<SharedHeap> heap, Index offset, Index bytes) : heap_(std::move(heap)), offset_(offset) {
    data_ = heap_->data_ + offset, bytes_ = bytes;
  }
  ~Shown() override { heap_->let_go(offset_); }
  Address address() const override { return heap_->file_->address(offset_, ceil_div(bytes_, page) * page); }

 private:
  std::shared_ptr<SharedHeap> heap_;
  Index offset_;
};

SharedHeap::SharedHeap() {
  check_promises();
  file_ = std::make_shared<SharedFile>();
  reserved_ = addresses();
  const auto map = [&] { return map_file(file_->descriptor(), 0, reserved_, PROT_READ | PROT_WRITE, MAP_SHARED); };
  void* place = map();
  for (; place == MAP_FAILED && reserved_ > fewest_addresses; place = map()) reserved_ /= 2;
  if (place == MAP_FAILED) throw refusal("mmap");
  data_ = static_cast<std::byte*>(place);
  most_ = std::min(machine_memory(), reserved_);
  madvise(data_, std::size_t(reserved_), MADV_HUGEPAGE);
  madvise(data_, std::size_t(reserved_), MADV_DONTDUMP);  // a dump would go through all addresses
  free_.add(huge_page, reserved_ - huge_page);            // a token comes first
}

SharedHeap::~SharedHeap() { munmap(data_, std::size_t(reserved_)); }

std::shared_ptr<SharedHeap> SharedHeap::open(Index keep) {
  auto& [mutex, known, forking] = registry();
  const std::lock_guard lock(mutex);
  auto heap = known.lock();
  if (!heap || !heap->file_->is_ours()) {
    heap = std::shared_ptr<SharedHeap>(new SharedHeap);
    known = heap;
    handle_forks();
  }
  const std::lock_guard of_heap(heap->mutex_);
  ++heap->users_, heap->keep_ = keep;
  return heap;
}

void SharedHeap::close() {
  std::vector<Kept> surplus;
  {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    evict(keep_ = 0, surplus);
    surplus.push_back(std::exchange(ready_, {}));
  }
  give_back(surplus);
}

std::shared_ptr<SharedHeap> SharedHeap::of_this_process() {
  const std::lock_guard lock(registry().mutex);
  return registry().heap.lock();
}

std::byte* SharedHeap::allocate(Index bytes, bool zeros) noexcept try {
  // It would be a signal when it is touched; whoever is asked instead may have an error to tell.
  if (bytes > most_) throw Error(ErrorKind::transport, std::to_string(bytes) + " bytes are more than the machine has");
  const Index size = rounded(bytes);
  const auto [data, fresh] = place(bytes, size);
  if (!fresh && zeros) std::memset(data, 0, std::size_t(bytes));
  if (fresh && size >= huge_page && (bytes <= always_provided || bytes <= available_memory() / 8))
    ask_for_huge_pages(data, std::min(size, ceil_div(bytes, huge_page) * huge_page));
  return data;
} catch (const std::exception& error) {
  const std::lock_guard lock(mutex_);
  refusal_ = error.what();
  return nullptr;
}

SharedHeap::Placed SharedHeap::place(Index bytes, Index size) {
  const std::lock_guard lock(mutex_);
  if (!file_->is_ours())
    throw Error(ErrorKind::transport, "a forked child has none of its parent's shared memory to give");
  const auto found = kept_by_size_.find(size);
  const bool fresh = found == kept_by_size_.end();
  Index offset = 0;
  if (fresh) {
    offset = take_fresh(size, bytes);
  } else {
    const auto last = found->second.back();
    offset = last->offset;
    kept_.erase(last), kept_bytes_ -= size;
    if (found->second.pop_back(); found->second.empty()) kept_by_size_.erase(found);
  }
  blocks_[offset] = {size, bytes, false, false, {}};
  return {data_ + offset, fresh};
}

/// Small blocks come out of a huge page that is made for several of them. What is too little of it for the next one
/// goes back.
Index SharedHeap::take_fresh(Index size, Index bytes) {
  if (size >= huge_page) return take_free(size, bytes);
  if (size > ready_.size) {
    const Index chunk = take_free(huge_page, bytes);
    file_->give_back(ready_.offset, ready_.size);
    free_.add(ready_.offset, ready_.size);
    ready_ = {chunk, huge_page};
    ask_for_huge_pages(data_ + chunk, huge_page);
  }
  ready_.offset += size, ready_.size -= size;
  return ready_.offset - size;
}

Index SharedHeap::take_free(Index size, Index bytes) {
  const auto taken = free_.take(size, huge_page);
  if (!taken) throw no_addresses(bytes);
  const Index end = *taken + size;
  try {
    if (!file_->may_reach(end))
      throw Error(ErrorKind::transport, std::to_string(bytes) + " bytes are beyond the limit on files (ulimit -f)");
    if (end > file_->end()) file_->reach(end);
  } catch (...) {
    free_.add(*taken, size);
    throw;
  }
  return *taken;
}

/// The block that begins there or lies around it.
SharedHeap::Blocks::iterator SharedHeap::find(const std::byte* place) {
  return std::prev(blocks_.upper_bound(place - data_));
}

Index SharedHeap::bytes_of(const std::byte* block) {
  const std::lock_guard lock(mutex_);
  return find(block)->second.bytes;
}

bool SharedHeap::resize(std::byte* block, Index bytes) noexcept {
  const std::lock_guard lock(mutex_);
  auto& found = find(block)->second;
  if (found.is_seen() || bytes > most_ || rounded(bytes) != found.size) return false;
  found.bytes = bytes;
  return true;
}

void SharedHeap::free(std::byte* block) noexcept {
  std::vector<Kept> surplus;
  {
    const std::lock_guard lock(mutex_);
    const auto found = find(block);
    if (found->second.is_seen() && file_->is_ours())
      found->second.freed = true;
    else
      recycle(found, surplus);
  }
  give_back(surplus);
}

/// Nobody looks at it any more.
void SharedHeap::let_go(Index offset) {
  std::vector<Kept> surplus;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(offset);
    if (found != blocks_.end() && found->second.freed && !found->second.is_seen()) recycle(found, surplus);
  }
  give_back(surplus);
}

void SharedHeap::recycle(Blocks::iterator block, std::vector<Kept>& surplus) {
  const auto [offset, of] = *block;
  blocks_.erase(block);
  if (of.is_private) {
    // Its place is not used again: children may still see the file there.
    madvise(data_ + offset, std::size_t(of.size), MADV_DONTNEED);
    file_->give_back(offset, of.size);
  } else if (of.size > keep_) {
    surplus.push_back({offset, of.size});
  } else {
    kept_.push_back({offset, of.size}), kept_bytes_ += of.size;
    kept_by_size_[of.size].push_back(std::prev(kept_.end()));
    evict(keep_, surplus);
  }
}

/// What was freed first goes first.
void SharedHeap::evict(Index keep, std::vector<Kept>& surplus) {
  for (; kept_bytes_ > keep; kept_.pop_front()) {
    const Kept& first = kept_.front();
    const auto alike = kept_by_size_.find(first.size);
    if (alike->second.pop_front(); alike->second.empty()) kept_by_size_.erase(alike);
    surplus.push_back(first), kept_bytes_ -= first.size;
  }
}

/// This takes long, so others may go on meanwhile.
void SharedHeap::give_back(const std::vector<Kept>& surplus) {
  for (const auto& [offset, size] : surplus) file_->give_back(offset, size);
  if (surplus.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [offset, size] : surplus) free_.add(offset, size);
}

std::shared_ptr<const Memory> SharedHeap::at(const std::byte* first, Index bytes) {
  const std::lock_guard lock(mutex_);
  if (!contains(first)) {
    const auto next = refused_.upper_bound(first);
    if (next == refused_.begin()) return nullptr;
    const auto [place, length] = *std::prev(next);
    if (first - place > length - bytes) return nullptr;
    return std::make_shared<UnsharedMemory>(const_cast<std::byte*>(place), length, refusal_);
  }
  const auto found = blocks_.upper_bound(first - data_);
  if (found == blocks_.begin()) return nullptr;
  auto& [offset, block] = *std::prev(found);
  if (first - data_ - offset > block.bytes - bytes) return nullptr;
  if (block.is_private)
    return std::make_shared<UnsharedMemory>(data_ + offset, block.bytes, "this process has forked since it was made");
  if (auto shown = block.shown.lock()) return shown;
  const auto shown = std::make_shared<const Shown>(shared_from_this(), offset, block.bytes);
  block.shown = shown;
  return shown;
}

void SharedHeap::add_refused(const void* place, Index bytes) noexcept try {
  const std::lock_guard lock(mutex_);
  refused_[static_cast<const std::byte*>(place)] = bytes, any_refused_ = true;
} catch (const std::bad_alloc&) {  // it is told of as of any private memory
}

void SharedHeap::remove_refused(const void* place) noexcept {
  if (!any_refused_) return;
  const std::lock_guard lock(mutex_);
  refused_.erase(static_cast<const std::byte*>(place));
  any_refused_ = !refused_.empty();
}

/// Calls `work(begin, end)` of all parts of the file in which there are pages.
template <class Work>
void SharedHeap::for_each_written(Index first, Index end, Work&& work) const {
  while ((first = lseek(file_->descriptor(), first, SEEK_DATA)) >= 0 && first < end) {
    const Index hole = lseek(file_->descriptor(), first, SEEK_HOLE), stop = hole < 0 ? end : std::min(hole, end);
    work(first, stop);
    first = stop;
  }
}

/// This part of the file becomes memory of this process, where it is, whatever other threads do there meanwhile.
bool SharedHeap::make_private(Index first, Index end) {
  if (mmap(data_ + first, std::size_t(end - first), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
           file_->descriptor(), first) == MAP_FAILED)
    return false;
  // A page that is written is the process's own from then on, and the file's may go. So each is, with what it holds.
  for_each_written(first, end, [this](Index begin, Index stop) {
    for (Index at = begin; at < stop; at += page) {
      const std::atomic_ref<char> word(reinterpret_cast<char&>(data_[at]));
      for (char value = word.load(); !word.compare_exchange_weak(value, value);) continue;
    }
  });
  file_->give_back(first, end - first);
  return true;
}

void SharedHeap::copy_for_child(Index offset, Index size) {
  void* const copy =
      mmap(nullptr, std::size_t(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (copy != MAP_FAILED)
    for_each_written(offset, offset + size, [&](Index begin, Index end) {
      std::memcpy(static_cast<std::byte*>(copy) + (begin - offset), data_ + begin, std::size_t(end - begin));
    });
  fork_copies_.push_back({offset, size, copy});
}

void SharedHeap::before_fork() {
  mutex_.lock();
  if (!file_->is_ours()) return;
  const auto becomes_private = [](const Block& block) { return !block.is_private && !block.freed && !block.is_seen(); };
  for (auto next = blocks_.begin(); next != blocks_.end();) {
    const auto first = next;
    Index end = first->first;
    for (; next != blocks_.end() && next->first == end && becomes_private(next->second); ++next)
      end += next->second.size;
    if (next != first && make_private(first->first, end)) {
      for (auto block = first; block != next; ++block) block->second.is_private = true;
      continue;
    }
    if (next == first) ++next;
    for (auto block = first; block != next; ++block)
      if (!block->second.is_private && !block->second.freed) copy_for_child(block->first, block->second.size);
  }
}

void SharedHeap::after_fork_in_parent() {
  for (const auto& [offset, size, copy] : fork_copies_)
    if (copy != MAP_FAILED) munmap(copy, std::size_t(size));
  fork_copies_.clear();
  mutex_.unlock();
}

void SharedHeap::after_fork_in_child() {
  for (const auto& [offset, size, copy] : fork_copies_)
    if (copy == MAP_FAILED ||
        mremap(copy, std::size_t(size), std::size_t(size), MREMAP_MAYMOVE | MREMAP_FIXED, data_ + offset) == MAP_FAILED)
      mprotect(data_ + offset, std::size_t(size), PROT_NONE);  // better than the parent's
  fork_copies_.clear();
  for (auto& [offset, block] : blocks_) block.is_private = true;
  mutex_.unlock();
}

/// Handlers cannot be taken back: they are there once, for whatever heap the process has.
void SharedHeap::handle_forks() {
  static const int handled = pthread_atfork(
      [] {
        registry().mutex.lock();
        if ((registry().forking = registry().heap.lock())) registry().forking->before_fork();
      },
      [] {
        const auto heap = std::move(registry().forking);
        if (heap) heap->after_fork_in_parent();
        registry().mutex.unlock();
      },
      [] {
        const auto heap = std::move(registry().forking);
        if (heap) heap->after_fork_in_child();
        registry().mutex.unlock();
      });
  if (handled != 0) throw Error(ErrorKind::transport, std::string("pthread_atfork: ") + std::strerror(handled));
}

}  // namespace longshore::mpi
