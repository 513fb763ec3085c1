// Every table's list kernels against the plain ones: any block,
// unit, order and alignment, nothing touched that is not theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "longshore/copies/kernels.hpp"
#include "support/memory.hpp"
#include "support/quick.hpp"

namespace longshore {
namespace {

using test::Bytes;
using test::noisy;
using Places = std::vector<std::uint32_t>;

/// Bytes from the first listed block's to past the last one's, from the base on.
struct ListedExtent {
  Index low = 0, high = 0;
  ListedExtent(const Places& places, Index block, Index unit) {
    if (places.empty()) return;
    const auto [first, last] = std::minmax_element(places.begin(), places.end());
    low = *first * unit;
    high = *last * unit + block;
  }
  Index size() const { return high - low; }
};

enum class Kernel { gather, scatter, relocate };

struct Case {
  Kernel kernel;
  Places from, to;  // `from` is not used to scatter, `to` not to gather
  Index block, unit;

  Index n() const { return static_cast<Index>(kernel == Kernel::scatter ? to.size() : from.size()); }
  ListedExtent source() const { return kernel == Kernel::scatter ? dense() : ListedExtent(from, block, unit); }
  ListedExtent destination() const { return kernel == Kernel::gather ? dense() : ListedExtent(to, block, unit); }

  void run(const KernelTable& table, std::byte* d, const std::byte* s, Stores stores) const {
    if (kernel == Kernel::gather) table.gather(d, s, {from.data(), n(), block, unit}, stores);
    if (kernel == Kernel::scatter) table.scatter(d, s, {to.data(), n(), block, unit}, stores);
    if (kernel == Kernel::relocate) table.relocate(d, to.data(), s, {from.data(), n(), block, unit}, stores);
    table.fence();
  }
  std::string describe(const KernelTable& table, Stores stores) const {
    std::ostringstream out;
    out << table.name
        << (kernel == Kernel::gather    ? " gather"
            : kernel == Kernel::scatter ? " scatter"
                                        : " relocate")
        << (stores == Stores::streaming ? " streaming" : " cached") << " n " << n() << " block " << block << " unit "
        << unit;
    return out.str();
  }

 private:
  ListedExtent dense() const {
    ListedExtent all({}, 0, 0);
    all.high = n() * block;
    return all;
  }
};

/// Runs one table and the plain one on destinations filled alike, and compares every byte, gaps and guards included.
void expect_like_plain(const KernelTable& table, const Case& c, Stores stores, Index source_phase,
                       Index destination_phase) {
  constexpr Index guard = 192;
  const ListedExtent from = c.source(), to = c.destination();
  // Tight on both sides, for the address sanitiser's sake.
  const Bytes source = noisy(static_cast<std::size_t>(source_phase + from.size()));
  Bytes expected(static_cast<std::size_t>(to.size() + destination_phase + 2 * guard), std::byte{0xA5});
  Bytes found = expected;
  const std::byte* s = source.data() + source_phase - from.low;
  const Index first = guard + destination_phase - to.low;
  c.run(plain_kernels(), expected.data() + first, s, stores);
  c.run(table, found.data() + first, s, stores);
  if (std::memcmp(expected.data(), found.data(), expected.size()) != 0) {
    const auto at = std::mismatch(expected.begin(), expected.end(), found.begin()).first - expected.begin();
    ADD_FAILURE() << c.describe(table, stores) << " phases " << source_phase << ", " << destination_phase
                  << ": first wrong byte at " << at - first << " in [" << to.low << ", " << to.high << ")";
  }
}

class EveryListTable : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  Index any(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random_); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[any(0, static_cast<Index>(choices.size()) - 1)];
  }

  /// Places under which blocks do not overlap: ascending with
  /// gaps of their own or none, in runs, backwards or shuffled.
  Places unique_places(Index n, Index block, Index unit) {
    const Index step = (block + unit - 1) / unit, gap = any(0, 3), run = any(1, 20);
    Places places;
    Index at = any(0, 5);
    for (Index i = 0; i < n; ++i, at += step + (i % run == 0 ? any(0, gap) : 0))
      places.push_back(static_cast<std::uint32_t>(at));
    const Index order = any(0, 3);
    if (order == 0) std::reverse(places.begin(), places.end());
    if (order == 1) std::shuffle(places.begin(), places.end(), random_);
    return places;
  }
  /// Places to read from, which may overlap and come again.
  Places any_places(Index n, Index block, Index unit) {
    if (any(0, 1)) return unique_places(n, block, unit);
    Places places(static_cast<std::size_t>(n));
    const Index most = any(0, 2 * n);
    for (auto& place : places) place = static_cast<std::uint32_t>(any(0, most));
    return places;
  }
  Case any_case(Kernel kernel, Index n, Index block, Index unit) {
    return {kernel, any_places(n, block, unit), unique_places(n, block, unit), block, unit};
  }

