#include "plans/periodic_count.hpp"

namespace longshore {

namespace {

/// An integer modulo the largest prime below 2^64. Whatever sums and products lead to it, a number in [0, 2^63) is
/// found exactly, and a division by two or six is a product.
class Residue {
 public:
  static constexpr std::uint64_t modulus = -std::uint64_t{59};

  constexpr Residue() = default;
  constexpr Residue(Wide value) : value_(std::uint64_t(floor_mod(value, modulus))) {}
  constexpr std::uint64_t value() const { return value_; }

  friend constexpr Residue operator+(Residue a, Residue b) { return reduced(Double(a.value_) + b.value_); }
  friend constexpr Residue operator-(Residue a, Residue b) { return reduced(Double(a.value_) + modulus - b.value_); }
  friend constexpr Residue operator*(Residue a, Residue b) { return reduced(Double(a.value_) * b.value_); }

 private:
  using Double = unsigned __int128;
  static constexpr Residue reduced(Double x) {
    for (int k = 0; k < 2; ++k) x = (x >> 64) * 59 + std::uint64_t(x);  // 2^64 is 59 here
    Residue result;
    result.value_ = std::uint64_t(x >= modulus ? x - modulus : x);
    return result;
  }
  std::uint64_t value_ = 0;
};

constexpr Residue inverse(Residue x) {  // Fermat's
  Residue result = 1;
  for (std::uint64_t power = Residue::modulus - 2; power > 0; power >>= 1, x = x * x)
    if (power & 1) result = result * x;
  return result;
}

constexpr Residue half = inverse(2), sixth = inverse(6);
static_assert((half * 2).value() == 1 && (sixth * 6).value() == 1);

/// Over k in [0, n), with u(k) = floor((a k + b) / m): the sums of u, of k u and of u squared.
struct FloorSums {
  Residue plain, weighted, squared;
};

/// Euclid's algorithm on a and m.
FloorSums floor_sums(Wide n, Wide a, Wide b, Wide m) {
  if (n <= 0) return {};
  const Residue last = n - 1, count = n;
  if (a >= m || b >= m) {
    const auto rest = floor_sums(n, a % m, b % m, m);
    const Residue slope = a / m, base = b / m;
    const Residue numbers = last * count * half, squares = last * count * (last + count) * sixth;
    return {slope * numbers + base * count + rest.plain, slope * squares + base * numbers + rest.weighted,
            slope * (slope * squares + 2 * (base * numbers + rest.weighted)) + base * (base * count + 2 * rest.plain) +
                rest.squared};
  }
  const Wide height = (a * (n - 1) + b) / m;
  if (height == 0) return {};
  // What lies below the line is counted along the other axis.
  const auto other = floor_sums(height, m, m - b - 1, a);
  const Residue rows = height, plain = last * rows - other.plain;
  return {plain, (last * count * rows - other.squared - other.plain) * half,
          last * rows * (rows + 1) - 2 * (other.weighted + other.plain) - plain};
}

/// The sum over k in [0, n) of how many numbers below y = first + k * step are in the periodic set.
Residue sum_of_counts_below(Wide n, Wide first, Wide step, Wide cycle, Wide block) {
  // Below y, with u = floor(y / cycle), there are u * block + min(y - u * cycle, block). The minimum is its second
  // value where v = floor((y + cycle - block) / cycle) is u + 1 rather than u, and u * (v - u) is (v^2 - u^2 - (v - u))
  // / 2.
  const auto u = floor_sums(n, step, first, cycle), v = floor_sums(n, step, first + cycle - block, cycle);
  const Residue beyond = v.plain - u.plain, sum_of_y = Residue(first) * n + Residue(step) * (n - 1) * n * half;
  return (Residue(block) - cycle) * u.plain + sum_of_y - Residue(step) * (v.weighted - u.weighted) -
         Residue(first - block) * beyond + Residue(cycle) * half * (v.squared - u.squared - beyond);
}

}  // namespace

Index periodic_count(const IntervalsInStep& intervals, Index cycle, Index block) {
  // Whole cycles further on everything is as it was.
  const Wide first = intervals.first % cycle, step = intervals.step % cycle;
  auto below = [&](Wide begin) { return sum_of_counts_below(intervals.count, begin, step, cycle, block); };
  return Index((below(first + intervals.length) - below(first)).value());
}

}  // namespace longshore
