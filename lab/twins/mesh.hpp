/// What the hand-written twins of NAS-MG and Redblack3D have in common: the memory of a mesh, and one face of it.
#pragma once

#include <mpi.h>

#include <vector>

#include <longshore/layouts/xarray.hpp>
#include "lab/twins/array.hpp"

namespace longshore::apps::twins {

/// Doubles over a region, k fastest, and the memory for them.
struct Mesh {
  explicit Mesh(const Region& region)
      : memory(region.size()),
        view(Grid{region, reinterpret_cast<std::byte*>(memory.data()),
                  dense_strides(region.shape(), Order::C, sizeof(double)), sizeof(double)}) {}
  Array<double> memory;
  View<double, 3> view;
};

/// One side of a block in one dimension: the plane of points that the neighbour there wants, and the plane
/// of ghost cells that it fills. `widened`: dimensions in which the planes include the ghost cells. Planes
/// across dimension 0 lie together in memory (with ghost cells between their rows, which nobody reads if
/// they are not included) and are sent from where they are.
class Face {
 public:
  Face(const View<double, 3>& mesh, const Region& block, int dim, int side, int neighbour, const Region& widened)
      : neighbour_(neighbour), tag_(2 * dim + side), back_tag_(2 * dim + 1 - side) {
    const int across[] = {dim == 0 ? 1 : 0, dim == 2 ? 1 : 2};
    for (int e = 0; e < 2; ++e) counts_[e] = widened.extent(across[e]), strides_[e] = mesh.stride(across[e]);
    Point at = widened.lower();
    at[dim] = side == 0 ? block.lower()[dim] : block.upper()[dim] - 1;
    edge_ = &mesh(at[0], at[1], at[2]);
    ghosts_ = edge_ + (side == 0 ? -1 : 1) * mesh.stride(dim);
    in_place_ = dim == 0;
    count_ = int(in_place_ ? (counts_[0] - 1) * strides_[0] + counts_[1] : counts_[0] * counts_[1]);
    if (!in_place_) outgoing_.resize(std::size_t(count_)), incoming_.resize(std::size_t(count_));
  }

  void receive(MPI_Comm comm, MPI_Request* request) {
    MPI_Irecv(in_place_ ? ghosts_ : incoming_.data(), count_, MPI_DOUBLE, neighbour_, back_tag_, comm, request);
  }
  void send(MPI_Comm comm, MPI_Request* request) {
    if (!in_place_) each([&](Index from, Index to) { outgoing_[to] = edge_[from]; });
    MPI_Isend(in_place_ ? edge_ : outgoing_.data(), count_, MPI_DOUBLE, neighbour_, tag_, comm, request);
  }
  void unpack() {
    if (!in_place_) each([&](Index to, Index from) { ghosts_[to] = incoming_[from]; });
  }

 private:
  template <class F>
  void each(F&& f) const {
    for (Index m = 0; m < counts_[0]; ++m)
      if (strides_[1] == 1)
        for (Index n = 0; n < counts_[1]; ++n) f(m * strides_[0] + n, m * counts_[1] + n);
      else
        for (Index n = 0; n < counts_[1]; ++n) f(m * strides_[0] + n * strides_[1], m * counts_[1] + n);
  }

  int neighbour_, tag_, back_tag_, count_ = 0;
  bool in_place_ = false;
  double *edge_, *ghosts_;
  Index counts_[2], strides_[2];
  std::vector<double> outgoing_, incoming_;
};

}  // namespace longshore::apps::twins
