// The plan of one rank among 2^20 on a 2^20 x 2^20 matrix: time and memory follow that rank's peers, nothing else.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <new>

#include "longshore/plans/motion_plan.hpp"

namespace {

std::atomic<std::size_t> live{0}, peak{0};

void* counted(std::size_t n) noexcept {
  void* p = std::malloc(n ? n : 1);
  if (!p) return nullptr;
  const auto now = live += malloc_usable_size(p);
  auto before = peak.load();
  while (before < now && !peak.compare_exchange_weak(before, now)) {
  }
  return p;
}

void* counted_or_thrown(std::size_t n) {
  if (void* p = counted(n)) return p;
  throw std::bad_alloc();
}

void discounted(void* p) noexcept {
  live -= p ? malloc_usable_size(p) : 0;
  std::free(p);
}

}  // namespace

void* operator new(std::size_t n) { return counted_or_thrown(n); }
void* operator new[](std::size_t n) { return counted_or_thrown(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void operator delete(void* p) noexcept { discounted(p); }
void operator delete[](void* p) noexcept { discounted(p); }
void operator delete(void* p, std::size_t) noexcept { discounted(p); }
void operator delete[](void* p, std::size_t) noexcept { discounted(p); }

namespace longshore {
namespace {

constexpr Index side = Index{1} << 20, ranks = Index{1} << 20;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int seconds = 60;
#else
constexpr int seconds = 5;  // of processor time: far more than it takes, far less than anything that walks elements
#endif
constexpr std::size_t megabyte = std::size_t{1} << 20;

struct Seen {
  Index motions = 0;
  Index elements = 0;
};

/// One rank's sends and receives, the first relations lowered, within the memory and the time of a small job.
std::pair<Seen, Seen> seen_by(const char* source, const char* destination, Index rank) {
  const auto before = live.load();
  peak = before;
  const auto begin = std::clock();
  std::pair<Seen, Seen> result;
  {
    const MotionPlan plan(Layout::parse(source, {side, side}), Layout::parse(destination, {side, side}), 8);
    auto count = [&](Seen& seen) {
      return [&](const Motion& motion) {
        if (seen.motions < 100) {
          EXPECT_EQ(plan.relation(motion).elements(), motion.elements);
        }
        ++seen.motions, seen.elements += motion.elements;
      };
    };
    plan.for_each_send(rank, count(result.first));
    plan.for_each_receive(rank, count(result.second));
  }
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, seconds);
  EXPECT_LT(peak - before, 4 * megabyte + std::size_t(std::max(result.first.motions, result.second.motions)) * 32);
  return result;
}

constexpr const char* block_block = "(BLOCK, BLOCK) on 1024x1024";
constexpr const char* cyclic_cyclic = "(CYCLIC(64), CYCLIC(64)) on 1024x1024";
constexpr const char* rows = "(BLOCK, *) on 1048576";
constexpr const char* columns = "(*, BLOCK) on 1048576";

TEST(MillionRanks, blocks_to_block_cyclic) {
  for (const Index rank : {Index{0}, ranks / 2 + 17, ranks - 1}) {
    const auto [sent, received] = seen_by(block_block, cyclic_cyclic, rank);
    EXPECT_EQ(sent.motions, 16 * 16);  // a block of 1024 x 1024 holds 16 x 16 blocks of 64 x 64
    EXPECT_EQ(received.motions, 16 * 16);
    EXPECT_EQ(sent.elements, Index{1} << 20);
    EXPECT_EQ(received.elements, Index{1} << 20);
  }
}

TEST(MillionRanks, block_cyclic_to_another_grid) {
  const auto [sent, received] = seen_by(cyclic_cyclic, "(CYCLIC(32), CYCLIC(100)) on 2048x512", 123456);
  EXPECT_EQ(sent.elements, Index{1} << 20);
  EXPECT_GT(received.elements, 0);
}

TEST(MillionRanks, rows_to_columns) {
  const auto [sent, received] = seen_by(rows, columns, 524289);
  EXPECT_EQ(sent.motions, ranks);  // everybody needs one element
  EXPECT_EQ(received.motions, ranks);
  EXPECT_EQ(sent.elements, side);
}

TEST(MillionRanks, rows_to_blocks) {
  const auto [sent, received] = seen_by(rows, block_block, 524289);
  EXPECT_EQ(sent.motions, 1024);
  EXPECT_EQ(received.motions, 1024);
}

TEST(MillionRanks, cyclic_rows_to_block_cyclic) {
  const auto [sent, received] = seen_by("(CYCLIC, *) on 1048576", cyclic_cyclic, 524289);
  EXPECT_EQ(sent.motions, 1024);
  EXPECT_EQ(received.motions, 1024);  // 1024 rows, all of its columns from each
}

}  // namespace
}  // namespace longshore
