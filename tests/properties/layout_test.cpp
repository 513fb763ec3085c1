// Layouts of 1 to 8 dimensions against the dense owner array.
#include "longshore/layouts/layout.hpp"

#include "support/generators.hpp"

namespace longshore::test {
namespace {

RC_GTEST_PROP(Layout, places_every_element_as_the_dense_array_does, (const LayoutSpec& spec)) {
  const auto made = layout(spec);
  const DenseLayout dense(spec);
  for_each_index(dense.shape, [&](const Indices& index) {
    const auto local = dense.local(index);
    Indices owners(std::size_t(dense.replicas), -1);
    for (const auto& process : dense.processes)
      if (dense.owns(process, index)) {
        owners[std::size_t(process.replica)] = process.rank;
        RC_ASSERT(made.local_to_global(process.rank, local) == index);
      }
    RC_ASSERT(made.owners(index) == owners);
    const auto place = made.global_to_local(index);
    RC_ASSERT(place.rank == owners.front());
    RC_ASSERT(place.local == local);
  });
}

RC_GTEST_PROP(Layout, describes_every_local_array, (const LayoutSpec& spec)) {
  const auto made = layout(spec);
  const DenseLayout dense(spec);
  const Index element_bytes = draw(1, 16);
  Index world_size = 0;
  for (const auto& process : dense.processes) {
    world_size = std::max(world_size, process.rank + 1);
    const auto shape = dense.local_shape(process);
    RC_ASSERT(made.local_shape(process.rank) == shape);
    RC_ASSERT(made.local_size(process.rank) == product(shape));
    RC_ASSERT(made.allocated_size(process.rank) == dense.allocated(process));
    Indices owned;
    for (const auto& runs : made.owned(process.rank)) owned.push_back(runs.size());
    RC_ASSERT(owned == shape);
    const auto strides = made.local_strides(process.rank, element_bytes);
    for_each_index(shape, [&](const Indices& local) {
      Index at = 0;
      for (std::size_t d = 0; d < local.size(); ++d) at += local[d] * strides[d];
      RC_ASSERT(at == dense.offset(process, local) * element_bytes);
    });
  }
  RC_ASSERT(made.world_size() == world_size);
}

RC_GTEST_PROP(Layout, numbers_its_processes, (const LayoutSpec& spec)) {
  const auto made = layout(spec);
  const DenseLayout dense(spec);
  RC_ASSERT(made.processes() == Index(dense.processes.size()));
  RC_ASSERT(made.replicas() == dense.replicas);
  std::vector<bool> taken(std::size_t(made.world_size() + 2), false);
  for (std::size_t p = 0; p < dense.processes.size(); ++p) {
    const auto& process = dense.processes[p];
    taken[std::size_t(process.rank)] = true;
    RC_ASSERT(made.process_of(process.rank) == std::optional(Index(p)));
    RC_ASSERT(made.grid().world_rank(Index(p)) == process.rank);
    RC_ASSERT(made.owner_coordinates(Index(p)) == process.coordinates);
    RC_ASSERT(made.replica(Index(p)) == process.replica);
    RC_ASSERT(made.process_at(process.coordinates, process.replica) == Index(p));
  }
  for (std::size_t rank = 0; rank < taken.size(); ++rank) {
    if (taken[rank]) continue;
    RC_ASSERT(!made.process_of(Index(rank)));
    RC_ASSERT(made.local_shape(Index(rank)) == Indices(dense.shape.size(), 0));
    RC_ASSERT(made.owned(Index(rank)) == std::vector<Runs>(dense.shape.size()));
  }
}

RC_GTEST_PROP(Layout, a_window_is_a_box_of_every_local_array, (const LayoutSpec& spec)) {
  const auto made = layout(spec);
  const DenseLayout dense(spec);
  Indices first, last, shape;
  for (const Index extent : dense.shape) {
    first.push_back(draw(0, extent));
    last.push_back(draw(first.back(), extent));
    shape.push_back(last.back() - first.back());
  }
  const auto window = made.window(first, last);
  RC_ASSERT(window.shape() == shape);
  for_each_index(shape, [&](const Indices& index) {
    auto global = index;
    for (std::size_t d = 0; d < index.size(); ++d) global[d] += first[d];
    RC_ASSERT(window.owners(index) == made.owners(global));
    const auto inner = window.global_to_local(index), outer = made.global_to_local(global);
    const auto start = made.local_start(inner.rank, first);
    for (std::size_t d = 0; d < index.size(); ++d) RC_ASSERT(inner.local[d] + start[d] == outer.local[d]);
  });
}

RC_GTEST_PROP(Layout, text_says_everything, (const LayoutSpec& spec)) {
  const auto made = layout(spec);
  const auto parsed = Layout::parse(spec.text(), spec.shape());
  RC_ASSERT(parsed == made);
  RC_ASSERT(Layout::parse(made.to_string(), spec.shape()) == made);
  RC_ASSERT(parsed.to_string() == made.to_string());
  RC_ASSERT(parsed.digest() == made.digest());
}

RC_GTEST_PROP(Layout, a_window_too_is_text, (const LayoutSpec& spec)) {
  Indices first, last;
  for (const Index extent : spec.shape()) first.push_back(draw(0, extent)), last.push_back(draw(first.back(), extent));
  const auto window = layout(spec).window(first, last);
  RC_ASSERT(Layout::parse(window.to_string(), window.shape()) == window);
}

RC_GTEST_PROP(Layout, options_override_the_text, (const LayoutSpec& spec)) {
  Layout::Options options;
  options.order = spec.fortran ? Order::F : Order::C;
  options.rank_order = spec.column_major_ranks ? Order::F : Order::C;
  Indices sources, origins;
  for (const auto& dimension : spec.dimensions) {
    origins.push_back(dimension.origin);
    if (dimension.kind != DimensionSpec::Kind::collapsed) sources.push_back(dimension.source);
  }
  options.source = sources;
  options.origin = origins;
  options.ld = spec.ld();
  auto bare = spec;
  bare.fortran = !spec.fortran, bare.column_major_ranks = !spec.column_major_ranks, bare.padding = 0;
  for (auto& dimension : bare.dimensions) dimension.source = dimension.origin = 0;
  RC_ASSERT(Layout::parse(bare.text(), spec.shape(), options) == layout(spec));
}

RC_GTEST_PROP(Layout, equal_digests_mean_equal_layouts, (const LayoutSpec& a, const LayoutSpec& b)) {
  const auto one = layout(a), other = layout(b);
  RC_ASSERT((one == other) == (one.digest() == other.digest()));
}

RC_GTEST_PROP(Descriptor, round_trip, ()) {
  using Kind = DimensionSpec::Kind;
  LayoutSpec spec;
  for (int d = 0; d < 2; ++d) {
    const Index coordinates = draw(1, 5);
    spec.dimensions.push_back(
        {Kind::cyclic, draw_extent(60), coordinates, draw(1, 9), draw(0, coordinates - 1), 0, {}});
    spec.grid.push_back({coordinates, false});
  }
  spec.fortran = true;
  spec.column_major_ranks = chance(50);
  if (chance(50)) spec.padding = draw(2, 5);  // an LLD_ of 1 is no padding where there are no rows
  const auto made = layout(spec);
  const DenseLayout dense(spec);
  for (const auto& process : dense.processes) {
    const auto descriptor = descriptor_of(made, process.rank, 7);
    const auto &row = spec.dimensions[0], &column = spec.dimensions[1];
    const Index lld = spec.ld() > 0 ? spec.ld() : std::max<Index>(dense.local_shape(process)[0], 1);
    RC_ASSERT(descriptor ==
              (Descriptor{1, 7, row.extent, column.extent, *row.block, *column.block, row.source, column.source, lld}));
    RC_ASSERT(layout_from_descriptor(descriptor, row.coordinates, column.coordinates, made.grid().rank_order) == made);
  }
}

}  // namespace
}  // namespace longshore::test
