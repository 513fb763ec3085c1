#include "lab/twins/redblack3d.hpp"

namespace longshore::apps::twins {

Redblack3d::Redblack3d(MPI_Comm comm, const Point& grid, const Region& block)
    : block_(block), solution_(block.grow(1)), scaled_source_(block) {
  const int extents[] = {int(grid[0]), int(grid[1]), int(grid[2])}, periods[] = {0, 0, 0};
  MPI_Cart_create(comm, 3, extents, periods, 0, &comm_);
  for (int d = 0; d < 3; ++d) {
    int neighbours[2];
    MPI_Cart_shift(comm_, d, 1, &neighbours[0], &neighbours[1]);
    for (int side = 0; side < 2; ++side)
      if (neighbours[side] != MPI_PROC_NULL)
        faces_.emplace_back(solution_.view, block, d, side, neighbours[side], block);
  }
  requests_.resize(2 * faces_.size());
}

void Redblack3d::exchange() {
  Stopwatch communication(phases.communication_s);
  MPI_Request* request = requests_.data();
  for (Face& face : faces_) face.receive(comm_, request++);
  for (Face& face : faces_) face.send(comm_, request++);
  MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  for (Face& face : faces_) face.unpack();
}

}  // namespace longshore::apps::twins
