/// `Point`: a place in Z^d, for any d.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

/// d integers. Up to four need no memory of their own, for geometry makes and drops points by the million.
class Point {
 public:
  Point() = default;
  /// The same coordinate in every dimension.
  explicit Point(std::size_t dims, Index value = 0) : dims_(dims) {
    if (dims > inline_dims) far_ = std::make_unique<Index[]>(dims);
    std::fill(begin(), end(), value);
  }
  Point(std::initializer_list<Index> coordinates) : Point(std::span(coordinates.begin(), coordinates.size())) {}
  Point(const std::vector<Index>& coordinates) : Point(std::span(coordinates)) {}
  Point(std::span<const Index> coordinates) : Point(coordinates.size()) {
    std::copy(coordinates.begin(), coordinates.end(), begin());
  }
  Point(const Point& other) : Point(std::span(other.begin(), other.dims_)) {}
  Point(Point&& other) noexcept { swap(other); }
  Point& operator=(Point other) noexcept {
    swap(other);
    return *this;
  }
  void swap(Point& other) noexcept {
    std::swap(dims_, other.dims_);
    std::swap(near_, other.near_);
    std::swap(far_, other.far_);
  }

  std::size_t dims() const { return dims_; }
  Index* begin() { return far_ ? far_.get() : near_; }
  Index* end() { return begin() + dims_; }
  const Index* begin() const { return far_ ? far_.get() : near_; }
  const Index* end() const { return begin() + dims_; }
  Index& operator[](std::size_t d) { return begin()[d]; }
  Index operator[](std::size_t d) const { return begin()[d]; }
  operator std::span<const Index>() const { return {begin(), dims_}; }
  std::vector<Index> to_vector() const { return {begin(), end()}; }

  bool operator==(const Point& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  /// Lexicographic, the first coordinate first.
  bool operator<(const Point& other) const {
    return std::lexicographical_compare(begin(), end(), other.begin(), other.end());
  }
  /// By coordinate. Throw `Error(overflow)`, and `Error(shape)` where the dimensions differ.
  Point& operator+=(const Point& other);
  Point& operator-=(const Point& other);
  friend Point operator+(Point a, const Point& b) { return std::move(a += b); }
  friend Point operator-(Point a, const Point& b) { return std::move(a -= b); }
  Point operator-() const { return Point(dims_) - *this; }

  std::string to_string() const;  ///< "(1, 2, 3)"

 private:
  static constexpr std::size_t inline_dims = 4;
  std::size_t dims_ = 0;
  Index near_[inline_dims] = {};
  std::unique_ptr<Index[]> far_;  ///< where there are more dimensions
};

/// Throws `Error(shape)` unless both have as many dimensions. `what` says what they are.
void check_same_dims(std::size_t a, std::size_t b, const char* what);

}  // namespace longshore
