// Typed arrays against the bytes that they are, and what they refuse.
#include "longshore/movers/typed.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include "support/arrays.hpp"
#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

/// As much of std::mdspan as is asked for.
template <class T, std::size_t D>
struct Strided {
  T* data = nullptr;
  std::array<Index, D> extents{}, strides{};
  T* data_handle() const { return data; }
  static constexpr std::size_t rank() { return D; }
  Index extent(std::size_t d) const { return extents[d]; }
  Index stride(std::size_t d) const { return strides[d]; }
};

static_assert(ContiguousElements<std::span<double>> && ContiguousElements<const std::vector<int>&>);
template <class A>
constexpr bool makes_a_local_array = requires(A&& array, const Layout& layout) {
  local_array(std::forward<A>(array), layout, 0);
};
static_assert(makes_a_local_array<std::vector<int>&> && makes_a_local_array<std::span<const int>>);
static_assert(!makes_a_local_array<std::vector<int>>, "a temporary's memory goes before the move");
static_assert(!ContiguousElements<std::vector<std::string>&> && !ContiguousElements<std::vector<bool>&>);
static_assert(StridedElements<Strided<const float, 3>> && !StridedElements<std::vector<int>>);
static_assert(LocalArrays<std::vector<std::vector<int>>&> && LocalArrays<const std::vector<std::vector<int>>&>);
static_assert(LocalArrays<std::array<std::span<int>, 2>> && LocalArrays<std::vector<Strided<int, 2>>>);
static_assert(LastingLocalArrays<std::vector<std::span<int>>> && LastingLocalArrays<std::vector<Strided<int, 2>>>);
static_assert(LastingLocalArrays<std::vector<std::vector<int>>&> && !LastingLocalArrays<std::vector<std::vector<int>>>);
static_assert(!LocalArrays<std::vector<LocalArray>> && !LocalArrays<std::vector<int>&>);

struct Case {
  const char *from, *to;
  std::vector<Index> shape;
  std::vector<std::size_t> axes;
};

const std::vector<Case> cases{
    {"(BLOCK, *) on 4", "(CYCLIC(3), CYCLIC(2)) on 2x2", {13, 17}, {}},
    {"(BLOCK, *) on 7", "(*, BLOCK) on 5", {3, 2}, {}},  // more ranks than elements
    {"(CYCLIC) on 3, order=F, ld=9", "(BLOCK) on 2xREPLICATED(2), ranks=[3,1,0,2]", {11}, {}},
    {"(BLOCK, *) on 2", "(*, CYCLIC) on 3", {0, 5}, {}},
    {"(*, BLOCK, CYCLIC) on 2x2, order=F", "(BLOCK, *, *) on 3, ld=8", {5, 6, 7}, {1, 2, 0}},
};

template <class T>
void moves_as_bytes_do(const Case& each) {
  std::vector<Index> shape = each.shape, permuted = shape;
  for (std::size_t d = 0; d < each.axes.size(); ++d) permuted[d] = shape[each.axes[d]];
  const auto from = Layout::parse(each.from, shape), to = Layout::parse(each.to, permuted);
  std::vector<T> whole(std::size_t(from.size()));
  std::iota(whole.begin(), whole.end(), T(1));
  const auto parts = scatter(whole, from);
  ASSERT_EQ(Index(parts.size()), from.processes());
  EXPECT_EQ(gather(parts, from), whole);
  EXPECT_EQ(scatter(gather(scatter(whole, from), from), from), parts);

  const MotionPlan plan(from, to, sizeof(T), each.axes);
  Arrays source(from, sizeof(T)), destination(to, sizeof(T));
  for (std::size_t p = 0; p < parts.size(); ++p)
    if (!parts[p].empty()) std::memcpy(source.memory[p].data(), parts[p].data(), parts[p].size() * sizeof(T));
  for (auto& part : destination.memory) std::fill(part.begin(), part.end(), std::byte(0));
  bind_threads(plan, source.local(), destination.local())->move();

  auto moved = make_local_arrays<T>(to);
  redistribute(parts, from, moved, to, {}, each.axes);
  for (std::size_t p = 0; p < moved.size(); ++p) {
    if (moved[p].empty()) continue;
    EXPECT_EQ(std::memcmp(moved[p].data(), destination.memory[p].data(), moved[p].size() * sizeof(T)), 0) << each.to;
  }

  std::vector<std::span<const T>> spans(parts.begin(), parts.end());
  auto again = make_local_arrays<T>(to);
  const auto mover = bind_threads(plan, spans, again, MoveOptions{{}, 2, 0});
  mover->start();
  mover->wait();
  EXPECT_EQ(again, moved);
}

