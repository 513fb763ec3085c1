#include "longshore/layouts/layout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/digest.hpp"
#include "ranks/runs.hpp"

namespace longshore {

namespace {

std::string join(const std::vector<Index>& values, const char* separator) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? separator : "") + std::to_string(values[i]);
  return text;
}

/// What a text can say of ranks as first:last:step, or nullptr: then it lists them.
const AffineNest* range_of(const RankMap& ranks) {
  const auto* nest = ranks.ascending() ? ranks.nest() : nullptr;
  return nest != nullptr && nest->depth() == 1 ? nest : nullptr;
}

}  // namespace

RankMap process_ranks(std::span<const Index> ranks) {
  const auto highest = std::max_element(ranks.begin(), ranks.end());
  const Index world = highest == ranks.end() ? 0 : std::clamp<Index>(*highest, 0, RankMap::largest_world - 1) + 1;
  try {
    return RankMap::of(ranks, world);
  } catch (const Error& error) {
    throw Error(ErrorKind::layout, error.what());
  }
}

Index ProcessGrid::size() const {
  Index n = 1;
  for (const Index extent : extents) n = checked_mul(n, extent);
  return n;
}

std::vector<Index> ProcessGrid::coordinates(Index process) const {
  std::vector<Index> result(extents.size());
  auto take = [&](std::size_t g) { result[g] = process % extents[g], process /= extents[g]; };
  if (rank_order == Order::C)
    for (std::size_t g = extents.size(); g-- > 0;) take(g);
  else
    for (std::size_t g = 0; g < extents.size(); ++g) take(g);
  return result;
}

Index ProcessGrid::coordinate(Index process, std::size_t dimension) const {
  if (rank_order == Order::C)
    for (std::size_t g = extents.size(); --g > dimension;) process /= extents[g];
  else
    for (std::size_t g = 0; g < dimension; ++g) process /= extents[g];
  return process % extents[dimension];
}

Layout::Layout(std::vector<Distribution> dimensions, ProcessGrid grid, Order order, Index ld) {
  Given given{std::move(dimensions), std::move(grid), order, ld};
  auto fail = [](const std::string& message) { throw Error(ErrorKind::layout, message); };
  if (given.dimensions.empty()) fail("a layout needs at least one dimension");
  if (given.grid.extents.empty()) fail("a process grid needs at least one extent");
  given.grid.replicated.resize(given.grid.extents.size(), false);

  given.size = 1;
  for (const auto& dimension : given.dimensions) given.shape.push_back(dimension.extent());
  if (std::find(given.shape.begin(), given.shape.end(), 0) != given.shape.end())
    given.size = 0;
  else
    for (const Index extent : given.shape) given.size = checked_mul(given.size, extent);

  for (std::size_t g = 0; g < given.grid.extents.size(); ++g)
    if (given.grid.extents[g] < 1) fail("grid extent " + std::to_string(given.grid.extents[g]) + " must be at least 1");
  const Index processes = given.grid.size();

  std::vector<std::size_t> plain;  // grid dimensions that distribute
  for (std::size_t g = 0; g < given.grid.extents.size(); ++g)
    if (given.grid.replicated[g])
      given.replicas = checked_mul(given.replicas, given.grid.extents[g]);
    else
      plain.push_back(g);
  std::size_t used = 0;
  const auto distributed =
      std::size_t(std::count_if(given.dimensions.begin(), given.dimensions.end(),
                                [](const auto& d) { return d.kind() != Distribution::Kind::collapsed; }));
  const bool lone = distributed == 0 && plain.size() == 1 && given.grid.extents[plain[0]] == 1;  // "(*, *) on 1"
  if (plain.size() != distributed && !lone)
    fail(std::to_string(distributed) + " distributed dimension" + (distributed == 1 ? "" : "s") + ", but the grid " +
         join(given.grid.extents, "x") + " has " + std::to_string(plain.size()) + " extent" +
         (plain.size() == 1 ? "" : "s") +
         " to distribute them over; write one extent for each, and * for a dimension that stays whole");
  for (std::size_t d = 0; d < given.dimensions.size(); ++d) {
    if (given.dimensions[d].kind() == Distribution::Kind::collapsed) {
      given.grid_dimension.push_back(no_grid_dimension);
      continue;
    }
    const std::size_t g = plain[used++];
    given.grid_dimension.push_back(g);
    if (given.dimensions[d].coordinates() != given.grid.extents[g])
      fail("dimension " + std::to_string(d) + ", " + given.dimensions[d].to_string() + ", is dealt to " +
           std::to_string(given.dimensions[d].coordinates()) + " coordinates, but its grid extent is " +
           std::to_string(given.grid.extents[g]));
  }

  if (processes > RankMap::largest_world) fail(std::to_string(processes) + " processes; at most 2^40");
  if (given.grid.ranks.empty()) given.grid.ranks = RankMap::whole(processes);
  if (given.grid.ranks.size() != processes)
    fail(std::to_string(given.grid.ranks.size()) + " ranks given for a grid of " + std::to_string(processes) +
         " processes");
  // Ranges are known as such, however they were written: the text of a layout depends on it, and on nothing else of the
  // map's form.
  if (given.grid.ranks.nest() == nullptr) {
    const auto range = ranks::stride_of(Members(given.grid.ranks), given.grid.ranks.world());
    given.grid.ranks =
        range ? RankMap::of_nest(*range, given.grid.ranks.world()) : given.grid.ranks.with_lookup(LookupKind::lazy);
  }
  given.world_size = given.grid.ranks.extent().second + 1;

  if (given.ld < 0) fail("ld " + std::to_string(given.ld) + " is negative");
  if (given.ld > 0) {
    const std::size_t fastest = given.order == Order::C ? given.dimensions.size() - 1 : 0;
    const Index largest = given.dimensions[fastest].largest_count();
    if (given.ld < largest)
      fail("ld " + std::to_string(given.ld) + " is smaller than the largest local extent " + std::to_string(largest) +
           " of dimension " + std::to_string(fastest));
  }
  given_ = std::make_shared<const Given>(std::move(given));
}

