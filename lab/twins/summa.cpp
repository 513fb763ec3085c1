#include "lab/twins/summa.hpp"

#include <algorithm>

namespace longshore::apps::twins {

using summa::a, summa::b, summa::Factor, summa::Panel;

Summa::Summa(MPI_Comm comm, const summa::Problem& problem) : problem_(problem) {
  MPI_Comm_rank(comm, &rank_);
  block_ = problem.blocks.region(rank_);
  const int row = rank_ / int(problem.grid[1]), column = rank_ % int(problem.grid[1]);
  MPI_Comm_split(comm, row, column, &comms_[a]);
  MPI_Comm_split(comm, column, row, &comms_[b]);
  product_ = Array<double>(block_.size());
  for (const Factor factor : {a, b}) {
    factors_[factor] = Array<double>(block_.size());
    panels_[factor] = Array<double>(problem.strip(factor, rank_, 0, problem.panel).size());
  }
}

Summa::~Summa() {
  for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
}

void Summa::wait(std::size_t s) {
  const Stopwatch communication(phases.communication_s);
  const auto& [first, width, owners] = problem_.steps[s];
  const Index rows = block_.extent(0), columns = block_.extent(1);
  MPI_Bcast(const_cast<double*>(panel(a, s).data), int(rows * width), MPI_DOUBLE, int(owners[a]), comms_[a]);
  if (problem_.grid[0] == 1) return;
  double* packed = panels_[b].data();
  if (const Panel from = panel(b, s); from.data != packed)
    for (Index j = 0; j < columns; ++j) std::copy_n(from.data + j * rows, width, packed + j * width);
  MPI_Bcast(packed, int(width * columns), MPI_DOUBLE, int(owners[b]), comms_[b]);
}

Panel Summa::panel(Factor factor, std::size_t s) const {
  const summa::Problem::Step& step = problem_.steps[s];
  if (problem_.owner(factor, step, rank_) != rank_)
    return {panels_[factor].data(), factor == a ? block_.extent(0) : step.width};
  const Index skipped = step.first - block_.lower()[factor], rows = block_.extent(0);
  return {factors_[factor].data() + (factor == a ? skipped * rows : skipped), rows};
}

}  // namespace longshore::apps::twins
