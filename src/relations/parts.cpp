#include "relations/parts.hpp"

#include <algorithm>

namespace longshore {

namespace {

/// Distances between offsets, and one step beyond them, must fit in 64 bits.
constexpr Index offset_limit = Index{1} << 60;

/// The last element of a run in one step of checked arithmetic.
Index last_of(Index first, Index step, Index count) { return checked_add(first, checked_mul(step, count - 1)); }

/// Reads the positions [first, last) of a list of runs.
class RunListReader : public RunReader {
 public:
  RunListReader(const AddressRelation::RunList& runs, Index first, Index last) : runs_(runs), left_(last - first) {
    while (left_ > 0 && first >= runs_[at_].count) first -= runs_[at_++].count;
    skip_ = first;
  }
  std::size_t read(std::span<OffsetRun> out) override {
    std::size_t n = 0;
    for (; n < out.size() && left_ > 0; ++n) {
      const auto& run = runs_[at_++];
      out[n] = run.slice(skip_, std::min(run.count, skip_ + left_));
      left_ -= out[n].count;
      skip_ = 0;
    }
    return n;
  }

 private:
  const AddressRelation::RunList& runs_;
  std::size_t at_ = 0;
  Index left_, skip_ = 0;
};

}  // namespace

std::size_t PairReader::read(std::span<OffsetRun> out) {
  const std::size_t n = std::min(out.size(), pairs_.size());
  for (std::size_t k = 0; k < n; ++k) out[k] = {pairs_[k].source, pairs_[k].destination, 1, 0, 0};
  pairs_ = pairs_.subspan(n);
  return n;
}

Index elements_of(const AddressRelation::Part& part) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return nest->elements();
  if (const auto* list = std::get_if<PackedList>(&part)) return list->elements();
  if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) return Index(pairs->size());
  Index n = 0;
  for (const auto& run : std::get<AddressRelation::RunList>(part)) n = checked_add(n, run.count);
  return n;
}

std::unique_ptr<RunReader> reader_of(const AddressRelation::Part& part, Index first, Index last) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return nest->reader(first, last);
  if (const auto* list = std::get_if<PackedList>(&part)) return list->reader(first, last);
  if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part))
    return std::make_unique<PairReader>(std::span(*pairs).subspan(std::size_t(first), std::size_t(last - first)));
  return std::make_unique<RunListReader>(std::get<AddressRelation::RunList>(part), first, last);
}

AddressRelation::Part inverted(const AddressRelation::Part& part) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return nest->inverse();
  if (const auto* list = std::get_if<PackedList>(&part)) return list->inverse();
  if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) {
    auto list = *pairs;
    for (auto& pair : list) std::swap(pair.source, pair.destination);
    return list;
  }
  auto list = std::get<AddressRelation::RunList>(part);
  for (auto& run : list) std::swap(run.source, run.destination), std::swap(run.source_step, run.destination_step);
  return list;
}

AddressRelation::Part assembled(const AddressRelation::Part& part, Index element, Index message) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) {
    const auto half = nest->assembly();
    return LoopNest(element, half.axes(), half.source_base(), message);
  }
  if (const auto* list = std::get_if<PackedList>(&part)) {
    const auto half = list->assembly();
    return PackedList(element, half.block(), half.unit(), half.source_base(), message, half.source(),
                      half.destination());
  }
  if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) {
    auto list = *pairs;
    for (auto& pair : list) pair.destination = message, message += element;
    return list;
  }
  auto list = std::get<AddressRelation::RunList>(part);
  for (auto& run : list) {
    run.destination = message, run.destination_step = element;
    message += run.count * element;
  }
  return list;
}

void Extents::add(Interval from, Interval to) {
  auto widen = [this](Interval& all, const Interval& more) {
    all = any_ ? Interval{std::min(all.first, more.first), std::max(all.last, more.last)} : more;
  };
  widen(source, from), widen(destination, to);
  any_ = true;
}

void Extents::add(const OffsetRun& run) {
  auto side = [this, &run](Index first, Index step) {
    const Index last = last_of(first, step, run.count);
    return Interval{std::min(first, last), checked_add(std::max(first, last), element_)};
  };
  add(side(run.source, run.source_step), side(run.destination, run.destination_step));
}

void Extents::add(const AddressRelation::Part& part) {
  auto add_all = [this](const auto& regular) {
    if (regular.elements() > 0) add(regular.source_extent(), regular.destination_extent());
  };
  if (const auto* nest = std::get_if<LoopNest>(&part)) {
    add_all(*nest);
  } else if (const auto* list = std::get_if<PackedList>(&part)) {
    add_all(*list);
  } else if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) {
    if (pairs->empty()) return;
    Interval from{pairs->front().source, pairs->front().source};
    Interval to{pairs->front().destination, pairs->front().destination};
    for (const auto& pair : *pairs) {
      from = {std::min(from.first, pair.source), std::max(from.last, pair.source)};
      to = {std::min(to.first, pair.destination), std::max(to.last, pair.destination)};
    }
    add({from.first, checked_add(from.last, element_)}, {to.first, checked_add(to.last, element_)});
  } else {
    for (const auto& run : std::get<AddressRelation::RunList>(part)) add(run);
  }
}

void Extents::check() const {
  for (const auto& extent : {source, destination})
    if (extent.first < -offset_limit || extent.last > offset_limit)
      throw Error(ErrorKind::overflow, "offsets from " + std::to_string(extent.first) + " to " +
                                           std::to_string(extent.last) + " reach beyond 2^60 bytes");
}

}  // namespace longshore
