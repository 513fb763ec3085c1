// Every kernel table against the plain one: any shape, any alignment, nothing touched that is not theirs.
#include "longshore/copies/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/memory.hpp"
#include "support/quick.hpp"

namespace longshore {
namespace {

using test::Bytes;
using test::noisy;

/// Where the bytes that loops touch lie, relative to the first block: [low, high).
struct LoopExtent {
  Index low = 0, high = 0;
  Index size() const { return high - low; }
};

LoopExtent extent(Index block, Index n0, Index stride0, Index n1, Index stride1) {
  const Index a = (n0 - 1) * stride0, b = (n1 - 1) * stride1;
  return {std::min<Index>(a, 0) + std::min<Index>(b, 0), std::max<Index>(a, 0) + std::max<Index>(b, 0) + block};
}

std::string describe(const KernelTable& table, const char* kernel, const BlockLoops& l, Stores stores) {
  std::ostringstream out;
  out << table.name << " " << kernel << (stores == Stores::streaming ? " streaming" : " cached") << " block " << l.block
      << " n0 " << l.n0 << " s0 " << l.s0 << " d0 " << l.d0 << " n1 " << l.n1 << " s1 " << l.s1 << " d1 " << l.d1;
  return out.str();
}

/// Runs one kernel of one table and the plain twin on destinations filled alike, and compares every byte, gaps and
/// guards included.
void expect_like_plain(const KernelTable& table, bool transpose, const BlockLoops& l, Stores stores, Index source_phase,
                       Index destination_phase) {
  constexpr Index guard = 192;
  const bool empty = l.block <= 0 || l.n0 <= 0 || l.n1 <= 0;
  const LoopExtent from = empty ? LoopExtent{} : extent(l.block, l.n0, l.s0, l.n1, l.s1);
  const LoopExtent to = empty ? LoopExtent{} : extent(l.block, l.n0, l.d0, l.n1, l.d1);
  // Tight on both sides, for the address sanitiser's sake; alignment is whatever the phase makes of operator new's.
  const Bytes source = noisy(static_cast<std::size_t>(source_phase + from.size()));
  Bytes expected(static_cast<std::size_t>(to.size() + destination_phase + 2 * guard), std::byte{0xA5});
  Bytes found = expected;
  const std::byte* s = source.data() + source_phase - from.low;
  const Index first = guard + destination_phase - to.low;
  plain_kernels().blocks(expected.data() + first, s, l, stores);
  transpose ? table.transpose(found.data() + first, s, l, stores) : table.blocks(found.data() + first, s, l, stores);
  table.fence();
  if (std::memcmp(expected.data(), found.data(), expected.size()) != 0) {
    const auto at = std::mismatch(expected.begin(), expected.end(), found.begin()).first - expected.begin();
    ADD_FAILURE() << describe(table, transpose ? "transpose" : "blocks", l, stores) << " phases " << source_phase
                  << ", " << destination_phase << ": first wrong byte at " << at - first << " in [" << to.low << ", "
                  << to.high << ")";
  }
}

class EveryTable : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  Index any(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random_); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[any(0, static_cast<Index>(choices.size()) - 1)];
  }
  Stores any_stores() { return one_of({Stores::cached, Stores::streaming, Stores::packing}); }

  /// Strides for one side under which blocks do not overlap; sometimes contiguous, sometimes a small ratio, sometimes
  /// negative, with either loop inside the other.
  void choose_strides(Index block, Index n0, Index n1, Index& stride0, Index& stride1) {
    const bool swapped = any(0, 2) == 0;
    Index& inner = swapped ? stride1 : stride0;
    Index& outer = swapped ? stride0 : stride1;
    const Index inner_count = swapped ? n1 : n0;
    inner = block * one_of<Index>({1, 1, 1, 2, 2, 3, 4, 5, 8}) + (any(0, 3) == 0 ? any(1, 100) : 0);
    outer = inner * std::max<Index>(inner_count, 1) + (any(0, 1) == 0 ? any(0, 200) : 0);
    if (any(0, 5) == 0) outer = (outer + 63) / 64 * 64;
    if (any(0, 5) == 0) inner = -inner;
    if (any(0, 5) == 0) outer = -outer;
  }

  std::mt19937_64 random_{20240611};
};

