/// mpi: what there is of this CPU's caches.
#pragma once

#include "longshore/core/checked.hpp"

namespace longshore::mpi {

/// Bytes of a core's second-level cache, as the system has them; 1 MiB where it does not say.
Index second_level_cache_bytes();

}  // namespace longshore::mpi
