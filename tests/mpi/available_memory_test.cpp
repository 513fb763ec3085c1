#include "mpi/available_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace longshore::mpi {
namespace {

namespace fs = std::filesystem;

/// A system's files as tests want them.
class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() { put("proc/meminfo", "MemTotal: 99 kB\nMemAvailable: 8000 kB\n"); }
  ~AvailableMemory() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  Index available() const { return available_memory((root_ / "proc").string(), (root_ / "groups").string()); }

 private:
  fs::path root_ = fs::temp_directory_path() / ("longshore-available-memory-" + std::to_string(getpid()));
};

TEST_F(AvailableMemory, is_the_machines_without_groups) {
  EXPECT_EQ(available(), 8000 * 1024);
  put("proc/self/cgroup", "0::/\nnonsense\n3:cpu:/a\n");
  EXPECT_EQ(available(), 8000 * 1024);
  put("proc/meminfo", "");
  EXPECT_EQ(available(), 0);
}

TEST_F(AvailableMemory, is_no_more_than_any_group_has_left_in_version_2) {
  put("proc/self/cgroup", "0::/job/step\n");
  put("groups/job/step/memory.max", "max\n");
  put("groups/job/step/memory.current", "5000\n");
  EXPECT_EQ(available(), 8000 * 1024);
  put("groups/job/memory.max", "100000\n");
  put("groups/job/memory.current", "60000\n");
  EXPECT_EQ(available(), 40000);
  put("groups/job/memory.stat", "anon 5\ninactive_file 10000\nactive_file 2000\n");
  EXPECT_EQ(available(), 52000);
  put("groups/job/memory.current", "200000\n");
  EXPECT_EQ(available(), 0);
  put("groups/job/memory.stat", "inactive_file 9000000000\n");
  EXPECT_EQ(available(), 100000);
}

TEST_F(AvailableMemory, is_no_more_than_any_group_has_left_in_version_1) {
  put("proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/other\n0::/\n");
  put("groups/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("groups/memory/memory.usage_in_bytes", "123456789\n");
  EXPECT_EQ(available(), 8000 * 1024);
  put("groups/memory/job/memory.limit_in_bytes", "7000\n");
  put("groups/memory/job/memory.usage_in_bytes", "3000\n");
  put("groups/memory/job/memory.stat", "total_inactive_file 500\ntotal_active_file 1\n");
  EXPECT_EQ(available(), 4501);
}

}  // namespace
}  // namespace longshore::mpi
