/// The plain loops with 32-byte registers. The instruction set is raised
/// by pragma, behind all other headers, so that the build needs no flags.
#include "pack_tables.hpp"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,fma")
#endif

#include "pack_body.hpp"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace longshore::bench {

const PackLoops avx2_pack_loops = loops_called("avx2");

}  // namespace longshore::bench

#endif
