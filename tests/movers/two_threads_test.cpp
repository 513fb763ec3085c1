// One mover used by two threads of a process at once: an error that says so, and the other thread's move goes on.
#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "longshore/layouts/balance.hpp"
#include "longshore/movers/mover.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

constexpr Index side = 300;

/// Rows to columns, by the mover that the options give.
struct Move {
  FloorPlan rows = even_floor_plan(Region::of_shape({side, side}), 1),
            columns = FloorPlan(split_evenly(Region::of_shape({side, side}), {1, 5}), Map{{0, 0, 0, 0, 0}});
  XArray from{rows, {}, {8, {}, Order::C}}, to{columns, {}, {8, {}, Order::C}};
  std::unique_ptr<Mover> mover;

  explicit Move(const MoveOptions& options = {}) {
    const View<std::int64_t, 2> u(from.grid(0));
    for (Index i = 0; i < side; ++i)
      for (Index j = 0; j < side; ++j) u(i, j) = i * side + j;
    mover = bind_threads(copy_between(rows, columns), from, to, options);
  }
  bool moved() const {
    for (const Index k : to.owned()) {
      const View<std::int64_t, 2> v(to.grid(k));
      for (Index i = v.lower(0); i < v.upper(0); ++i)
        for (Index j = v.lower(1); j < v.upper(1); ++j)
          if (v(i, j) != i * side + j) return false;
    }
    return true;
  }
};

/// A combining function that waits to be let go the first time, and tells when it has come so far.
struct Gate {
  std::promise<void> reached, open;
  std::atomic<bool> first = true;

  Reduction reduction() {
    return Reduction(8, [this](std::byte*, const std::byte*, Index, Index, Index) {
      if (first.exchange(false)) reached.set_value(), open.get_future().wait();
    });
  }
};

/// What an error says; nothing where there is none.
template <class F>
std::string refused_for(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::argument) << error.what();
    return error.what();
  }
  return {};
}

TEST(TwoThreads, whoever_comes_second_hears_what_the_other_is_in) {
  for (const bool proxy : {false, true})
    for (const bool checked : {false, true}) {
      Gate gate;
      MoveOptions options;
      options.update = gate.reduction();
      options.threads = 1, options.proxy = proxy, options.checked = checked;
      Move move(options);
      move.mover->start();
      std::thread waiting([&] {
        while (!refused_for([&] { move.mover->wait(); }).empty()) std::this_thread::yield();
      });
      gate.reached.get_future().wait();
      std::string words;
      while (words.empty()) words = refused_for([&] { move.mover->test(); });  // with a proxy wait() may come later
      EXPECT_NE(words.find("another thread is in wait()"), std::string::npos) << words;
      for (auto call : {&Mover::start, &Mover::wait, &Mover::move})
        expect_error(ErrorKind::argument, {"another thread is in wait()"}, [&] { (move.mover.get()->*call)(); });
      gate.open.set_value();
      waiting.join();
      move.mover->move();  // it is nobody's again
    }
}

/// Any mix of calls: whatever is refused is refused by name, nothing hangs, and the mover can be used afterwards. What
/// else two threads may do to each other, ThreadSanitizer sees.
TEST(TwoThreads, any_mix_of_calls) {
  for (const bool proxy : {false, true})
    for (const bool checked : {false, true}) {
      MoveOptions options;
      options.threads = 2, options.proxy = proxy, options.checked = checked;
      Move move(options);
      std::atomic<int> refused = 0;
      auto use = [&](unsigned seed) {
        for (int k = 0; k < 300; ++k) {
          seed = seed * 1103515245u + 12345u;
          const auto words = refused_for([&] {
            switch (seed >> 16 & 3) {
              case 0: move.mover->start(); break;
              case 1: move.mover->test(); break;
              case 2: move.mover->wait(); break;
              default: move.mover->move();
            }
          });
          refused += !words.empty();
          static_cast<void>(move.mover->workspace_bytes() + Index(move.mover->describe().size()));
        }
      };
      std::thread one([&] { use(1); }), other([&] { use(2); });
      one.join(), other.join();
      EXPECT_GT(refused, 0);
      refused_for([&] { move.mover->wait(); });  // if anything is under way
      move.mover->move();
      EXPECT_TRUE(move.moved());
    }
}

}  // namespace
}  // namespace longshore::test
