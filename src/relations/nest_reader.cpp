// What a loop nest tells without being enumerated (extents, order), and its enumeration as runs.
#include <algorithm>
#include <limits>

#include "longshore/relations/loop_nest.hpp"

namespace longshore {

namespace {

/// The smallest and the largest index of one side of an axis.
struct IndexRange {
  Wide first, last;
};

IndexRange source_range(const PairedRuns& runs) {
  IndexRange all{0, 0};
  bool any = false;
  for (const auto& period : runs.periods())
    for (const auto& run : period.runs) {
      // Linear in repetition, count and element: the extremes are at the corners.
      for (const Wide k : {Wide(0), Wide(period.repeats - 1)})
        for (const Wide r : {Wide(0), Wide(run.count - 1)}) {
          const Wide first = run.source + k * period.source_period + r * run.source_step, last = first + run.length - 1;
          all = any ? IndexRange{std::min(all.first, first), std::max(all.last, last)} : IndexRange{first, last};
          any = true;
        }
    }
  return all;
}

/// Do source indices ascend strictly with the position?
bool ascends(const PairedRuns& runs) {
  bool any = false;
  Wide end = 0;  // one past the last index so far
  for (const auto& period : runs.periods()) {
    Wide period_end = 0;
    const Wide period_first = period.runs.front().source;
    for (const auto& run : period.runs) {
      if (any && run.source < end) return false;
      if (run.count > 1 && run.source_step < run.length) return false;
      end = run.source + Wide(run.count - 1) * run.source_step + run.length;
      period_end = end;
      any = true;
    }
    if (period.repeats > 1 && period_first + period.source_period < period_end) return false;
    end += Wide(period.repeats - 1) * period.source_period;
  }
  return true;
}

Index narrow(Wide offset) {
  if (offset > std::numeric_limits<Index>::max() || offset < std::numeric_limits<Index>::min())
    throw Error(ErrorKind::overflow, "an address relation reaches offsets that do not fit in 64 bits");
  return Index(offset);
}

/// Where one is in an axis, element by element.
struct AxisCursor : PairedRuns::Place {
  AxisCursor(const RelationAxis& a, Index position) : Place(a.runs.find(position)), axis(&a) {}

  const RelationAxis* axis;

  const PairedPeriod& at_period() const { return axis->runs.periods()[period]; }
  const PairedRun& at_run() const { return at_period().runs[run]; }

  OffsetPair offset() const {
    const auto pair = axis->runs.at(*this);
    return {pair.source * axis->source_stride, pair.destination * axis->destination_stride};
  }

  /// The longest run from here on that the axis has as one, and past it. At most `most` elements.
  OffsetRun take(Index most) {
    const auto from = offset();
    const auto& r = at_run();
    OffsetRun taken{from.source, from.destination, 0, axis->source_stride, axis->destination_stride};
    if (r.length > 1) {
      taken.count = std::min(r.length - element, most);
      element += taken.count;
    } else {  // single elements in step are a run too
      taken.count = std::min(r.count - count, most);
      taken.source_step = r.source_step * axis->source_stride;
      taken.destination_step = r.destination_step * axis->destination_stride;
      count += taken.count - 1;
      element = 1;
    }
    carry();
    return taken;
  }

  /// To the next element; false (and to the first) past the end.
  bool advance() {
    ++element;
    return carry();
  }

 private:
  bool carry() {
    if (element < at_run().length) return true;
    element = 0;
    if (++count < at_run().count) return true;
    count = 0;
    if (++run < at_period().runs.size()) return true;
    run = 0;
    if (++repeat < at_period().repeats) return true;
    repeat = 0;
    if (++period < axis->runs.periods().size()) return true;
    period = 0;
    return false;
  }
};

class NestReader : public RunReader {
 public:
  NestReader(const LoopNest& nest, Index first, Index last) : nest_(nest), left_(last - first) {
    if (left_ == 0) return;
    const auto& axes = nest.axes();
    if (!axes.empty()) inner_left_ = axes.back().runs.elements() - first % axes.back().runs.elements();
    for (std::size_t k = axes.size(); k-- > 0;) {
      cursors_.insert(cursors_.begin(), AxisCursor(axes[k], first % axes[k].runs.elements()));
      first /= axes[k].runs.elements();
    }
    outer_ = outer_offset();
  }

  std::size_t read(std::span<OffsetRun> out) override {
    std::size_t n = 0;
    for (; n < out.size() && left_ > 0; ++n) {
      if (cursors_.empty()) {
        out[n] = {nest_.source_base(), nest_.destination_base(), 1, 0, 0};
        left_ = 0;
        continue;
      }
      auto run = cursors_.back().take(std::min(left_, inner_left_));
      run.source += outer_.source, run.destination += outer_.destination;
      out[n] = run;
      left_ -= run.count;
      if ((inner_left_ -= run.count) == 0 && left_ > 0) {
        inner_left_ = nest_.axes().back().runs.elements();
        for (std::size_t k = cursors_.size() - 1; k-- > 0;)
          if (cursors_[k].advance()) break;
        outer_ = outer_offset();
      }
    }
    return n;
  }

