/// Who copies and sends what in a halo exchange written by hand: the geometry that all such contenders share.
#pragma once

#include <vector>

#include "problem.hpp"

namespace longshore::bench {

/// How the exchange is cut up. Which is best depends on machine and case: contenders try them.
struct HaloWay {
  /// one dimension after the other, with the ghost cells that are there already; else all at once
  bool sweeps = false;
  bool by_direction = false;  ///< a message for every direction; else one for each peer
};

/// Cells of one of this rank's boxes.
struct Part {
  Index box = 0;
  Region region;
};

/// `tag` tells the messages of a peer apart, alike on both sides; so is the order of the parts.
struct HaloMessage {
  int peer = 0, tag = 0;
  std::vector<Part> parts;
  Index doubles = 0;
};

/// Messages ascend by peer and tag.
struct HaloPhase {
  struct Own {
    Part to, from;
  };
  std::vector<Own> own;
  std::vector<HaloMessage> sends, receives;
};

/// What one rank does, a phase at a time.
std::vector<HaloPhase> halo_phases(const HaloProblem& problem, Index rank, const HaloWay& way);

}  // namespace longshore::bench
