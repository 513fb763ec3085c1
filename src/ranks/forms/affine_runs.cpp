#include "ranks/forms/affine_runs.hpp"

#include <algorithm>
#include <numeric>

namespace longshore::ranks {

namespace {

/// Positions that share an entry of the directory, as a power of two: about one run each.
int directory_shift(Index runs, Index size) { return FixedIntegers::bits_of(size / std::max<Index>(runs, 1)); }

}  // namespace

AffineRunsForm::AffineRunsForm(std::span<const AffineRun> runs) {
  const auto n = Index(runs.size());
  Index highest = 0, most_step = INT64_MIN;
  least_step_ = n == 0 ? 0 : INT64_MAX;
  for (const auto& run : runs) {
    size_ += run.count;
    highest = std::max(highest, run.first);
    least_step_ = std::min(least_step_, run.step), most_step = std::max(most_step, run.step);
  }
  starts_ = FixedIntegers(n, FixedIntegers::bits_of(size_));
  firsts_ = FixedIntegers(n, FixedIntegers::bits_of(highest));
  steps_ = FixedIntegers(n, n == 0 ? 0 : FixedIntegers::bits_of(most_step - least_step_));
  Index position = 0;
  for (Index j = 0; j < n; ++j) {
    const auto& run = runs[std::size_t(j)];
    starts_.set(j, position), firsts_.set(j, run.first), steps_.set(j, run.step - least_step_);
    position += run.count;
  }
  shift_ = directory_shift(n, size_);
  directory_ = FixedIntegers((size_ >> shift_) + 2, FixedIntegers::bits_of(n));
  for (Index d = 0, j = 0; d < directory_.size(); ++d) {
    while (j + 1 < n && starts_[j + 1] <= d << shift_) ++j;
    directory_.set(d, d + 1 == directory_.size() ? std::max<Index>(n, 1) - 1 : j);
  }
  std::vector<Index> order(std::size_t(n), 0);
  std::iota(order.begin(), order.end(), Index{0});
  auto lower = [&](Index a, Index b) { return runs[std::size_t(a)].lowest() < runs[std::size_t(b)].lowest(); };
  const bool sorted = std::is_sorted(order.begin(), order.end(), lower);
  if (!sorted) std::sort(order.begin(), order.end(), lower);
  apart_ = true;
  for (std::size_t k = 1; k < order.size(); ++k)
    apart_ = apart_ && runs[std::size_t(order[k - 1])].highest() < runs[std::size_t(order[k])].lowest();
  if (apart_ && !sorted) by_rank_ = FixedIntegers::of(order);
}

Index AffineRunsForm::bytes_of(Index runs, Index size, Index highest, Index widest_step) {
  auto bytes = [](Index n, Index most) { return FixedIntegers::bytes_of(n, FixedIntegers::bits_of(most)); };
  return bytes(runs, size) + bytes(runs, highest) + bytes(runs, widest_step) +
         bytes((size >> directory_shift(runs, size)) + 2, runs);
}

AffineRun AffineRunsForm::run(Index j) const { return {firsts_[j], step(j), end_of(j) - starts_[j]}; }

Index AffineRunsForm::run_of(Index i) const {
  Index low = directory_[i >> shift_], high = directory_[(i >> shift_) + 1];
  while (high - low > 4) {
    const Index middle = low + (high - low + 1) / 2;
    if (starts_[middle] <= i)
      low = middle;
    else
      high = middle - 1;
  }
  while (low < high && starts_[low + 1] <= i) ++low;
  return low;
}

Index AffineRunsForm::rank(Index w) const {
  const Index n = runs();
  auto within = [&](Index j) {
    const auto r = run(j);
    const Index way = w - r.first;
    if (w < r.lowest() || w > r.highest() || way % r.step != 0) return nobody;
    return starts_[j] + way / r.step;
  };
  if (!apart_) {
    constexpr Index few = 64;
    if (n > few) return unknown;
    Index found = nobody;
    for (Index j = 0; j < n && found == nobody; ++j) found = within(j);
    return found;
  }
  auto nth = [&](Index k) { return by_rank_.empty() ? k : by_rank_[k]; };
  Index low = 0, high = n;  // the last run that begins at w or below
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (run(nth(middle)).lowest() <= w)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? nobody : within(nth(low - 1));
}

void AffineRunsForm::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  Index j = run_of(first);
  for (Index end = first + n; first < end; ++j) {
    const Index step = this->step(j), value = firsts_[j] + step * (first - starts_[j]),
                here = std::min(end, end_of(j)) - first;
    for (Index k = 0; k < here; ++k) out[k] = value + k * step;
    first += here, out += here;
  }
}

void AffineRunsForm::write(WordWriter& out) const {
  out.index(runs());
  for (Index j = 0; j < runs(); ++j) {
    const auto r = run(j);
    out.index(r.first), out.index(r.step), out.index(r.count);
  }
}

AffineRunsForm AffineRunsForm::stored(WordReader& in, const FormHead& head) {
  std::vector<AffineRun> runs(std::size_t(in.count(3)));
  Index size = 0;
  for (auto& run : runs) {
    run.first = in.within(0, head.world - 1, "a rank"), run.step = in.within(-head.world, head.world, "a step");
    run.count = in.within(1, head.size, "a number of members");
    if (run.step == 0) in.refuse("has a run of no step");
    const Wide last = Wide(run.first) + Wide(run.step) * (run.count - 1);
    if (last < 0 || last >= head.world)
      in.refuse("has a run from " + std::to_string(run.first) + " that leaves the world");
    size = checked_add(size, run.count);
  }
  if (size != head.size)
    in.refuse("has runs of " + std::to_string(size) + " members, not " + std::to_string(head.size));
  return AffineRunsForm(runs);
}

Checked AffineRunsForm::check(const FormHead& head) const {
  std::vector<AffineRun> all;
  for (Index j = 0; j < runs(); ++j) all.push_back(run(j));
  if (!head.ascending) return check_distinct_runs(all), Checked::all;
  for (std::size_t j = 0; j < all.size(); ++j)
    if ((all[j].count > 1 && all[j].step < 0) || (j > 0 && all[j].first <= all[j - 1].last()))
      throw Error(ErrorKind::argument, "affine-runs: the ranks of run " + std::to_string(j) + " do not ascend");
  return Checked::all;
}

}  // namespace longshore::ranks