TEST_P(EveryTable, CopiesAnyLengthAtAnyPhase) {
  for (Index n = 0; n <= 600; ++n)
    for (int again = 0; again < 6; ++again)
      for (Stores stores : {Stores::cached, Stores::streaming}) {
        const Index sp = any(0, 70), dp = any(0, 70);
        const Bytes source = noisy(static_cast<std::size_t>(sp + n));
        Bytes expected(static_cast<std::size_t>(n + dp + 128), std::byte{0x5A}), found = expected;
        std::copy(source.begin() + sp, source.end(), expected.begin() + dp + 64);
        table().copy(found.data() + dp + 64, source.data() + sp, n, stores);
        table().fence();
        ASSERT_EQ(expected, found) << table().name << " n " << n << " phases " << sp << ", " << dp;
      }
}

TEST_P(EveryTable, CopiesLongRuns) {
  for (Index n : {1000, 1023, 1024, 4096, 5000, 65536, 1 << 20, (1 << 20) + 77, 5000011})
    for (Stores stores : {Stores::cached, Stores::streaming}) {
      const BlockLoops whole{n, 1, 0, 0, 1, 0, 0};
      expect_like_plain(table(), false, whole, stores, any(0, 63), any(0, 63));
    }
}

TEST_P(EveryTable, EmptyLoopsTouchNothing) {
  for (Stores stores : {Stores::cached, Stores::streaming})
    for (bool transpose : {false, true})
      for (const BlockLoops& l : {BlockLoops{0, 3, 8, 8, 3, 64, 64}, BlockLoops{8, 0, 8, 8, 3, 64, 64},
                                  BlockLoops{8, 3, 8, 8, 0, 64, 64}, BlockLoops{}})
        expect_like_plain(table(), transpose, l, stores, 0, 0);
  table().copy(nullptr, nullptr, 0, Stores::cached);
  table().copy(nullptr, nullptr, 0, Stores::streaming);
}

TEST_P(EveryTable, EveryBlockSizeInEveryPattern) {
  for (Index block = 1; block <= 300; ++block)
    for (int pattern = 0; pattern < 4; ++pattern)
      for (Stores stores : {Stores::cached, Stores::streaming})
        for (bool transpose : {false, true}) {
          BlockLoops l;
          l.block = block;
          l.n0 = any(1, 40);
          l.n1 = any(1, 5);
          l.s0 = pattern & 1 ? block : block * any(2, 4) + any(0, 1) * any(0, 9);
          l.d0 = pattern & 2 ? block : block * any(2, 4) + any(0, 1) * any(0, 9);
          l.s1 = l.s0 * l.n0 + any(0, 70);
          l.d1 = l.d0 * l.n0 + any(0, 70);
          expect_like_plain(table(), transpose, l, stores, any(0, 63), any(0, 63));
        }
}

TEST_P(EveryTable, RandomLoops) {
  for (int trial = 0; trial < (test::quick() ? 1500 : 6000); ++trial) {
    BlockLoops l;
    l.block = any(0, 2) ? one_of<Index>({1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 128, 256}) : any(1, 300);
    l.n0 = one_of<Index>({1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 67, 129});
    l.n1 = one_of<Index>({1, 1, 2, 3, 5, 8, 13, 37});
    choose_strides(l.block, l.n0, l.n1, l.s0, l.s1);
    choose_strides(l.block, l.n0, l.n1, l.d0, l.d1);
    if (any(0, 19) == 0) l.s0 = 0;  // a source may be read again and again
    expect_like_plain(table(), any(0, 1) == 0, l, any_stores(), any(0, 63), any(0, 63));
  }
}

TEST_P(EveryTable, LongStridedRows) {
  for (Index block : {1, 2, 4, 8, 16, 24, 64, 100, 256, 300, 1024, 2000, 5000})
    for (Index ratio : {1, 2, 3, 4, 5})
      for (bool scatter : {false, true})
        for (Stores stores : {Stores::cached, Stores::streaming}) {
          BlockLoops l;
          l.block = block;
          l.n0 = 40000 / block + any(0, 7);
          l.n1 = 3;
          l.s0 = scatter ? block : block * ratio;
          l.d0 = scatter ? block * ratio : block;
          l.s1 = l.n0 * l.s0 + (any(0, 1) ? 0 : 24);
          l.d1 = l.n0 * l.d0 + (any(0, 1) ? 0 : 40);
          expect_like_plain(table(), false, l, stores, any(0, 9) * block, any(0, 9) * block);
        }
}

