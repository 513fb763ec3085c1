/// A queue of events in time, of which many are at the same one: a radix heap.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace longshore {

/// `Event` has a `time`, which is not negative. Events come in the order of their times; those of one time in the order
/// in which they were pushed. None may be pushed that is before the last one that came.
template <class Event>
class EventQueue {
 public:
  void push(const Event& event) { bucket_of(key(event)).push_back(event), ++size_; }
  bool empty() const { return size_ == 0; }
  Event pop() {
    if (next_ == buckets_[0].size()) advance();
    --size_;
    return buckets_[0][next_++];
  }

 private:
  /// Times that are not negative are ordered like their bits.
  static std::uint64_t key(const Event& event) { return std::bit_cast<std::uint64_t>(event.time); }
  /// Bucket 0 has events of the current time, bucket b those whose times first differ from it in bit b - 1.
  std::vector<Event>& bucket_of(std::uint64_t key) { return buckets_[std::size_t(std::bit_width(key ^ now_))]; }

  void advance() {
    buckets_[0].clear(), next_ = 0;
    const auto first =
        std::find_if(buckets_.begin(), buckets_.end(), [](const std::vector<Event>& b) { return !b.empty(); });
    now_ = key(*std::min_element(first->begin(), first->end(),
                                 [](const Event& a, const Event& b) { return key(a) < key(b); }));
    moved_.swap(*first);
    for (const auto& event : moved_) bucket_of(key(event)).push_back(event);
    moved_.clear();
    moved_.swap(*first);  // it keeps its memory, and is empty: all events went to lower buckets
  }

  std::array<std::vector<Event>, 65> buckets_;
  std::vector<Event> moved_;
  std::uint64_t now_ = 0;
  std::size_t next_ = 0, size_ = 0;
};

}  // namespace longshore
