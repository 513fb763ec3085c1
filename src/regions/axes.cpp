#include "longshore/regions/axes.hpp"

namespace longshore {

namespace {

Point permuted(const Point& point, const Axes& axes) {
  check_same_dims(point.dims(), axes.size(), "a region and axes");
  Point result(axes.size());
  for (std::size_t d = 0; d < axes.size(); ++d) result[d] = point[axes[d]];
  return result;
}

}  // namespace

void check_axes(const Axes& axes, std::size_t dims) {
  if (axes.empty()) return;
  if (axes.size() != dims)
    throw Error(ErrorKind::argument, "axes has " + std::to_string(axes.size()) + " entries, there are " +
                                         std::to_string(dims) + " dimensions");
  std::vector<bool> used(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    if (axes[d] >= dims || used[axes[d]])
      throw Error(ErrorKind::argument,
                  "axes entry " + std::to_string(d) + " is " + std::to_string(axes[d]) +
                      (axes[d] >= dims ? ", outside [0, " + std::to_string(dims) + ")" : ", given twice"));
    used[axes[d]] = true;
  }
}

Axes inverse(const Axes& axes) {
  Axes back(axes.size());
  for (std::size_t d = 0; d < axes.size(); ++d) back[axes[d]] = d;
  return back;
}

Axes then(const Axes& first, const Axes& next) {
  if (first.empty() || next.empty()) return first.empty() ? next : first;
  Axes both(next.size());
  for (std::size_t d = 0; d < next.size(); ++d) both[d] = first[next[d]];
  return both;
}

std::vector<Index> permuted(std::vector<Index> values, const Axes& axes) {
  return axes.empty() ? std::move(values) : permuted(Point(values), axes).to_vector();
}

Region permuted(Region region, const Axes& axes) {
  return axes.empty() ? std::move(region) : Region(permuted(region.lower(), axes), permuted(region.upper(), axes));
}

}  // namespace longshore