// Big enough for the paths that are only taken beyond the cache.
TEST_P(EveryTable, FarScatters) {
  for (Index block : {4, 8, 16, 24, 64})
    for (Index stride : {Index{2}, Index{3}, Index{-2}, Index{16}}) {
      BlockLoops l{block, (Index{1} << 20) / block + 3, block, block * stride, 1, 0, 0};
      expect_like_plain(table(), false, l, Stores::cached, 0, 8);
      l.n1 = l.n0 / 3, l.n0 = 3, l.s1 = 3 * block, l.d1 = 3 * l.d0 + (stride < 0 ? -8 : 8);
      expect_like_plain(table(), false, l, Stores::streaming, 8, 0);
    }
}

TEST_P(EveryTable, Transposes) {
  for (Index e : {1, 2, 4, 8, 16, 3, 12, 24, 32})
    for (int trial = 0; trial < 150; ++trial) {
      BlockLoops l;
      l.block = e;
      l.n0 = any(0, 3) ? any(1, 300) : one_of<Index>({64, 128, 256, 64 / std::min<Index>(e, 64) + 1});
      l.n1 = any(0, 3) ? any(1, 150) : one_of<Index>({64, 128, 7, 15});
      l.s1 = e, l.d0 = e;
      l.s0 = l.n1 * e + (any(0, 1) ? any(0, 40) : 0);
      l.d1 = l.n0 * e + (any(0, 1) ? any(0, 40) : 0);
      if (any(0, 1)) l.d1 = (l.d1 + 63) / 64 * 64;
      if (any(0, 7) == 0) l.s0 = -l.s0;
      if (any(0, 7) == 0) l.d1 = -l.d1;
      if (any(0, 7) == 0) l.d0 = 3 * e, l.d1 = 3 * e * l.n0 + 16;
      if (any(0, 7) == 0) l.s1 = 2 * e, l.s0 = 2 * e * l.n1;
      expect_like_plain(table(), true, l, any_stores(), any(0, 8) * (any(0, 2) ? e : 1),
                        any(0, 8) * (any(0, 2) ? e : 1));
    }
}

// Rows to columns that lie apart, with gaps that other columns may lie in.
TEST_P(EveryTable, TransposesToColumnsApart) {
  for (const Index e : {4, 8, 16})
    for (const Index apart : {8, 16, 24, 32, 64})
      for (int trial = 0; trial < 60; ++trial) {
        if (apart < e) continue;
        BlockLoops l;
        l.block = e;
        l.n0 = any(0, 3) ? any(1, 40) : any(1, 300);
        l.n1 = any(0, 3) ? any(1, 70) : any(1, 200);
        l.s1 = e, l.d0 = apart;
        l.s0 = l.n1 * e + any(0, 40);
        l.d1 = l.n0 * apart + one_of<Index>({0, 8, e, any(0, 200)});
        if (any(0, 1)) l.d1 = (l.d1 + 63) / 64 * 64;
        if (any(0, 7) == 0 && e * l.n1 <= apart) l.d1 = e;
        if (any(0, 7) == 0) l.s0 = -l.s0;
        if (any(0, 7) == 0) l.d1 = -l.d1;
        if (any(0, 7) == 0) l.d0 = -l.d0;
        expect_like_plain(table(), true, l, any_stores(), any(0, 8) * e, any(0, 3) ? any(0, 16) * 4 : any(0, 63));
      }
}

// Fewer columns than a line takes, wherever in a line they begin.
TEST_P(EveryTable, TransposesToFewColumnsApart) {
  for (const Index e : {4, 8, 16})
    for (const Index apart : {16, 32})
      for (Index n0 = 1; n0 <= 5; ++n0)
        for (Index phase = 0; phase < 64; phase += 4) {
          const BlockLoops l{e, n0, 20 * e, apart, 17, e, 384};
          expect_like_plain(table(), true, l, Stores::cached, 0, phase);
        }
}

TEST_P(EveryTable, PacksLongBlocks) {
  for (const Index block : {1024, 1030, 2048, 5000, 32768, 40001})
    for (const Index n0 : {1, 2, 3, 7})
      for (const Index n1 : {1, 2, 5})
        for (const Index shift : {0, 16, 5}) {
          BlockLoops l{block, n0, block + 64, block, n1, 0, n0 * block};
          l.s1 = n0 * l.s0 + shift;
          expect_like_plain(table(), false, l, Stores::packing, shift, 3 * shift);
        }
}

