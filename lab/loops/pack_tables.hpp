/// The copies of the plain loops, one an instruction set.
#pragma once

#include "pack.hpp"

namespace longshore::bench {

extern const PackLoops baseline_pack_loops;
#if defined(__x86_64__)
extern const PackLoops avx2_pack_loops;
extern const PackLoops avx512_pack_loops;
#endif

}  // namespace longshore::bench
