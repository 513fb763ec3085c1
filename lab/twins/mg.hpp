/// NAS-MG on MPI by hand: ghost cells dimension by dimension, so that edges and corners travel with the faces.
#pragma once

#include <array>

#include "apps/mg/solver.hpp"
#include "lab/twins/mesh.hpp"

namespace longshore::apps::twins {

class Mg {
 public:
  Phases phases;

  Mg(MPI_Comm comm, const std::vector<FloorPlan>& levels);
  Mg(const Mg&) = delete;
  Mg& operator=(const Mg&) = delete;
  ~Mg() { MPI_Comm_free(&comm_); }

  const mg::Mesh& right_hand_side() const { return right_hand_side_.view; }
  const mg::Mesh& mesh(mg::Field field, std::size_t level) const { return fields_[int(field)][level].mesh.view; }

  template <class Computable, class Compute>
  void refresh(mg::Field field, std::size_t level, Computable&& computable, Compute&& compute) {
    Level& at = fields_[int(field)][level];
    exchange(at);
    compute(computable(at.block.grow(1)));
  }

 private:
  struct Level {
    Region block;
    Mesh mesh;
    std::array<std::vector<Face>, 3> faces;  ///< of each dimension: two, or none where it is not cut
  };

  void exchange(Level& level);
  static void wrap(const Level& level, int dim);

  MPI_Comm comm_ = MPI_COMM_NULL;
  Mesh right_hand_side_;
  std::array<std::vector<Level>, 2> fields_;
};

}  // namespace longshore::apps::twins
