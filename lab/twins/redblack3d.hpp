/// Redblack3D on MPI by hand: one message a face, all at once.
#pragma once

#include "apps/app.hpp"
#include "lab/twins/mesh.hpp"

namespace longshore::apps::twins {

class Redblack3d {
 public:
  Phases phases;

  Redblack3d(MPI_Comm comm, const Point& grid, const Region& block);
  Redblack3d(const Redblack3d&) = delete;
  Redblack3d& operator=(const Redblack3d&) = delete;
  ~Redblack3d() { MPI_Comm_free(&comm_); }

  const View<double, 3>& solution() const { return solution_.view; }
  const View<double, 3>& scaled_source() const { return scaled_source_.view; }

  template <class Compute>
  void refresh(Compute&& compute) {
    exchange();
    compute(block_);
  }

 private:
  void exchange();

  MPI_Comm comm_ = MPI_COMM_NULL;
  Region block_;
  Mesh solution_, scaled_source_;
  std::vector<Face> faces_;  ///< those with a neighbour
  std::vector<MPI_Request> requests_;
};

}  // namespace longshore::apps::twins
