/// SUMMA, whoever carries out its broadcasts.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/app.hpp"
#include "apps/summa/kernels.hpp"

namespace longshore::apps::summa {

/// One rank's run. `Communication` has the rank's blocks (`factor(a)`, `factor(b)`,
/// `product()`, dense and column-major) and brings a step's panels: `start(s)`, then `wait(s)`,
/// which leaves them at `panel(a, s)` and `panel(b, s)` until step s + 2 is started. Where it
/// `looks_ahead`, the next step is started before this one is computed.
template <class Communication>
Result solve(const Problem& problem, Communication& broadcast, MPI_Comm comm) {
  const OneThread one_thread;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const Region block = problem.blocks.region(rank);
  const Index rows = block.extent(0), columns = block.extent(1);
  double* product = broadcast.product();
  for (const Factor factor : {a, b}) fill(factor, block, broadcast.factor(factor));

  const auto multiply = [&] {
    std::fill_n(product, block.size(), 0.0);
    const std::size_t steps = problem.steps.size();
    if (broadcast.looks_ahead()) broadcast.start(0);
    for (std::size_t s = 0; s < steps; ++s) {
      if (!broadcast.looks_ahead()) broadcast.start(s);
      broadcast.wait(s);
      if (broadcast.looks_ahead() && s + 1 < steps) broadcast.start(s + 1);
      multiply_add(rows, columns, problem.steps[s].width, broadcast.panel(a, s), broadcast.panel(b, s), product);
    }
  };

  multiply();  // touches everything
  Phases& phases = broadcast.phases;
  phases = {};
  MPI_Barrier(comm);
  {
    const Stopwatch total(phases.total_s);
    multiply();
  }
  phases = slowest(phases, comm);

  Result result;
  result.total_s = phases.total_s, result.communication_s = phases.communication_s;
  for (const Problem::Step& step : problem.steps)
    for (const Factor factor : {a, b})
      if (problem.owner(factor, step, rank) != rank)
        result.payload_bytes += Index(sizeof(double)) * problem.strip(factor, rank, 0, step.width).size();
  const double n = double(problem.n);
  result.flops = 2 * n * n * n;

  // Every rank multiplies its rows of A and its columns of B, whole, in one go. Both products' rounding errors are
  // bounded by n epsilon |A| |B|, and no element is larger than 1.
  const Region all_a = problem.strip(a, rank, 0, problem.n), all_b = problem.strip(b, rank, 0, problem.n);
  std::vector<double> rows_of_a(all_a.size()), columns_of_b(all_b.size()), expected(block.size());
  fill(a, all_a, rows_of_a.data());
  fill(b, all_b, columns_of_b.data());
  multiply_add(rows, columns, problem.n, {rows_of_a.data(), rows}, {columns_of_b.data(), problem.n}, expected.data());
  for (Index i = 0; i < block.size(); ++i) result.error = std::max(result.error, std::abs(product[i] - expected[i]));
  MPI_Allreduce(MPI_IN_PLACE, &result.error, 1, MPI_DOUBLE, MPI_MAX, comm);
  result.verification = "every element with a serial product of the same rows and columns";
  result.tolerance = 2 * n * n * std::numeric_limits<double>::epsilon();
  result.verified = result.error <= result.tolerance;
  return result;
}

}  // namespace longshore::apps::summa
