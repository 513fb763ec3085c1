/// model: what a plan will cost, in each way in which it can be carried out, before it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longshore/layouts/xarray.hpp"
#include "longshore/model/machine_profile.hpp"
#include "longshore/model/strips.hpp"
#include "longshore/plans/block_plan.hpp"
#include "longshore/plans/motion_plan.hpp"

namespace longshore {

/// What one rank moves: bytes as they will be counted, and what copying them is to the memory system.
struct Traffic {
  /// Transfers from (to) one peer that are alike.
  struct Item {
    Index peer = 0;
    CopyShape shape;
    Index transfers = 0, bytes = 0;
  };
  Index rank = 0;
  bool blocks = false;                          ///< of a plan between blocks
  bool halo = false;                            ///< what a rank sends lies beside what it receives
  std::vector<Item> outgoing, incoming, local;  ///< by peers
  Index touched_bytes = 0;                      ///< on the larger of the two sides, from one move to the next

  static Index bytes(const std::vector<Item>& items);
};
/// Moves of fewer bytes within a process are their caller's alone, however many threads there are.
inline constexpr Index threads_from_bytes = Index{256} << 10;

/// Costs no more than the rank's own motions. Throws `Error(argument)` for a rank that takes no part.
Traffic traffic(const MotionPlan& plan, Index rank);
/// Of blocks in arrays of this format; what a motion touches beyond them is taken to be there.
Traffic traffic(const BlockPlan& plan, Index rank, const GridFormat& format);
/// What ranks move whose arrays all lie in one process: everything stays there.
Traffic in_one_process(const std::vector<Traffic>& ranks);

/// Where a plan is to be carried out.
struct Job {
  int threads = 0;           ///< that copy, all ranks being in one process; 0: a process each
  Index ranks_per_node = 0;  ///< consecutive ranks share a node; 0: all do
  int busy = 0;              ///< ranks of a node that copy at the same time; 0: all that a rank exchanges with there
  /// Seconds a byte that a loop over what arrives takes: after the move, or strip by strip beside it. Every way counts
  /// it, and there are the ways in which loops alone can have the data.
  std::optional<double> work = {};
  std::optional<LogGP> loggp = {};  ///< of what is got from other nodes; none: no strips are priced
};

/// One way of carrying out a plan.
struct WayCost {
  /// "threads"; within a node "direct", "ring", "messages" or "collective"; for loops "gets" and "strips".
  std::string way;
  TransferExpression expression = BasicTransfer{};  ///< of the transfers that most bytes go in
  double expression_megabytes_per_second = 0;       ///< of its data
  std::string bottleneck;                           ///< the basic transfer of it that takes the most time
  double seconds = 0;
  Index bytes = 0, messages = 0;  ///< that the rank sends to others
  Index extra_bytes = 0;          ///< buffers beyond the arrays, without rings
};

struct Prediction {
  Index rank = 0;             ///< the one that takes longest of those that were looked at
  bool coarse = false;        ///< from a profile that was not measured
  std::vector<WayCost> ways;  ///< the fastest first
};

/// What one rank's traffic costs: a start, its transfers' own cost, and their bytes at the rates of the copy-transfer
/// model. Chained ways ("direct", "threads") copy xCy from array to array; rings pack into a cache and unpack from it,
/// xS0 ∘ 0Ry; messages are packed, sent and unpacked, xC1 ∘ (1S0 ‖ Nd ‖ 0D1) ∘ 1Cy, without the copies where a side is
/// contiguous. Ways within a node that were not measured are left out. A loop (`Job::work`) can also get what it needs
/// from a window: "gets" are one access for all, chained with the addresses, xF0 ‖ Nadp ‖ 0Dy, and "strips" come from
/// other nodes in the best schedule of strips, by `strip_cost`, while it works. Throws `Error(argument)` where no way
/// is left, where data leave the node and the profile does not say what that takes, and for a negative `work`.
Prediction predict(const Traffic& traffic, const MachineProfile& profile, const Job& job = {});
/// Of the slowest of these ranks.
Prediction predict(const std::vector<Traffic>& ranks, const MachineProfile& profile, const Job& job = {});

/// What leaves and enters one node.
struct NodeVolume {
  Index node = 0;
  Index bytes_out = 0, bytes_in = 0, messages_out = 0, messages_in = 0;
};
NodeVolume node_volume(const MotionPlan& plan, Index node, Index ranks_per_node);

}  // namespace longshore
