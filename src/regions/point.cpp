#include "longshore/regions/point.hpp"

namespace longshore {

void check_same_dims(std::size_t a, std::size_t b, const char* what) {
  if (a != b)
    throw Error(ErrorKind::shape, std::string(what) + " of " + std::to_string(a) + " and of " + std::to_string(b) +
                                      " dimensions do not go together");
}

Point& Point::operator+=(const Point& other) {
  check_same_dims(dims_, other.dims_, "points");
  for (std::size_t d = 0; d < dims_; ++d) (*this)[d] = checked_add((*this)[d], other[d]);
  return *this;
}

Point& Point::operator-=(const Point& other) {
  check_same_dims(dims_, other.dims_, "points");
  for (std::size_t d = 0; d < dims_; ++d) (*this)[d] = checked_sub((*this)[d], other[d]);
  return *this;
}

std::string Point::to_string() const {
  std::string text = "(";
  for (std::size_t d = 0; d < dims_; ++d) text += (d ? ", " : "") + std::to_string((*this)[d]);
  return text + (dims_ == 1 ? ",)" : ")");
}

}  // namespace longshore
