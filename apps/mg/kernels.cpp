#include "apps/mg/kernels.hpp"

#include <algorithm>

#include "apps/nas_random.hpp"

namespace longshore::apps::mg {

namespace {

template <class F>
void for_each_row(const Region& part, F&& row) {
  for (Index i = part.lower()[0]; i < part.upper()[0]; ++i)
    for (Index j = part.lower()[1]; j < part.upper()[1]; ++j) row(i, j);
}

/// Sums over a row's neighbours in the planes across it, of which every one is wanted for three
/// points of the row: faces()[m] of the four beside its point m, edges()[m] of the four
/// diagonal to it, from one point before the row to one behind it.
class CrossSums {
 public:
  explicit CrossSums(Index points) : points_(points), sums_(std::size_t(2 * (points + 2))) {}
  const double* faces() const { return &sums_[1]; }
  const double* edges() const { return faces() + points_ + 2; }

  void compute(const Mesh& mesh, Index i, Index j, Index k) {
    const double *low = &mesh(i - 1, j, k), *high = &mesh(i + 1, j, k), *before = &mesh(i, j - 1, k),
                 *behind = &mesh(i, j + 1, k);
    const double *a = &mesh(i - 1, j - 1, k), *b = &mesh(i - 1, j + 1, k), *c = &mesh(i + 1, j - 1, k),
                 *d = &mesh(i + 1, j + 1, k);
    double *const face = &sums_[1], *const edge = face + points_ + 2;
#pragma GCC ivdep
    for (Index m = -1; m <= points_; ++m) {
      face[m] = before[m] + behind[m] + low[m] + high[m];
      edge[m] = a[m] + b[m] + c[m] + d[m];
    }
  }

