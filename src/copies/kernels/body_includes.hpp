/// Everything the kernel bodies include. A file that raises the instruction set by pragma includes this first: code of
/// other headers must stay in the instruction set of the build, for the linker may keep that copy for the whole
/// program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tables.hpp"

#if LONGSHORE_KERNELS_X86
#include <immintrin.h>
#else
#include <atomic>
#endif
