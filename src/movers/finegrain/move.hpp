/// What the ranks of one bind() share: who reads from whom, how far everybody is, and the copies.
#pragma once

#include <memory>
#include <vector>

#include "longshore/layouts/xarray.hpp"
#include "longshore/movers/local_moves.hpp"
#include "movers/finegrain/world.hpp"

namespace longshore::finegrain {

/// What one rank has in a move. Its counts begin anew with every move, and that is safe: nobody starts the next one before all
/// have copied what it started, and nothing is copied before all that it is copied from has been started.
struct End {
  XArray source, destination;
  std::vector<std::uint32_t> sources, readers;  ///< the ranks that it reads from, and that read from it; itself is both
  std::vector<CopyTask> tasks;
  Index bytes = 0, motions = 0;
  std::size_t ready = 0;                        ///< of `sources`: have started the move that is to be copied next
  std::size_t done = 0;                         ///< of `readers`: have copied what this rank has started
  Index started = 0, copied = 0, finished = 0;  ///< moves
  bool waits = false, left = false;

  bool active() const { return finished < started; }
};

/// Since all memory can be seen, what a rank is to get is copied as soon as it and its sources have started, by the last of them.
class Move {
 public:
  Move(std::shared_ptr<World> world, std::size_t ranks) : ends(ranks), world_(std::move(world)) {}

  World& world() const { return *world_; }
  End& end(Index rank) { return ends[std::size_t(rank)]; }
  const End& end(Index rank) const { return ends[std::size_t(rank)]; }
  /// What the rank holds, and the programs that all hold together.
  Index workspace_bytes(Index rank) const;

  void start(Index rank);
  void wait(Index rank);
  /// The rank has no mover any longer: what it has started others may copy, but it gets nothing.
  void leave(Index rank);

  std::vector<End> ends;
  Index program_bytes = 0;

 private:
  void copied(End& to);

  std::shared_ptr<World> world_;
};

/// One rank's part of it.
std::unique_ptr<Mover> make_mover(std::shared_ptr<Move> move, Index rank);

}  // namespace longshore::finegrain
