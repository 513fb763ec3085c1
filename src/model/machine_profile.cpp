#include "longshore/model/machine_profile.hpp"

#include <algorithm>
#include <cmath>

namespace longshore {

namespace {

constexpr Index sparse_gap = 4;  // words for each listed one, from where on each has a cache line for itself, about
constexpr Index aliased_bytes = 512;  // strides that are multiples of it find few sets of a cache

void check_seconds(const std::string& machine, const char* what, double seconds) {
  if (!(seconds >= 0 && std::isfinite(seconds)))
    throw Error(ErrorKind::argument, std::string("the profile of ") + machine + " has " + std::to_string(seconds) +
                                         " seconds for " + what + "; it must be finite and not negative");
}

/// How a pattern that is on one side, or the same on both, is visited.
CopyLoops loops_of(const CopyShape& shape) {
  if (shape.loops != CopyLoops::rows) return shape.loops;
  const auto& pattern = shape.read == ReferencePattern() ? shape.write : shape.read;
  if (pattern.stride == ReferencePattern::by_index)
    return (shape.read == ReferencePattern() ? shape.write_gap : shape.gap) >= sparse_gap ? CopyLoops::sparse
                                                                                          : CopyLoops::rows;
  // Blocks of a line or more find as many sets as they have lines.
  const bool aliased = pattern.stride * shape.word_bytes % aliased_bytes == 0 && pattern.block * shape.word_bytes < 64;
  return pattern.strided() && aliased ? CopyLoops::aliased : CopyLoops::rows;
}

/// Rows whose elements lie apart become dense columns as dense columns come from rows whose elements lie apart: tiles
/// of the first kind in the terms of the second.
std::optional<CopyShape> seen_from_the_other_side(const CopyShape& shape) {
  const ReferencePattern dense;
  const bool reads = shape.write == dense;
  if (shape.loops != CopyLoops::tiles || (!reads && shape.read != dense)) return {};
  const Index gap = reads ? shape.gap : shape.write_gap;
  if (gap <= 1) return {};
  CopyShape turned = shape;
  std::swap(turned.read, turned.write);
  (reads ? turned.read : turned.write) = gap;
  turned.gap = reads ? 0 : 1, turned.write_gap = reads ? 1 : 0;
  return turned;
}

/// The same in the nearest blocks that the tables have, shorter and longer, and where between them it is; none where
/// they have its blocks, or no longer ones.
struct Around {
  CopyShape shorter, longer;
  double position;
};
std::optional<Around> blocks_around(const CopyShape& shape, const std::vector<const CopyRates*>& tables) {
  const ReferencePattern& pattern = shape.read == ReferencePattern() ? shape.write : shape.read;
  if (tables.empty() || !pattern.strided() || shape.loops != CopyLoops::rows) return {};
  Index shorter = 0, longer = 0;
  for (const auto& [transfer, rate] : tables[0]->table.transfers()) {
    const auto& one = transfer.read == ReferencePattern() ? transfer.write : transfer.read;
    if (!one.strided()) continue;
    if (one.block <= pattern.block) shorter = std::max(shorter, one.block);
    if (one.block >= pattern.block && (longer == 0 || one.block < longer)) longer = one.block;
  }
  if (shorter == 0 || longer == 0 || shorter == longer) return {};
  const auto with = [&](Index block) {
    CopyShape other = shape;
    for (auto* side : {&other.read, &other.write})
      if (*side != ReferencePattern()) *side = {std::max(side->stride, block + 1), block};
    return other;
  };
  return Around{with(shorter), with(longer), double(pattern.block - shorter) / double(longer - shorter)};
}

}  // namespace

double ExchangeTimes::seconds(Index bytes) const {
  const auto after = std::lower_bound(samples.begin(), samples.end(), bytes,
                                      [](const Sample& sample, Index b) { return sample.bytes < b; });
  if (after == samples.begin()) return after->seconds;
  if (after == samples.end()) return samples.back().seconds * double(bytes) / double(samples.back().bytes);
  const auto& before = *(after - 1);
  const double at = double(bytes - before.bytes) / double(after->bytes - before.bytes);
  return before.seconds + at * (after->seconds - before.seconds);
}

MachineProfile::MachineProfile(std::string machine, bool coarse, std::vector<CopyRates> copies,
                               std::vector<ExchangeTimes> exchanges, CallTimes calls)
    : machine_(std::move(machine)),
      coarse_(coarse),
      copies_(std::move(copies)),
      exchanges_(std::move(exchanges)),
      calls_(calls) {
  for (const auto& [what, seconds] : {std::pair{"a start", calls.start},
                                      {"a transfer", calls.transfer},
                                      {"waking threads", calls.wake},
                                      {"a kernel's call", calls.leaf},
                                      {"a kernel's loop", calls.row},
                                      {"a transfer between blocks", calls.block_transfer}})
    check_seconds(machine_, what, seconds);
  for (const auto& one : copies_)
    if (one.word_bytes < 1 || one.situation.working_bytes < 1 || one.situation.at_once < 1)
      throw Error(ErrorKind::argument,
                  "a table of copies of the profile of " + machine_ + " has " + std::to_string(one.word_bytes) +
                      " bytes a word, " + std::to_string(one.situation.working_bytes) + " bytes touched and " +
                      std::to_string(one.situation.at_once) + " threads at once; all must be positive");
  if (std::none_of(copies_.begin(), copies_.end(), [](const auto& one) { return one.loops == CopyLoops::rows; }))
    throw Error(ErrorKind::argument, "the profile of " + machine_ + " has no table of copies");
  std::stable_sort(copies_.begin(), copies_.end(),
                   [](const auto& a, const auto& b) { return a.situation.working_bytes < b.situation.working_bytes; });
  for (const auto& one : exchanges_) {
    Index last = 0;
    for (const auto& [bytes, seconds] : one.samples) {
      check_seconds(machine_, "an exchange", seconds);
      if (bytes <= last)
        throw Error(ErrorKind::argument, "the profile of " + machine_ + " has exchanges of " + std::to_string(last) +
                                             " and then of " + std::to_string(bytes) +
                                             " bytes; they must be positive and ascend");
      last = bytes;
    }
    if (one.samples.empty())
      throw Error(ErrorKind::argument, "the profile of " + machine_ + " has no samples of " + one.way);
    check_seconds(machine_, "a transfer of an exchange", one.transfer_seconds);
  }
}

/// Those that hold for this situation or come nearest, by what is touched.
std::vector<const CopyRates*> MachineProfile::tables(Index word_bytes, CopyLoops loops,
                                                     const CopySituation& situation) const {
  Index word = 0;  // the smallest that is large enough, else the largest
  for (const auto& one : copies_)
    if (one.loops == loops &&
        (word < word_bytes ? one.word_bytes > word : one.word_bytes >= word_bytes && one.word_bytes < word))
      word = one.word_bytes;
  std::vector<const CopyRates*> found;
  auto better = [&](const CopyRates& a, const CopyRates& b) {
    const auto &x = a.situation, &y = b.situation;
    if ((x.from_another == situation.from_another) != (y.from_another == situation.from_another))
      return x.from_another == situation.from_another;
    if ((x.at_once <= situation.at_once) != (y.at_once <= situation.at_once)) return x.at_once <= situation.at_once;
    return x.at_once <= situation.at_once ? x.at_once > y.at_once : x.at_once < y.at_once;
  };
  for (const auto& one : copies_) {
    if (one.loops != loops || one.word_bytes != word) continue;
    if (found.empty() || found.back()->situation.working_bytes != one.situation.working_bytes)
      found.push_back(&one);
    else if (better(one, *found.back()))
      found.back() = &one;
  }
  return found;
}

/// Whether there is a figure for both patterns of a copy at once.
bool MachineProfile::measured_together(const CopyShape& shape, const CopySituation& situation) const {
  if (shape.read != shape.write && shape.loops != CopyLoops::tiles) return false;
  if (shape.read == ReferencePattern::by_index && std::max(shape.gap, shape.write_gap) >= sparse_gap) return false;
  const auto found = tables(shape.word_bytes, loops_of(shape), situation);
  return !found.empty() && found[0]->table.find(shape.copy());
}

double MachineProfile::copy_rate(const CopyShape& shape, const CopySituation& situation) const {
  const ReferencePattern contiguous;
  if (const auto turned = seen_from_the_other_side(shape); turned && measured_together(*turned, situation))
    return copy_rate(*turned, situation);
  if (shape.read != contiguous && shape.write != contiguous && !measured_together(shape, situation)) {
    // As long as each pattern with a contiguous other side, and the contiguous copy that both contain once.
    const double from = 1 / copy_rate(shape.packing(), situation), to = 1 / copy_rate(shape.unpacking(), situation);
    return 1 / std::max({from, to, from + to - 1 / copy_rate({contiguous, contiguous, shape.word_bytes}, situation)});
  }
  auto loops = loops_of(shape);
  if (loops == CopyLoops::rows || loops == CopyLoops::aliased)
    if (const auto& pattern = shape.read == contiguous ? shape.write : shape.read;
        pattern.strided() && shape.word_bytes < 8 && pattern.block * shape.word_bytes >= 8) {
      CopyShape longer = shape;  // blocks are blocks, of whatever words
      longer.word_bytes = 8;
      for (auto* side : {&longer.read, &longer.write})
        if (*side != contiguous)
          *side = {ceil_div(side->stride * shape.word_bytes, 8), side->block * shape.word_bytes / 8};
      return copy_rate(longer, situation);
    }
  auto found = tables(shape.word_bytes, loops, situation);
  if (loops != CopyLoops::rows && (found.empty() || !found[0]->table.find(shape.copy()))) {
    loops = CopyLoops::rows;  // as if nothing was special about it
    found = tables(shape.word_bytes, loops, situation);
  }
  if (const auto around = blocks_around(shape, found)) {
    // A block between two that were measured takes a time between theirs.
    const auto& [shorter, longer, position] = *around;
    const double low = copy_rate(shorter, situation), high = copy_rate(longer, situation);
    const auto block = [](const CopyShape& of) { return double(std::max(of.read.block, of.write.block)); };
    return block(shape) / ((1 - position) * block(shorter) / low + position * block(longer) / high);
  }
  const Index word = found[0]->word_bytes;
  auto rate = [&](const CopyRates& one) {
    const double measured = one.table.rate(shape.copy()).megabytes_per_second * 1e6;
    // A shorter word takes as long as one of the table, a longer one is several of them.
    return shape.contiguous() || shape.word_bytes > word ? measured
                                                         : measured * double(shape.word_bytes) / double(word);
  };
  const auto between = [&]() -> double {
    const auto after = std::find_if(found.begin(), found.end(), [&](const CopyRates* one) {
      return one->situation.working_bytes >= situation.working_bytes;
    });
    if (after == found.begin()) return rate(**after);
    if (after == found.end()) return rate(*found.back());
    const auto &low = **(after - 1), &high = **after;
    // What is beyond the caches is taken to begin at four times the largest size that was measured within them.
    const bool beyond = high.situation.working_bytes == CopyRates::beyond_caches;
    const double lower = double(low.situation.working_bytes);
    const double upper = beyond ? 4 * lower : double(high.situation.working_bytes);
    const double at = std::min(1.0, std::log(double(situation.working_bytes) / lower) / std::log(upper / lower));
    return 1 / ((1 - at) / rate(low) + at / rate(high));
  };
  double whole = between();
  if (shape.run_bytes > 0 && !shape.contiguous())
    whole *= double(shape.run_bytes) / double(ceil_div(shape.run_bytes, shape.word_bytes) * shape.word_bytes);
  const Index gap = shape.read == contiguous ? shape.write_gap : shape.gap;
  if (loops != CopyLoops::tiles || gap <= 1) return whole;
  // Of each line a part is used only, as a stride of the gap uses it.
  CopyShape gaps{ReferencePattern(gap), {}, shape.word_bytes}, dense{{}, {}, shape.word_bytes};
  if (shape.read == contiguous) std::swap(gaps.read, gaps.write);
  return 1 / (1 / whole + std::max(0.0, 1 / copy_rate(gaps, situation) - 1 / copy_rate(dense, situation)));
}

double MachineProfile::copy_seconds(const CopyShape& shape, Index bytes, const CopySituation& situation) const {
  double seconds = double(bytes) / copy_rate(shape, situation);
  if (shape.loops == CopyLoops::joint) return seconds;
  if (shape.leaf_bytes > 0) seconds += double(bytes) / double(shape.leaf_bytes) * calls_.leaf;
  if (shape.row_bytes > 0) seconds += double(bytes) / double(shape.row_bytes) * calls_.row;
  return seconds;
}

const ExchangeTimes* MachineProfile::exchange(std::string_view way, std::string_view pair) const {
  for (const auto& one : exchanges_)
    if (one.way == way && one.pair == pair) return &one;
  return nullptr;
}

}  // namespace longshore
