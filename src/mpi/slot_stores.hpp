/// mpi: with which stores packets are best written into a ring's slots, which depends on how far apart the two cores
/// are: lines that the other core holds are written fast where the two share a cache and slowly where they do not, and
/// virtual cores are moved by their host while programs run. Measured all the time, therefore.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "longshore/copies/kernels.hpp"

namespace longshore::mpi {

/// Chooses by how fast packets have followed each other, which is how fast all gets on: the other end, what is copied
/// beside, and the memory. The stores that are slower are tried now and then for a few packets.
class SlotStores {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `first`: what is tried first.
  explicit SlotStores(Stores first = Stores::cached) : stores_(first) {}

  /// For the next packet, of so many bytes, which is written now.
  Stores choose(Index bytes, Time now) {
    if (last_ && packets_ > settling) {
      seconds_ += std::chrono::duration<double>(now - *last_).count();
      bytes_ += last_bytes_;
    }
    if (packets_ == settling + measured) next();
    last_ = now, last_bytes_ = bytes, ++packets_;
    return stores_;
  }
  /// Time passes that has nothing to do with packets.
  void pause() { last_.reset(); }
  /// As the last packet that was measured.
  Stores stores() const { return stores_; }
  /// That have been measured: whoever has more knows more.
  Index turns() const { return turns_; }

 private:
  static constexpr int settling = 4, measured = 12, between_trials = 40;
  static constexpr double clearly = 0.9;  ///< streaming takes up more of the memory: it must be faster by so much

  /// Seconds a byte. The least of the last ones counts: who was interrupted took longer.
  struct Costs {
    static constexpr double never = 1e300;
    std::array<double, 4> last{never, never, never, never};
    std::size_t next = 0;
    void add(double cost) { last[next++ % last.size()] = cost; }
    double least() const { return *std::min_element(last.begin(), last.end()); }
  };

  void next() {
    if (bytes_ > 0) (stores_ == Stores::cached ? cached_ : streaming_).add(seconds_ / double(bytes_));
    seconds_ = 0, bytes_ = 0, packets_ = 0, ++turns_;
    bool streams = streaming_.least() < cached_.least() * clearly;
    if (++since_trial_ > between_trials) streams = !streams, since_trial_ = 0;
    stores_ = streams ? Stores::streaming : Stores::cached;
  }

  Costs cached_, streaming_;
  Stores stores_;
  int since_trial_ = between_trials;  ///< turns that went as was best
  int packets_ = 0;                   ///< of this turn
  Index turns_ = 0;
  std::optional<Time> last_;
  Index last_bytes_ = 0, bytes_ = 0;
  double seconds_ = 0;
};

/// What movers have measured, for those that come after them: one that is made for a single call moves too little to
/// find out for itself. By several threads.
class MeasuredStores {
 public:
  /// As a mover left it that sent this peer so many bytes a move; else it begins as what is nearest to that is now.
  /// What is measured from here on is kept once the result is let go, unless another mover has measured more meanwhile.
  static std::shared_ptr<SlotStores> lend(const std::shared_ptr<MeasuredStores>& measured, int peer, Index bytes) {
    const Key key{peer, bytes};
    return {new SlotStores(measured->find(key)), [measured, key](SlotStores* stores) {
              measured->keep(key, *stores);
              delete stores;
            }};
  }

 private:
  using Key = std::pair<int, Index>;
  static constexpr std::size_t most = 1024;

  SlotStores find(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto near = kept_.lower_bound(key);
    if (near != kept_.end() && near->first == key) return near->second;
    if (near == kept_.end() || near->first.first != key.first) {
      if (near == kept_.begin() || (--near)->first.first != key.first) return SlotStores();
    }
    return SlotStores(near->second.stores());
  }
  void keep(const Key& key, const SlotStores& stores) {
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= most) kept_.clear();
    auto& kept = kept_.try_emplace(key, stores).first->second;
    if (kept.turns() < stores.turns()) kept = stores;
    kept.pause();
  }

  std::mutex mutex_;
  std::map<Key, SlotStores> kept_;
};

}  // namespace longshore::mpi