std::optional<Index> Layout::process_of(Index rank) const {
  const Index process = grid().ranks.rank(rank);
  return process == nobody ? std::nullopt : std::optional(process);
}

Point Layout::owner_coordinates(Index process) const {
  Point result(dimensions().size());
  for (std::size_t d = 0; d < result.dims(); ++d) result[d] = owner_coordinate(process, d);
  return result;
}

Index Layout::replica(Index process) const {
  const auto coordinates = grid().coordinates(process);
  Index result = 0;
  for (std::size_t g = 0; g < coordinates.size(); ++g)
    if (grid().replicated[g]) result = result * grid().extents[g] + coordinates[g];
  return result;
}

Index Layout::process_at(std::span<const Index> owner_coordinates, Index replica) const {
  // With nothing allocated: plans ask this for each of their motions.
  const std::size_t n = grid().extents.size();
  auto coordinate = [&](std::size_t g) -> Index {
    if (grid().replicated[g]) {
      Index turns = replica;
      for (std::size_t later = g + 1; later < n; ++later)
        if (grid().replicated[later]) turns /= grid().extents[later];
      return turns % grid().extents[g];
    }
    for (std::size_t d = 0; d < dimensions().size(); ++d)
      if (given_->grid_dimension[d] == g) return owner_coordinates[d];
    return 0;
  };
  Index result = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t g = grid().rank_order == Order::C ? k : n - 1 - k;
    result = result * grid().extents[g] + coordinate(g);
  }
  return result;
}

Point Layout::local_shape(Index rank) const {
  Point result(shape().size());
  const auto process = process_of(rank);
  if (!process) return result;
  for (std::size_t d = 0; d < result.dims(); ++d) result[d] = dimensions()[d].count(owner_coordinate(*process, d));
  return result;
}

Index Layout::local_size(Index rank) const {
  const auto extents = local_shape(rank);
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;  // however large the others are
  return std::accumulate(extents.begin(), extents.end(), Index{1}, std::multiplies<>());
}

Point Layout::allocated_shape(Index rank) const {
  auto extents = local_shape(rank);
  if (ld() > 0) extents[order() == Order::C ? extents.dims() - 1 : 0] = ld();
  return extents;
}

Index Layout::allocated_size(Index rank) const {
  if (ld() == 0) return local_size(rank);
  Index n = local_size(rank) == 0 ? 0 : 1;
  for (const Index extent : allocated_shape(rank)) n = checked_mul(n, extent);
  return n;
}

Point Layout::local_strides(Index rank, Index element_bytes) const {
  return dense_strides(allocated_shape(rank), order(), element_bytes);
}

std::vector<Runs> Layout::owned(Index rank) const {
  std::vector<Runs> runs(shape().size());
  if (const auto process = process_of(rank)) {
    const auto coordinates = owner_coordinates(*process);
    for (std::size_t d = 0; d < shape().size(); ++d) runs[d] = dimensions()[d].owned(coordinates[d]);
  }
  return runs;
}

namespace {

void require_index(const std::vector<Index>& index, std::span<const Index> extents, const char* what) {
  if (index.size() != extents.size())
    throw Error(ErrorKind::shape, std::string(what) + " index has " + std::to_string(index.size()) +
                                      " dimensions, the array has " + std::to_string(extents.size()));
  for (std::size_t d = 0; d < index.size(); ++d)
    if (index[d] < 0 || index[d] >= extents[d])
      throw Error(ErrorKind::argument, std::string(what) + " index " + std::to_string(index[d]) + " in dimension " +
                                           std::to_string(d) + " is outside [0, " + std::to_string(extents[d]) + ")");
}

}  // namespace

std::vector<Index> Layout::owners(const std::vector<Index>& index) const {
  require_index(index, shape(), "global");
  std::vector<Index> coordinates;
  for (std::size_t d = 0; d < index.size(); ++d) coordinates.push_back(dimensions()[d].owner(index[d]));
  std::vector<Index> result;
  for (Index r = 0; r < replicas(); ++r) result.push_back(grid().world_rank(process_at(coordinates, r)));
  return result;
}