 private:
  Index points_;
  std::vector<double> sums_;
};

}  // namespace

Problem problem_of(char problem_class) {
  constexpr std::array a{-8.0 / 3, 0.0, 1.0 / 6, 1.0 / 12};
  constexpr std::array small{-3.0 / 8, 1.0 / 32, -1.0 / 64, 0.0}, large{-3.0 / 17, 1.0 / 33, -1.0 / 61, 0.0};
  switch (problem_class) {
    case 'S': return {32, 4, a, small, 0.5307707005734e-04};
    case 'W': return {128, 4, a, small, 0.6467329375339e-05};
    case 'A': return {256, 4, a, small, 0.2433365309069e-05};
    case 'B': return {256, 20, a, large, 0.1800564401355e-05};
    case 'C': return {512, 20, a, large, 0.5706732285740e-06};
  }
  throw Error(ErrorKind::argument, std::string("NAS-MG has classes S, W, A, B and C here, not ") + problem_class);
}

void subtract_operator(const Mesh& u, const Mesh& v, const Mesh& r, const std::array<double, 4>& a,
                       const Region& part) {
  const Index k = part.lower()[2], points = part.extent(2);
  CrossSums sums(points);
  for_each_row(part, [&](Index i, Index j) {
    sums.compute(u, i, j, k);
    const double *centre = &u(i, j, k), *right = &v(i, j, k), *faces = sums.faces(), *edges = sums.edges();
    double* const to = &r(i, j, k);
#pragma GCC ivdep
    for (Index m = 0; m < points; ++m)
      to[m] = right[m] - a[0] * centre[m] - a[2] * (edges[m] + faces[m - 1] + faces[m + 1]) -
              a[3] * (edges[m - 1] + edges[m + 1]);
  });
}

void smooth(const Mesh& r, const Mesh& u, const std::array<double, 4>& c, const Region& part) {
  const Index k = part.lower()[2], points = part.extent(2);
  CrossSums sums(points);
  for_each_row(part, [&](Index i, Index j) {
    sums.compute(r, i, j, k);
    const double *centre = &r(i, j, k), *faces = sums.faces(), *edges = sums.edges();
    double* const to = &u(i, j, k);
#pragma GCC ivdep
    for (Index m = 0; m < points; ++m)
      to[m] += c[0] * centre[m] + c[1] * (centre[m - 1] + centre[m + 1] + faces[m]) +
               c[2] * (edges[m] + faces[m - 1] + faces[m + 1]);
  });
}

void restrict_mesh(const Mesh& fine, const Mesh& coarse, const Region& part) {
  const Index k = part.lower()[2], points = part.extent(2);
  CrossSums sums(2 * points - 1);
  for_each_row(part, [&](Index i, Index j) {
    sums.compute(fine, 2 * i + 1, 2 * j + 1, 2 * k + 1);
    const double *centre = &fine(2 * i + 1, 2 * j + 1, 2 * k + 1), *faces = sums.faces(), *edges = sums.edges();
    double* const to = &coarse(i, j, k);
#pragma GCC ivdep
    for (Index m = 0; m < points; ++m)
      to[m] = 0.5 * centre[2 * m] + 0.25 * (centre[2 * m - 1] + centre[2 * m + 1] + faces[2 * m]) +
              0.125 * (faces[2 * m - 1] + faces[2 * m + 1] + edges[2 * m]) +
              0.0625 * (edges[2 * m - 1] + edges[2 * m + 1]);
  });
}

void add_interpolated(const Mesh& coarse, const Mesh& fine, const Region& part) {
  const Index k = part.lower()[2], cells = part.extent(2);
  std::vector<double> sums(std::size_t(3 * (cells + 1)));
  double *const beside = sums.data(), *const above = beside + cells + 1, *const all = above + cells + 1;
  for_each_row(part, [&](Index i, Index j) {
    const double *here = &coarse(i, j, k), *next = &coarse(i, j + 1, k);
    const double *up = &coarse(i + 1, j, k), *across = &coarse(i + 1, j + 1, k);
#pragma GCC ivdep
    for (Index m = 0; m <= cells; ++m) {
      beside[m] = next[m] + here[m];
      above[m] = up[m] + here[m];
      all[m] = across[m] + up[m] + beside[m];
    }
    const auto add = [&](Index fine_i, Index fine_j, const double* row, double weight) {
      double* const to = &fine(fine_i, fine_j, 2 * k + 1);
#pragma GCC ivdep
      for (Index m = 0; m < cells; ++m) {
        to[2 * m] += weight * row[m];
        to[2 * m + 1] += 0.5 * weight * (row[m] + row[m + 1]);
      }
    };
    add(2 * i + 1, 2 * j + 1, here, 1);
    add(2 * i + 1, 2 * j + 2, beside, 0.5);
    add(2 * i + 2, 2 * j + 1, above, 0.5);
    add(2 * i + 2, 2 * j + 2, all, 0.25);
  });
}

void clear(const Mesh& mesh) {
  const Index k = mesh.lower(2), points = mesh.upper(2) - k;
  for_each_row(Region({mesh.lower(0), mesh.lower(1)}, {mesh.upper(0), mesh.upper(1)}),
               [&](Index i, Index j) { std::fill_n(&mesh(i, j, k), points, 0.0); });
}

double sum_of_squares(const Mesh& mesh, const Region& part) {
  double sum = 0;
  for_each_row(part, [&](Index i, Index j) {
    const double* const row = &mesh(i, j, part.lower()[2]);
    for (Index m = 0; m < part.extent(2); ++m) sum += row[m] * row[m];
  });
  return sum;
}

void keep_extremes(std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.value > b.value; });
  if (candidates.size() > 2 * charges) candidates.erase(candidates.begin() + charges, candidates.end() - charges);
}

std::vector<Candidate> extremes(const Region& part, Index points) {
  std::vector<Candidate> found;
  double least_large = 0, most_small = 1;  // of the extremes found so far
  for_each_row(part, [&](Index i, Index j) {
    const Index first = (i * points + j) * points;
    NasRandom random(first + part.lower()[2]);
    for (Index k = part.lower()[2]; k < part.upper()[2]; ++k) {
      const double value = random();
      if (value <= least_large && value >= most_small) continue;
      found.push_back({value, first + k});
      if (found.size() < 100 * charges) continue;
      keep_extremes(found);
      least_large = found[charges - 1].value, most_small = found[charges].value;
    }
  });
  keep_extremes(found);
  return found;
}

void place_charges(const Mesh& v, const std::vector<Candidate>& extremes, const Region& part, Index points) {
  clear(v);
  const Region all = Region::of_shape(Point(3, points));
  for (std::size_t n = 0; n < extremes.size(); ++n) {
    const Point at = all.point_at(extremes[n].place, Order::C);
    if (part.contains(at)) v(at[0], at[1], at[2]) = n < charges ? 1 : -1;
  }
}

}  // namespace longshore::apps::mg
