/// The loops that one writes by hand to pack a message and to unpack it: plain
/// C++, with sizes of blocks and the common strides known to the compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <longshore/core/checked.hpp>

namespace longshore::bench {

/// `count` steps of so many bytes on either side.
struct PackLoop {
  Index count = 1, to = 0, from = 0;
};

/// Blocks of contiguous bytes in three loops, the outermost first.
struct PackNest {
  Index block = 0;
  PackLoop loops[3];
};

using NestFunction = void (*)(std::byte* to, const std::byte* from, const PackNest& nest);
/// n blocks between a dense message and the blocks of an array at these places, in blocks.
using ListFunction = void (*)(std::byte* to, const std::byte* from, const std::int32_t* places, Index n);

/// The same source, compiled for one instruction set.
struct PackLoops {
  const char* name;
  NestFunction (*nest)(const PackNest& nest);
  ListFunction (*gather)(Index block);  ///< null where no loop has blocks of so many bytes
  ListFunction (*scatter)(Index block);
};

/// Those that this CPU can run, the least first.
std::vector<const PackLoops*> pack_loops();

}  // namespace longshore::bench
