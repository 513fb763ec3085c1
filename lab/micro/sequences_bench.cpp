// What packed lists of integers reach, in integers a second, in cache; medians over the iterations. `of_memcpy` is the
// rate over that of memcpy of as many 64-bit integers, timed in the same iteration.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <longshore/sequences/packed_integers.hpp>

namespace {

using longshore::Index;
using longshore::PackedIntegers;
using Scheme = PackedIntegers::Scheme;
using Integers = std::vector<Index>;

/// 4096 values in each form: a list that is decoded stays in the first-level cache, the result just about.
constexpr Index n = 4096;
constexpr int again = 16;

double median(std::vector<double>& v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  for (int k = 0; k < again; ++k) {
    run();
    benchmark::ClobberMemory();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / again;
}

void measure(benchmark::State& state, const std::function<void()>& run) {
  const Integers from(n, 1);
  Integers to(n, 2);
  std::vector<double> times, ratios;
  for (auto _ : state) {
    const double copied = seconds([&] { std::memcpy(to.data(), from.data(), n * sizeof(Index)); });
    times.push_back(seconds(run));
    ratios.push_back(copied / times.back());
    state.SetIterationTime(times.back());
  }
  state.counters["G/s"] = n * 1e-9 / median(times);
  state.counters["of_memcpy"] = median(ratios);
}

/// Values (offsets) or their differences (deltas) of `width` random bits.
Integers values_of(Scheme scheme, int width) {
  std::mt19937_64 random(1);
  Integers values(n);
  std::uint64_t last = 0;
  for (auto& value : values) {
    const std::uint64_t bits = width == 0 ? 0 : random() >> (64 - width);
    value = static_cast<Index>(last = bits + (scheme == Scheme::deltas ? last : 1000));
  }
  return values;
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Iterations(300);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Scheme scheme : {Scheme::offsets, Scheme::deltas})
    for (const int width : {0, 1, 4, 8, 13, 16, 24, 32, 48, 64}) {
      const std::string name = (scheme == Scheme::offsets ? "offsets/" : "deltas/") + std::to_string(width);
      const Integers values = values_of(scheme, width);
      add(name + "/encode", [=](benchmark::State& state) {
        measure(state, [&] { benchmark::DoNotOptimize(PackedIntegers(values, scheme)); });
      });
      const PackedIntegers list(values, scheme);
      add(name + "/read64", [=](benchmark::State& state) {
        Integers out(n);
        measure(state, [&] { list.read(0, n, out.data()); });
      });
      add(name + "/read32", [=](benchmark::State& state) {
        std::vector<std::uint32_t> out(n);
        measure(state, [&] { list.read(0, n, out.data(), list.minimum()); });
      });
      add(name + "/from_bytes", [=](benchmark::State& state) {
        std::vector<std::byte> bytes;
        list.append_to(bytes);
        measure(state, [&] {
          std::span<const std::byte> in(bytes);
          benchmark::DoNotOptimize(PackedIntegers::from_bytes(in));
        });
      });
    }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
