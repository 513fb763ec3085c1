#include "mpi/node_memory.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace longshore::mpi {

namespace {

constexpr Index smallest_segment = Index{256} << 10, largest_segment = Index{8} << 20;

/// Whether one begins where the other does, and has as many bytes at least.
bool covers(const SharedSegment::Address& a, const SharedSegment::Address& b) {
  return a.offset == b.offset && a.bytes >= b.bytes && a.token[0] == b.token[0] && a.token[1] == b.token[1];
}

}  // namespace

NodeMemory::~NodeMemory() {
  for (const auto& segment : segments_) segment->seal();
}

/// Eight sizes between two powers of two, so that what is given back fits what is taken next.
Index NodeMemory::rounded(Index bytes) {
  const Index least = std::max<Index>(bytes, 1024), step = Index(std::bit_floor(std::uint64_t(least))) / 8;
  return checked_mul(ceil_div(least, step), step);
}

NodeMemory::Block NodeMemory::take(Index bytes) {
  const std::lock_guard lock(mutex_);
  collect();
  const Index size = rounded(bytes);
  if (auto& blocks = free_[size]; !blocks.empty()) {
    const Block block = blocks.back();
    blocks.pop_back();
    return block;
  }
  if (segments_.empty() || segments_.back()->bytes() - used_ < size) {
    const Index next = segments_.empty() ? smallest_segment : std::min(2 * segments_.back()->bytes(), largest_segment);
    segments_.push_back(SharedSegment::create(std::max(size, next)));
    used_ = 0;
  }
  const auto& segment = *segments_.back();
  const Block block{segment.data() + used_, size, segment.address(), used_};
  used_ += size;
  return block;
}

void NodeMemory::give_back(const Block& block, std::function<bool()> unused) {
  if (!block.data) return;
  const std::lock_guard lock(mutex_);
  if (unused && !unused())
    waiting_.push_back({block, std::move(unused)});
  else
    free_[block.bytes].push_back(block);
}

void NodeMemory::collect() {
  std::erase_if(waiting_, [this](const Waiting& one) {
    if (!one.unused()) return false;
    free_[one.block.bytes].push_back(one.block);
    return true;
  });
}

std::shared_ptr<SegmentView> NodeMemory::view(const SharedSegment::Address& address, bool writable) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(views_.begin(), views_.end(), [&](const Mapped& one) {
    return covers(one.address, address) && one.writable >= writable;
  });
  if (known != views_.end()) {
    views_.splice(views_.begin(), views_, known);
    return known->view;
  }
  auto made = SegmentView::map(address, writable);
  views_.push_front({address, writable, made});
  for (auto last = views_.end(); views_.size() > most_views_ && last != views_.begin();)
    if ((--last)->view.use_count() == 1) last = views_.erase(last);
  return made;
}

void NodeMemory::forget_views() {
  const std::lock_guard lock(mutex_);
  views_.clear();
}

}  // namespace longshore::mpi
