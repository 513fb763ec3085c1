#include "mpi/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace longshore::mpi {

namespace {

std::optional<Index> number_in(const std::string& name) {
  std::ifstream file(name);
  if (Index value = 0; file >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

/// Of lines of a word and a number, the number after a word.
Index number_after(const std::string& name, const std::string& wanted) {
  std::ifstream file(name);
  std::string word, rest;
  for (Index value = 0; file >> word >> value; std::getline(file, rest))
    if (word == wanted) return value;
  return 0;
}

/// What the control groups' files are called in one version of them.
struct Names {
  const char *limit, *usage, *caches[2];
};
constexpr Names first{"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
constexpr Names second{"memory.max", "memory.current", {"inactive_file", "active_file"}};

std::optional<Index> left_in(const std::string& group, const Names& names) {
  const auto limit = number_in(group + names.limit), usage = number_in(group + names.usage);
  if (!limit || !usage || *limit < 0 || *usage < 0) return std::nullopt;
  Index held = *usage;  // without the page cache, which the system takes back
  for (const char* cache : names.caches) held -= std::clamp<Index>(number_after(group + "memory.stat", cache), 0, held);
  return *limit - std::clamp<Index>(held, 0, *limit);
}

}  // namespace

Index available_memory(const std::string& proc, const std::string& groups) {
  Index found = checked_mul(number_after(proc + "/meminfo", "MemAvailable:"), 1024);
  std::ifstream file(proc + "/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':'), next = line.find(':', colon == std::string::npos ? colon : colon + 1);
    if (next == std::string::npos) continue;
    const std::string controllers = "," + line.substr(colon + 1, next - colon - 1) + ",";
    const bool both = controllers == ",,";
    if (!both && controllers.find(",memory,") == std::string::npos) continue;
    const std::string root = both ? groups : groups + "/memory";
    // A group has no more than those that it is in.
    for (std::string here = line.substr(next + 1);; here.resize(here.rfind('/'))) {
      while (here.ends_with('/')) here.pop_back();
      if (const auto left = left_in(root + here + "/", both ? second : first)) found = std::min(found, *left);
      if (here.empty() || here.find('/') == std::string::npos) break;
    }
  }
  return found;
}

}  // namespace longshore::mpi
