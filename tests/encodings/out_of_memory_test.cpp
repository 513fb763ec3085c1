// A cache that gets no memory while it keeps something is as it was.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "longshore/encodings/relation_cache.hpp"
#include "support/cache.hpp"

namespace {

thread_local long allocations_left = -1;  // before there are no more; negative: as many as are asked for

void* allocated(std::size_t n) noexcept {
  if (allocations_left >= 0 && allocations_left-- == 0) return nullptr;
  return std::malloc(n ? n : 1);
}

void* allocated_or_thrown(std::size_t n) {
  if (void* p = allocated(n)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t n) { return allocated_or_thrown(n); }
void* operator new[](std::size_t n) { return allocated_or_thrown(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocated(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocated(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace longshore::test {
namespace {

TEST(RelationCache, that_gets_no_memory_is_as_it_was) {
  const std::string first = "a key that is longer than what a string holds in itself",
                    second = first + ", and another one";
  for (const bool group : {false, true}) {
    bool kept = false;
    long n = 0;
    for (; !kept && n < 1000; ++n) {
      RelationCache cache(1 << 20);
      CacheHint hint;
      if (group) hint.group = "a group whose name is longer than what a string holds";
      ASSERT_TRUE(cache.put(first, encoding_of(1, 10), hint));
      const auto before = cache.statistics();
      auto another = encoding_of(2, 10);
      allocations_left = n;
      try {
        kept = cache.put(second, std::move(another), hint);
      } catch (const std::bad_alloc&) {
      }
      allocations_left = -1;
      const auto after = cache.statistics();
      EXPECT_EQ(after.relations, before.relations + kept) << n;
      EXPECT_EQ(after.bytes > before.bytes, kept) << n;
      EXPECT_EQ(cache.entries().size(), std::size_t(1 + kept)) << n;
      cache.flush_all();
      EXPECT_EQ(cache.statistics().bytes, 0) << n;
      EXPECT_EQ(cache.statistics().relations, 0) << n;
    }
    EXPECT_TRUE(kept);
    EXPECT_GT(n, 5);
  }
}

}  // namespace
}  // namespace longshore::test
