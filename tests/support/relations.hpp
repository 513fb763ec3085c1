/// Random address relations of every sort, small enough to enumerate, and what is true of them, found
/// out the plain way. `draw(low, high)` gives an Index within [low, high]: rapidcheck's, or a
/// generator's where many cases matter more than small ones.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "longshore/encodings/encoding.hpp"
#include "support/dense.hpp"
#include "support/pairs.hpp"

namespace longshore::test {

using Pairs = AddressRelation::PairList;

inline Pairs pairs_of(const AddressRelation::Part& part) {
  if (const auto* nest = std::get_if<LoopNest>(&part)) return pairs_of(*nest);
  if (const auto* list = std::get_if<Pairs>(&part)) return *list;
  Pairs pairs;
  for (const auto& run : std::get<AddressRelation::RunList>(part))
    for (Index k = 0; k < run.count; ++k)
      pairs.push_back({run.source + k * run.source_step, run.destination + k * run.destination_step});
  return pairs;
}

inline Pairs pairs_of(RunReader& reader) {
  AddressRelation::RunList runs;
  for_each_run(reader, [&](const OffsetRun& run) { runs.push_back(run); });
  return pairs_of(AddressRelation::Part(std::move(runs)));
}

inline Pairs slice(const Pairs& pairs, Index first, Index last) {
  return {pairs.begin() + first, pairs.begin() + last};
}

inline Pairs swapped(Pairs pairs) {
  for (auto& pair : pairs) std::swap(pair.source, pair.destination);
  return pairs;
}

inline bool by_source(const OffsetPair& a, const OffsetPair& b) {
  return std::pair(a.source, a.destination) < std::pair(b.source, b.destination);
}
inline bool by_destination(const OffsetPair& a, const OffsetPair& b) {
  return by_source({a.destination, a.source}, {b.destination, b.source});
}

/// Do two elements of the destination have a byte in common?
inline bool destinations_overlap(const Pairs& pairs, Index element) {
  std::vector<Index> offsets;
  for (const auto& pair : pairs) offsets.push_back(pair.destination);
  std::sort(offsets.begin(), offsets.end());
  for (std::size_t k = 1; k < offsets.size(); ++k)
    if (offsets[k] < offsets[k - 1] + element) return true;
  return false;
}

/// Every pair of a relation moved with nothing but memcpy, or its reduction element by element.
inline void move(const Pairs& pairs, Index element, const Reduction& reduction, std::byte* destination,
                 const std::byte* source) {
  for (const auto& pair : pairs) {
    if (reduction.is_replace())
      std::memcpy(destination + pair.destination, source + pair.source, std::size_t(element));
    else
      reduction.apply(destination + pair.destination, source + pair.source, 1, element, element);
  }
}

/// Memory for the offsets of one side, with guard bytes around it that nothing may touch.
struct Field {
  static constexpr Index guard = 96;
  Index low;
  Bytes bytes;

  Field(const Pairs& pairs, Index OffsetPair::*side, Index element, bool filled) {
    Index high = low = pairs.empty() ? 0 : pairs[0].*side;
    for (const auto& pair : pairs) low = std::min(low, pair.*side), high = std::max(high, pair.*side);
    for (Index k = 0; k < high - low + element + 2 * guard; ++k)
      bytes.push_back(filled ? element_byte(k, 1) : untouched);
  }
  std::byte* data() { return bytes.data() + guard - low; }
  bool operator==(const Field& other) const { return low == other.low && bytes == other.bytes; }
};

// --- random relations

template <class Draw>
PairedRuns any_runs(Draw&& draw) {
  std::vector<PairedPeriod> periods(draw(0, 7) == 7 ? 2 : 1);
  Index position = 0;
  for (auto& period : periods) {
    period.runs.resize(draw(0, 3) == 3 ? 2 : 1);
    for (auto& run : period.runs) {
      run = {position, draw(0, 9), draw(0, 9), draw(0, 1) ? 1 : draw(1, 3), draw(1, 3), 0, draw(-3, 6), draw(-3, 6)};
      if (draw(0, 1)) run.source_step = std::max(run.source_step, run.length);
      if (draw(0, 1)) run.destination_step = std::max(run.destination_step, run.length);
      run.global_step = run.length;
      position += run.length * run.count;
    }
    period.repeats = draw(0, 3) == 3 ? draw(2, 3) : 1;
    period.global_period = period.elements_per_period();
    period.source_period = draw(-6, 24), period.destination_period = draw(-6, 24);
    position += period.global_period * (period.repeats - 1);
  }
  return PairedRuns(std::move(periods));
}

template <class Draw>
Index any_stride(Draw&& draw, Index element) {
  switch (draw(0, 9)) {
    case 0: return 0;
    case 1: return draw(-3 * element, 3 * element);
    case 2: return -element * draw(1, 12);
    default: return element * draw(1, 12);
  }
}

/// A nest of up to `most` elements with any steps, periods and strides at all.
template <class Draw>
LoopNest any_nest(Draw&& draw, Index element, Index most = 200) {
  std::vector<RelationAxis> axes;
  for (Index k = draw(0, 3), left = most; k > 0; --k) {
    RelationAxis axis{draw(0, 1) ? PairedRuns::run(draw(1, 6), draw(0, 2), draw(0, 2)) : any_runs(draw),
                      any_stride(draw, element), any_stride(draw, element)};
    if (axis.runs.elements() > left) continue;
    left /= axis.runs.elements();
    axes.push_back(std::move(axis));
  }
  return LoopNest(element, std::move(axes), draw(-40, 40), draw(-40, 40));
}

/// A box whose destination is a box again, its axes in any order and direction, with or without gaps.
template <class Draw>
LoopNest any_box(Draw&& draw, Index element) {
  std::vector<RelationAxis> axes(std::size_t(draw(1, 4)));
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t k = 0; k < order.size(); ++k)
    std::swap(order[k], order[std::size_t(draw(Index(k), Index(order.size()) - 1))]);
  Index source = element, destination = element;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const Index n = draw(1, 4);
    axes[k] = {PairedRuns::run(n, draw(0, 1)), draw(0, 3) ? source : any_stride(draw, element), 0};
    source *= n + draw(0, 1);
  }
  for (const auto k : order) {
    axes[k].destination_stride = draw(0, 3) ? destination : -destination;
    destination = destination * axes[k].runs.elements() + (draw(0, 2) ? 0 : element * draw(0, 2));
  }
  return LoopNest(element, std::move(axes), draw(-40, 40), draw(-40, 40));
}

