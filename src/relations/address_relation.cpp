#include "longshore/relations/address_relation.hpp"

#include <algorithm>
#include <cstring>

#include "relations/fold.hpp"
#include "relations/parts.hpp"

namespace longshore {

namespace {

void check_element(Index bytes) {
  if (bytes < 1) throw Error(ErrorKind::type, "an element of " + std::to_string(bytes) + " bytes cannot be moved");
}

/// What is given from outside: elements of one size, and runs of some elements each.
void tidy(AddressRelation::Part& part, Index element_bytes) {
  Index own = element_bytes;
  if (const auto* nest = std::get_if<LoopNest>(&part)) own = nest->element_bytes();
  if (const auto* list = std::get_if<PackedList>(&part)) own = list->element_bytes();
  if (own != element_bytes)
    throw Error(ErrorKind::type, std::to_string(own) + "-byte elements cannot be part of a relation of " +
                                     std::to_string(element_bytes) + "-byte elements");
  auto* runs = std::get_if<AddressRelation::RunList>(&part);
  if (runs == nullptr) return;
  for (std::size_t k = 0; k < runs->size(); ++k)
    if ((*runs)[k].count < 0)
      throw Error(ErrorKind::argument,
                  "run " + std::to_string(k) + " has " + std::to_string((*runs)[k].count) + " elements");
  std::erase_if(*runs, [](const OffsetRun& run) { return run.count == 0; });
}

/// The parts' readers one after the other.
class PartsReader : public RunReader {
 public:
  PartsReader(const AddressRelation& relation, const std::vector<Index>& starts, Index first, Index last)
      : parts_(relation.parts()), starts_(starts), first_(first), last_(last) {
    part_ = std::size_t(std::upper_bound(starts.begin(), starts.end(), first) - starts.begin()) - 1;
  }
  std::size_t read(std::span<OffsetRun> out) override {
    for (;;) {
      if (inner_) {
        if (const std::size_t n = inner_->read(out)) return n;
        inner_.reset();
        ++part_;
      }
      if (first_ >= last_) return 0;
      const Index start = starts_[part_], end = start + elements_of(parts_[part_]), stop = std::min(last_, end);
      inner_ = reader_of(parts_[part_], first_ - start, stop - start);
      first_ = stop;
    }
  }

 private:
  const std::vector<AddressRelation::Part>& parts_;
  const std::vector<Index>& starts_;
  Index first_, last_;
  std::size_t part_ = 0;
  std::unique_ptr<RunReader> inner_;
};

/// Passes on what somebody else reads. Folding trusts it, so it is looked at here, in checked arithmetic.
class CheckedReader : public RunReader {
 public:
  CheckedReader(RunReader& inner, Index element) : inner_(inner), element_(element) {}
  std::size_t read(std::span<OffsetRun> out) override {
    const std::size_t n = inner_.read(out);
    for (const auto& run : out.first(n)) {
      if (run.count < 1)
        throw Error(ErrorKind::argument, "a reader gives a run of " + std::to_string(run.count) + " elements");
      elements_ = checked_add(elements_, run.count);
      Extents extents(element_);
      extents.add(run);
      extents.check();
    }
    return n;
  }

