/// mpi: `SharedHeap`, memory that the processes of a node can map, for arrays that somebody else makes: NumPy's.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longshore/mpi/shared_segment.hpp"

namespace longshore::mpi {

/// Parts of a line that are free, those that touch put together.
class FreeRanges {
 public:
  void add(Index first, Index length);
  /// Out of the shortest that has room; none where none has.
  std::optional<Index> take(Index length, Index alignment);

 private:
  void remove(Index first, Index length) { by_place_.erase(first), by_length_.erase({length, first}); }

  std::map<Index, Index> by_place_;
  std::set<std::pair<Index, Index>> by_length_;
};

/// Blocks of one `SharedFile`, which is mapped as a whole, so that all have one descriptor. What is freed is kept for
/// the next up to a ceiling, the rest goes back to the machine. What is new has huge pages at once, unless it is large
/// beside what the machine has left: then it has pages as they are touched. A process has one, whatever threads it has.
///
/// In a forked child every block holds what it held, and is the child's own. So are, from then on, the parent's: who
/// forks makes them private memory, in place. Only blocks that others are looking at stay as they are; the child gets a
/// copy of them.
class SharedHeap : public std::enable_shared_from_this<SharedHeap> {
 public:
  /// That of this process, made where there is none; so much of what is freed it keeps from now on, until everybody who
  /// has opened it has closed it. Throws `Error(transport)` where the machine forbids such memory.
  static std::shared_ptr<SharedHeap> open(Index keep);
  void close();
  /// Null where there is none.
  static std::shared_ptr<SharedHeap> of_this_process();
  ~SharedHeap();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  /// A block on a whole page. Null where it cannot be had.
  std::byte* allocate(Index bytes, bool zeros) noexcept;
  /// Whether the block has so many bytes from now on, where it is.
  bool resize(std::byte* block, Index bytes) noexcept;
  /// Others may go on looking at it: it is used again when they no longer do.
  void free(std::byte* block) noexcept;
  Index bytes_of(const std::byte* block);
  bool contains(const void* place) const {
    return std::size_t(static_cast<const std::byte*>(place) - data_) < std::size_t(reserved_);
  }
  /// The block that all these bytes lie in, for others to look at as long as this is kept; or what is in its place,
  /// which says why. Null where they lie elsewhere.
  std::shared_ptr<const Memory> at(const std::byte* first, Index bytes);

  /// Memory from elsewhere which an array has because it could have none here.
  void add_refused(const void* place, Index bytes) noexcept;
  void remove_refused(const void* place) noexcept;

 private:
  class Shown;
  struct Block {
    Index size = 0, bytes = 0;  ///< of its place, and what was asked for
    bool is_private = false;    ///< since a fork
    bool freed = false;         ///< but others are still looking at it
    std::weak_ptr<const SharedMemory> shown;
    bool is_seen() const { return !shown.expired(); }
  };
  using Blocks = std::map<Index, Block>;  ///< by where they begin in the file
  /// No block's, but with pages.
  struct Kept {
    Index offset, size;
  };
  struct Placed {
    std::byte* data;
    bool fresh;  ///< holds zeros, and may have no pages yet
  };
  struct ForkCopy {
    Index offset, size;
    void* data;
  };

  SharedHeap();
  Placed place(Index bytes, Index size);
  Index take_free(Index size, Index bytes);
  Index take_fresh(Index size, Index bytes);
  Blocks::iterator find(const std::byte* place);
  void recycle(Blocks::iterator block, std::vector<Kept>& surplus);
  void evict(Index keep, std::vector<Kept>& surplus);
  void give_back(const std::vector<Kept>& surplus);
  void let_go(Index offset);
  template <class Work>
  void for_each_written(Index first, Index end, Work&& work) const;
  bool make_private(Index first, Index end);
  void copy_for_child(Index offset, Index size);
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  static void handle_forks();

  std::shared_ptr<SharedFile> file_;
  std::byte* data_ = nullptr;
  Index reserved_ = 0, most_ = 0;  ///< addresses, and what a block may have
  std::mutex mutex_;
  Blocks blocks_;
  FreeRanges free_;       ///< zeros, for which there are no pages
  Kept ready_{0, 0};      ///< zeros, for blocks that have no huge pages of their own
  std::list<Kept> kept_;  ///< the one that was freed last behind all others
  std::map<Index, std::deque<std::list<Kept>::iterator>> kept_by_size_;
  Index kept_bytes_ = 0, keep_ = 0, users_ = 0;
  std::map<const std::byte*, Index> refused_;
  std::atomic<bool> any_refused_ = false;
  std::string refusal_;
  std::vector<ForkCopy> fork_copies_;
};

}  // namespace longshore::mpi