  std::mt19937_64 random_{20240917};
};

constexpr Kernel all_kernels[] = {Kernel::gather, Kernel::scatter, Kernel::relocate};
constexpr Stores all_stores[] = {Stores::cached, Stores::streaming};

std::vector<Index> block_sizes() {
  std::vector<Index> sizes(70);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {96, 128, 200, 256, 300, 1000, 1024, 2500});
  return sizes;
}

TEST_P(EveryListTable, EmptyListsTouchNothing) {
  for (Kernel kernel : all_kernels)
    for (Stores stores : all_stores)
      for (Index block : {0, 1, 8, 40, 5000}) {
        expect_like_plain(table(), {kernel, {}, {}, block, 8}, stores, 0, 0);
        Case{kernel, {}, {}, block, 8}.run(table(), nullptr, nullptr, stores);
      }
}

TEST_P(EveryListTable, EveryBlockSizeInEveryUnit) {
  for (const Index block : block_sizes())
    for (const Index unit : {Index{1}, Index{2}, Index{3}, Index{4}, Index{8}, Index{12}, Index{16}, Index{24}, block})
      for (Kernel kernel : all_kernels)
        for (Stores stores : all_stores) {
          const Index n = any(0, 3) ? any(1, 80) : any(80, 300);
          expect_like_plain(table(), any_case(kernel, n, block, unit), stores, any(0, 63), any(0, 63));
        }
}

TEST_P(EveryListTable, EveryShortList) {
  for (const Index block : {1, 2, 3, 4, 5, 8, 12, 16, 24, 64, 100})
    for (Index n = 0; n <= 140; ++n)
      for (Kernel kernel : all_kernels)
        for (Stores stores : all_stores)
          expect_like_plain(table(), any_case(kernel, n, block, any(0, 1) ? block : 4), stores, any(0, 63), any(0, 63));
}

// Destinations of whole lines, which streaming stores may fill one by one.
TEST_P(EveryListTable, WholeLines) {
  alignas(64) static std::byte source[1 << 16], expected[1 << 16], found[1 << 16];
  std::memcpy(source, noisy(sizeof source).data(), sizeof source);
  for (const Index block : {64, 128, 192})
    for (Kernel kernel : all_kernels)
      for (Stores stores : all_stores) {
        const Case c = any_case(kernel, 70, block, 64);
        ASSERT_LT(std::max(c.source().high, c.destination().high), Index{sizeof source});
        std::memset(expected, 0x5A, sizeof expected);
        std::memset(found, 0x5A, sizeof found);
        c.run(plain_kernels(), expected, source, stores);
        c.run(table(), found, source, stores);
        EXPECT_EQ(std::memcmp(expected, found, sizeof found), 0) << c.describe(table(), stores);
      }
}

// Big enough for what is only done beyond the cache.
TEST_P(EveryListTable, LongLists) {
  const std::vector<Index> few{1, 8, 12, 300}, many{1, 4, 7, 8, 12, 16, 20, 24, 40, 64, 100, 300, 1100};
  for (const Index block : test::quick() ? few : many)
    for (Kernel kernel : all_kernels)
      for (Stores stores : all_stores)
        expect_like_plain(table(), any_case(kernel, 100003 / (block / 32 + 1), block, any(0, 1) ? block : 4), stores, 0,
                          8);
}

/// Marks with a given share in 16 of places marked, all beyond
/// the last place too, and what they ask the kernel to touch.
struct Marks {
  std::vector<std::uint8_t> bits;
  MarkedPlaces places;
  Index low = 0, high = 0;  // bytes of the destination

  template <class Any>
  Marks(Index element, Index first, Index last, Index share, Any any) : bits(std::size_t(last / 8 + 9), 0xff) {
    places = {bits.data(), first, last, 0, element};
    for (Index k = 0; k < last; ++k)
      if (any(0, 15) >= share) bits[std::size_t(k / 8)] = std::uint8_t(bits[std::size_t(k / 8)] & ~(1u << k % 8));
    for (Index k = first; k < last; ++k)
      if (bits[std::size_t(k / 8)] >> k % 8 & 1) {
        if (places.marked++ == 0) low = k * element;
        high = (k + 1) * element;
      }
  }
};

