/// NAS-FT's transposes as hand-written MPI.
#pragma once

#include <mpi.h>

#include <vector>

#include "apps/app.hpp"
#include "apps/ft/kernels.hpp"
#include "lab/twins/array.hpp"

namespace longshore::apps::twins {

/// One all-to-all a transpose. What a rank has of another's planes is contiguous in its columns, so that only planes
/// are packed and unpacked. What stays with a rank is copied straight.
class Ft {
 public:
  Phases phases;

  Ft(MPI_Comm comm, const ft::Slabs& slabs);

  ft::Complex* planes() { return planes_.data(); }
  ft::Complex* spectrum() { return spectrum_.data(); }
  ft::Complex* columns(int) { return columns_.data(); }
  bool looks_ahead() const { return false; }
  void to_spectrum();
  void start_to_planes(int) {}
  void wait_to_planes(int);

 private:
  /// What one side exchanges with every rank: elements, and where they begin.
  struct Parts {
    std::vector<int> counts, places;
  };
  void exchange(const ft::Complex* send, const Parts& sent, ft::Complex* receive, const Parts& received) const;
  /// copy(in planes, elsewhere, elements) for every contiguous run of the planes: elsewhere is the buffer, which has
  /// one rank's part after the other, or these columns.
  template <class Copy>
  void for_each_run(ft::Complex* columns, Copy copy);

  MPI_Comm comm_;
  int rank_ = 0;
  Region mine_;                     ///< this rank's planes
  std::vector<Region> columns_of_;  ///< every rank's
  Parts of_planes_, of_columns_;
  Array<ft::Complex> planes_, spectrum_, columns_, buffer_;
};

}  // namespace longshore::apps::twins
