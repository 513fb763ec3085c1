// The algebra of address relations.
#include <algorithm>

#include "longshore/relations/address_relation.hpp"
#include "relations/fold.hpp"
#include "relations/parts.hpp"

namespace longshore {

namespace {

/// Two readers run for run: the same pairs, however each cuts them?
bool same_sequence(RunReader& a, RunReader& b) {
  OffsetRun ra{}, rb{};
  for (;;) {
    if (ra.count == 0 && a.read({&ra, 1}) == 0) ra.count = 0;
    if (rb.count == 0 && b.read({&rb, 1}) == 0) rb.count = 0;
    if (ra.count == 0 || rb.count == 0) return ra.count == rb.count;
    if (ra.at(0) != rb.at(0)) return false;
    const bool in_step = ra.source_step == rb.source_step && ra.destination_step == rb.destination_step;
    const Index n = in_step ? std::min(ra.count, rb.count) : 1;
    ra = ra.slice(n, ra.count), rb = rb.slice(n, rb.count);
  }
}

bool less_source(const OffsetPair& a, const OffsetPair& b) {
  return a.source != b.source ? a.source < b.source : a.destination < b.destination;
}
bool less_destination(const OffsetPair& a, const OffsetPair& b) {
  return a.destination != b.destination ? a.destination < b.destination : a.source < b.source;
}

/// True when the pairs of a nest are sorted by one side, then
/// the other; false may mean that it must be enumerated to tell.
bool in_order(const LoopNest& nest, bool by_source) {
  auto stays = [by_source](const RelationAxis& axis) {
    return (by_source ? axis.source_stride : axis.destination_stride) == 0;
  };
  auto inner = nest.axes().end();  // the loops that stay at one place of the first side, and sort by the other
  while (inner != nest.axes().begin() && stays(*(inner - 1))) --inner;
  const LoopNest places(nest.element_bytes(), {nest.axes().begin(), inner});
  const LoopNest copies(nest.element_bytes(), {inner, nest.axes().end()});
  return by_source ? places.ascending_source() && copies.ascending_destination()
                   : places.ascending_destination() && copies.ascending_source();
}

/// What `next` does with stretches of its source array.
class Onward {
 public:
  explicit Onward(const AddressRelation& next) : element_(next.element_bytes()) {
    const auto all = next.reader();
    for_each_run(*all, [&](const OffsetRun& run) {
      const bool block = run.source_step == element_ && run.destination_step == element_;
      if (run.count == 1 || block) return spans_.push_back(run), void();
      for (Index k = 0; k < run.count; ++k)
        spans_.push_back({run.at(k).source, run.at(k).destination, 1, element_, element_});
    });
    sort();
    for (std::size_t k = 1; k < spans_.size() && !overlaps_; ++k)
      overlaps_ = spans_[k].source < spans_[k - 1].source + spans_[k - 1].count * element_;
    if (!overlaps_) return;
    // A source that is read twice has several ways on: one span an element, those of one source in the order of `next`.
    spans_.clear();
    const auto again = next.reader();
    for_each_run(*again, [&](const OffsetRun& run) {
      for (Index k = 0; k < run.count; ++k) spans_.push_back(run.slice(k, k + 1));
    });
    sort();
  }

  /// Calls f(run) for everything that comes of `count` contiguous elements from (a, b) on, in order.
  template <class F>
  void follow(Index a, Index b, Index count, F&& f) const {
    if (overlaps_) {
      for (Index k = 0; k < count; ++k)
        for (auto at = first_not_before(b + k * element_); at != spans_.end() && at->source == b + k * element_; ++at)
          f({a + k * element_, at->destination, 1, 0, 0});
      return;
    }
    auto at = std::upper_bound(spans_.begin(), spans_.end(), b,
                               [](Index x, const OffsetRun& span) { return x < span.source; });
    if (at != spans_.begin()) --at;
    for (Index end = b + count * element_; at != spans_.end() && at->source < end; ++at) {
      const Index phase = at->source - b;
      if (phase % element_ != 0) continue;  // elements of `next` that straddle two of ours are not ours
      const Index first = std::max<Index>(phase / element_, 0), last = std::min(phase / element_ + at->count, count);
      if (first >= last) continue;
      f({a + first * element_, at->destination + (first * element_ - phase), last - first, element_, element_});
    }
  }

 private:
  void sort() {
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const OffsetRun& x, const OffsetRun& y) { return x.source < y.source; });
  }
  std::vector<OffsetRun>::const_iterator first_not_before(Index b) const {
    return std::lower_bound(spans_.begin(), spans_.end(), b,
                            [](const OffsetRun& span, Index x) { return span.source < x; });
  }

  Index element_;
  std::vector<OffsetRun> spans_;  ///< by source
  bool overlaps_ = false;
};

}  // namespace

