#include "lab/twins/mg.hpp"

namespace longshore::apps::twins {

namespace {

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

}  // namespace

Mg::Mg(MPI_Comm comm, const std::vector<FloorPlan>& levels) : right_hand_side_(levels.back().region(rank_in(comm))) {
  const int rank = rank_in(comm), periods[] = {1, 1, 1};
  int grid[3];
  for (int d = 0; d < 3; ++d) grid[d] = int(levels.back().bounding().extent(d) / levels.back().region(rank).extent(d));
  MPI_Cart_create(comm, 3, grid, periods, 0, &comm_);
  for (auto& field : fields_)
    for (const FloorPlan& blocks : levels) {
      const Region block = blocks.region(rank);
      Level& level = field.emplace_back(Level{block, Mesh(block.grow(1)), {}});
      Region widened = block;  // by the dimensions that are exchanged before
      for (int d = 2; d >= 0; --d) {
        int neighbours[2];
        MPI_Cart_shift(comm_, d, 1, &neighbours[0], &neighbours[1]);
        for (int side = 0; side < 2 && grid[d] > 1; ++side)
          level.faces[d].emplace_back(level.mesh.view, block, d, side, neighbours[side], widened);
        Point one(3);
        one[d] = 1;
        widened = widened.grow(one);
      }
    }
}

void Mg::exchange(Level& level) {
  Stopwatch communication(phases.communication_s);
  for (int d = 2; d >= 0; --d) {
    auto& faces = level.faces[d];
    if (faces.empty()) {
      wrap(level, d);
      continue;
    }
    MPI_Request requests[4];
    for (int side = 0; side < 2; ++side) faces[side].receive(comm_, &requests[side]);
    for (int side = 0; side < 2; ++side) faces[side].send(comm_, &requests[2 + side]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (Face& face : faces) face.unpack();
  }
}

/// A dimension that is not cut: the block is its own neighbour on both sides.
void Mg::wrap(const Level& level, int dim) {
  const mg::Mesh& mesh = level.mesh.view;
  const Region& block = level.block;
  const Point low = block.lower(), high = block.upper();
  const Index extent = block.extent(dim), stride = mesh.stride(dim);
  if (dim == 2) {
    for (Index i = low[0]; i < high[0]; ++i)
      for (Index j = low[1]; j < high[1]; ++j) {
        double* const row = &mesh(i, j, low[2]);
        row[-1] = row[extent - 1];
        row[extent] = row[0];
      }
    return;
  }
  const Index begin = dim == 1 ? low[0] : low[1] - 1, end = dim == 1 ? high[0] : high[1] + 1,
              row = high[2] - low[2] + 2;
  for (Index m = begin; m < end; ++m) {
    double* const first = dim == 1 ? &mesh(m, low[1], low[2] - 1) : &mesh(low[0], m, low[2] - 1);
    std::copy_n(first + (extent - 1) * stride, row, first - stride);
    std::copy_n(first, row, first + extent * stride);
  }
}

}  // namespace longshore::apps::twins
