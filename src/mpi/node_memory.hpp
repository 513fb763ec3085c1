/// mpi: `NodeMemory`, the shared memory in which a communicator's movers have their flags and rings at this process,
/// and what this process has mapped of others: made once, used again and again, gone with the communicator.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "mpi/shared_segment.hpp"

namespace longshore::mpi {

class NodeMemory {
 public:
  /// `views`: how many mappings of other processes' memory are kept that nobody uses.
  explicit NodeMemory(std::size_t views) : most_views_(views) {}
  /// Others go on seeing what was said here last, that a move was given up too, until they let go of their views.
  ~NodeMemory();

  /// Memory of this process that the others of the node can map.
  struct Block {
    std::byte* data = nullptr;
    Index bytes = 0;
    SharedSegment::Address address;  ///< of the segment that it lies in
    Index offset = 0;                ///< in the segment
  };
  /// A block of at least so many bytes, whatever is in it. Throws `Error(transport)` where the machine forbids such
  /// memory, `std::bad_alloc` where there is not enough of it.
  Block take(Index bytes);
  /// Another may take it as soon as `unused()` says that no other process touches it any more; none: at once.
  void give_back(const Block& block, std::function<bool()> unused = {});
  /// Another process's segment, mapped here. Throws what `SegmentView::map` throws.
  std::shared_ptr<SegmentView> view(const SharedSegment::Address& address, bool writable);
  /// Lets go of what is mapped and not in use.
  void forget_views();

 private:
  struct Waiting {
    Block block;
    std::function<bool()> unused;
  };
  struct Mapped {
    SharedSegment::Address address;
    bool writable;
    std::shared_ptr<SegmentView> view;
  };
  void collect();
  static Index rounded(Index bytes);

  std::mutex mutex_;
  std::vector<std::shared_ptr<SharedSegment>> segments_;
  Index used_ = 0;                            ///< of the last segment
  std::map<Index, std::vector<Block>> free_;  ///< by bytes
  std::vector<Waiting> waiting_;
  std::list<Mapped> views_;  ///< the last used first
  std::size_t most_views_;
};

}  // namespace longshore::mpi
