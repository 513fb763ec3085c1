/// Moves of typed arrays of one process: spans, vectors and what is like std::mdspan, in place of addresses and bytes.
#pragma once

#include <concepts>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore {

/// Elements in a row: a span, a vector.
template <class A>
concept ContiguousElements = std::ranges::contiguous_range<A> && std::ranges::sized_range<A> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<A>>;

/// What is like std::mdspan: the first element's address, and the extent and the stride, in elements, of every
/// dimension.
template <class A>
concept StridedElements = requires(const A& array, std::size_t d) {
  requires std::is_trivially_copyable_v<std::remove_reference_t<decltype(*array.data_handle())>>;
  { std::remove_cvref_t<A>::rank() } -> std::convertible_to<std::size_t>;
  { array.extent(d) } -> std::convertible_to<Index>;
  { array.stride(d) } -> std::convertible_to<Index>;
};

/// The elements of `rank`'s local array in contiguous memory, as the layout wants them. A rank that owns nothing needs
/// none. Throws `Error(buffer)` naming the rank where there are fewer elements than that. Movers do not hold on to the
/// memory: it has to outlive them, and that of a temporary is not taken. Not collective.
template <ContiguousElements A>
requires std::ranges::borrowed_range<A> LocalArray local_array(A&& elements, const Layout& layout, Index rank) {
  using T = std::remove_reference_t<std::ranges::range_reference_t<A>>;
  const Index there = Index(std::ranges::size(elements)), wanted = layout.allocated_size(rank);
  if (there < wanted)
    throw Error(ErrorKind::buffer, "rank " + std::to_string(rank) + ": there are " + std::to_string(there) +
                                       " elements of memory, the layout " + layout.to_string() + " wants " +
                                       std::to_string(wanted));
  auto* const data = const_cast<std::remove_const_t<T>*>(std::ranges::data(elements));
  return {reinterpret_cast<std::byte*>(data), layout.local_shape(rank), layout.local_strides(rank, Index(sizeof(T))),
          std::is_const_v<T>, nullptr};
}

/// A local array as it says itself to lie in memory; who binds it checks that this is what the layout wants.
template <StridedElements A>
LocalArray local_array(const A& array) {
  using T = std::remove_reference_t<decltype(*array.data_handle())>;
  LocalArray local;
  local.data = reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(std::to_address(array.data_handle())));
  local.read_only = std::is_const_v<T>;
  local.shape = local.strides = Point(std::size_t(A::rank()));
  for (std::size_t d = 0; d < std::size_t(A::rank()); ++d) {
    local.shape[d] = Index(array.extent(d));
    local.strides[d] = checked_mul(Index(array.stride(d)), Index(sizeof(T)));
  }
  return local;
}
/// The same; the layout's word does not count.
template <StridedElements A>
LocalArray local_array(const A& array, const Layout&, Index) {
  return local_array(array);
}

/// The local arrays of all ranks of a layout, in the order of its processes: a vector of vectors, an array of mdspans.
template <class P>
concept LocalArrays = std::ranges::random_access_range<P> && std::ranges::sized_range<P> &&
    ((ContiguousElements<std::ranges::range_reference_t<P>> &&
      std::ranges::borrowed_range<std::ranges::range_reference_t<P>>) ||
     StridedElements<std::ranges::range_value_t<P>>);

/// Those that are still there when a mover starts: no temporary that owns the memory.
template <class P>
concept LastingLocalArrays = LocalArrays<P> &&
    (std::is_lvalue_reference_v<P> || StridedElements<std::ranges::range_value_t<P>> ||
     std::ranges::borrowed_range<std::ranges::range_value_t<P>>);

