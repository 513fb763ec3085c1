// Several fields at once, of layouts and of blocks, moved by ranks that take turns, against the threads engine.
#include <cstring>
#include <numeric>

#include "longshore/layouts/balance.hpp"
#include "longshore/plans/block_builders.hpp"
#include "support/arrays.hpp"
#include "support/expect_error.hpp"
#include "support/finegrain.hpp"

namespace longshore::test {
namespace {

using finegrain::Rank;
using FinegrainFields = Finegrain;

constexpr auto add_doubles = [] { return Update(Reduction(ElementType::float64, ReduceOp::add)); };

void fill_doubles(Arrays& arrays, double first) {
  for (auto& part : arrays.memory)
    for (std::size_t i = 0; i + 8 <= part.size(); i += 8, ++first) std::memcpy(&part[i], &first, 8);
}
void fill_doubles(const XArray& array, double first) {
  for (const Grid& grid : array.grids())
    for (Index i = 0; i < grid.region.size(); ++i, ++first) std::memcpy(grid.data + 8 * i, &first, 8);
}
/// The parts that a rank of a world of so many holds.
std::vector<Part> parts_of(Arrays& arrays, Index rank, Index ranks) {
  std::vector<Part> parts;
  const auto local = arrays.local();
  for (std::size_t p = 0; p < local.size(); ++p)
    if (const Index owner = arrays.rank(Index(p)); owner % ranks == rank) parts.push_back({owner, local[p]});
  return parts;
}
XArray blocks_of_rank(const XArray& whole, Index rank) {
  std::vector<Grid> grids;
  for (const Index k : whole.blocks().owned_by(rank)) grids.push_back(whole.grid(k));
  return XArray::over(whole.blocks(), rank, whole.format(), std::move(grids));
}
void expect_same_doubles(const XArray& a, const XArray& b) {
  for (Index k = 0; k < a.blocks().size(); ++k)
    EXPECT_EQ(std::memcmp(a.grid(k).data, b.grid(k).data, std::size_t(a.grid(k).region.size() * 8)), 0)
        << "block " << k;
}

/// Two plans between layouts and two between blocks, of five ranks, with arrays for everybody.
struct Four {
  MotionPlan turn{
      Layout::parse("(BLOCK, CYCLIC(2)) on 5x1", {12, 9}), Layout::parse("(*, CYCLIC) on 4", {9, 12}), 8, {1, 0}};
  MotionPlan sum{Layout::parse("(BLOCK) on 3", {40}), Layout::parse("(CYCLIC(3)) on 5", {40}), 8};
  FloorPlan blocks = even_floor_plan(Region({0, 0}, {10, 8}), 5);
  FloorPlan rows = balanced_along(split_to_size(Region({0, 0}, {10, 8}), {1, 8}), 5);
  Halo halo{2, 1, Region({0, 0}, {10, 8}), {true, false}};
  BlockPlan ghosts = halo_exchange(blocks, halo), back = copy_between(blocks, rows).reverse();
  Arrays a{turn.source(), 8}, b{turn.destination(), 8}, c{sum.source(), 8}, d{sum.destination(), 8};
  XArray u{blocks, {}, {8, Point(2, 1), Order::F}}, v{rows, {}, {8, Point(2), Order::C}},
      w{blocks, {}, {8, Point(2), Order::C}};