TEST_P(EveryListTable, ExpandsMarks) {
  if (!table().expand) return;  // lists are scattered there
  for (int trial = 0; trial < 4000; ++trial) {
    const Index first = any(0, 40), last = first + (any(0, 9) ? any(0, 90) : any(0, 3000));
    const Marks marks(one_of<Index>({4, 8}), first, last, any(0, 16), [&](Index a, Index b) { return any(a, b); });
    const Index phase = any(0, 70), bytes = last * marks.places.element;
    const Bytes source = noisy(std::size_t(phase + marks.places.marked * marks.places.element));
    Bytes expected(std::size_t(phase + bytes), std::byte{0xA5});
    Bytes found = expected;
    plain_kernels().expand(expected.data() + phase, source.data() + phase, marks.places);
    table().expand(found.data() + phase, source.data() + phase, marks.places);
    ASSERT_EQ(expected, found) << table().name << " places " << first << " to " << last << " of "
                               << marks.places.element << " bytes, phase " << phase;
  }
}

#if LONGSHORE_HAVE_MMAP
TEST_P(EveryListTable, ExpandsMarksWithinItsPages) {
  for (int trial = 0; trial < 500 && table().expand; ++trial) {
    const Index first = any(0, 40), last = first + any(1, 90);
    const Marks marks(one_of<Index>({4, 8}), first, last, any(1, 16), [&](Index a, Index b) { return any(a, b); });
    const test::Fenced source(marks.places.marked * marks.places.element), destination(marks.high - marks.low);
    table().expand(destination.begin() - marks.low, source.begin(), marks.places);
    table().expand(destination.end() - marks.high, source.end() - marks.places.marked * marks.places.element,
                   marks.places);
  }
}

TEST_P(EveryListTable, StaysWithinItsPages) {
  const std::vector<Index> sizes = block_sizes();
  for (int trial = 0; trial < 1500; ++trial) {
    const Index block =
        any(0, 1) ? one_of<Index>({4, 8}) : sizes[static_cast<std::size_t>(any(0, Index(sizes.size()) - 1))];
    const Case c = any_case(one_of({Kernel::gather, Kernel::scatter, Kernel::relocate}), any(1, 200), block,
                            any(0, 1) ? block : one_of<Index>({1, 2, 4, 8, 24}));
    const ListedExtent from = c.source(), to = c.destination();
    const test::Fenced source(from.size()), destination(to.size());
    // Tight against the forbidden page below, then against the one above.
    for (bool above : {false, true})
      for (Stores stores : all_stores) {
        SCOPED_TRACE(c.describe(table(), stores));
        c.run(table(), (above ? destination.end() - to.size() : destination.begin()) - to.low,
              (above ? source.end() - from.size() : source.begin()) - from.low, stores);
      }
  }
}

// Indices with the highest bit set are no negative numbers:
// address space is reserved for them, pages at both ends used.
TEST_P(EveryListTable, IndicesAreUnsigned) {
  for (const Index unit : {1, 2, 4, 8, 3, 12}) {
    const Index span = (unit << 32) + 4096;
    void* reserved = mmap(nullptr, static_cast<std::size_t>(span), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) GTEST_SKIP() << "no room for " << span << " bytes of addresses";
    std::byte* const base = static_cast<std::byte*>(reserved);
    for (const Index block : {4, 8, 16}) {
      Places places;
      for (Index k = 0; k < 40; ++k)
        for (const Index at : {Index{0}, (Index{1} << 31) - 100, (Index{1} << 31) + 1000, (Index{1} << 32) - 1000})
          places.push_back(static_cast<std::uint32_t>(at + k * 16));
      const Index n = static_cast<Index>(places.size());
      const Bytes dense = noisy(static_cast<std::size_t>(n * block));
      Bytes back(dense.size());
      table().scatter(base, dense.data(), {places.data(), n, block, unit}, Stores::cached);
      table().gather(back.data(), base, {places.data(), n, block, unit}, Stores::cached);
      EXPECT_EQ(dense, back) << table().name << " block " << block << " unit " << unit;
      for (Index i = 0; i < n; i += 7)
        EXPECT_EQ(std::memcmp(base + unit * places[std::size_t(i)], dense.data() + i * block, std::size_t(block)), 0);
    }
    munmap(reserved, static_cast<std::size_t>(span));
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(Kernels, EveryListTable, ::testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace longshore
