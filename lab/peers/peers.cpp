#include "peers.hpp"

#ifdef LONGSHORE_PEER_SDSL
#include <sdsl/sd_vector.hpp>
#endif
#ifdef LONGSHORE_PEER_ROARING
#include <roaring/roaring.h>
#endif

namespace longshore::bench {

namespace {

/// A peer of which `Set` answers; the loops are compiled for each, so that no question is a virtual call.
template <class Set>
class PeerOf : public PeerSet {
 public:
  explicit PeerOf(std::span<const Index> members) : set_(members), size_(Index(members.size())) {}
  static std::unique_ptr<PeerSet> make(std::span<const Index> members) { return std::make_unique<PeerOf>(members); }

  Index size() const override { return size_; }
  Index bytes() const override { return set_.bytes(); }
  double select_seconds(std::span<const Index> positions, Questions how, Index passes) const override {
    return asked(positions, how, passes, [&](Index i) { return set_.select(i); });
  }
  double rank_seconds(std::span<const Index> ranks, Questions how, Index passes) const override {
    return asked(ranks, how, passes, [&](Index w) { return set_.rank(w); });
  }
  Index select(Index i) const override { return set_.select(i); }
  Index rank(Index w) const override { return set_.rank(w); }

 private:
  Set set_;
  Index size_;
};

#ifdef LONGSHORE_PEER_SDSL
class SdVector {
 public:
  explicit SdVector(std::span<const Index> members)
      : bits_(members.begin(), members.end()), select_(&bits_), rank_(&bits_) {}
  Index bytes() const {
    return Index(sdsl::size_in_bytes(bits_) + sdsl::size_in_bytes(select_) + sdsl::size_in_bytes(rank_));
  }
  Index select(Index i) const { return Index(select_(std::uint64_t(i) + 1)); }
  Index rank(Index w) const {
    return std::uint64_t(w) < bits_.size() && bits_[std::uint64_t(w)] ? Index(rank_(std::uint64_t(w))) : -1;
  }

 private:
  sdsl::sd_vector<> bits_;
  sdsl::sd_vector<>::select_1_type select_;
  sdsl::sd_vector<>::rank_1_type rank_;
};
#endif

#ifdef LONGSHORE_PEER_ROARING
class Roaring {
 public:
  explicit Roaring(std::span<const Index> members) : bits_(roaring_bitmap_create()) {
    for (const Index w : members) roaring_bitmap_add(bits_.get(), std::uint32_t(w));
    roaring_bitmap_run_optimize(bits_.get());
    roaring_bitmap_shrink_to_fit(bits_.get());
  }
  /// As it counts them itself: of the stored form, which is about what is in memory.
  Index bytes() const { return Index(roaring_bitmap_size_in_bytes(bits_.get())); }
  Index select(Index i) const {
    std::uint32_t w = 0;
    roaring_bitmap_select(bits_.get(), std::uint32_t(i), &w);
    return w;
  }
  Index rank(Index w) const {
    if (!roaring_bitmap_contains(bits_.get(), std::uint32_t(w))) return -1;
    return Index(roaring_bitmap_rank(bits_.get(), std::uint32_t(w))) - 1;
  }

 private:
  struct Free {
    void operator()(roaring_bitmap_t* bits) const { roaring_bitmap_free(bits); }
  };
  std::unique_ptr<roaring_bitmap_t, Free> bits_;
};
#endif

}  // namespace

std::vector<Peer> peers() {
  std::vector<Peer> list;
#ifdef LONGSHORE_PEER_SDSL
  list.push_back({"sdsl-lite", PeerOf<SdVector>::make});
#endif
#ifdef LONGSHORE_PEER_ROARING
  list.push_back({"CRoaring", PeerOf<Roaring>::make});
#endif
  return list;
}

}  // namespace longshore::bench