  void fill_all(double round) {
    for (auto* arrays : {&a, &b, &c, &d}) fill_doubles(*arrays, round * 10);
    for (const auto* array : {&u, &v, &w}) fill_doubles(*array, round);
  }
  std::vector<Field> everybodys() { return fields(0, 1); }
  std::vector<Field> fields(Index rank, Index ranks) {
    std::vector<Field> fields;
    fields.emplace_back(turn, parts_of(a, rank, ranks), parts_of(b, rank, ranks));
    fields.emplace_back(ghosts, u, u);
    fields.emplace_back(sum, parts_of(c, rank, ranks), parts_of(d, rank, ranks), add_doubles());
    fields.emplace_back(back, v, w, add_doubles());
    return fields;
  }
  void expect_same(const Four& other) const {
    EXPECT_EQ(b.memory, other.b.memory);
    EXPECT_EQ(d.memory, other.d.memory);
    expect_same_doubles(u, other.u), expect_same_doubles(w, other.w);
  }
};

TEST_F(FinegrainFields, of_layouts_and_blocks_do_what_threads_do) {
  for (const bool checked : {false, true})
    for (const std::uint64_t seed : {0, 1, 2, 3})
      for (const Index ranks : {5, 7, 3, 1}) {  // the last two hold those of several
        Four expected, mine;
        MoveOptions options;
        options.checked = checked;
        options.placement = ranks < 5 ? Placement::wrap : Placement::direct;
        const auto twin = bind_threads(expected.everybodys());
        Index moved = 0, arrived = 0, arrivals = 0;
        finegrain::run(ranks,
                       [&](Rank& me) {
                         auto fields = mine.fields(me.rank(), ranks);
                         const BlockPlan own = halo_exchange(mine.blocks, mine.halo, me.rank());
                         if (ranks >= 5 && seed % 2) {
                           const XArray share = blocks_of_rank(mine.u, me.rank());
                           fields[1] = Field(own, share, share);
                         }
                         const auto mover = finegrain::bind(fields, me, options);
                         moved += mover->moved_bytes();
                         for (int round = 0; round < 3; ++round) {
                           me.barrier();
                           if (me.rank() == 0) mine.fill_all(round), expected.fill_all(round), twin->move();
                           me.barrier();
                           mover->start();
                           while (round == 1 && !mover->test()) {
                           }
                           while (round == 2 && mover->next_arrival()) ++arrived;
                           mover->wait();
                           me.barrier();
                           if (me.rank() == 0) mine.expect_same(expected);
                         }
                       },
                       {seed});
        EXPECT_EQ(moved, twin->moved_bytes());
        twin->start();
        while (twin->next_arrival()) ++arrivals;
        EXPECT_EQ(arrived, arrivals);
      }
}

TEST_F(FinegrainFields, of_one_plan_wherever_their_arrays_lie) {
  Four four;
  const GridFormat format = four.u.format();
  auto fresh = [&](double first) {
    const XArray array(four.blocks, {}, format);
    fill_doubles(array, first);
    return array;
  };
  // Of the second field rank 2 has its blocks in an array of its own.
  for (const bool apart : {false, true}) {
    const XArray u = fresh(1), v = fresh(500), elsewhere = fresh(900);
    std::vector<Grid> grids = v.grids();
    for (const Index k : four.blocks.owned_by(2)) grids[std::size_t(k)] = (apart ? elsewhere : v).grid(k);
    const XArray mixed = XArray::over(four.blocks, {}, format, grids);
    const XArray expected_u = fresh(1), expected_v = fresh(500);
    if (apart)
      for (const Index k : four.blocks.owned_by(2)) {
        const Grid &to = expected_v.grid(k), &from = elsewhere.grid(k);
        std::memcpy(to.data, from.data, std::size_t(from.region.size() * 8));
      }
    bind_threads({Field(four.ghosts, expected_u, expected_u), Field(four.ghosts, expected_v, expected_v)})->move();
    finegrain::run(5, [&](Rank& me) {
      const XArray& second = apart && me.rank() == 2 ? elsewhere : v;
      const auto mover = finegrain::bind({Field(four.ghosts, u, u), Field(four.ghosts, second, second)}, me);
      mover->move();
    });
    expect_same_doubles(u, expected_u), expect_same_doubles(mixed, expected_v);
  }
}

TEST_F(FinegrainFields, layouts_are_reduced_with_functions_of_ones_own) {
  const MotionPlan plan(Layout::parse("(BLOCK) on 4", {64}), Layout::parse("(CYCLIC(2)) on 4", {64}), 8);
  Arrays source(plan.source(), 8), destination(plan.destination(), 8);
  finegrain::run(4, [&](Rank& me) {
    Index elements = 0;  // on this rank's stack
    const Update mine =
        Reduction(8, [&elements, r = me.rank()](std::byte* to, const std::byte*, Index n, Index step, Index) {
          elements += n;
          for (Index k = 0; k < n; ++k) std::memcpy(to + k * step, &r, sizeof r);
        });
    const auto mover =
        finegrain::bind({Field(plan, parts_of(source, me.rank(), 4), parts_of(destination, me.rank(), 4), mine)}, me);
    mover->move();
    EXPECT_EQ(elements, 16);
    for (std::size_t i = 0; i < 16; ++i)
      EXPECT_EQ(std::memcmp(&destination.memory[std::size_t(me.rank())][8 * i], std::begin({me.rank()}), 8), 0);
  });
}

TEST_F(FinegrainFields, checked_moves_of_layouts_find_what_was_written_meanwhile) {
  enum class Harm { none, source, destination };
  for (const auto harm : {Harm::none, Harm::source, Harm::destination}) {
    Four four;
    auto world = [&] {
      finegrain::run(5, [&](Rank& me) {
        MoveOptions options;
        options.checked = true;
        const auto mover = finegrain::bind(four.fields(me.rank(), 5), me, options);
        for (int round = 0; round < 2; ++round) {
          me.barrier();
          if (me.rank() == 0) four.fill_all(round);
          me.barrier();
          mover->start();
          me.barrier();
          if (round == 1 && me.rank() == 3 && harm == Harm::source) four.a.memory[3][0] ^= std::byte(1);
          if (round == 1 && me.rank() == 3 && harm == Harm::destination) four.b.memory[3][0] ^= std::byte(1);
          mover->wait();
        }
      });
    };
    if (harm == Harm::none) world();
    if (harm == Harm::source)
      expect_error(ErrorKind::buffer, {"rank 3: the source of rank 3 -> rank 1", "written between start() and wait()"},
                   world);
    if (harm == Harm::destination)
      expect_error(ErrorKind::transport, {"rank 3: rank 1 -> rank 3", "what has arrived is not what was sent"}, world);
  }
}

TEST_F(FinegrainFields, say_what_is_wrong_to_every_rank) {
  Four four;
  auto refuses = [&](ErrorKind kind, const std::vector<std::string>& words, auto&& change, Index ranks = 5) {
    Index told = 0;
    finegrain::run(ranks, [&](Rank& me) {
      auto fields = four.fields(me.rank(), ranks);
      MoveOptions options;
      if (ranks < 5) options.placement = Placement::wrap;
      change(me.rank(), fields, options);
      expect_error(kind, words, [&] { finegrain::bind(fields, me, options); });
      ++told;
    });
    EXPECT_EQ(told, ranks);
  };
  refuses(ErrorKind::disagreement, {"\n  fields: rank 4 has 3, ranks 0-3 have 4"}, [](Index rank, auto& fields, auto&) {
    if (rank == 4) fields.pop_back();
  });
  refuses(ErrorKind::disagreement,
          {"\n  field 1: plan: rank 2 has a redistribution, ranks 0, 1, 3, 4 have a halo",
           "\n  field 2: plan: rank 2 has a halo, ranks 0, 1, 3, 4 have a redistribution"},
          [](Index rank, auto& fields, auto&) {
            if (rank == 2) std::swap(fields[1], fields[2]);
          });
  refuses(ErrorKind::disagreement, {"\n  field 2: reduce: rank 0 has none, ranks 1-4 have add of float64"},
          [&](Index rank, auto& fields, auto&) {
            if (rank == 0) fields[2] = Field(four.sum, parts_of(four.c, 0, 5), parts_of(four.d, 0, 5));
          });
  refuses(ErrorKind::disagreement, {"\n  checked: rank 1 has true, ranks 0, 2-4 have false"},
          [](Index rank, auto&, auto& options) { options.checked = rank == 1; });
  refuses(ErrorKind::disagreement, {"\n  placement: rank 1 has wrap, ranks 0, 2-4 have direct"},
          [](Index rank, auto&, auto& options) {
            if (rank == 1) options.placement = Placement::wrap;
          });
  refuses(ErrorKind::disagreement, {"\n  field 0: elements: rank 3 has 8 bytes (<f8), ranks 0-2, 4 have 8 bytes"},
          [&](Index rank, auto& fields, auto&) {
            if (rank == 3) fields[0] = Field(four.turn, parts_of(four.a, 3, 5), parts_of(four.b, 3, 5), {}, "<f8");
          });
  refuses(ErrorKind::shape, {"rank 2: the source array has shape"}, [&](Index rank, auto& fields, auto&) {
    auto parts = parts_of(four.c, rank, 5);
    if (rank == 2) parts[0].array.shape[0] = 7;
    fields[2] = Field(four.sum, parts, parts_of(four.d, rank, 5), add_doubles());
  });
  refuses(ErrorKind::argument, {"rank 1: no destination array for layout rank 1"},
          [&](Index rank, auto& fields, auto&) {
            if (rank == 1) fields[0] = Field(four.turn, parts_of(four.a, 1, 5), {});
          });
  refuses(ErrorKind::argument, {"rank 4: the source array is rank 0's, this is rank 4"},
          [&](Index rank, auto& fields, auto&) {
            const XArray mine = blocks_of_rank(four.u, rank == 4 ? 0 : rank);
            fields[1] = Field(four.ghosts, mine, mine);
          });
  refuses(ErrorKind::type, {"add is for elements of 4 bytes, the arrays' have 8"},
          [&](Index rank, auto& fields, auto&) {
            fields[2] = Field(four.sum, parts_of(four.c, rank, 5), parts_of(four.d, rank, 5),
                              Reduction(ElementType::int32, ReduceOp::add));
          });
  refuses(ErrorKind::buffer, {"the destination array of rank", "share memory"}, [&](Index, auto& fields, auto&) {
    fields.push_back(fields[0]);  // written twice
  });
  // A field is one rank's, for it knows whose it is.
  const auto everybodys = four.fields(0, 5);
  refuses(ErrorKind::argument, {"rank 0: rank 4 binds the same Field"},
          [&](Index, auto& fields, auto&) { fields[1] = everybodys[1]; });
  refuses(
      ErrorKind::argument, {"rank 0: the source part of layout rank 1 belongs in process 1, not in process 0"},
      [&](Index rank, auto& fields, auto&) {
        if (rank == 0) fields[0] = Field(four.turn, parts_of(four.a, 0, 1), parts_of(four.b, 0, 2));
      },
      2);
  finegrain::run(5, [&](Rank& me) {
    finegrain::bind(std::vector<Field>{}, me)->move();
    auto fields = four.fields(me.rank(), 5);
    finegrain::bind(fields, me)->move();
    finegrain::bind(fields, me)->move();  // once more, when the others are gone
  });
}

TEST_F(FinegrainFields, of_thousands_of_ranks) {
  for (const Index ranks : world_sizes()) {
    const std::string on = " on " + std::to_string(ranks);
    const MotionPlan plan(Layout::parse("(BLOCK)" + on, std::vector<Index>{9 * ranks}),
                          Layout::parse("(CYCLIC(2))" + on, std::vector<Index>{9 * ranks}), 8);
    const Region domain({0, 0}, {3 * ranks, 4});
    const auto blocks = even_floor_plan(domain, ranks);
    const Halo halo(2, 1, domain, {true, true});
    const BlockPlan ghosts = halo_exchange(blocks, halo);
    const XArray u(blocks, {}, {8, Point(2, 1), Order::F}), expected_u(blocks, {}, u.format());
    Arrays a(plan.source(), 8), b(plan.destination(), 8), expected_b = b;
    fill_doubles(a, 1), fill_doubles(b, 2), fill_doubles(expected_b, 2), fill_doubles(u, 3),
        fill_doubles(expected_u, 3);
    const auto twin = bind_threads({Field(ghosts, expected_u, expected_u),
                                    Field(plan, parts_of(a, 0, 1), parts_of(expected_b, 0, 1), add_doubles())});
    twin->move();
    const auto sources = a.local(), destinations = b.local();
    finegrain::run(ranks, [&](Rank& me) {
      MoveOptions options;
      options.checked = ranks <= 500;
      const auto r = std::size_t(me.rank());
      const auto mover = finegrain::bind(
          {Field(ghosts, u, u), Field(plan, {{me.rank(), sources[r]}}, {{me.rank(), destinations[r]}}, add_doubles())},
          me, options);
      mover->move();
    });
    EXPECT_EQ(b.memory, expected_b.memory);
    expect_same_doubles(u, expected_u);
  }
}

}  // namespace
}  // namespace longshore::test
