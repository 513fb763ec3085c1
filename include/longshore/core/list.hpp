/// Lists that functions return.
#pragma once

#include <utility>
#include <vector>

namespace longshore {

/// A vector of which an element taken from a temporary is a value: `const Region& first = blocks.regions()[0]` may be
/// used as long as `first` is there.
template <class T>
class List : public std::vector<T> {
 public:
  using Vector = std::vector<T>;
  using Vector::Vector;
  List(Vector vector) : Vector(std::move(vector)) {}  // NOLINT: implicit, a vector is a list

  T& operator[](std::size_t k) & { return Vector::operator[](k); }
  const T& operator[](std::size_t k) const& { return Vector::operator[](k); }
  T operator[](std::size_t k) && { return std::move(Vector::operator[](k)); }
  T& at(std::size_t k) & { return Vector::at(k); }
  const T& at(std::size_t k) const& { return Vector::at(k); }
  T at(std::size_t k) && { return std::move(Vector::at(k)); }
  T& front() & { return Vector::front(); }
  const T& front() const& { return Vector::front(); }
  T front() && { return std::move(Vector::front()); }
  T& back() & { return Vector::back(); }
  const T& back() const& { return Vector::back(); }
  T back() && { return std::move(Vector::back()); }
};

}  // namespace longshore