Layout::Place Layout::global_to_local(const std::vector<Index>& index) const {
  require_index(index, shape(), "global");
  std::vector<Index> coordinates, local;
  for (std::size_t d = 0; d < index.size(); ++d) {
    coordinates.push_back(dimensions()[d].owner(index[d]));
    local.push_back(dimensions()[d].local(index[d]));
  }
  return {grid().world_rank(process_at(coordinates, 0)), std::move(local)};
}

std::vector<Index> Layout::local_to_global(Index rank, const std::vector<Index>& local) const {
  const auto process = process_of(rank);
  if (!process)
    throw Error(ErrorKind::argument, "rank " + std::to_string(rank) + " is not among the " +
                                         std::to_string(processes()) + " ranks of the layout");
  require_index(local, local_shape(rank), ("rank " + std::to_string(rank) + ": local").c_str());
  const auto coordinates = owner_coordinates(*process);
  std::vector<Index> result;
  for (std::size_t d = 0; d < local.size(); ++d) result.push_back(dimensions()[d].global(coordinates[d], local[d]));
  return result;
}

std::vector<Index> Layout::local_start(Index rank, const std::vector<Index>& first) const {
  if (first.size() != shape().size())
    throw Error(ErrorKind::shape, "window corner has " + std::to_string(first.size()) + " dimensions, the array has " +
                                      std::to_string(shape().size()));
  std::vector<Index> result(shape().size(), 0);
  const auto process = process_of(rank);
  if (!process) return result;
  const auto coordinates = owner_coordinates(*process);
  for (std::size_t d = 0; d < shape().size(); ++d) {
    if (first[d] < 0 || first[d] > shape()[d])
      throw Error(ErrorKind::argument, "window corner " + std::to_string(first[d]) + " in dimension " +
                                           std::to_string(d) + " is outside [0, " + std::to_string(shape()[d]) + "]");
    result[d] = dimensions()[d].count_below(coordinates[d], first[d]);
  }
  return result;
}

Layout Layout::window(const std::vector<Index>& first, const std::vector<Index>& last) const {
  if (first.size() != shape().size() || last.size() != shape().size())
    throw Error(ErrorKind::shape, "a window needs " + std::to_string(shape().size()) + " bounds on each side");
  std::vector<Distribution> windows;
  for (std::size_t d = 0; d < shape().size(); ++d) windows.push_back(dimensions()[d].window(first[d], last[d]));
  return Layout(std::move(windows), grid(), order());
}

std::string Layout::to_string() const {
  std::string text = "(";
  for (std::size_t d = 0; d < dimensions().size(); ++d) text += (d ? ", " : "") + dimensions()[d].to_string();
  text += ") on ";
  for (std::size_t g = 0; g < grid().extents.size(); ++g) {
    const auto extent = std::to_string(grid().extents[g]);
    text += (g ? "x" : "") + (grid().replicated[g] ? "REPLICATED(" + extent + ")" : extent);
  }
  if (order() != Order::C) text += ", order=F";
  if (grid().rank_order != Order::C) text += ", rank_order=F";
  std::vector<Index> sources, origins;
  for (const auto& dimension : dimensions()) {
    if (dimension.kind() != Distribution::Kind::collapsed) sources.push_back(dimension.source());
    origins.push_back(dimension.origin());
  }
  auto any = [](const std::vector<Index>& v) {
    return std::any_of(v.begin(), v.end(), [](Index x) { return x != 0; });
  };
  if (any(sources)) text += ", source=" + join(sources, "x");
  if (any(origins)) text += ", origin=" + join(origins, "x");
  const auto* range = range_of(grid().ranks);
  if (range == nullptr) {
    text += ", ranks=[" + join(grid().ranks.to_vector(), ",") + "]";
  } else if (const auto [count, step] = range->axis(0); range->base() != 0 || (count > 1 && step != 1)) {
    text += ", ranks=" + std::to_string(range->base()) + ":" + std::to_string(world_size());
    if (count > 1 && step != 1) text += ":" + std::to_string(step);
  }
  if (ld() > 0) text += ", ld=" + std::to_string(ld());
  return text;
}

std::uint64_t Layout::digest() const {
  Digest digest;
  digest.mix(std::array{Index(dimensions().size()), Index(order()), ld(), Index(grid().rank_order)});
  for (const auto& d : dimensions()) {
    digest.mix(std::array{Index(d.kind()), d.extent(), d.coordinates(), d.block(), d.source(), d.origin()});
    digest.mix(d.sizes());
  }
  for (std::size_t g = 0; g < grid().extents.size(); ++g)
    digest.mix(std::array{grid().extents[g], Index(grid().replicated[g])});
  if (const auto* range = range_of(grid().ranks)) {
    const auto [count, step] = range->axis(0);
    digest.mix(std::array{range->base(), count, count > 1 ? step : 0});
  } else {
    Members(grid().ranks).each_piece([&digest](Index, std::span<const Index> ranks) { digest.mix(ranks); });
  }
  return digest.value();
}

}  // namespace longshore
