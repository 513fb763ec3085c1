/// mpi: how much memory there is.
#pragma once

#include <string>

#include "longshore/core/checked.hpp"

namespace longshore::mpi {

/// Bytes that the machine, and every control group for memory that this process is in (versions 1 and 2), could give
/// before it has to look for more: the page cache counts. 0 where nobody tells.
Index available_memory(const std::string& proc = "/proc", const std::string& groups = "/sys/fs/cgroup");

}  // namespace longshore::mpi
