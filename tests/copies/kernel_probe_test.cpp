#include "copies/kernel_probe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace longshore {
namespace {

const KernelTable& fastest() { return *available_kernels().back(); }

/// Time that goes on by as much whenever it is looked at, and once by more.
struct Steps {
  double step, jump = 0;
  int jump_at = 0, looks = 0, looks_after = 0;  ///< the last: after `end`
  double end = probe_seconds, time = 0;
  double operator()() {
    if (time >= end) ++looks_after;
    time += step + (++looks == jump_at ? jump : 0);
    return time;
  }
};

KernelProbe probed(Steps& steps) {
  return probe_kernels(fastest(), probe_seconds, [&] { return steps(); });
}

std::set<std::string> tried_of(const KernelProbe& probe) {
  std::set<std::string> names;
  for (const auto& trial : probe.found.trials) names.insert(trial.copies);
  return names;
}

TEST(KernelProbes, TryEverythingWhereThereIsTime) {
  Steps steps{10e-6};
  const auto found = probed(steps);
  check(found.found.profile);
  EXPECT_TRUE(found.untried.empty());
  EXPECT_GE(tried_of(found).size(), 3u);
  EXPECT_LT(found.seconds, probe_seconds);
  // By this clock everything takes the same time.
  EXPECT_EQ(found.found.profile, fastest().profile);
}

TEST(KernelProbes, BeginNothingThatWouldNotBeOverInTime) {
  for (const double step : {20e-6, 50e-6, 200e-6, 1e-3, 4e-3, 20e-3, 1.0}) {
    Steps steps{step};
    const auto found = probed(steps);
    check(found.found.profile);
    // What follows the last look at the watch: other looks, each of which goes by without a copy.
    EXPECT_LE(steps.looks_after, 30) << step;
    if (step > 1e-3) {
      EXPECT_TRUE(found.found.trials.empty()) << step;
      EXPECT_EQ(found.found.profile, fastest().profile);
      EXPECT_GE(found.untried.size(), 3u);
    }
    EXPECT_EQ(tried_of(found).size() + found.untried.size(), fastest().expands ? 4u : 3u);
  }
}

TEST(KernelProbes, EndAfterTheCopyInWhichTheTimeWentBy) {
  // Whoever probes is kept from it for a second, at one moment or another.
  for (const int at : {2, 5, 20, 27, 40, 60, 100, 200}) {
    Steps steps{10e-6, 1.0, at};
    const auto found = probed(steps);
    check(found.found.profile);
    EXPECT_LE(steps.looks_after, 30) << at;
    if (at <= 40) {
      EXPECT_TRUE(found.found.trials.empty()) << at;
    }
    EXPECT_FALSE(found.untried.empty()) << at;
  }
}

TEST(KernelProbes, BelieveOnlyWhatIsFasterRoundByRound) {
  EXPECT_TRUE(steadily_faster({8, 9, 8}, {10, 10, 10}, 0.97));
  EXPECT_FALSE(steadily_faster({8, 9}, {10, 10}, 0.97));                   // twice
  EXPECT_FALSE(steadily_faster({8, 11, 8}, {10, 10, 10}, 0.97));           // two of three
  EXPECT_FALSE(steadily_faster({9.8, 9.8, 9.8}, {10, 10, 10}, 0.97));      // hardly
  EXPECT_TRUE(steadily_faster({8, 80, 8, 8}, {10, 10, 10, 10}, 0.97));     // disturbed once
  EXPECT_TRUE(steadily_faster({18, 9, 8, 8, 1}, {20, 10, 10, 10}, 0.97));  // as far as both were tried
  EXPECT_FALSE(steadily_faster({5, 5, 15, 15, 5}, {10, 10, 10, 10, 10}, 0.97));
}

KernelProbe no_probe() {
  ADD_FAILURE() << "nobody wanted a probe";
  return {};
}

TEST(KernelProbes, AreMadeWhereNothingIsKnownOrTheyAreAskedFor) {
  KernelProfile single;
  single.rows = 1;
  const KernelChoice given{single, "somebody"};
  const KnownCpu known = known_cpus().front();
  const auto nothing = [](const std::string&) { return no_probe(); };
  EXPECT_EQ(choice_of({given, known, ""}, nothing).by, "somebody");
  EXPECT_EQ(choice_of({given, {}, ""}, nothing).profile, single);
  EXPECT_EQ(choice_of({{}, known, ""}, nothing).profile, known.profile);
  EXPECT_EQ(choice_of({{}, known, ""}, nothing).by, "built in for AMD Zen 3: " + known.source);
  EXPECT_EQ(choice_of({{}, {}, "never"}, nothing).profile, KernelProfile{});

  KernelProbe probe{{single, {{"long rows", single, 1, 1, 1, true}}}, {"one long run", "short runs"}, 0.0421};
  int probes = 0;
  const auto counted = [&](const std::string& now) {
    EXPECT_EQ(now.size(), std::string("2026-11-26T00:00:00+00:00").size());
    ++probes;
    return probe;
  };
  const auto choice = choice_of({{}, {}, ""}, counted);
  EXPECT_EQ(choice.profile, single);
  EXPECT_EQ(choice.by.find("probed at first use on 2"), 0u);
  EXPECT_NE(choice.by.find(" in 42 ms; as in general, for want of time: one long run, short runs"), std::string::npos);
  EXPECT_EQ(choice_of({given, known, "always"}, counted).profile, single);
  EXPECT_EQ(probes, 2);
  probe = {{KernelProfile{}, {}}, {"long rows", "one long run"}, 0.051};
  EXPECT_EQ(choice_of({{}, {}, ""}, counted).by,
            "general: a probe at first use, of 51 ms, could not try anything three times; longshore calibrate measures "
            "this CPU");
  EXPECT_EQ(choice_of({{}, {}, ""}, [](const std::string&) -> KernelProbe { throw std::bad_alloc(); }).by,
            "general: there is no memory for a probe; longshore calibrate measures this CPU");
}

TEST(KernelProbes, AreKeptByOneProcess) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("longshore-probe-" + std::to_string(getpid()));
  const fs::path file = folder / "deeper" / "cpu.json", hidden = folder / "deeper" / ".cpu.json.probe";
  const KernelProbe probe{{KernelProfile{}, {{"long rows", KernelProfile{}, 1e-4, 9e-5, 2e-4, true}}}, {}, 0.04};
  EXPECT_TRUE(keep_probe(file.string(), probe, "today"));
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_NE(text.find("\"chosen_by\": \"probe\""), std::string::npos);
  EXPECT_FALSE(fs::exists(hidden));
  fs::remove(file);
  std::ofstream(hidden) << "somebody writes";
  EXPECT_FALSE(keep_probe(file.string(), probe, "today"));
  EXPECT_FALSE(fs::exists(file));
  // Who has not come to an end for so long never will.
  fs::last_write_time(hidden, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_FALSE(keep_probe(file.string(), probe, "today"));
  EXPECT_TRUE(keep_probe(file.string(), probe, "today"));
  EXPECT_TRUE(fs::exists(file));
  EXPECT_FALSE(keep_probe("/proc/no/such/folder/cpu.json", probe, "today"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace longshore
