/// What the ranks of one bind() share: who reads from whom, how far everybody is, and the copies.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "engines/finegrain/world.hpp"
#include "longshore/movers/local_moves.hpp"

namespace longshore::finegrain {

/// What one rank has in a move. Its counts begin anew with every move, and that is safe: nobody starts the next one
/// before all have copied what it started, and nothing is copied before all that it is copied from has been started.
struct End {
  std::vector<std::uint32_t> sources, readers;  ///< the ranks that it reads from, and that read from it; itself is both
  std::vector<CopyTask> tasks;
  Index bytes = 0, motions = 0;
  std::uint32_t ready = 0;                      ///< of `sources`: have started the move that is to be copied next
  std::uint32_t done = 0;                       ///< of `readers`: have copied what this rank has started, or have left
  Index started = 0, copied = 0, finished = 0;  ///< moves
  std::exception_ptr failure;                   ///< of the last copy
  bool waits = false, left = false;

  bool active() const { return finished < started; }
  void add_source(Index rank) { sources.push_back(std::uint32_t(rank)); }
  void add_reader(Index rank) { readers.push_back(std::uint32_t(rank)); }
  /// When all sources, readers and tasks have been added.
  void complete(Index rank);
};

/// Since all memory can be seen, what a rank is to get is copied as
/// soon as it and its sources have started, by the last of them.
class Move {
 public:
  Move(std::shared_ptr<World> world, std::size_t ranks) : ends(ranks), world_(std::move(world)) {}

  World& world() const { return *world_; }
  End& end(Index rank) { return ends[std::size_t(rank)]; }
  const End& end(Index rank) const { return ends[std::size_t(rank)]; }
  /// What the rank holds, and the programs that all hold together.
  Index workspace_bytes(Index rank) const;
  /// Throws `Error(memory_limit)` where that is more than the rank allows, 0 being anything.
  void check_memory(Index rank, Index max_mem) const;

  void start(Index rank);
  /// Throws what the rank's copy has thrown.
  void wait(Index rank);
  bool test(Index rank);
  /// The rank has no mover any longer: what it has started others may copy, but it gets nothing.
  void leave(Index rank);

  std::vector<End> ends;
  Index program_bytes = 0;
  std::vector<std::shared_ptr<const void>> memory;  ///< what is read and written, as long as anybody may

 private:
  void copy(End& to);
  void acknowledge(Index source);
  void check_copy(Index rank);

  std::shared_ptr<World> world_;
};

/// One rank's part of it. `memory`: what is the rank's own affair.
std::unique_ptr<Mover> make_mover(std::shared_ptr<Move> move, Index rank, std::vector<BoundMemory> memory);

}  // namespace longshore::finegrain
