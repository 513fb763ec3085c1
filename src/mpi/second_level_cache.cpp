#include "mpi/second_level_cache.hpp"

#include <unistd.h>

#include <fstream>
#include <string>

namespace longshore::mpi {

namespace {

Index asked() {
  if (const Index bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return bytes;
  // Some C libraries do not know it. The kernel lists all caches, a folder each, and their sizes as "1024K".
  for (int k = 0; k < 8; ++k) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(k) + "/";
    int level = 0;
    Index kib = 0;
    if (std::ifstream(folder + "level") >> level && level == 2 && std::ifstream(folder + "size") >> kib && kib > 0)
      return kib << 10;
  }
  return Index{1} << 20;
}

}  // namespace

Index second_level_cache_bytes() {
  static const Index bytes = asked();
  return bytes;
}

}  // namespace longshore::mpi
