/// SUMMA's broadcasts as hand-written MPI.
#pragma once

#include <mpi.h>

#include "apps/app.hpp"
#include "apps/summa/kernels.hpp"
#include "lab/twins/array.hpp"

namespace longshore::apps::twins {

/// MPI_Bcast on communicators of process rows and columns. Columns of
/// A are contiguous and go from where they lie; rows of B are packed.
class Summa {
 public:
  Phases phases;

  Summa(MPI_Comm comm, const summa::Problem& problem);
  ~Summa();
  Summa(const Summa&) = delete;
  Summa& operator=(const Summa&) = delete;

  double* factor(summa::Factor factor) const { return factors_[factor].data(); }
  double* product() const { return product_.data(); }
  bool looks_ahead() const { return false; }
  void start(std::size_t) {}
  void wait(std::size_t s);
  summa::Panel panel(summa::Factor factor, std::size_t s) const;

 private:
  const summa::Problem& problem_;
  int rank_ = 0;
  Region block_;
  MPI_Comm comms_[2];  ///< by factor: the process column, along which B's rows go; the process row
  Array<double> factors_[2], panels_[2], product_;
};

}  // namespace longshore::apps::twins
