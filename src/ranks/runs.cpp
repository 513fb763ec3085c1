#include "ranks/runs.hpp"

#include <algorithm>

#include "ranks/forms.hpp"

namespace longshore::ranks {

namespace {

using RunList = std::vector<AffineRun>;

/// Runs of positions in a list of runs, cut where one of the list ends; false where they become more than `most`.
bool compose(const RunList& list, const RunList& positions, Index most, RunList& out) {
  std::vector<Index> starts;
  Index size = 0;
  for (const auto& run : list) starts.push_back(size), size += run.count;
  for (auto rest : positions) {
    while (rest.count > 0) {
      const auto j = std::size_t(std::upper_bound(starts.begin(), starts.end(), rest.first) - starts.begin()) - 1;
      const Index end = starts[j] + list[j].count;
      const Index room =
          rest.step > 0 ? ceil_div(end - rest.first, rest.step) : (rest.first - starts[j]) / -rest.step + 1;
      const Index here = std::min(rest.count, room);
      // The steps of one member lead nowhere, and may not even fit.
      out.push_back(
          {list[j].first + list[j].step * (rest.first - starts[j]), here > 1 ? list[j].step * rest.step : 1, here});
      if (Index(out.size()) > most) return false;
      rest.count -= here;
      if (rest.count > 0) rest.first += rest.step * here;
    }
  }
  return true;
}

std::optional<RunList> runs_of_nest(const AffineNest& nest, Index most) {
  const auto inner = nest.axis(0);
  const Index n = nest.size() / inner.count;
  if (n > most) return std::nullopt;
  RunList runs;
  for (Index j = 0; j < n; ++j)
    runs.push_back({nest.select(j * inner.count), inner.count > 1 ? inner.stride : 1, inner.count});
  return runs;
}

}  // namespace

std::optional<AffineNest> stride_of(const Members& members, Index world) {
  const Index n = members.size();
  if (n == 0) return AffineNest();
  const auto outside = [world](Index w) { return w < 0 || w >= world; };
  Index ends[2], last;
  members.read(0, std::min<Index>(n, 2), ends);
  members.read(n - 1, 1, &last);
  const Index first = ends[0], second = n > 1 ? ends[1] : first;
  if (outside(first) || outside(second) || outside(last)) return std::nullopt;
  const Index step = n > 1 ? second - first : 1;
  if (step == 0 || Wide(first) + Wide(step) * (n - 1) != last) return std::nullopt;
  if (members.runs().size() != 1) {
    Index next = first;
    bool all = true;
    members.each_piece([&](Index, std::span<const Index> values) {
      for (const Index w : values) all &= w == next, next += step;
    });
    if (!all) return std::nullopt;
  }
  return AffineNest::stride(first, n, step);
}

std::optional<std::vector<AffineRun>> known_runs(const RankMap& map, Index most) {
  if (map.empty()) return RunList{};
  if (map.nest() != nullptr) return runs_of_nest(*map.nest(), most);
  RunList runs;
  auto add = [&](Index first, Index last) { runs.push_back({first, 1, last - first}); };
  if (const auto* affine = form_of<AffineRunsForm>(map); affine != nullptr && affine->runs() <= most) {
    for (Index j = 0; j < affine->runs(); ++j) runs.push_back(affine->run(j));
    return runs;
  }
  if (const auto* ranges = form_of<RunsForm>(map); ranges != nullptr && ranges->runs() <= most)
    return ranges->each(add), runs;
  if (const auto* holes = form_of<HolesForm>(map); holes != nullptr && holes->holes() < most)
    return holes->each_stretch(add), runs;
  if (const auto* child = form_of<ChildForm>(map)) {
    const auto positions = known_runs(child->positions(), most);
    const auto list = positions ? known_runs(child->parent(), most) : std::nullopt;
    if (list && compose(*list, *positions, most, runs)) return runs;
  }
  return std::nullopt;
}

std::optional<std::vector<AffineRun>> few_runs(const RankMap& map, Index most) {
  if (auto known = known_runs(map, most)) return known;
  RunCollector collector(false);
  Members(map).each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values)
      if (Index(collector.size()) < most) collector.push(w);
  });
  // The last run is not counted while it may go on; what was left out would have begun another.
  if (Index(collector.size()) >= most) return std::nullopt;
  return collector.finish();
}

std::vector<AffineRun> merged_runs(std::span<const AffineRun> runs) {
  RunCollector collector(false);
  for (const auto& run : runs)
    if (run.count > 0) collector.push(run.first, run.count > 1 ? run.step : 1, run.count);
  return collector.finish();
}

}  // namespace longshore::ranks
