/// movers: which pieces of its destinations a move has completed, and which of them have been handed over.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore {

/// What one transfer brings here.
struct IncomingPiece {
  Arrival arrival;
  std::uint32_t number = 0;  ///< of the motion among its share's
  int peer = 0;              ///< the process that it comes from
};

/// Copies of plans between blocks by their addresses: all that follow what one plan brings have one of it.
class KeptPlans {
 public:
  std::shared_ptr<const BlockPlan> copy(const BlockPlan& plan) {
    auto& kept = kept_[&plan];
    if (!kept) kept = std::make_shared<const BlockPlan>(plan);
    return kept;
  }

 private:
  std::map<const BlockPlan*, std::shared_ptr<const BlockPlan>> kept_;
};

/// What processes get of one share's plan, found out when somebody asks: it needs neither the share nor the plan that
/// was bound.
struct Incoming {
  std::optional<MotionPlan> layouts;        ///< the plan, if it is between layouts
  std::shared_ptr<const BlockPlan> blocks;  ///< else
  Index field = 0, processes = 1;
  bool wrap = false;  ///< see `Holders`
  bool meet = false;  ///< whether several may bring something to a point, as in a reduction
  bool ours = false;  ///< whether nobody else has the plan
  bool operator==(const Incoming&) const = default;
};

/// The arrivals of one mover, move after move. Engines say first in how many units of their work each piece comes
/// (tasks, say, or a peer's messages), and in every move which units are done. Pieces that meet in a point arrive
/// together. Shares are numbered through, stage after stage.
class Arrivals {
 public:
  /// Of process `me`. Throws `Error(memory_limit)` where there are too many.
  Arrivals(const std::vector<Incoming>& incoming, int me);
  /// From now on `mover` hands over what arrives for these shares, which are those of process `me`.
  static void follow(Mover& mover, const std::vector<std::vector<std::shared_ptr<Share>>>& stages, int me);
  static void follow(Mover& mover, std::shared_ptr<const std::vector<Incoming>> incoming, int me);

  /// One more unit brings a part of what motion `number` of a share does; nothing where it goes elsewhere.
  void expect(std::size_t share, std::uint32_t number);
  /// Calls f(piece, peer) for what no unit has been expected for, of the shares [first, last).
  template <class F>
  void for_each_unexpected(std::size_t first, std::size_t last, F&& f) const {
    for (std::size_t k = 0; k < pieces_.size(); ++k)
      if (const auto& piece = pieces_[k]; piece.share >= first && piece.share < last && !piece.expected)
        f(std::uint32_t(k), piece.peer);
  }
  void expect(std::uint32_t piece);

  /// A move begins: nothing has arrived.
  void restart();
  /// A unit is done.
  void land(std::size_t share, std::uint32_t number);
  void land(std::uint32_t piece);
  /// All are.
  void land_all();
  /// The next one that nobody has been given, if there is one.
  const Arrival* next();

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct Piece {
    Arrival arrival;
    int peer = 0;
    std::uint32_t share = 0;
    std::uint32_t group = 0;  ///< of those that arrive together
    bool expected = false;
  };
  std::uint32_t piece_of(std::size_t share, std::uint32_t number) const {
    const auto& pieces = numbered_[share];
    return number < pieces.size() ? pieces[number] : none;
  }

  std::vector<Piece> pieces_;                         ///< those of a group one after the other
  std::vector<std::vector<std::uint32_t>> numbered_;  ///< by share and number of a motion: which piece it brings
  std::vector<std::uint32_t> starts_;                 ///< of the groups among the pieces, and the end
  std::vector<std::uint32_t> units_, left_;           ///< by group: in one move, and those that are not done
  std::vector<std::uint32_t> landed_;                 ///< groups, in the order in which they were complete
  std::size_t given_ = 0;                             ///< of these, those all of which have been handed over
  std::uint32_t within_ = 0;                          ///< and of the next one, so many pieces
};

}  // namespace longshore
