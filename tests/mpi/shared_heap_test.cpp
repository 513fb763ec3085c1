// The heap of NumPy's shared memory beside a plain twin: what each block should hold, byte by byte.
#include "mpi/shared_heap.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "support/quick.hpp"

namespace longshore::mpi {
namespace {

using test::quick;

constexpr Index kibibyte = 1024, mebibyte = 1024 * kibibyte;

TEST(FreeRanges, beside_a_line_of_marks) {
  std::mt19937 random(1);
  const auto draw = [&](Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random); };
  FreeRanges ranges;
  std::vector<bool> is_free(400);
  std::vector<std::pair<Index, Index>> taken;  // first, end
  const auto mark = [&](Index first, Index length, bool value) {
    for (Index k = first; k < first + length; ++k) {
      ASSERT_NE(is_free[std::size_t(k)], value);
      is_free[std::size_t(k)] = value;
    }
  };
  ranges.add(5, 390), mark(5, 390, true);
  for (int step = 0; step < 3000; ++step) {
    if (draw(0, 1) && !taken.empty()) {
      std::swap(taken[std::size_t(draw(0, Index(taken.size()) - 1))], taken.back());
      const auto [first, end] = taken.back();
      taken.pop_back();
      ranges.add(first, end - first), mark(first, end - first, true);
      continue;
    }
    const Index length = draw(1, 20), alignment = Index{1} << draw(0, 4);
    bool possible = false;
    for (Index first = 0, run = 0; first < 400; ++first) {
      run = is_free[std::size_t(first)] ? run + 1 : 0;
      possible = possible || (run >= length && (first + 1 - length) / alignment * alignment > first - run);
    }
    const auto first = ranges.take(length, alignment);
    ASSERT_EQ(first.has_value(), possible) << length << " at a multiple of " << alignment;
    if (!first) continue;
    ASSERT_EQ(*first % alignment, 0);
    mark(*first, length, false), taken.push_back({*first, *first + length});
  }
}

/// One block as it should be: `known` words of a sequence that begins with `seed`, and anything behind.
struct Twin {
  Index bytes = 0, known = 0;
  std::uint64_t seed = 0;
};

class Heap : public testing::Test {
 protected:
  Index draw(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random_); }
  /// Around what makes a difference: pages, huge pages, eighths between powers of two.
  Index draw_bytes() {
    const Index base = Index{1} << draw(3, draw(0, 3) ? 17 : 22);
    return std::max<Index>(8, (base + draw(-2, 2) * 8 + (draw(0, 1) ? draw(0, base) : 0)) / 8 * 8);
  }
  static std::uint64_t* words(std::byte* block) { return reinterpret_cast<std::uint64_t*>(block); }
  void fill(std::byte* block, Twin& twin) {
    twin.known = twin.bytes / 8, twin.seed = random_();
    for (Index k = 0; k < twin.known; ++k) words(block)[k] = twin.seed + std::uint64_t(k);
  }
  static bool holds(std::byte* block, const Twin& twin) {
    for (Index k = 0; k < twin.known; ++k)
      if (words(block)[k] != twin.seed + std::uint64_t(k)) return false;
    return true;
  }
  void allocate() {
    const Index bytes = draw_bytes();
    const bool zeros = draw(0, 1);
    std::byte* const block = heap_->allocate(bytes, zeros);
    ASSERT_NE(block, nullptr);
    for (Index k = 0; k < (zeros ? bytes / 8 : 0); ++k) ASSERT_EQ(words(block)[k], 0u) << bytes;
    add(block, {bytes, 0, 0});
    fill(block, twins_[block]);
  }
  /// Blocks neither overlap nor lie on one that is gone but still looked at.
  void add(std::byte* block, const Twin& twin) {
    const auto next = twins_.lower_bound(block);
    ASSERT_TRUE(next == twins_.end() || block + twin.bytes <= next->first);
    ASSERT_TRUE(next == twins_.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= block);
    for (const auto& [memory, of] : shown_)
      ASSERT_TRUE(block >= memory->data() + memory->bytes() || block + twin.bytes <= memory->data());
    twins_[block] = twin;
  }
  std::map<std::byte*, Twin>::iterator any() { return std::next(twins_.begin(), draw(0, Index(twins_.size()) - 1)); }
  /// As whoever has a block and wants another size.
  void resize() {
    const auto old = any();
    ASSERT_TRUE(holds(old->first, old->second));
    auto twin = old->second;
    twin.bytes = draw(0, 2) ? draw_bytes() : std::max<Index>(8, twin.bytes + 8 * draw(-20, 20));
    twin.known = std::min(twin.known, twin.bytes / 8);
    std::byte* const block = old->first;
    if (heap_->resize(block, twin.bytes)) {
      twins_.erase(old), add(block, twin);
      fill(block, twins_[block]);
    }
  }
  void free() {
    const auto one = any();
    ASSERT_TRUE(heap_->contains(one->first) && heap_->bytes_of(one->first) == one->second.bytes);
    ASSERT_TRUE(holds(one->first, one->second));
    heap_->free(one->first);
    twins_.erase(one);
  }
  void show(bool is_private) {
    const auto& [block, twin] = *any();
    const Index from = draw(0, twin.bytes);
    const auto memory = heap_->at(block + from, twin.bytes - from);
    ASSERT_TRUE(memory && memory->data() == block && memory->bytes() == twin.bytes);
    ASSERT_EQ(heap_->at(block + from, twin.bytes - from + 1), nullptr);
    const auto* shared = dynamic_cast<const SharedMemory*>(memory.get());
    ASSERT_TRUE(shared || is_private);
    if (!shared) return;
    ASSERT_GE(shared->address().bytes, twin.bytes);
    shown_.push_back({memory, twin});
  }
  /// What others see stays as it is until they let it go.
  void let_go() {
    if (shown_.empty()) return;
    std::swap(shown_[std::size_t(draw(0, Index(shown_.size()) - 1))], shown_.back());
    const auto& [memory, twin] = shown_.back();
    ASSERT_TRUE(holds(const_cast<std::byte*>(memory->data()), twin));
    const auto address = dynamic_cast<const SharedMemory&>(*memory).address();
    std::uint64_t first = 0;  // as others see it
    ASSERT_EQ(pread(int(address.descriptor), &first, 8, address.offset), 8);
    ASSERT_TRUE(twin.known == 0 || first == twin.seed);
    shown_.pop_back();
  }
  /// A child has what there was; what one writes the other does not see.
  void fork_one() {
    const pid_t child = ::fork();
    if (child == 0) {
      bool well = true;
      for (auto& [block, twin] : twins_) {
        well = well && holds(block, twin);
        words(block)[0] ^= 1;
        well = well && !dynamic_cast<const SharedMemory*>(heap_->at(block, 8).get());
        if (draw(0, 1)) heap_->free(block);
      }
      _exit(well && !heap_->allocate(mebibyte, false) ? 0 : 1);
    }
    for (auto& [block, twin] : twins_)
      if (draw(0, 3) == 0 && shown_.empty()) fill(block, twin);
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  Index held_bytes() {
    struct stat told {};
    const auto block = heap_->allocate(8, false);
    const auto memory = heap_->at(block, 8);
    fstat(int(dynamic_cast<const SharedMemory&>(*memory).address().descriptor), &told);
    heap_->free(block);
    return Index(told.st_blocks) * 512;
  }
  void work(int steps, bool forks) {
    for (int step = 0; step < steps && !HasFatalFailure(); ++step) {
      const Index what = draw(0, 99);
      if (twins_.empty() || what < 40)
        allocate();
      else if (what < 70)
        free();
      else if (what < 80)
        resize();
      else if (what < 90)
        show(forks);
      else if (what < 97)
        let_go();
      else if (forks && what == 97)
        fork_one();
      if (twins_.size() > 60) free(), free();
    }
  }
  void end() {
    while (!twins_.empty() && !HasFatalFailure()) free();
    shown_.clear();
  }

  std::mt19937_64 random_{7};
  std::shared_ptr<SharedHeap> heap_ = SharedHeap::open(4 * mebibyte);
  std::map<std::byte*, Twin> twins_;
  std::vector<std::pair<std::shared_ptr<const Memory>, Twin>> shown_;
};

TEST_F(Heap, generated_sequences) {
  for (const Index keep : {4 * mebibyte, Index{0}, 64 * mebibyte}) {
    const auto same = SharedHeap::open(keep);
    ASSERT_EQ(same, heap_);
    work(quick() ? 300 : 2000, false);
    end();
    EXPECT_LE(held_bytes(), keep + 6 * mebibyte);
    same->close();
  }
  heap_->close();
  EXPECT_LE(held_bytes(), 6 * mebibyte);
}

TEST_F(Heap, generated_sequences_with_forks) {
  work(quick() ? 150 : 800, true);
  end();
  heap_->close();
  EXPECT_LE(held_bytes(), 6 * mebibyte);
}

TEST_F(Heap, what_is_left_of_huge_pages_does_not_add_up) {
  std::vector<std::byte*> blocks;
  for (int k = 0; k < 100; ++k) blocks.push_back(heap_->allocate(1200 * kibibyte, false));
  EXPECT_LE(held_bytes(), 100 * 1280 * kibibyte + 8 * mebibyte);
  for (auto* const block : blocks) heap_->free(block);
  EXPECT_LE(held_bytes(), 6 * mebibyte);
  heap_->close();
}

TEST_F(Heap, two_threads) {
  const auto work = [this](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte*> blocks;
    for (int step = 0; step < 1000; ++step) {
      const Index bytes = 8 + Index(random() % (256 * kibibyte));
      blocks.push_back(heap_->allocate(bytes, false));
      for (Index k = 0; k < bytes / 8; k += 64) words(blocks.back())[k] = seed;
      words(blocks.back())[0] = seed + std::uint64_t(bytes);
      if (blocks.size() < 20) continue;
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Index had = heap_->bytes_of(blocks.back());
      EXPECT_EQ(words(blocks.back())[0], seed + std::uint64_t(had));
      for (Index k = 64; k < had / 8; k += 64) EXPECT_EQ(words(blocks.back())[k], seed);
      heap_->free(blocks.back()), blocks.pop_back();
    }
    for (auto* const block : blocks) heap_->free(block);
  };
  std::thread other(work, 1);
  work(2);
  other.join();
  heap_->close();
}

TEST_F(Heap, what_cannot_be_had) {
  EXPECT_EQ(heap_->allocate(std::numeric_limits<Index>::max(), true), nullptr);
  EXPECT_EQ(heap_->allocate(4 * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE), false), nullptr);
  std::byte* const block = heap_->allocate(mebibyte, false);
  EXPECT_FALSE(heap_->resize(block, std::numeric_limits<Index>::max()));
  EXPECT_EQ(heap_->bytes_of(block), mebibyte);
  int elsewhere = 0;
  const auto* const place = reinterpret_cast<const std::byte*>(&elsewhere);
  EXPECT_FALSE(heap_->contains(place));
  EXPECT_EQ(heap_->at(place, 4), nullptr);
  heap_->add_refused(place, 4);
  EXPECT_EQ(heap_->at(place, 4)->data(), place);
  EXPECT_EQ(heap_->at(place, 5), nullptr);
  heap_->remove_refused(place);
  EXPECT_EQ(heap_->at(place, 4), nullptr);
  heap_->free(block), heap_->close();
}

}  // namespace
}  // namespace longshore::mpi
