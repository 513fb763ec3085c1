// What was found about strips, from one program to the next.
#include "longshore/tune/strip_choices.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "longshore/tune/strip_tuner.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path(fs::temp_directory_path() / ("longshore-choices-" + std::to_string(getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Until the loop is settled.
void run(StripTuner& tuner, const TunedLoop& loop) {
  const LogGP link{.L = 1e-5, .o_s = 1e-6, .o_r = 1e-6, .g = 1e-6, .G = 1e-9};
  for (int k = 0; k < 300 && !tuner.settled(loop); ++k) {
    const auto schedule = tuner.schedule(loop);
    const auto told = strip_cost(schedule, {loop.rows, loop.row_bytes, 1e-9, 0, Link::shared, true}, link);
    tuner.record(loop, schedule, told.seconds(), told.communication());
    tuner.schedule(loop);
  }
  ASSERT_TRUE(tuner.settled(loop));
}

TEST(StripChoices, come_back_from_a_file) {
  const Folder folder;
  const std::string file = folder.path / "new" / "m.strips.json";
  EXPECT_TRUE(read_strip_choices(file).empty());
  keep_strip_choices(file, {{{"a \"loop\"\n", 1024, 8}, StripSchedule::variable(16, 0.3, 2), 1.25e-9, 1e-7},
                            {{"b", 2, 24}, StripSchedule::vectorized(), 0, 1e-300}});
  keep_strip_choices(file,
                     {{{"b", 2, 24}, StripSchedule::small(), 2, 3}, {{"b", 4, 24}, StripSchedule::fixed(5), 2, 3}});
  const auto found = read_strip_choices(file);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].loop.pattern, "a \"loop\"\n");
  EXPECT_EQ(found[0].schedule, StripSchedule::variable(16, 0.3, 2));
  EXPECT_EQ(found[0].seconds, 1.25e-9);
  EXPECT_EQ(found[0].vectorized_seconds, 1e-7);
  EXPECT_EQ(found[1].schedule, StripSchedule::small());
  EXPECT_EQ(found[2].loop.rows, 4);
  // No part of a file is left beside it.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path / "new"), {}), 1);
}

TEST(StripChoices, the_next_run_needs_no_search) {
  const Folder folder;
  const std::string file = folder.path / "m.strips.json";
  const TunedLoop loop{"loop", 100'000, 8}, other{"another loop", 100'000, 8};
  StripTuner first({}, file);
  run(first, loop);
  EXPECT_EQ(first.trouble(), "");
  StripTuner second({}, file);
  EXPECT_TRUE(second.settled(loop));
  EXPECT_EQ(second.schedule(loop), first.schedule(loop));
  EXPECT_FALSE(second.settled(other));
  run(first, other);  // what others have written meanwhile stays
  EXPECT_EQ(read_strip_choices(file).size(), 2u);
}

TEST(StripChoices, lie_beside_the_profile) {
  ASSERT_EQ(setenv("LONGSHORE_PROFILE", "/some/where/my.machine.json", 1), 0);
  EXPECT_EQ(machine_profile_path(), "/some/where/my.machine.json");
  EXPECT_EQ(strip_choices_path(), "/some/where/my.machine.strips.json");
  const Folder folder;
  ASSERT_EQ(setenv("LONGSHORE_PROFILE", (folder.path / "m.json").c_str(), 1), 0);
  std::vector<double> values(5000, 1.0);
  const auto window =
      open_window({{reinterpret_cast<std::byte*>(values.data()), {5000}, {8}, false, nullptr}}, sizeof(double));
  auto tuner = StripTuner::of_this_machine();
  for (int k = 0; k < 300; ++k)
    for_each_strip<double>(Section(window, 0), tuner, "sum", [](std::span<const double>, Index) {});
  ASSERT_EQ(unsetenv("LONGSHORE_PROFILE"), 0);
  const auto found = read_strip_choices(folder.path / "m.strips.json");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].loop.pattern, "sum, seen");  // as Python has it
  ASSERT_EQ(setenv("XDG_CONFIG_HOME", "/config", 1), 0);
  EXPECT_EQ(fs::path(machine_profile_path()).parent_path(), "/config/longshore");
  ASSERT_EQ(unsetenv("XDG_CONFIG_HOME"), 0);
}

TEST(StripChoices, what_holds_something_else_is_left_alone) {
  const Folder folder;
  const auto file = folder.path / "m.strips.json";
  const auto stored = [](const std::string& choice) {
    return R"({"format": "longshore strip choices", "version": 1, "choices": [)" + choice + "]}";
  };
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"[]", "an object"},
      {R"({"format": "something else", "version": 1})", "something else"},
      {R"({"format": "longshore strip choices", "version": 2, "choices": []})", "version 2"},
      {R"({"format": "longshore strip choices", "version": 1, "choices": 7})", "a list"},
      {stored(R"({"pattern": "p"})"), "a choice has no rows"},
      {stored(R"({"pattern": "p", "rows": -1, "row_bytes": 8, "schedule": "small", "seconds": 1,
                  "vectorized_seconds": 1})"),
       "-1 rows"},
      {stored(R"({"seconds": -1})"), "takes no -1"},
      {stored("{\"schedule\": \"fixed(0)\"}"), "strip"},
  };
  for (const auto& [text, words] : wrong) {
    write(file, text);
    expect_error(ErrorKind::argument, {file.string() + " holds no choices of strips", words},
                 [&] { read_strip_choices(file); });
    StripTuner tuner({}, file);
    EXPECT_NE(tuner.trouble().find("not used"), std::string::npos);
    EXPECT_EQ(tuner.trouble(), "");
    run(tuner, {"loop", 100'000, 8});
    EXPECT_NE(tuner.trouble().find("not kept"), std::string::npos);
    EXPECT_EQ(read(file), text);
  }
  write(file, "");  // somebody made it, and wrote nothing
  keep_strip_choices(file, {{{"b", 2, 24}, StripSchedule::small(), 2, 3}});
  EXPECT_EQ(read_strip_choices(file).size(), 1u);
  expect_error(ErrorKind::transport, {"cannot write"}, [&] { keep_strip_choices(file / "below" / "m.json", {}); });
}

}  // namespace
}  // namespace longshore::test