 private:
  OffsetPair outer_offset() const {
    OffsetPair sum{nest_.source_base(), nest_.destination_base()};
    for (std::size_t k = 0; k + 1 < cursors_.size(); ++k) {
      const auto offset = cursors_[k].offset();
      sum.source += offset.source, sum.destination += offset.destination;
    }
    return sum;
  }

  const LoopNest& nest_;
  std::vector<AxisCursor> cursors_;
  Index left_, inner_left_ = 0;
  OffsetPair outer_;  ///< of all axes but the innermost
};

}  // namespace

std::unique_ptr<RunReader> LoopNest::reader(Index first, Index last) const {
  check_positions(first, last, elements_);
  return std::make_unique<NestReader>(*this, first, last);
}

namespace {

void append_slice(std::vector<LoopNest>& out, const LoopNest& nest, Index first, Index last) {
  if (first >= last) return;
  const auto& axes = nest.axes();
  if (first == 0 && last == nest.elements()) return out.push_back(nest);
  const auto& axis = axes[0];
  const Index inner = nest.elements() / axis.runs.elements();
  auto one = [&](Index position) {  // what the outermost axis holds at one position
    const auto pair = axis.runs.at(position);
    return LoopNest(nest.element_bytes(), {axes.begin() + 1, axes.end()},
                    nest.source_base() + pair.source * axis.source_stride,
                    nest.destination_base() + pair.destination * axis.destination_stride);
  };
  const Index head = first / inner, tail = last / inner;
  if (head == tail) return append_slice(out, one(head), first % inner, last % inner);
  const Index whole = head + (first % inner != 0);
  if (whole > head) append_slice(out, one(head), first % inner, inner);
  if (tail > whole) out.push_back(nest.restrict(0, whole, tail));
  if (last % inner != 0) append_slice(out, one(tail), 0, last % inner);
}

}  // namespace

std::vector<LoopNest> LoopNest::slice(Index first, Index last) const {
  check_positions(first, last, elements_);
  std::vector<LoopNest> nests;
  append_slice(nests, *this, first, last);
  return nests;
}

Interval LoopNest::source_extent() const {
  if (empty()) return {};
  Wide low = source_base_, high = source_base_;
  Wide reach = low < 0 ? -low : low;  // of all parts together: sums that stay below it may be taken in any order
  for (const auto& axis : axes_) {
    const auto range = source_range(axis.runs);
    const Wide a = range.first * axis.source_stride, b = range.last * axis.source_stride;
    low += std::min(a, b), high += std::max(a, b);
    reach += std::max({a, -a, b, -b});
    narrow(reach);
  }
  return {narrow(low), narrow(high + element_bytes_)};
}

Interval LoopNest::destination_extent() const { return inverse().source_extent(); }

bool LoopNest::ascending_source() const {
  Wide inner = element_bytes_;  // what one position of the axis at hand spans
  for (std::size_t k = axes_.size(); k-- > 0;) {
    const auto& axis = axes_[k];
    if (axis.runs.elements() <= 1) continue;
    if (axis.source_stride < inner) {
      // Indices may be further apart than one: single elements in step, as folding writes them.
      const auto& periods = axis.runs.periods();
      if (periods.size() != 1 || periods[0].repeats != 1 || periods[0].runs.size() != 1 ||
          periods[0].runs[0].length != 1 || Wide(periods[0].runs[0].source_step) * axis.source_stride < inner)
        return false;
    }
    if (axis.source_stride <= 0 || !ascends(axis.runs)) return false;
    const auto range = source_range(axis.runs);
    inner += (range.last - range.first) * axis.source_stride;
  }
  return true;
}

bool LoopNest::ascending_destination() const { return inverse().ascending_source(); }

bool LoopNest::distinct_destinations() const {
  if (elements_ <= 1) return true;
  // The order of the axes does not matter, nor which way they run.
  auto axes = inverse().axes_;
  std::erase_if(axes, [](const RelationAxis& axis) { return axis.runs.elements() <= 1; });
  for (auto& axis : axes) axis.source_stride = std::abs(axis.source_stride);
  auto step = [](const RelationAxis& axis) {  // between neighbours of this axis, at least
    const auto& first = axis.runs.periods()[0];
    const bool in_step = axis.runs.run_count() == first.runs[0].count && first.runs[0].length == 1;
    return Wide(axis.source_stride) * (in_step && axis.runs.elements() > 1 ? std::abs(first.runs[0].source_step) : 1);
  };
  for (auto& axis : axes) {  // single elements in step, backwards
    const auto& run = axis.runs.periods()[0].runs[0];
    if (run.source_step < 0 && run.length == 1 && axis.runs.run_count() == run.count)
      axis.runs = PairedRuns({PairedPeriod{{PairedRun{0, 0, 0, 1, run.count, 1, -run.source_step, 1}}, 1, 0, 0, 0}});
  }
  std::stable_sort(axes.begin(), axes.end(), [&](const auto& a, const auto& b) { return step(a) > step(b); });
  return LoopNest(element_bytes_, std::move(axes)).ascending_source();
}

}  // namespace longshore
