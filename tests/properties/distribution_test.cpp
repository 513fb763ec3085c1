// One dimension against the dense owner array.
#include "longshore/layouts/distribution.hpp"

#include "support/generators.hpp"

namespace longshore::test {
namespace {

Indices enumerate(const Runs& runs) {
  Indices result;
  for (const auto& run : runs.runs())
    for (Index r = 0; r < run.count; ++r)
      for (Index e = 0; e < run.length; ++e) result.push_back(run.first + r * run.step + e);
  return result;
}

RC_GTEST_PROP(Distribution, deals_every_index_as_the_dense_array_does, (const DimensionSpec& spec)) {
  const auto dealt = distribution(spec);
  const DenseDimension dense(spec);
  for (Index i = 0; i < spec.extent; ++i) {
    const Index owner = dense.owner[std::size_t(i)], local = dense.local[std::size_t(i)];
    RC_ASSERT(dealt.owner(i) == owner);
    RC_ASSERT(dealt.local(i) == local);
    RC_ASSERT(dealt.global(owner, local) == i);
  }
}

RC_GTEST_PROP(Distribution, counts_what_every_coordinate_owns, (const DimensionSpec& spec)) {
  const auto dealt = distribution(spec);
  const DenseDimension dense(spec);
  Index largest = 0;
  for (Index c = 0; c < spec.coordinates; ++c) {
    const auto& owned = dense.owned[std::size_t(c)];
    largest = std::max(largest, Index(owned.size()));
    RC_ASSERT(dealt.count(c) == Index(owned.size()));
    for (Index i = 0; i <= spec.extent; ++i)
      RC_ASSERT(dealt.count_below(c, i) == std::lower_bound(owned.begin(), owned.end(), i) - owned.begin());
  }
  RC_ASSERT(dealt.largest_count() == largest);
}

RC_GTEST_PROP(Distribution, owned_is_ascending_and_short, (const DimensionSpec& spec)) {
  const auto dealt = distribution(spec);
  const DenseDimension dense(spec);
  for (Index c = 0; c < spec.coordinates; ++c) {
    const auto& owned = dense.owned[std::size_t(c)];
    const auto runs = dealt.owned(c);
    RC_ASSERT(enumerate(runs) == owned);
    RC_ASSERT(runs.size() == Index(owned.size()));
    RC_ASSERT(runs.runs().size() <= 3u);  // a cut block, whole blocks, a cut block
  }
}

RC_GTEST_PROP(Distribution, intervals_is_said_only_where_it_is_true, (const DimensionSpec& spec)) {
  const auto dealt = distribution(spec);
  const DenseDimension dense(spec);
  if (!dealt.intervals()) return;
  for (Index c = 0; c < spec.coordinates; ++c) {
    const auto& owned = dense.owned[std::size_t(c)];
    const auto [first, last] = dealt.interval(c);
    RC_ASSERT(last - first == Index(owned.size()));
    if (!owned.empty()) RC_ASSERT(first == owned.front() && last == owned.back() + 1);
  }
}

RC_GTEST_PROP(Distribution, a_window_keeps_owners_and_storage_order, (const DimensionSpec& spec)) {
  const Index first = draw(0, spec.extent), last = draw(first, spec.extent);
  const auto window = distribution(spec).window(first, last);
  const DenseDimension dense(spec);
  RC_ASSERT(window.extent() == last - first);
  RC_ASSERT(window.coordinates() == spec.coordinates);
  Indices seen(std::size_t(spec.coordinates), 0);
  for (Index i = first; i < last; ++i) {
    const Index owner = dense.owner[std::size_t(i)];
    RC_ASSERT(window.owner(i - first) == owner);
    RC_ASSERT(window.local(i - first) == seen[std::size_t(owner)]++);
  }
  for (Index c = 0; c < spec.coordinates; ++c) RC_ASSERT(window.count(c) == seen[std::size_t(c)]);
}

}  // namespace
}  // namespace longshore::test
