#include "copies/kernel_probe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "longshore/copies/joint_copy.hpp"
#include "support/memory.hpp"

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

TEST(KernelProfiles, AreCheckedAndKnown) {
  for (const auto& cpu : known_cpus()) check(cpu.profile);
  EXPECT_EQ(known_cpu("AuthenticAMD family 25 model 33")->family, "AMD Zen 3");
  EXPECT_EQ(known_cpu("AuthenticAMD family 25 model 17")->family, "AMD Zen 4");
  EXPECT_EQ(known_cpu("AuthenticAMD family 25 model 1")->family, "AMD Zen 3");
  EXPECT_EQ(known_cpu("AuthenticAMD family 26 model 2")->family, "AMD Zen 5");
  EXPECT_FALSE(known_cpu("AuthenticAMD family 26 model 80"));
  EXPECT_FALSE(known_cpu(""));
  EXPECT_FALSE(cpu_name().empty());
  const auto refused = [](auto change) {
    KernelProfile p;
    change(p);
    EXPECT_THROW(check(p), Error);
  };
  refused([](auto& p) { p.rows = 3; });
  refused([](auto& p) { p.merged_rows = 0; });
  refused([](auto& p) { p.burst_bytes = 0; });
  refused([](auto& p) { p.burst_bytes = 100; });
  refused([](auto& p) { p.stagger_bytes = -64; });
  refused([](auto& p) { p.stagger_bytes = 8192; });
  refused([](auto& p) { p.paged_bytes = 0; });
  refused([](auto& p) { p.string_bytes = -1; });
  refused([](auto& p) { p.ahead_bytes = 100; });
  refused([](auto& p) { p.ahead_bytes = -64; });
  refused([](auto& p) { p.tile_lines = 0; });
  refused([](auto& p) { p.tile_lines = 257; });
  refused([](auto& p) { p.tiled_from = 0; });
  refused([](auto& p) { p.merged_bytes = 0; });
  refused([](auto& p) { p.cached_bytes = -1; });
}

TEST(KernelProfiles, SayWhichMovesStayInCaches) {
  KernelProfile profile;
  for (const Wide bytes : {Wide(0), Wide(1), Wide(INT64_MAX) * 4})
    EXPECT_EQ(far_stores(bytes, profile) == Stores::streaming, bytes > 0);
  profile.cached_bytes = 1000;
  EXPECT_EQ(far_stores(1000, profile), Stores::packing);
  EXPECT_EQ(far_stores(1001, profile), Stores::streaming);
}

TEST(KernelProfiles, AreMeasuredHoweverShortTheTime) {
  for (const int threads : {1, 2}) {
    const auto found = measure_kernels(fastest(), threads, threads == 1 ? 0 : 0.5);
    check(found.profile);
    EXPECT_FALSE(found.trials.empty());
    std::set<std::string> kinds, chosen;
    for (const auto& trial : found.trials) {
      EXPECT_LE(trial.seconds_low, trial.seconds);
      EXPECT_LE(trial.seconds, trial.seconds_high);
      kinds.insert(trial.copies);
      if (trial.chosen) {
        EXPECT_TRUE(chosen.insert(trial.copies).second) << trial.copies;
      }
    }
    EXPECT_EQ(kinds, chosen);
  }
  EXPECT_THROW(measure_kernels(fastest(), 0, 1), Error);
}

TEST(KernelProfiles, AreChosenOnce) {
  const KernelChoice& choice = kernel_choice();
  EXPECT_FALSE(choice.by.empty());
  EXPECT_EQ(kernels(Stores::streaming).profile, choice.profile);
  EXPECT_EQ(std::string(kernels(Stores::streaming).name), kernels().name);
  EXPECT_FALSE(choose_kernel_profile({KernelProfile{}, "too late"}));
  KernelProfile wrong;
  wrong.rows = 0;
  EXPECT_THROW(choose_kernel_profile({wrong, "wrong"}), Error);
}

/// Each of several threads at the same time.
void at_once(int threads, const std::function<void(int)>& work) {
  std::barrier<> together(threads);
  std::vector<std::jthread> all;
  for (int k = 0; k < threads; ++k)
    all.emplace_back([&, k] {
      together.arrive_and_wait();
      work(k);
    });
}

TEST(KernelProfiles, AreOneForAllThreadsThatStreamFirst) {
  setenv("LONGSHORE_KERNEL_PROBE", "always", 1);  // where no test before this one has streamed
  std::vector<const KernelTable*> tables(4);
  at_once(4, [&](int k) {
    kernels_await_probe();
    tables[std::size_t(k)] = &kernels(Stores::streaming);
    choose_kernel_profile({KernelProfile{}, "too late"});
  });
  EXPECT_EQ(std::set(tables.begin(), tables.end()).size(), 1u);
  EXPECT_EQ(tables[0]->profile, kernel_choice().profile);
  EXPECT_FALSE(kernels_await_probe());
}

TEST(KernelPrograms, AreSharedByThreads) {
  constexpr Index n = 96, bytes = n * n * 8;
  const PairedRuns all = PairedRuns::run(n);
  const LoopNest turn(8, {{all, 8, n * 8}, {all, n * 8, 8}});
  const PairedRun odd{0, 0, 0, 1, n / 2, 2, 1, 2}, even{1, 0, 1, 1, n / 2, 2, 1, 2};
  const auto columns = [&](const PairedRun& run) {
    return LoopNest(8, {{all, n * 8, n * 8}, {PairedRuns(std::vector<PairedPeriod>{{{run}, 1, 0, 0, 0}}), 8, 8}});
  };
  const CopyProgram program(turn, CopyProgram::Options{Stores::streaming, &fastest(), {}});
  const JointCopy joint({columns(odd), columns(even)}, JointCopy::Shared::destination,
                        CopyProgram::Options{Stores::streaming, &fastest(), {}});
  auto source = test::noisy(bytes);
  std::vector<std::vector<std::byte>> turned(3, source), joined(3, source);
  at_once(3, [&](int k) {
    program.run(turned[std::size_t(k)].data(), source.data());
    joint.run(joined[std::size_t(k)].data(), {source.data(), source.data()});
  });
  for (std::size_t k = 1; k < 3; ++k) {
    EXPECT_EQ(turned[k], turned[0]);
    EXPECT_EQ(joined[k], joined[0]);
  }
  EXPECT_NE(turned[0], source);
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