// More than one tile either way.
TEST_P(EveryTable, BigTransposes) {
  for (Index e : {1, 2, 4, 8, 16})
    for (Stores stores : {Stores::cached, Stores::streaming})
      for (Index ragged : {0, 5}) {
        BlockLoops l{e, 4096 / e + 192 + ragged, 0, e, 512 / e * 2 + 64 + ragged, e, 0};
        l.s0 = l.n1 * e;
        l.d1 = l.n0 * e;
        expect_like_plain(table(), true, l, stores, e, 3 * e);
      }
}

/// Groups of lines of every way, of a few sources.
struct Merge {
  using Way = LineGroup::Way;
  std::vector<LineGroup> groups;
  std::vector<LineRun> runs;
  std::vector<Index> bytes;  // of each source, in one row
  Index lines = 0, rows;

  template <class Any>
  Merge(bool expands, Index sources, Index n, Index rows_, Any any) : bytes(std::size_t(sources)), rows(rows_) {
    for (; n > 0; --n) {
      const Way way = any(0, 2)              ? Way(any(0, 6))
                      : expands && any(0, 1) ? (any(0, 1) ? Way::expanded : Way::taken)
                                             : Way::staged;
      LineGroup group{way, std::uint16_t(any(1, way == Way::exact ? 1 : most_staged_lines)), 0};
      auto add = [&](Index source, Index place, Index length, Index read) {
        runs.push_back(
            {bytes[std::size_t(source)], std::uint16_t(source), std::uint16_t(place), std::uint16_t(length), 0});
        bytes[std::size_t(source)] += read;
        ++group.runs;
      };
      if (way == Way::expanded) {
        for (Index line = 0; line < group.lines; ++line) {
          std::vector<unsigned> words(std::size_t(any(1, 5)));
          for (int word = 0; word < 16; ++word) words[std::size_t(any(0, Index(words.size()) - 1))] |= 1u << word;
          std::erase(words, 0u);
          for (std::size_t k = 0; k < words.size(); ++k)
            add(any(0, sources - 1), words[k], Index(words.size() - 1 - k), 4 * __builtin_popcount(words[k]));
        }
      } else if (way == Way::taken) {
        for (Index words = 16 * group.lines; words > 0;) {
          unsigned taken = unsigned(any(1, any(0, 3) ? 0xffff : 0xff));
          while (__builtin_popcount(taken) > words) taken &= taken - 1;
          words -= __builtin_popcount(taken);
          const Index read = 4 * (32 - __builtin_clz(taken) + any(0, 2));
          add(any(0, sources - 1), Index(taken), 4 * __builtin_popcount(taken), read);
        }
      } else if (way == Way::exact || way == Way::staged) {
        const Index longest = any(0, 3) ? 24 : 150, end = 64 * group.lines;
        for (Index place = 0; place < end;) {
          const Index length = std::min(any(1, longest), end - place);
          if (way == Way::staged || any(0, 2)) add(any(0, sources - 1), place, length, length);
          place += length;
        }
        if (group.runs == 0) continue;
      } else if (way == Way::whole) {
        add(any(0, sources - 1), 0, 64 * group.lines, 64 * group.lines);
      } else {
        const Index element = Index{2} << (int(way) - int(Way::turns2));
        const Index sharing = way == Way::turns16 ? 2
                              : any(0, 2)         ? any(2, 20)
                                                  : any(2, most_merged_sources),
                    together = sharing * element;
        group.lines = std::uint16_t(together / std::gcd(together, Index{64}) * any(1, 3));
        for (Index k = 0; k < sharing; ++k) add(any(0, sources - 1), k * element, element, 64 * group.lines / sharing);
      }
      groups.push_back(group);
      lines += group.lines;
    }
    for (auto& run : runs) run.rounded = run.offset + (run.bytes + 63) / 64 * 64 <= bytes[run.source];
  }
  MergeLoops loops(Index step, const Index* steps) const { return {Index(groups.size()), rows, step, steps}; }
};

