/// Communicators of the finegrain engine: some ranks of a world, in an order, with messages and collectives of their
/// own.
#pragma once

#include <utility>

#include "longshore/engines/finegrain.hpp"
#include "longshore/ranks/rank_map.hpp"

namespace longshore::finegrain {

struct Group;

/// Ranks of a world, in the order of a `RankMap`, which all of them share: it is kept once a communicator, not once a
/// member. Ranks here are the communicator's, 0 to size(), and whom they stand for is looked up in the map each time.
/// Messages and collectives of two communicators never mix, nor do they with the world's. A value, of the member who
/// has created it; only that rank's program may use it, and only until it returns.
class Communicator {
 public:
  /// Collective over the members: each of them calls it with equal maps, of a world as large as this one, and nobody
  /// goes on before all have come; the map of the first of them is kept. Others need not know of it. A rank that is no
  /// member and calls it is `Error(argument)` for all who have come.
  static Communicator create(Rank& me, RankMap members);

  Index rank() const { return rank_; }
  Index size() const { return members().size(); }
  const RankMap& members() const&;
  RankMap members() && { return std::as_const(*this).members(); }

  // As `Rank` has them, among the members.
  void send(Index to, Index tag, std::span<const std::byte> message);
  void receive(Index from, Index tag, std::span<std::byte> message);
  std::vector<std::byte> receive(Index from, Index tag);
  void barrier();
  void gather(Index root, std::span<const std::byte> mine, std::span<std::byte> all);
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  void broadcast(Index root, std::span<std::byte> message);
  void all_reduce(std::span<std::byte> numbers, const Reduction& reduction);

 private:
  Communicator(std::shared_ptr<World> world, std::shared_ptr<Group> group, Index me, Index rank)
      : world_(std::move(world)), group_(std::move(group)), me_(me), rank_(rank) {}
  Index world_rank(Index member) const;

  std::shared_ptr<World> world_;
  std::shared_ptr<Group> group_;
  Index me_, rank_;  ///< in the world, here
};

}  // namespace longshore::finegrain