 private:
  RunReader& inner_;
  Index element_, elements_ = 0;
};

template <class Int>
AddressRelation indexed(Index element, std::span<const Int> source, std::span<const Int> destination,
                        const Reduction& reduction) {
  if (source.size() != destination.size())
    throw Error(ErrorKind::shape, std::to_string(source.size()) + " source indices for " +
                                      std::to_string(destination.size()) + " destination indices");
  AddressRelation::PairList pairs(source.size());
  for (std::size_t k = 0; k < pairs.size(); ++k)
    pairs[k] = {checked_mul(source[k], element), checked_mul(destination[k], element)};
  return AddressRelation::from_pairs(element, pairs, reduction);
}

}  // namespace

AddressRelation::AddressRelation(Index element_bytes, Reduction reduction)
    : AddressRelation(element_bytes, std::vector<Part>{}, reduction) {}

AddressRelation::AddressRelation(Index element_bytes, std::vector<Part> parts, Reduction reduction)
    : element_bytes_(element_bytes), reduction_(reduction) {
  check_element(element_bytes);
  if (!reduction.is_replace() && reduction.element_bytes() != element_bytes)
    throw Error(ErrorKind::type, "elements of " + std::to_string(element_bytes) + " bytes cannot be reduced as " +
                                     std::string(element_name(reduction.type())));
  Extents extents(element_bytes);
  for (auto& part : parts) {
    const Index n = elements_of(part);
    if (n == 0) continue;
    extents.add(part);
    starts_.push_back(elements_);
    elements_ = checked_add(elements_, n);
    parts_.push_back(std::move(part));
  }
  checked_mul(elements_, element_bytes);
  extents.check();
  source_extent_ = extents.source, destination_extent_ = extents.destination;
}

AddressRelation::AddressRelation(LoopNest nest, Reduction reduction)
    : AddressRelation(nest.element_bytes(), std::vector<Part>{nest}, reduction) {
  check_destinations();
}

AddressRelation AddressRelation::from_pairs(Index element_bytes, std::span<const Pair> pairs, Reduction reduction) {
  std::vector<Part> parts;
  parts.push_back(PairList(pairs.begin(), pairs.end()));
  return from_parts(element_bytes, std::move(parts), reduction);
}

AddressRelation AddressRelation::from_indices(Index element_bytes, std::span<const std::int64_t> source,
                                              std::span<const std::int64_t> destination, Reduction reduction) {
  return indexed(element_bytes, source, destination, reduction);
}

AddressRelation AddressRelation::from_indices(Index element_bytes, std::span<const std::int32_t> source,
                                              std::span<const std::int32_t> destination, Reduction reduction) {
  return indexed(element_bytes, source, destination, reduction);
}

AddressRelation AddressRelation::from_runs(Index element_bytes, RunList runs, Reduction reduction) {
  std::vector<Part> parts;
  parts.push_back(std::move(runs));
  return from_parts(element_bytes, std::move(parts), reduction);
}

AddressRelation AddressRelation::from_blocks(Index element_bytes, std::span<const OffsetBlock> blocks,
                                             Reduction reduction) {
  RunList runs;
  runs.reserve(blocks.size());
  for (const auto& block : blocks)
    runs.push_back({block.source, block.destination, block.elements, element_bytes, element_bytes});
  return from_runs(element_bytes, std::move(runs), reduction);
}

AddressRelation AddressRelation::from_segments(Index element_bytes, std::span<const Segment> source,
                                               std::span<const Segment> destination, Reduction reduction) {
  check_element(element_bytes);
  RunList runs;
  auto check = [&](std::span<const Segment> segments, const char* side) {
    Index total = 0;
    for (std::size_t k = 0; k < segments.size(); ++k) {
      if (segments[k].bytes < 0 || segments[k].bytes % element_bytes != 0)
        throw Error(ErrorKind::shape, std::string(side) + " segment " + std::to_string(k) + " has " +
                                          std::to_string(segments[k].bytes) +
                                          " bytes, which are no whole elements of " + std::to_string(element_bytes));
      total = checked_add(total, segments[k].bytes);
    }
    return total;
  };
  const Index from = check(source, "source"), to = check(destination, "destination");
  if (from != to)
    throw Error(ErrorKind::shape, "the source segments have " + std::to_string(from) +
                                      " bytes, the destination segments " + std::to_string(to));
  std::size_t s = 0, d = 0;
  for (Index in_s = 0, in_d = 0, left = from; left > 0;) {
    while (in_s == source[s].bytes) ++s, in_s = 0;
    while (in_d == destination[d].bytes) ++d, in_d = 0;
    const Index n = std::min(source[s].bytes - in_s, destination[d].bytes - in_d);
    runs.push_back({checked_add(source[s].offset, in_s), checked_add(destination[d].offset, in_d), n / element_bytes,
                    element_bytes, element_bytes});
    in_s += n, in_d += n, left -= n;
  }
  return from_runs(element_bytes, std::move(runs), reduction);
}

AddressRelation AddressRelation::strided(Index element_bytes, std::span<const Index> extents,
                                         std::span<const Index> source_strides,
                                         std::span<const Index> destination_strides, Index source_base,
                                         Index destination_base, Reduction reduction) {
  if (source_strides.size() != extents.size() || destination_strides.size() != extents.size())
    throw Error(ErrorKind::shape, std::to_string(extents.size()) + " extents have " +
                                      std::to_string(source_strides.size()) + " source strides and " +
                                      std::to_string(destination_strides.size()) + " destination strides");
  std::vector<RelationAxis> axes;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (extents[k] < 0)
      throw Error(ErrorKind::shape,
                  "extent " + std::to_string(extents[k]) + " of dimension " + std::to_string(k) + " is negative");
    axes.push_back({PairedRuns::run(extents[k]), source_strides[k], destination_strides[k]});
  }
  return AddressRelation(LoopNest(element_bytes, std::move(axes), source_base, destination_base), reduction);
}