TEST(Typed, arrays_move_as_their_bytes_do) {
  for (const Case& each : cases) {
    moves_as_bytes_do<double>(each);
    moves_as_bytes_do<std::int16_t>(each);
    moves_as_bytes_do<float>(each);
  }
}

TEST(Typed, what_is_like_mdspan_says_where_it_lies) {
  const auto rows = Layout::parse("(BLOCK, *) on 2", {6, 4}),
             columns = Layout::parse("(*, BLOCK) on 2, order=F", {6, 4});
  std::vector<int> whole(24), moved(24, -1);
  std::iota(whole.begin(), whole.end(), 0);
  const std::vector<Strided<const int, 2>> sources{{whole.data(), {3, 4}, {4, 1}}, {whole.data() + 12, {3, 4}, {4, 1}}};
  std::vector<Strided<int, 2>> destinations{{moved.data(), {6, 2}, {1, 6}}, {moved.data() + 12, {6, 2}, {1, 6}}};
  redistribute(sources, rows, destinations, columns);
  for (Index j = 0; j < 4; ++j)
    for (Index i = 0; i < 6; ++i) EXPECT_EQ(moved[std::size_t(6 * j + i)], 4 * i + j);
  const LocalArray local = local_array(sources[1]);
  EXPECT_EQ(local.shape, (std::vector<Index>{3, 4}));
  EXPECT_EQ(local.strides, (std::vector<Index>{16, 4}));
  EXPECT_TRUE(local.read_only && local_array(whole, rows, 0).data == reinterpret_cast<std::byte*>(whole.data()));
  EXPECT_FALSE(local_array(destinations[1]).read_only);

  destinations[1].strides = {2, 1};
  expect_error(ErrorKind::buffer, {"rank 1", "destination", "stride of 8", "wants 4"},
               [&] { redistribute(sources, rows, destinations, columns); });
  destinations[1] = {moved.data() + 12, {2, 6}, {6, 1}};
  expect_error(ErrorKind::shape, {"rank 1", "(2, 6)", "(6, 2)"},
               [&] { redistribute(sources, rows, destinations, columns); });
}

TEST(Typed, refuses_what_does_not_fit) {
  const auto rows = Layout::parse("(BLOCK, *) on 2, ld=5", {6, 4}), columns = Layout::parse("(*, BLOCK) on 2", {6, 4});
  auto parts = make_local_arrays<double>(rows), moved = make_local_arrays<double>(columns);
  EXPECT_EQ(parts[1].size(), 15u);
  parts[1].pop_back();
  expect_error(ErrorKind::buffer, {"rank 1", "14 elements", "wants 15"}, [&] { local_array(parts[1], rows, 1); });
  expect_error(ErrorKind::buffer, {"rank 1", "14 elements"}, [&] { redistribute(parts, rows, moved, columns); });
  parts.pop_back();
  expect_error(ErrorKind::argument, {"1 source arrays", "has 2 ranks"},
               [&] { redistribute(parts, rows, moved, columns); });
  parts = make_local_arrays<double>(rows);
  expect_error(ErrorKind::type, {"elements of 8 bytes", "elements of 4"},
               [&] { bind_threads(MotionPlan(rows, columns, 4), parts, moved); });
  const std::vector<int> short_of_one(23);
  expect_error(ErrorKind::buffer, {"23 elements", "wants 24"}, [&] { scatter(short_of_one, rows); });
  EXPECT_EQ(local_array(std::span<double>(), Layout::parse("(BLOCK) on 3", {2}), 2).shape, std::vector<Index>{0});
}

}  // namespace
}  // namespace longshore::test
