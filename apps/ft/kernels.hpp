/// NAS-FT's numerics, without communication: random numbers, transforms, evolution in time, checksums.
#pragma once

#include <fftw3.h>

#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "longshore/layouts/floor_plan.hpp"

namespace longshore::apps::ft {

using Complex = std::complex<double>;

/// A class of the NAS Parallel Benchmarks: the field's shape (x, y, z), iterations, and their published checksums.
struct Problem {
  char name;
  Point shape;
  std::span<const Complex> checksums;
  int iterations() const { return int(checksums.size()); }
};

/// Throws `Error(argument)` for other names than S, W, A and B.
Problem problem(char name);

/// Who has which part of the field, by rank: xy planes before the transpose, columns along z after it. x is fastest in
/// memory, so that whole rows move, then y, then z.
struct Slabs {
  FloorPlan planes, columns;
};

/// Throws `Error(argument)` where there are more ranks than planes or rows of columns.
Slabs slabs(const Problem& problem, int ranks);

/// What one rank does to its dense arrays of `planes` and `columns`.
class Kernels {
 public:
  /// Plans transforms; what lies in the two arrays is overwritten.
  Kernels(const Problem& problem, const Region& planes, const Region& columns, Complex* in_planes, Complex* in_columns);

  /// The initial field in planes: consecutive random numbers in the order of memory.
  void fill(Complex* in_planes) const;
  /// Transforms along x and y, in place: forward (-1) or backward (1).
  void transform_planes(Complex* in_planes, int sign) const;
  /// Forward transforms along z, in place.
  void transform_columns(Complex* spectrum) const;
  /// columns = spectrum * exp(-4 alpha pi^2 |k|^2 time), transformed backward along z.
  void evolve(const Complex* spectrum, Complex* columns, int time) const;
  /// This rank's part of the sum of 1024 elements, over the number of points.
  Complex checksum(const Complex* in_planes) const;

 private:
  using Plan = std::unique_ptr<fftw_plan_s, void (*)(fftw_plan)>;

  Point shape_;
  Region planes_, columns_;
  Index width_ = 0;            ///< x columns transformed along z together, so that they stay in cache
  Plan plane_[2], column_[2];  ///< forward, backward
};

/// What the benchmark counts for a run, in floating-point operations.
double operations(const Problem& problem);

}  // namespace longshore::apps::ft