AddressRelation AddressRelation::inverse(Reduction reduction) const {
  std::vector<Part> parts;
  for (const auto& part : parts_) parts.push_back(inverted(part));
  AddressRelation result(element_bytes_, std::move(parts), reduction);
  result.check_destinations();
  return result;
}

AddressRelation AddressRelation::compose(const AddressRelation& next, Reduction reduction) const {
  if (next.element_bytes_ != element_bytes_)
    throw Error(ErrorKind::type, "a relation of " + std::to_string(element_bytes_) +
                                     "-byte elements cannot be followed by one of " +
                                     std::to_string(next.element_bytes_) + "-byte elements");
  const Onward onward(next);
  RunList runs;
  const auto all = reader();
  for_each_run(*all, [&](const OffsetRun& run) {
    auto append = [&](const OffsetRun& found) { runs.push_back(found); };
    if (run.source_step == element_bytes_ && run.destination_step == element_bytes_)
      return onward.follow(run.source, run.destination, run.count, append);
    for (Index k = 0; k < run.count; ++k) onward.follow(run.at(k).source, run.at(k).destination, 1, append);
  });
  return from_runs(element_bytes_, std::move(runs), reduction).canonical();
}

AddressRelation AddressRelation::restrict(Index first, Index last) const {
  check_positions(first, last, elements_);
  std::vector<Part> parts;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Index end = k + 1 < parts_.size() ? starts_[k + 1] : elements_;
    const Index from = std::max(first, starts_[k]) - starts_[k], to = std::min(last, end) - starts_[k];
    if (from >= to) continue;
    if (const auto* nest = std::get_if<LoopNest>(&parts_[k])) {
      for (auto& piece : nest->slice(from, to)) parts.push_back(std::move(piece));
    } else if (const auto* pairs = std::get_if<PairList>(&parts_[k])) {
      parts.push_back(PairList(pairs->begin() + from, pairs->begin() + to));
    } else {
      RunList runs;
      const auto some = reader(starts_[k] + from, starts_[k] + to);
      for_each_run(*some, [&](const OffsetRun& run) { runs.push_back(run); });
      parts.push_back(std::move(runs));
    }
  }
  return AddressRelation(element_bytes_, std::move(parts), reduction_);
}

AddressRelation AddressRelation::concatenate(std::span<const AddressRelation> relations) {
  if (relations.empty()) return AddressRelation();
  std::vector<Part> parts;
  for (std::size_t k = 0; k < relations.size(); ++k) {
    const auto& relation = relations[k];
    if (relation.element_bytes_ != relations[0].element_bytes_ || !(relation.reduction_ == relations[0].reduction_))
      throw Error(ErrorKind::type, "relation " + std::to_string(k) + " has elements of " +
                                       std::to_string(relation.element_bytes_) + " bytes and reduction " +
                                       std::string(reduce_name(relation.reduction_.op())) + "; the first one has " +
                                       std::to_string(relations[0].element_bytes_) + " and " +
                                       std::string(reduce_name(relations[0].reduction_.op())));
    parts.insert(parts.end(), relation.parts_.begin(), relation.parts_.end());
  }
  AddressRelation result(relations[0].element_bytes_, std::move(parts), relations[0].reduction_);
  result.check_destinations();
  return result;
}

bool AddressRelation::is_sorted(PairOrder order) const {
  if (order == PairOrder::given || elements_ <= 1) return true;
  const bool by_source = order == PairOrder::source_first;
  if (parts_.size() == 1)
    if (const auto* nest = std::get_if<LoopNest>(&parts_[0]))
      if (in_order(*nest, by_source)) return true;
  const auto less = by_source ? less_source : less_destination;
  bool sorted = true, any = false;
  OffsetPair last;
  const auto all = reader();
  OffsetRun batch[64];
  while (const std::size_t n = sorted ? all->read(batch) : 0)
    for (std::size_t k = 0; k < n; ++k) {
      const auto& run = batch[k];
      if (any && less(run.at(0), last)) sorted = false;
      if (run.count > 1 && less(run.at(1), run.at(0))) sorted = false;
      last = run.at(run.count - 1);
      any = true;
    }
  return sorted;
}

