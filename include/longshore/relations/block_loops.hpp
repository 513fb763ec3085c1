/// Two nested loops over blocks of bytes: what arithmetic and kernels go through at a time.
#pragma once

#include "longshore/core/checked.hpp"

namespace longshore {

/// Two nested loops over blocks: for j < n1, for i < n0, copy `block` bytes from source + j*s1 + i*s0 to
/// destination + j*d1 + i*d0.
struct BlockLoops {
  Index block = 0;
  Index n0 = 1, s0 = 0, d0 = 0;
  Index n1 = 1, s1 = 0, d1 = 0;
};

/// Block loops whose first block lies at these offsets, in bytes.
struct PlacedLoops {
  Index source = 0, destination = 0;
  BlockLoops loops;
};

}  // namespace longshore
