/// SUMMA's numerics, without communication: matrices, their multiplication, the steps.
#pragma once

#include <vector>

#include "longshore/layouts/floor_plan.hpp"

namespace longshore::apps::summa {

/// The factors of C = A B, as the dimension in which steps cut them: rows of B, columns of A.
enum Factor { b = 0, a = 1 };

/// C = A B, all three n x n in even blocks on a process grid that is as near to a square as can
/// be; rank = row * columns + column. A step multiplies `width` columns of A, all of one
/// process column, and as many rows of B, all of one process row.
struct Problem {
  struct Step {
    Index first = 0, width = 0;
    Index owners[2] = {};  ///< the process row that has B's part, the process column that has A's
  };

  Index n = 0, panel = 0;
  Point grid;
  FloorPlan blocks;
  std::vector<Step> steps;

  /// Panels are `panel` wide at most. Throws `Error(argument)` where
  /// there is no matrix or no panel, or BLAS cannot count so far.
  Problem(Index n, Index panel, int ranks);

  /// Who has what a rank needs of a factor: the process column's
  /// rank in its row for A, the process row's in its column for B.
  Index owner(Factor factor, const Step& step, Index rank) const;
  /// A rank's block, but for the columns of A or rows of B, which are these.
  Region strip(Factor factor, Index rank, Index first, Index width) const;
};

/// Part of a column-major matrix.
struct Panel {
  const double* data = nullptr;
  Index leading = 0;
};

/// c (rows x columns, dense) += a (rows x width) b (width x columns).
void multiply_add(Index rows, Index columns, Index width, Panel a, Panel b, double* c);
/// A factor's elements on a region, dense and column-major: random
/// numbers in [-1, 1) that depend on nothing but the indices.
void fill(Factor factor, const Region& region, double* out);

/// While it lives, BLAS uses one thread, where it is one that can be told.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = 0;
};

}  // namespace longshore::apps::summa