std::optional<AddressRelation> AddressRelation::nest_in_order(PairOrder order) const {
  if (parts_.size() != 1 || !std::holds_alternative<LoopNest>(parts_[0])) return std::nullopt;
  const auto nest = std::get<LoopNest>(parts_[0]).canonical();
  const bool by_source = order == PairOrder::source_first;
  auto axes = nest.axes();
  Index source = nest.source_base(), destination = nest.destination_base();
  // How far one step of an axis goes on both sides, the one that is sorted by first.
  auto steps = [by_source](const RelationAxis& axis) {
    const auto a = axis.runs.at(0), b = axis.runs.at(1);
    const Index s = (b.source - a.source) * axis.source_stride,
                d = (b.destination - a.destination) * axis.destination_stride;
    return by_source ? std::pair(s, d) : std::pair(d, s);
  };
  for (auto& axis : axes) {  // loops that run backwards are turned round
    const auto& run = axis.runs.periods()[0].runs[0];
    const bool line = axis.runs.single_run() || (run.length == 1 && axis.runs.elements() == run.count);
    if (!line || steps(axis) >= std::pair(Index{0}, Index{0})) continue;
    const Index n = axis.runs.elements();
    const auto first = axis.runs.at(0), second = axis.runs.at(1), last = axis.runs.at(n - 1);
    source += last.source * axis.source_stride, destination += last.destination * axis.destination_stride;
    axis = {PairedRuns::run(n), (first.source - second.source) * axis.source_stride,
            (first.destination - second.destination) * axis.destination_stride};
  }
  std::stable_sort(axes.begin(), axes.end(), [&](const auto& a, const auto& b) { return steps(a) > steps(b); });
  LoopNest exchanged(element_bytes_, std::move(axes), source, destination);
  if (!in_order(exchanged, by_source)) return std::nullopt;
  return AddressRelation(element_bytes_, std::vector<Part>{std::move(exchanged)}, reduction_);
}

AddressRelation AddressRelation::sorted(PairOrder order) const {
  if (is_sorted(order)) return *this;
  if (auto nest = nest_in_order(order)) return *nest;
  auto list = pairs();
  std::sort(list.begin(), list.end(), order == PairOrder::source_first ? less_source : less_destination);
  AddressRelation result(element_bytes_, {Part(std::move(list))}, reduction_);
  return result.canonical();
}

AddressRelation AddressRelation::canonical() const {
  if (parts_.size() == 1)
    if (const auto* nest = std::get_if<LoopNest>(&parts_[0]))
      return AddressRelation(element_bytes_, std::vector<Part>{nest->canonical()}, reduction_);
  // Nests stay nests and packed lists packed; what lies between them is folded.
  std::vector<Part> parts;
  auto flush = [&](std::size_t first, std::size_t last) {
    if (first == last) return;
    const Index end = last < parts_.size() ? starts_[last] : elements_;
    const auto some = reader(starts_[first], end);
    for (auto& part : fold(element_bytes_, *some)) parts.push_back(std::move(part));
  };
  std::size_t first = 0;
  constexpr Index small = 4096;  // so many runs of a nest are read again, to find what several nests have in common
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const auto* nest = std::get_if<LoopNest>(&parts_[k]);
    const bool is_packed = std::holds_alternative<PackedList>(parts_[k]);
    if (!is_packed && (nest == nullptr || nest->elements() <= small)) continue;
    flush(first, k);
    if (nest != nullptr)
      parts.push_back(nest->canonical());
    else
      parts.push_back(parts_[k]);
    first = k + 1;
  }
  flush(first, parts_.size());
  return AddressRelation(element_bytes_, std::move(parts), reduction_);
}

bool AddressRelation::operator==(const AddressRelation& other) const {
  if (element_bytes_ != other.element_bytes_ || elements_ != other.elements_ || !(reduction_ == other.reduction_))
    return false;
  if (source_extent_ != other.source_extent_ || destination_extent_ != other.destination_extent_) return false;
  if (parts_ == other.parts_) return true;
  // No need to enumerate what are the same nests.
  auto has_nest = [](const Part& part) { return std::holds_alternative<LoopNest>(part); };
  if (std::any_of(parts_.begin(), parts_.end(), has_nest) &&
      std::any_of(other.parts_.begin(), other.parts_.end(), has_nest) && canonical().parts_ == other.canonical().parts_)
    return true;
  const auto mine = reader(), theirs = other.reader();
  return same_sequence(*mine, *theirs);
}

bool AddressRelation::same_pairs(const AddressRelation& other) const {
  return sorted(PairOrder::source_first) == other.sorted(PairOrder::source_first);
}

AddressRelation AddressRelation::assembly() const {
  std::vector<Part> parts;
  for (std::size_t k = 0; k < parts_.size(); ++k)
    parts.push_back(assembled(parts_[k], element_bytes_, starts_[k] * element_bytes_));
  AddressRelation result(element_bytes_, std::move(parts), {});
  return parts_.size() == 1 && std::holds_alternative<LoopNest>(parts_[0]) ? result : result.canonical();
}

AddressRelation AddressRelation::disassembly() const {
  std::vector<Part> parts;
  for (const auto& part : parts_) parts.push_back(inverted(part));
  // Not `inverse()`: a source that is read twice is two places of the message.
  const auto message = AddressRelation(element_bytes_, std::move(parts), {}).assembly();
  parts.clear();
  for (const auto& part : message.parts_) parts.push_back(inverted(part));
  return AddressRelation(element_bytes_, std::move(parts), reduction_);
}

}  // namespace longshore
