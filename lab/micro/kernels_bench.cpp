// What the copy kernels reach, as a multiple of memcpy's rate over the same number of bytes.
//
// Every iteration times one memcpy and one kernel, so that both see the same weather; the counters
// are medians over the iterations: `of_memcpy` is kernel rate / memcpy rate (1 = as fast), `GB/s`
// and `memcpy_GB/s` count payload bytes once. Lists are timed beside the plain loop over int indices
// that a compiler makes, of which `of_loop` is the multiple.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <longshore/copies/kernels.hpp>

namespace {

using longshore::BlockLoops;
using longshore::Index;
using longshore::KernelTable;
using longshore::Stores;

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

/// Touched memory that starts a little into a cache line, as arrays from malloc do, or on a page.
Buffer buffer(Index bytes) {
  const std::size_t size = static_cast<std::size_t>(bytes + 8191) / 4096 * 4096;
  Buffer b(static_cast<std::byte*>(std::aligned_alloc(4096, size)));
  std::memset(b.get(), 1, size);
  return b;
}

double median(std::vector<double>& v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Case {
  std::string name;
  bool transpose = false;
  BlockLoops loops;
  Index payload() const { return loops.block * loops.n0 * loops.n1; }
};

Index span(Index block, Index n0, Index a, Index n1, Index b) { return (n0 - 1) * a + (n1 - 1) * b + block; }

void run(benchmark::State& state, const Case& c, const KernelTable& table, Stores stores, Index phase) {
  const BlockLoops& l = c.loops;
  const Index payload = c.payload();
  const Buffer source = buffer(std::max(payload, span(l.block, l.n0, l.s0, l.n1, l.s1)) + 64);
  const Buffer destination = buffer(span(l.block, l.n0, l.d0, l.n1, l.d1) + 64);
  // Its own, so that memcpy does not pay for lines that streaming stores have thrown out of the cache.
  const Buffer copied = buffer(payload + 64);
  const auto kernel = c.transpose ? &KernelTable::transpose : &KernelTable::blocks;
  // Small cases are repeated within one timing, so that the clock does not count.
  const Index again = std::max<Index>(1, (Index{1} << 19) / payload);
  std::vector<double> copies, moves, ratios;
  for (auto _ : state) {
    copies.push_back(seconds([&] {
      for (Index k = 0; k < again; ++k) {
        std::memcpy(copied.get() + phase, source.get(), static_cast<std::size_t>(payload));
        benchmark::ClobberMemory();
      }
    }));
    moves.push_back(seconds([&] {
      for (Index k = 0; k < again; ++k) (table.*kernel)(destination.get() + phase, source.get(), l, stores);
      table.fence();
      benchmark::ClobberMemory();
    }));
    ratios.push_back(copies.back() / moves.back());
    state.SetIterationTime(moves.back());
  }
  const double bytes = static_cast<double>(payload * again) * 1e-9;
  state.counters["of_memcpy"] = median(ratios);
  state.counters["GB/s"] = bytes / median(moves);
  state.counters["memcpy_GB/s"] = bytes / median(copies);
}

struct ListCase {
  std::string name;
  bool scatter, shuffled;
  Index block, payload;
};

/// The loop that people write: the length is known to the compiler, indices are int.
template <int Block>
__attribute__((noinline)) void list_loop(std::byte* __restrict d, const std::byte* __restrict s, const int* index,
                                         Index n, bool scatter) {
  if (scatter)
    for (Index i = 0; i < n; ++i) std::memcpy(d + Index{index[i]} * Block, s + i * Block, Block);
  else
    for (Index i = 0; i < n; ++i) std::memcpy(d + i * Block, s + Index{index[i]} * Block, Block);
}

void run_list(benchmark::State& state, const ListCase& c, const KernelTable& table, Stores stores) {
  const Index n = c.payload / c.block;
  std::vector<int> index(static_cast<std::size_t>(n));
  std::mt19937 random(1);
  // Like the halo of a mesh: ascending, a quarter of the gaps each from 1 to 4.
  int at = 0;
  for (int& i : index) i = at, at += 1 + static_cast<int>(random() % 4);
  if (c.shuffled) std::shuffle(index.begin(), index.end(), random);
  const longshore::BlockList list{reinterpret_cast<const std::uint32_t*>(index.data()), n, c.block, c.block};
  const Index listed = at * c.block;
  const Buffer source = buffer((c.scatter ? c.payload : listed) + 64);
  const Buffer destination = buffer((c.scatter ? listed : c.payload) + 64);
  // The loop's own, as memcpy's above.
  const Buffer looped = buffer((c.scatter ? listed : c.payload) + 64);
  const auto loop = c.block == 4    ? &list_loop<4>
                    : c.block == 8  ? &list_loop<8>
                    : c.block == 12 ? &list_loop<12>
                    : c.block == 24 ? &list_loop<24>
                                    : &list_loop<48>;
  const Index again = std::max<Index>(1, (Index{1} << 19) / c.payload);
  std::vector<double> loops, moves, ratios;
  for (auto _ : state) {
    loops.push_back(seconds([&] {
      for (Index k = 0; k < again; ++k) {
        loop(looped.get() + 16, source.get() + 16, index.data(), n, c.scatter);
        benchmark::ClobberMemory();
      }
    }));
    moves.push_back(seconds([&] {
      for (Index k = 0; k < again; ++k)
        (c.scatter ? table.scatter : table.gather)(destination.get() + 16, source.get() + 16, list, stores);
      table.fence();
      benchmark::ClobberMemory();
    }));
    ratios.push_back(loops.back() / moves.back());
    state.SetIterationTime(moves.back());
  }
  const double bytes = static_cast<double>(c.payload * again) * 1e-9;
  state.counters["of_loop"] = median(ratios);
  state.counters["GB/s"] = bytes / median(moves);
  state.counters["loop_GB/s"] = bytes / median(loops);
}

std::string size_text(Index bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + "M" : std::to_string(bytes >> 10) + "K";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (Index payload : {Index{16} << 10, Index{1} << 20, Index{16} << 20, Index{128} << 20}) {
    const std::string size = "/" + size_text(payload);
    all.push_back({"copy" + size, false, {payload, 1, 0, 0, 1, 0, 0}});
    for (Index block : {2, 4, 8, 12, 16, 24, 64, 100, 256, 1024})
      for (Index ratio : {2, 3, 4, 8}) {
        if (ratio > 2 && (block != 4 && block != 8 && block != 16)) continue;
        const Index n = payload / block;
        const std::string what = std::to_string(block) + "of" + std::to_string(block * ratio) + size;
        all.push_back({"gather/" + what, false, {block, n, ratio * block, block, 1, 0, 0}});
        all.push_back({"scatter/" + what, false, {block, n, block, ratio * block, 1, 0, 0}});
        if (ratio == 2) all.push_back({"both/" + what, false, {block, n, ratio * block, ratio * block, 1, 0, 0}});
      }
    // Columns of blocks: a short inner loop, a long outer one with a page-sized stride.
    for (Index n0 : {2, 4, 8}) {
      const Index n1 = payload / 8 / n0;
      const std::string what = std::to_string(n0) + "x8" + size;
      all.push_back({"short_gather/" + what, false, {8, n0, 16, 8, n1, 16 * n0 + 40, 8 * n0}});
      all.push_back({"short_scatter/" + what, false, {8, n0, 8, 16, n1, 8 * n0, 16 * n0 + 40}});
    }
    all.push_back({"column_gather/8" + size, false, {8, payload / 8 / 64, 512 + 64, 8, 64, 8, payload / 64}});
    all.push_back({"column_scatter/8" + size, false, {8, payload / 8 / 64, 8, 512 + 64, 64, payload / 64, 8}});
  }
  struct Shape {
    Index n0, n1;
  };
  for (Index e : {1, 2, 4, 8, 16, 24, 32})
    for (Shape shape : {Shape{64, 64}, Shape{512, 512}, Shape{1000, 1000}, Shape{4096, 2048}, Shape{8192, 4096},
                        Shape{4096, 8192}, Shape{8191, 4095}}) {
      if (shape.n0 * shape.n1 * e > Index{512} << 20) continue;
      all.push_back({"transpose/" + std::to_string(e) + "/" + std::to_string(shape.n0) + "x" + std::to_string(shape.n1),
                     true,
                     {e, shape.n0, shape.n1 * e, e, shape.n1, e, shape.n0 * e}});
    }
  return all;
}

std::vector<ListCase> list_cases() {
  std::vector<ListCase> all;
  for (Index payload : {Index{8} << 10, Index{160} << 10, Index{3} << 20, Index{64} << 20})
    for (Index block : {4, 8, 12, 24, 48})
      for (bool scatter : {false, true})
        for (bool shuffled : {false, true})
          all.push_back({std::string(scatter ? "list_scatter/" : "list_gather/") + std::to_string(block) +
                             (shuffled ? "/random/" : "/sorted/") + size_text(payload),
                         scatter, shuffled, block, payload});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Case& c : cases())
    for (const KernelTable* table : longshore::available_kernels())
      for (Stores stores : {Stores::cached, Stores::streaming})
        for (Index phase : {0, 16}) {
          if (table == &longshore::plain_kernels() && (stores == Stores::streaming || phase != 0)) continue;
          const std::string name = c.name + "/" + table->name +
                                   (stores == Stores::streaming ? "/streaming" : "/cached") +
                                   "/phase:" + std::to_string(phase);
          benchmark::RegisterBenchmark(
              name.c_str(),
              [c, table, stores, phase](benchmark::State& state) { run(state, c, *table, stores, phase); })
              ->UseManualTime()
              ->MinTime(0.15);
        }
  for (const ListCase& c : list_cases())
    for (const KernelTable* table : longshore::available_kernels())
      for (Stores stores : {Stores::cached, Stores::streaming}) {
        if (stores == Stores::streaming && (c.scatter || table == &longshore::plain_kernels())) continue;
        const std::string name = c.name + "/" + table->name + (stores == Stores::streaming ? "/streaming" : "/cached");
        benchmark::RegisterBenchmark(
            name.c_str(), [c, table, stores](benchmark::State& state) { run_list(state, c, *table, stores); })
            ->UseManualTime()
            ->MinTime(0.15);
      }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
