#include "longshore/regions/point_list.hpp"

namespace longshore {

namespace {

std::vector<std::vector<Index>> by_dimension(std::size_t dims, std::span<const Index> coordinates) {
  if (dims == 0) throw Error(ErrorKind::argument, "points of no dimensions are not listed");
  if (coordinates.size() % dims != 0)
    throw Error(ErrorKind::shape, std::to_string(coordinates.size()) +
                                      " coordinates are no whole number of points of " + std::to_string(dims) +
                                      " dimensions");
  std::vector<std::vector<Index>> lists(dims);
  for (std::size_t d = 0; d < dims; ++d)
    for (std::size_t k = d; k < coordinates.size(); k += dims) lists[d].push_back(coordinates[k]);
  return lists;
}

}  // namespace

PointList::PointList(std::size_t dims, std::span<const Index> coordinates)
    : PointList(by_dimension(dims, coordinates)) {}

PointList::PointList(std::span<const std::vector<Index>> coordinates) {
  if (coordinates.empty()) throw Error(ErrorKind::argument, "points of no dimensions are not listed");
  for (const auto& list : coordinates)
    if (list.size() != coordinates[0].size())
      throw Error(ErrorKind::shape, "points have " + std::to_string(coordinates[0].size()) +
                                        " coordinates in one dimension and " + std::to_string(list.size()) +
                                        " in another");
  if (coordinates[0].empty()) return;
  auto data = std::make_shared<Data>();
  Point lower(coordinates.size()), upper(coordinates.size());
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    const auto& list = data->coordinates.emplace_back(PackedIntegers::smallest(coordinates[d]));
    lower[d] = list.minimum(), upper[d] = checked_add(list.maximum(), 1);
  }
  data->bounding = Region(std::move(lower), std::move(upper));
  data_ = std::move(data);
}

Point PointList::operator[](Index k) const {
  if (k < 0 || k >= size())
    throw Error(ErrorKind::argument,
                "there is no point " + std::to_string(k) + " in a list of " + std::to_string(size()));
  Point point(dims());
  for (std::size_t d = 0; d < dims(); ++d) point[d] = data_->coordinates[d][k];
  return point;
}

std::vector<Index> PointList::coordinates(std::size_t d) const {
  std::vector<Index> values(static_cast<std::size_t>(size()));
  if (!values.empty()) data_->coordinates.at(d).read(0, size(), values.data());
  return values;
}

std::vector<std::vector<Index>> PointList::columns() const {
  std::vector<std::vector<Index>> lists;
  for (std::size_t d = 0; d < dims(); ++d) lists.push_back(coordinates(d));
  return lists;
}

std::vector<Index> PointList::rows() const {
  std::vector<Index> all(std::size_t(size()) * dims());
  for (std::size_t d = 0; d < dims(); ++d) {
    const auto some = coordinates(d);
    for (std::size_t k = 0; k < some.size(); ++k) all[k * dims() + d] = some[k];
  }
  return all;
}

std::vector<Index> PointList::offsets(const Point& origin, std::span<const Index> strides) const {
  std::vector<Index> sums(static_cast<std::size_t>(size()));
  for (std::size_t d = 0; d < dims(); ++d) {
    const auto at = coordinates(d);
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += (at[k] - origin[d]) * strides[d];
  }
  return sums;
}

Index PointList::workspace_bytes() const {
  if (!data_) return 0;
  Index bytes = sizeof(Data);
  for (const auto& list : data_->coordinates) bytes += Index(sizeof list) + list.memory_bytes();
  return bytes;
}

bool PointList::operator==(const PointList& other) const {
  return data_ == other.data_ || (data_ && other.data_ && *data_ == *other.data_);
}

const Region& PointList::nothing() {
  static const Region none({0}, {0});
  return none;
}

}  // namespace longshore