AddressRelation AddressRelation::from_parts(Index element_bytes, std::vector<Part> parts, Reduction reduction) {
  for (auto& part : parts) tidy(part, element_bytes);
  AddressRelation relation(element_bytes, std::move(parts), reduction);
  relation.check_destinations();
  return relation;
}

AddressRelation AddressRelation::from_reader(Index element_bytes, RunReader& reader, Reduction reduction) {
  check_element(element_bytes);
  CheckedReader checked(reader, element_bytes);
  return from_parts(element_bytes, fold(element_bytes, checked), reduction);
}

AddressRelation::Pair AddressRelation::at(Index position) const {
  check_position(position, elements_);
  OffsetRun run;
  reader(position, position + 1)->read({&run, 1});
  return run.at(0);
}

AddressRelation::PairList AddressRelation::pairs() const {
  PairList list;
  list.reserve(std::size_t(elements_));
  const auto all = reader();
  for_each_run(*all, [&](const OffsetRun& run) {
    for (Index k = 0; k < run.count; ++k) list.push_back(run.at(k));
  });
  return list;
}

std::unique_ptr<RunReader> AddressRelation::reader(Index first, Index last) const {
  check_positions(first, last, elements_);
  return std::make_unique<PartsReader>(*this, starts_, first, last);
}

std::vector<Segment> AddressRelation::source_segments() const {
  std::vector<Segment> segments;
  auto add = [&](Index offset, Index bytes) {
    if (!segments.empty() && segments.back().offset + segments.back().bytes == offset)
      segments.back().bytes += bytes;
    else
      segments.push_back({offset, bytes});
  };
  const auto all = reader();
  for_each_run(*all, [&](const OffsetRun& run) {
    if (run.count == 1 || run.source_step == element_bytes_) return add(run.source, run.count * element_bytes_);
    for (Index k = 0; k < run.count; ++k) add(run.at(k).source, element_bytes_);
  });
  return segments;
}

std::vector<Segment> AddressRelation::destination_segments() const {
  // The inverse is only read, so it need not be a relation by itself.
  std::vector<Part> parts;
  for (const auto& part : parts_) parts.push_back(inverted(part));
  return AddressRelation(element_bytes_, std::move(parts), reduction_).source_segments();
}

Index AddressRelation::workspace_bytes() const {
  Index bytes = Index(sizeof *this + parts_.size() * sizeof(Part) + starts_.size() * sizeof(Index));
  for (const auto& part : parts_) {
    if (const auto* runs = std::get_if<RunList>(&part)) bytes += Index(runs->size() * sizeof(OffsetRun));
    if (const auto* pairs = std::get_if<PairList>(&part)) bytes += Index(pairs->size() * sizeof(OffsetPair));
    if (const auto* list = std::get_if<PackedList>(&part)) bytes += list->workspace_bytes();
    if (const auto* nest = std::get_if<LoopNest>(&part))
      for (const auto& axis : nest->axes())
        for (const auto& period : axis.runs.periods())
          bytes += Index(sizeof period + period.runs.size() * sizeof(PairedRun));
  }
  return bytes;
}

void AddressRelation::move_plain(std::byte* destination, const std::byte* source) const {
  const auto all = reader();
  for_each_run(*all, [&](const OffsetRun& run) {
    for (Index k = 0; k < run.count; ++k) {
      const auto pair = run.at(k);
      if (reduction_.is_replace())
        std::memcpy(destination + pair.destination, source + pair.source, std::size_t(element_bytes_));
      else
        reduction_.apply(destination + pair.destination, source + pair.source, 1, 0, 0);
    }
  });
}

}  // namespace longshore