template <class Draw>
AddressRelation::RunList any_run_list(Draw&& draw, Index element) {
  AddressRelation::RunList runs(std::size_t(draw(1, 6)));
  Index at = draw(-20, 20);
  for (auto& run : runs) {
    run = {draw(-60, 60), at, draw(1, 6), any_stride(draw, element), draw(0, 3) ? element : any_stride(draw, element)};
    if (draw(0, 3) == 0) run.source_step = run.destination_step = element;
    at += draw(0, 9) ? std::abs(run.destination_step) * run.count + draw(0, 9) : draw(-50, 50);
  }
  if (draw(0, 1)) std::reverse(runs.begin(), runs.end());
  return runs;
}

template <class Draw>
Pairs any_pair_list(Draw&& draw, Index element) {
  Pairs pairs(std::size_t(draw(1, 40)));
  const bool dense = draw(0, 1);
  for (std::size_t k = 0; k < pairs.size(); ++k)
    pairs[k] = {element * draw(0, 60), element * Index(k) * (dense ? 1 : 3)};
  for (std::size_t k = 0; k < pairs.size() && !dense; ++k)
    std::swap(pairs[k].destination, pairs[std::size_t(draw(Index(k), Index(pairs.size()) - 1))].destination);
  if (draw(0, 9) == 0) pairs[0].destination += draw(-element, element);
  return pairs;
}

inline void shift(AddressRelation::Part& part, Index bytes) {
  if (auto* nest = std::get_if<LoopNest>(&part)) {
    part = LoopNest(nest->element_bytes(), nest->axes(), nest->source_base(), nest->destination_base() + bytes);
  } else if (auto* pairs = std::get_if<Pairs>(&part)) {
    for (auto& pair : *pairs) pair.destination += bytes;
  } else {
    for (auto& run : std::get<AddressRelation::RunList>(part)) run.destination += bytes;
  }
}

/// What a relation is made of, and its pairs by plain loops.
struct Sample {
  Index element = 1;
  std::vector<AddressRelation::Part> parts;
  Pairs pairs;
  bool overlap = false;

  AddressRelation relation(Reduction reduction = {}) const {
    return AddressRelation::from_parts(element, parts, reduction);
  }
};

template <class Draw>
AddressRelation::Part any_part(Draw&& draw, Index element) {
  switch (draw(0, 5)) {
    case 0: return any_nest(draw, element);
    case 1: return any_run_list(draw, element);
    case 2: return any_pair_list(draw, element);
    default: return any_box(draw, element);
  }
}

/// Parts of any sorts, mostly apart from each other.
template <class Draw>
Sample any_sample(Draw&& draw, Index element = 0) {
  constexpr Index sizes[] = {1, 2, 3, 4, 8, 8, 12, 16, 24};
  Sample sample;
  sample.element = element > 0 ? element : sizes[draw(0, 8)];
  Index end = 0;
  for (Index k = draw(0, 5) ? draw(1, 3) : 0; k > 0; --k) {
    auto part = any_part(draw, sample.element);
    auto pairs = pairs_of(part);
    if (draw(0, 9)) {
      Index low = pairs[0].destination;
      for (const auto& pair : pairs) low = std::min(low, pair.destination);
      shift(part, end - low);
      pairs = pairs_of(part);
    }
    for (const auto& pair : pairs) end = std::max(end, pair.destination + sample.element);
    if (draw(0, 2) == 0) end += draw(0, 12);
    sample.pairs.insert(sample.pairs.end(), pairs.begin(), pairs.end());
    sample.parts.push_back(std::move(part));
  }
  sample.overlap = destinations_overlap(sample.pairs, sample.element);
  return sample;
}

/// One that is a relation without a reduction.
template <class Draw>
Sample any_distinct(Draw&& draw, Index element = 0) {
  for (int tries = 0; tries < 20; ++tries)
    if (auto sample = any_sample(draw, element); !sample.overlap) return sample;
  return Sample{element > 0 ? element : 1, {}, {}, false};
}

}  // namespace longshore::test
