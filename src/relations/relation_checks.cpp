// Destinations of a relation without a reduction do not overlap: found out in the cheapest way that tells.
#include <algorithm>

#include "longshore/relations/address_relation.hpp"

namespace longshore {

namespace {

using PairList = AddressRelation::PairList;

/// Does every element come after the one before it ends?
bool ascends(const PairList& pairs, Index element) {
  bool ascending = true;
  for (std::size_t k = 1; k < pairs.size(); ++k) ascending &= pairs[k].destination >= pairs[k - 1].destination + element;
  return ascending;
}

bool ascends(const AddressRelation::RunList& runs, Index element) {
  Index end = runs.front().destination;
  for (const auto& run : runs) {
    if (run.destination < end || (run.count > 1 && run.destination_step < element)) return false;
    end = run.at(run.count - 1).destination + element;
  }
  return true;
}

bool ascends(const PackedList& list) {
  const auto blocks = list.reader(0, list.elements());
  bool ascending = true, any = false;
  Index end = 0;
  for_each_run(*blocks, [&](const OffsetRun& run) {
    ascending = ascending && (!any || run.destination >= end);
    end = run.destination + run.count * list.element_bytes();
    any = true;
  });
  return ascending;
}

bool distinct_by_itself(const AddressRelation::Part& part, Index element) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return nest->distinct_destinations();
  if (const auto* list = std::get_if<PackedList>(&part)) return ascends(*list);
  if (const auto* pairs = std::get_if<PairList>(&part)) return ascends(*pairs, element);
  return ascends(std::get<AddressRelation::RunList>(part), element);
}

Extent extent_of(const AddressRelation::Part& part, Index element) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return nest->destination_extent();
  if (const auto* list = std::get_if<PackedList>(&part)) return list->destination_extent();
  // Only lists that ascend are asked.
  if (const auto* pairs = std::get_if<PairList>(&part)) return {pairs->front().destination, pairs->back().destination + element};
  const auto& runs = std::get<AddressRelation::RunList>(part);
  return {runs.front().destination, runs.back().at(runs.back().count - 1).destination + element};
}

/// Calls f(position, pair) for every pair.
template <class F>
void for_each_pair(const AddressRelation& relation, F&& f) {
  Index position = 0;
  const auto all = relation.reader();
  for_each_run(*all, [&](const OffsetRun& run) {
    for (Index k = 0; k < run.count; ++k) f(position++, run.at(k));
  });
}

[[noreturn]] void refuse(Index a, const OffsetPair& first, Index b, const OffsetPair& second) {
  auto words = [](Index position, const OffsetPair& pair) {
    return "pair " + std::to_string(position) + " (" + std::to_string(pair.source) + " -> " + std::to_string(pair.destination) + ")";
  };
  throw Error(ErrorKind::argument, words(a, first) + " and " + words(b, second) +
                                       " write the same bytes; give a combining operation (add, minimum, ...) or one destination "
                                       "to each pair");
}

/// One bit an element: for destinations that lie on a common raster, closely.
void check_by_bits(const AddressRelation& relation, Index first, Index places) {
  const Index element = relation.element_bytes();
  std::vector<std::uint64_t> bits(std::size_t(places / 64 + 1));
  Index clash = -1, position_of_clash = -1;
  for_each_pair(relation, [&](Index position, const OffsetPair& pair) {
    const Index place = (pair.destination - first) / element;
    auto& word = bits[std::size_t(place / 64)];
    const std::uint64_t bit = std::uint64_t(1) << (place % 64);
    if ((word & bit) && clash < 0) clash = pair.destination, position_of_clash = position;
    word |= bit;
  });
  if (clash < 0) return;
  OffsetPair second = relation.at(position_of_clash);
  for_each_pair(relation, [&](Index position, const OffsetPair& pair) {
    if (pair.destination == clash) refuse(position, pair, position_of_clash, second);
  });
}

void check_by_sorting(const AddressRelation& relation) {
  struct Place {
    Index destination, position;
  };
  std::vector<Place> places;
  places.reserve(std::size_t(relation.elements()));
  for_each_pair(relation, [&](Index position, const OffsetPair& pair) { places.push_back({pair.destination, position}); });
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.destination != b.destination ? a.destination < b.destination : a.position < b.position;
  });
  for (std::size_t k = 1; k < places.size(); ++k)
    if (places[k].destination < places[k - 1].destination + relation.element_bytes())
      refuse(places[k - 1].position, relation.at(places[k - 1].position), places[k].position, relation.at(places[k].position));
}

}  // namespace

void AddressRelation::check_destinations() const {
  if (!reduction_.is_replace() || elements_ <= 1) return;

  if (std::all_of(parts_.begin(), parts_.end(), [this](const Part& part) { return distinct_by_itself(part, element_bytes_); })) {
    std::vector<Extent> extents;
    for (const auto& part : parts_) extents.push_back(extent_of(part, element_bytes_));
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.first < b.first; });
    bool apart = true;
    for (std::size_t k = 1; k < extents.size(); ++k) apart = apart && extents[k].first >= extents[k - 1].last;
    if (apart) return;
  }

  constexpr Index most = Index{1} << 28;  // elements that are worth a look one by one: 4 GiB at most
  if (elements_ > most)
    throw Error(ErrorKind::memory_limit, "whether the destinations of " + std::to_string(elements_) +
                                             " interleaved elements overlap cannot be told; build the relation from parts that "
                                             "do not interleave, or give a combining operation");
  const Wide range = Wide(destination_extent_.last) - destination_extent_.first;
  bool raster = range / element_bytes_ <= std::clamp<Wide>(Wide(elements_) * 64, 1 << 20, Index{1} << 31);
  if (raster)
    for_each_pair(*this, [&](Index, const OffsetPair& pair) {
      raster = raster && (pair.destination - destination_extent_.first) % element_bytes_ == 0;
    });
  if (raster) return check_by_bits(*this, destination_extent_.first, Index(range / element_bytes_));
  check_by_sorting(*this);
}

}  // namespace longshore