TEST_P(EveryTable, MergesLines) {
  for (int trial = 0; trial < 1000; ++trial) {
    const Merge merge(table().expands, any(1, 5), any(0, 9), any(0, 11), [&](Index a, Index b) { return any(a, b); });
    const Index step = 64 * (merge.lines + any(0, 2));
    std::vector<Bytes> memory;
    std::vector<const std::byte*> sources;
    std::vector<Index> steps;
    for (const Index row : merge.bytes) {
      // Tight, so that the address sanitiser sees what is read beyond.
      const Index stride = any(0, 4) ? row : -row, phase = any(0, 9);
      memory.push_back(noisy(std::size_t(phase + row * merge.rows), 77 * (memory.size() + 1)));
      sources.push_back(memory.back().data() + phase + (stride < 0 ? row * std::max<Index>(merge.rows - 1, 0) : 0));
      steps.push_back(stride);
    }
    Bytes expected(std::size_t(step * merge.rows + 64), std::byte{0xA5}), found = expected;
    auto aligned = [](Bytes& b) { return b.data() + (64 - reinterpret_cast<std::uintptr_t>(b.data()) % 64) % 64; };
    auto loops = merge.loops(step, steps.data());
    loops.short_runs = any(0, 1);
    plain_kernels().merge(aligned(expected), sources.data(), merge.groups.data(), merge.runs.data(), loops,
                          Stores::cached);
    table().merge(aligned(found), sources.data(), merge.groups.data(), merge.runs.data(), loops, any_stores());
    table().fence();
    ASSERT_EQ(std::memcmp(aligned(expected), aligned(found), std::size_t(step * merge.rows)), 0)
        << table().name << " " << merge.bytes.size() << " sources, " << merge.lines << " lines, " << merge.rows
        << " rows";
  }
}

#if LONGSHORE_HAVE_MMAP
using test::Fenced;

TEST_P(EveryTable, StaysWithinItsPages) {
  for (int trial = 0; trial < 1500; ++trial) {
    BlockLoops l;
    l.block = any(0, 2) ? one_of<Index>({1, 2, 4, 8, 16, 24, 40, 64, 128}) : any(1, 300);
    l.n0 = any(1, any(0, 7) ? 70 : 3000);
    l.n1 = any(1, l.n0 <= 70 && any(0, 7) == 0 ? 3000 : 20);
    const bool transpose = any(0, 1);
    if (transpose && any(0, 1)) {
      l.s1 = l.d0 = l.block, l.s0 = l.n1 * l.block, l.d1 = l.n0 * l.block;
    } else {
      choose_strides(l.block, l.n0, l.n1, l.s0, l.s1);
      choose_strides(l.block, l.n0, l.n1, l.d0, l.d1);
    }
    const LoopExtent from = extent(l.block, l.n0, l.s0, l.n1, l.s1), to = extent(l.block, l.n0, l.d0, l.n1, l.d1);
    const Fenced source(from.size()), destination(to.size());
    // Tight against the forbidden page below, then against the one above.
    for (bool above : {false, true}) {
      const std::byte* s = (above ? source.end() - from.size() : source.begin()) - from.low;
      std::byte* d = (above ? destination.end() - to.size() : destination.begin()) - to.low;
      SCOPED_TRACE(describe(table(), transpose ? "transpose" : "blocks", l, Stores::cached));
      for (Stores stores : {Stores::cached, Stores::streaming})
        transpose ? table().transpose(d, s, l, stores) : table().blocks(d, s, l, stores);
    }
  }
  for (int trial = 0; trial < 200; ++trial) {
    const Merge merge(table().expands, 2, any(1, 5), any(1, 9), [&](Index a, Index b) { return any(a, b); });
    const Fenced first(merge.bytes[0] * merge.rows), second(merge.bytes[1] * merge.rows);
    const Fenced destination(64 * merge.lines * merge.rows);
    const Index* const steps = merge.bytes.data();
    const std::byte* sources[] = {first.end() - steps[0] * merge.rows, second.end() - steps[1] * merge.rows};
    table().merge(destination.end() - 64 * merge.lines * merge.rows, sources, merge.groups.data(), merge.runs.data(),
                  merge.loops(64 * merge.lines, steps), Stores::streaming);
  }
  for (Index n = 1; n <= 300; ++n) {
    const Fenced source(n), destination(n);
    for (Stores stores : {Stores::cached, Stores::streaming}) {
      table().copy(destination.begin(), source.end() - n, n, stores);
      table().copy(destination.end() - n, source.begin(), n, stores);
    }
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(Kernels, EveryTable, ::testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->name); });

