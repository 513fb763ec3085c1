// Pieces of destinations handed over as a move completes them: each once, none before it is there.
#include <atomic>
#include <future>
#include <thread>

#include "longshore/layouts/balance.hpp"
#include "longshore/movers/mover.hpp"
#include "longshore/plans/block_algebra.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/expect_error.hpp"
#include "support/quick.hpp"

namespace longshore::test {
namespace {

constexpr Index poison = -1, width = 20;

/// A periodic halo on blocks whose points hold numbers of their own.
struct HaloMove {
  Region domain;
  FloorPlan blocks;
  BlockPlan plan;
  XArray u;
  std::unique_ptr<Mover> mover;

  HaloMove(const Point& shape, Index ranks, const MoveOptions& options, bool periodic = true)
      : domain(Region::of_shape(shape)),
        blocks(even_floor_plan(domain, ranks)),
        plan(halo_exchange(blocks, Halo(2, width, domain, {periodic, periodic}))),
        u(blocks, {}, {8, Point(2, width), Order::C}) {
    fill();
    mover = bind_threads(plan, u, u, options);
  }
  void fill() const {
    for (const Index k : u.owned()) {
      const View<std::int64_t, 2> v(u.grid(k));
      for (Index i = v.lower(0); i < v.upper(0); ++i)
        for (Index j = v.lower(1); j < v.upper(1); ++j)
          v(i, j) = blocks.region(k).contains(Point{i, j}) ? value(i, j) : poison;
    }
  }
  Index value(Index i, Index j) const {
    const Index m = domain.extent(0), n = domain.extent(1);
    return (i + m) % m * n + (j + n) % n;
  }
  bool is_there(const Arrival& arrival) const {
    const View<std::int64_t, 2> v(u.grid(arrival.block));
    for (Index i = arrival.region.lower()[0]; i < arrival.region.upper()[0]; ++i)
      for (Index j = arrival.region.lower()[1]; j < arrival.region.upper()[1]; ++j)
        if (v(i, j) != value(i, j)) return false;
    return true;
  }
  /// Of what the plan brings, whatever has not been handed over.
  Index open(const std::vector<Arrival>& arrived) const {
    Index open = 0;
    for (const auto& motion : plan.motions())
      open += 1 != std::count_if(arrived.begin(), arrived.end(), [&](const Arrival& a) {
                return a.block == motion.destination && a.region == motion.destination_region &&
                       a.source_rank == blocks.owner(motion.source) && a.destination_rank == blocks.owner(a.block);
              });
    return open + (Index(arrived.size()) != Index(plan.motions().size()));
  }
};

TEST(Arrivals, of_a_halo_are_all_motions_each_once_when_it_is_there) {
  for (const int threads : {1, 3})
    for (const bool proxy : {false, true})
      for (const bool checked : {false, true}) {
        MoveOptions options;
        options.threads = threads, options.proxy = proxy, options.checked = checked, options.phases = Phases::never;
        const HaloMove halo(quick() ? Point{120, 160} : Point{240, 320}, 12, options);
        for (int repeat = 0; repeat < (quick() ? 3 : 5); ++repeat) {
          halo.fill();
          halo.mover->start();
          std::vector<Arrival> arrived;
          while (const auto arrival = halo.mover->next_arrival()) {
            EXPECT_TRUE(halo.is_there(*arrival)) << arrival->region.to_string();
            arrived.push_back(*arrival);
          }
          EXPECT_EQ(halo.open(arrived), 0);
          EXPECT_TRUE(halo.mover->test());
          halo.mover->wait();
        }
      }
}

TEST(Arrivals, come_motion_by_motion_with_one_thread) {
  MoveOptions options;
  options.threads = 1, options.phases = Phases::never;
  const HaloMove halo({60, 100}, 4, options);
  halo.mover->start();
  const auto first = halo.mover->next_arrival();
  ASSERT_TRUE(first);
  EXPECT_TRUE(halo.is_there(*first));
  Index missing = 0;
  for (const auto& motion : halo.plan.motions()) {
    Arrival arrival;
    arrival.block = motion.destination, arrival.region = motion.destination_region;
    missing += !halo.is_there(arrival);
  }
  EXPECT_GT(missing, Index(halo.plan.motions().size()) / 2) << "nothing but what has been asked for has been copied";
  halo.mover->wait();  // with the rest of what has been begun
  for (const auto& motion : halo.plan.motions()) {
    Arrival arrival;
    arrival.block = motion.destination, arrival.region = motion.destination_region;
    EXPECT_TRUE(halo.is_there(arrival));
  }
}

TEST(Arrivals, of_a_halo_in_phases) {
  MoveOptions options;
  options.threads = 2, options.phases = Phases::always;
  const HaloMove halo({240, 320}, 6, options);
  for (int repeat = 0; repeat < 5; ++repeat) {
    halo.fill();
    halo.mover->start();
    Index arrived = 0, expected = 0;
    while (const auto arrival = halo.mover->next_arrival()) {
      EXPECT_TRUE(halo.is_there(*arrival));
      arrived += arrival->region.size();
    }
    for (const auto& motion : halo.plan.motions()) expected += motion.points();
    EXPECT_EQ(arrived, expected);
  }
}

TEST(Arrivals, without_blocking_are_none_when_there_is_none_yet) {
  MoveOptions options;
  options.threads = 1, options.phases = Phases::never;
  const HaloMove halo({60, 100}, 4, options);
  halo.mover->start();
  std::vector<Arrival> arrived;
  while (true) {
    const auto arrival = halo.mover->next_arrival(false);
    if (arrival)
      arrived.push_back(*arrival);
    else if (halo.mover->test())
      break;
  }
  while (const auto arrival = halo.mover->next_arrival(false)) arrived.push_back(*arrival);  // what test() completed
  EXPECT_EQ(halo.open(arrived), 0);
}

TEST(Arrivals, that_meet_come_together_and_complete) {
  // Three sources add to the middle of one block, another one writes beside it.
  const FloorPlan sources(std::vector<Region>(4, Region::of_shape({10})), Map{{0, 1, 2, 3}});
  const FloorPlan sink(std::vector<Region>{Region::of_shape({40})}, Map{0});
  BlockPlan plan(sources, sink);
  plan.copy(Region({0}, {10}), 0, Region({0}, {10}), 0);
  plan.copy(Region({9}, {19}), 0, Region({0}, {10}), 1);
  plan.copy(Region({30}, {40}), 0, Region({0}, {10}), 3);
  plan.copy(Region({18}, {28}), 0, Region({0}, {10}), 2);
  XArray u(sources, {}, {8, {}, Order::C}), v(sink, {}, {8, {}, Order::C});
  for (Index k = 0; k < 4; ++k)
    for (Index i = 0; i < 10; ++i) View<std::int64_t, 1>(u.grid(k))(i) = 100 * (k + 1) + i;
  MoveOptions options;
  options.update = Reduction(ElementType::int64, ReduceOp::add);
  const auto mover = bind_threads(plan, u, v, options);
  mover->start();
  std::vector<Index> from;
  const View<std::int64_t, 1> sum(v.grid(0));
  while (const auto arrival = mover->next_arrival()) {
    from.push_back(arrival->source_rank);
    if (arrival->source_rank == 3) continue;
    EXPECT_EQ(sum(9), 109 + 200) << "from rank " << arrival->source_rank;
    EXPECT_EQ(sum(18), 209 + 300) << "from rank " << arrival->source_rank;
  }
  EXPECT_EQ(from, (std::vector<Index>{3, 0, 1, 2}));
}

TEST(Arrivals, of_layouts_tell_local_and_global_indices) {
  const Layout from = Layout::parse("(CYCLIC(2), *) on 3", {14, 6}), to = Layout::parse("(*, CYCLIC) on 2", {14, 6});
  const MotionPlan plan(from, to, 8);
  std::vector<std::vector<std::int64_t>> sources, destinations;
  auto parts = [](const Layout& layout, std::vector<std::vector<std::int64_t>>& memory) {
    std::vector<LocalArray> arrays;
    for (Index p = 0; p < layout.processes(); ++p) memory.emplace_back(std::size_t(layout.local_size(p)), poison);
    for (Index p = 0; p < layout.processes(); ++p)
      arrays.push_back({reinterpret_cast<std::byte*>(memory[std::size_t(p)].data()), layout.local_shape(p),
                        layout.local_strides(p, 8), false, nullptr});
    return arrays;
  };
  auto given = parts(from, sources), taken = parts(to, destinations);
  for (Index p = 0; p < 3; ++p)
    for (Index i = 0; i < from.local_shape(p)[0]; ++i)
      for (Index j = 0; j < 6; ++j)
        sources[std::size_t(p)][std::size_t(i * 6 + j)] = from.local_to_global(p, {i, j})[0] * 6 + j;
  MoveOptions options;
  options.threads = 1;
  const auto mover = bind_threads(plan, std::move(given), std::move(taken), options);
  mover->start();
  Index elements = 0;
  while (const auto arrival = mover->next_arrival()) {
    const auto rows = arrival->local_indices[0].to_vector(), columns = arrival->local_indices[1].to_vector();
    const auto i = arrival->global_indices[0].to_vector(), j = arrival->global_indices[1].to_vector();
    const auto& here = destinations[std::size_t(arrival->destination_rank)];
    for (std::size_t a = 0; a < i.size(); ++a)
      for (std::size_t b = 0; b < j.size(); ++b, ++elements) {
        EXPECT_EQ(here[std::size_t(rows[a] * 3 + columns[b])], i[a] * 6 + j[b]);
        EXPECT_EQ(from.owners({i[a], j[b]}).front(), arrival->source_rank);
      }
  }
  EXPECT_EQ(elements, 14 * 6);
}

TEST(Arrivals, need_a_move_and_one_thread_at_a_time) {
  std::promise<void> reached, open;
  std::atomic<bool> first = true;
  MoveOptions options;
  options.threads = 1;
  options.update = Reduction(8, [&](std::byte*, const std::byte*, Index, Index, Index) {
    if (first.exchange(false)) reached.set_value(), open.get_future().wait();
  });
  const HaloMove halo({60, 100}, 1, options);
  expect_error(ErrorKind::argument, {"no move has been started"}, [&] { halo.mover->next_arrival(); });
  halo.mover->start();
  std::thread other([&] { halo.mover->next_arrival(); });
  reached.get_future().wait();
  expect_error(ErrorKind::argument, {"another thread is in next_arrival()"}, [&] { halo.mover->next_arrival(); });
  open.set_value();
  other.join();
  halo.mover->wait();
  expect_error(ErrorKind::argument, {"no move has been started"}, [&] { halo.mover->next_arrival(); });
  halo.mover->move();
  expect_error(ErrorKind::argument, {"no move has been started"}, [&] { halo.mover->next_arrival(); });
}

TEST(Arrivals, outlive_the_plan_that_was_bound) {
  const FloorPlan rows = even_floor_plan(Region::of_shape({12, 12}), 3),
                  all = even_floor_plan(Region::of_shape({12, 12}), 1);
  XArray u(rows, {}, {8, {}, Order::C}), v(all, {}, {8, {}, Order::C});
  std::unique_ptr<Mover> mover;
  {
    BlockPlan plan(rows, all);
    for (Index k = 0; k < 3; ++k) plan.copy(rows.region(k), 0, rows.region(k), k);
    mover = bind_threads(plan, u, v);
    plan.copy(Region::of_shape({1, 1}), 0, rows.region(0) & Region::of_shape({1, 1}), 0);  // not the mover's affair
  }
  mover->start();
  int arrived = 0;
  while (mover->next_arrival()) ++arrived;
  EXPECT_EQ(arrived, 3);
}

}  // namespace
}  // namespace longshore::test
