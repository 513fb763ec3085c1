/// Sets of ranks as other libraries keep them: sdsl-lite's
/// `sd_vector` and CRoaring, where they were found at build time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "asked.hpp"

namespace longshore::bench {

class PeerSet {
 public:
  virtual ~PeerSet() = default;
  virtual Index size() const = 0;
  virtual Index bytes() const = 0;
  virtual double select_seconds(std::span<const Index> positions, Questions how, Index passes) const = 0;
  virtual double rank_seconds(std::span<const Index> ranks, Questions how, Index passes) const = 0;
  virtual Index select(Index i) const = 0;
  virtual Index rank(Index w) const = 0;  ///< -1 for those who are no members
};

struct Peer {
  std::string name;
  /// Of ascending ranks below 2^32.
  std::unique_ptr<PeerSet> (*make)(std::span<const Index> members);
};

/// Those that were found.
std::vector<Peer> peers();

}  // namespace longshore::bench