namespace detail {

template <class P>
struct ElementOf {
  using type = std::remove_reference_t<decltype(*std::declval<std::ranges::range_value_t<P>&>().data_handle())>;
};
template <class P>
requires ContiguousElements<std::ranges::range_reference_t<P>>
struct ElementOf<P> {
  using type = std::remove_reference_t<std::ranges::range_reference_t<std::ranges::range_reference_t<P>>>;
};
template <class P>
using Element = typename ElementOf<P>::type;

template <LocalArrays P>
std::vector<LocalArray> local_arrays(P&& parts, const Layout& layout, const char* what) {
  if (Index(std::ranges::size(parts)) != layout.processes())
    throw Error(ErrorKind::argument, std::to_string(std::ranges::size(parts)) + " " + what + " arrays, the layout " +
                                         layout.to_string() + " has " + std::to_string(layout.processes()) + " ranks");
  std::vector<LocalArray> arrays;
  for (Index p = 0; auto&& part : parts) arrays.push_back(local_array(part, layout, layout.grid().world_rank(p++)));
  return arrays;
}

}  // namespace detail

/// The `threads` engine for typed arrays: `sources` and `destinations` have the local array of every process of their
/// layouts. They have to outlive the mover. Throws what `bind_threads` throws, and `Error(type)` where the plan's
/// elements are of another size.
template <LastingLocalArrays S, LastingLocalArrays D>
std::unique_ptr<Mover> bind_threads(const MotionPlan& plan, S&& sources, D&& destinations,
                                    const MoveOptions& options = {}) {
  using T = detail::Element<D>;
  static_assert(std::is_same_v<std::remove_const_t<detail::Element<S>>, T>,
                "sources and destinations have the same elements, and those of destinations are not const");
  if (plan.element_bytes() != Index(sizeof(T)))
    throw Error(ErrorKind::type, "elements of " + std::to_string(sizeof(T)) + " bytes for a plan of elements of " +
                                     std::to_string(plan.element_bytes()));
  return bind_threads(plan, detail::local_arrays(sources, plan.source(), "source"),
                      detail::local_arrays(destinations, plan.destination(), "destination"), options);
}

/// Moves an array from one layout to another, once: all ranks' local arrays are in this process. With axes, dimension d
/// of `to` is dimension axes[d] of `from`, as in NumPy's transpose. For repeated moves keep the mover of
/// `bind_threads`.
template <LocalArrays S, LocalArrays D>
void redistribute(S&& sources, const Layout& from, D&& destinations, const Layout& to, const MoveOptions& options = {},
                  std::vector<std::size_t> axes = {}) {
  bind_threads(MotionPlan(from, to, Index(sizeof(detail::Element<D>)), std::move(axes)), sources, destinations, options)
      ->move();
}

/// New memory for the local arrays of all processes of a layout, all zeros, padding included.
template <class T>
std::vector<std::vector<T>> make_local_arrays(const Layout& layout) {
  std::vector<std::vector<T>> parts;
  for (Index p = 0; p < layout.processes(); ++p)
    parts.emplace_back(std::size_t(layout.allocated_size(layout.grid().world_rank(p))));
  return parts;
}

/// The layout that has the whole of an array at rank 0.
inline Layout whole_layout(const std::vector<Index>& shape, Order order = Order::C) {
  std::vector<Distribution> dimensions;
  for (const Index extent : shape) dimensions.push_back(Distribution::collapsed(extent));
  ProcessGrid grid;
  grid.extents = {1}, grid.replicated = {false};
  return Layout(std::move(dimensions), std::move(grid), order);
}

/// Deals a whole array, in row-major order, to a layout: a new local array for each of its processes. Throws
/// `Error(buffer)` where the array has fewer elements than the layout.
template <ContiguousElements A>
auto scatter(A&& whole, const Layout& layout) {
  auto parts = make_local_arrays<std::ranges::range_value_t<A>>(layout);
  const std::span of_one(std::ranges::data(whole), std::ranges::size(whole));
  redistribute(std::span(&of_one, 1), whole_layout(layout.shape()), parts, layout);
  return parts;
}

/// The whole array again, in row-major order, of local arrays as a layout has them.
template <LocalArrays P>
auto gather(P&& parts, const Layout& layout) {
  std::vector<std::vector<std::remove_const_t<detail::Element<P>>>> whole(1);
  whole[0].resize(std::size_t(layout.size()));
  redistribute(parts, layout, whole, whole_layout(layout.shape()));
  return std::move(whole[0]);
}

}  // namespace longshore