/// The fastest table with profiles whose every number differs from the usual.
std::vector<const KernelTable*> profiled_tables() {
  static const std::vector<KernelTable> all = [] {
    std::vector<KernelTable> tables(3, *available_kernels().back());
    tables[0].profile = {1, 256, 0, 16384, KernelProfile::never, 1, false, 0, 1};
    tables[1].profile = {2, 64, 1024, KernelProfile::never, KernelProfile::never, 4, true, 4096, 3, 256, 192};
    tables[2].profile = {4, 4096, 64, KernelProfile::never, 128, 1, true, 192, 256};
    for (const auto& table : tables) check(table.profile);
    return tables;
  }();
  return {&all[0], &all[1], &all[2]};
}
INSTANTIATE_TEST_SUITE_P(Profiles, EveryTable, ::testing::ValuesIn(profiled_tables()),
                         [](const auto& info) { return "profile" + std::to_string(info.index); });

TEST_P(EveryTable, CopiesLongRowsSideBySide) {
  for (const Index block : {1024, 1100, 2048, 4096, 20000})
    for (const Index n : {1, 2, 3, 4, 5, 9})
      for (const bool outer : {false, true}) {
        const Index s = block + one_of<Index>({0, 64, 100}), d = block + one_of<Index>({0, 64, 4096, 77});
        const BlockLoops l = outer ? BlockLoops{block, 2, block * 2, block * 3, n, 2 * (s + block), 3 * (d + block)}
                                   : BlockLoops{block, n, s, d, 1, 0, 0};
        expect_like_plain(table(), false, l, Stores::streaming, any(0, 63), any(0, 63));
      }
}

/// Rows that begin with a line, at the same lines of their pages or not, and rows that do not; parts of tiles, whole
/// ones and several side by side.
TEST_P(EveryTable, TransposesByWayOfTiles) {
  for (const Index element : {1, 2, 4, 8, 16})
    for (const Index high : {Index{256}, 320 + element, Index{1000} / element * element})
      for (const Index wide : {64, 256, 300, 512, 777})
        for (const Index rows_at : {512, 64, 1}) {
          const Index n0 = high / element,
                      row = rows_at == 1 ? high + any(1, 90) : (high + rows_at - 1) / rows_at * rows_at;
          const Index phase = rows_at == 1 ? any(0, 63) : any(0, 64 / element - 1) * element;
          expect_like_plain(table(), true, {element, n0, wide * element + any(0, 70), element, wide, element, row},
                            Stores::streaming, any(0, 63), phase);
        }
}

/// Structures to arrays of their fields, and back: dense or not, rows that overlap or go backwards.
TEST_P(EveryTable, TransposesNarrowMatrices) {
  std::vector<Index> widths(36);
  std::iota(widths.begin(), widths.end(), Index{1});
  widths.insert(widths.end(), {40, 48, 63, 64, 65, 80, 100, 127});
  for (const Index element : {1, 2, 4, 8, 16})
    for (const Index width : widths)
      for (const bool to_fields : {false, true})
        for (int trial = 0; trial < (test::quick() ? 1 : 6); ++trial) {
          const Index length = one_of<Index>({any(1, 40), any(1, 600), any(600, 6000)});
          BlockLoops l{element, to_fields ? length : width, 0, element, to_fields ? width : length, element, 0};
          const Index row = l.n1 * element, column = l.n0 * element;
          l.s0 = one_of<Index>({row, row, row + any(1, 70), (row + 4095) / 4096 * 4096, -row, any(0, row)});
          l.d1 = one_of<Index>({column, column, column + any(1, 70), (column + 4095) / 4096 * 4096, -column});
          if (std::abs(l.d1) * l.n1 > 1 << 20) l.d1 = column;
          if (std::abs(l.s0) * l.n0 > 1 << 20) l.s0 = row;
          const Index phase = any(0, 1) ? any(0, 63) : any(0, 64 / element - 1) * element;
          expect_like_plain(table(), true, l, any_stores(), any(0, 63), phase);
        }
}

TEST(Kernels, TheChosenTableIsAvailable) {
  const std::vector<const KernelTable*> tables = available_kernels();
  EXPECT_EQ(tables.front(), &plain_kernels());
  EXPECT_NE(std::find(tables.begin(), tables.end(), &kernels()), tables.end());
}

}  // namespace
}  // namespace longshore
