#include "apps/redblack3d/kernels.hpp"

namespace longshore::apps::redblack3d {

namespace {

constexpr double sixth = 1.0 / 6;

double coordinate(Index index, Index n) { return double(index + 1) / double(n + 1); }

double exact(Index i, Index j, Index k, Index n) {
  const double x = coordinate(i, n), y = coordinate(j, n), z = coordinate(k, n);
  return x * x * y + y * y * z + z * z * x;
}

double scaled_source_at(Index i, Index j, Index k, Index n) {
  const double h = coordinate(0, n);
  return 2 * h * h * (coordinate(i, n) + coordinate(j, n) + coordinate(k, n));
}

bool on_boundary(Index i, Index j, Index k, Index n) { return i < 0 || j < 0 || k < 0 || i >= n || j >= n || k >= n; }

}  // namespace

void sweep(const Mesh& u, const Mesh& scaled_source, Colour colour, const Region& part) {
  const Index extent = part.extent(2);
  for (Index i = part.lower()[0]; i < part.upper()[0]; ++i)
    for (Index j = part.lower()[1]; j < part.upper()[1]; ++j) {
      const Index k = part.lower()[2];
      double* const centre = &u(i, j, k);
      const double *low = &u(i - 1, j, k), *high = &u(i + 1, j, k), *before = &u(i, j - 1, k),
                   *behind = &u(i, j + 1, k);
      const double* const source = &scaled_source(i, j, k);
#pragma GCC ivdep
      for (Index m = (i + j + k + Index(colour)) & 1; m < extent; m += 2)
        centre[m] = sixth * (low[m] + high[m] + before[m] + behind[m] + centre[m - 1] + centre[m + 1] - source[m]);
    }
}

void begin(const Mesh& u, const Mesh& scaled_source, const Region& block, Index n) {
  for (Index i = u.lower(0); i < u.upper(0); ++i)
    for (Index j = u.lower(1); j < u.upper(1); ++j)
      for (Index k = u.lower(2); k < u.upper(2); ++k) {
        u(i, j, k) = on_boundary(i, j, k, n) ? exact(i, j, k, n) : 0;
        if (block.contains(Point{i, j, k})) scaled_source(i, j, k) = scaled_source_at(i, j, k, n);
      }
}

std::vector<double> reference(Index n, int iterations) {
  const Index row = n + 2, plane = row * row;
  std::vector<double> values(std::size_t(row * plane)), source(values.size());
  for (Index i = -1; i <= n; ++i)
    for (Index j = -1; j <= n; ++j)
      for (Index k = -1; k <= n; ++k) {
        const std::size_t at = std::size_t((i + 1) * plane + (j + 1) * row + k + 1);
        values[at] = on_boundary(i, j, k, n) ? exact(i, j, k, n) : 0;
        source[at] = scaled_source_at(i, j, k, n);
      }
  for (int sweep = 0; sweep < 2 * iterations; ++sweep)
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        for (Index k = (i + j + sweep) % 2; k < n; k += 2) {
          double* const p = &values[std::size_t((i + 1) * plane + (j + 1) * row + k + 1)];
          *p =
              sixth * (p[-plane] + p[plane] + p[-row] + p[row] + p[-1] + p[1] - source[std::size_t(p - values.data())]);
        }
  return values;
}

}  // namespace longshore::apps::redblack3d
