#include "longshore/relations/loop_nest.hpp"

#include <algorithm>
#include <cstring>

namespace longshore {

LoopNest::LoopNest(Index element_bytes, std::vector<RelationAxis> axes, Index source_base, Index destination_base)
    : element_bytes_(element_bytes),
      axes_(std::move(axes)),
      source_base_(source_base),
      destination_base_(destination_base),
      elements_(1) {
  if (element_bytes < 1)
    throw Error(ErrorKind::type, "an element of " + std::to_string(element_bytes) + " bytes cannot be moved");
  if (std::any_of(axes_.begin(), axes_.end(), [](const RelationAxis& axis) { return axis.runs.empty(); }))
    elements_ = 0;
  for (const auto& axis : axes_)
    if (elements_ > 0) elements_ = checked_mul(elements_, axis.runs.elements());
  checked_mul(elements_, element_bytes_);
}

LoopNest::Pair LoopNest::at(Index position) const {
  check_position(position, elements_);
  Pair pair{source_base_, destination_base_};
  for (std::size_t k = axes_.size(); k-- > 0;) {
    const auto& axis = axes_[k];
    const auto indices = axis.runs.at(position % axis.runs.elements());
    position /= axis.runs.elements();
    pair.source += indices.source * axis.source_stride;
    pair.destination += indices.destination * axis.destination_stride;
  }
  return pair;
}

LoopNest LoopNest::canonical() const {
  if (empty()) return LoopNest(element_bytes_, {RelationAxis{}}, 0, 0);
  std::vector<RelationAxis> kept;
  Index source = source_base_, destination = destination_base_;
  for (const auto& given : axes_) {
    RelationAxis axis{given.runs.joined(), given.source_stride, given.destination_stride};
    if (axis.runs.elements() == 1) {  // a unit axis is an offset
      const auto indices = axis.runs.at(0);
      source += indices.source * axis.source_stride;
      destination += indices.destination * axis.destination_stride;
      continue;
    }
    if (!kept.empty() && axis.runs.single_run()) {
      // One index of the outer axis is exactly this whole axis, on both sides: they are one axis.
      auto& outer = kept.back();
      const auto& run = axis.runs.periods()[0].runs[0];
      if (outer.source_stride == run.length * axis.source_stride &&
          outer.destination_stride == run.length * axis.destination_stride) {
        source += run.source * axis.source_stride;
        destination += run.destination * axis.destination_stride;
        outer = {outer.runs.scaled(run.length), axis.source_stride, axis.destination_stride};
        continue;
      }
    }
    kept.push_back(std::move(axis));
  }
  return LoopNest(element_bytes_, std::move(kept), source, destination);
}

LoopNest LoopNest::assembly() const {
  if (empty()) return *this;
  auto axes = axes_;
  Index stride = element_bytes_;
  for (std::size_t k = axes.size(); k-- > 0;) {
    axes[k].runs = axes[k].runs.source_to_position();
    axes[k].destination_stride = stride;
    stride *= axes[k].runs.elements();
  }
  return LoopNest(element_bytes_, std::move(axes), source_base_, 0);
}

LoopNest LoopNest::disassembly() const { return inverse().assembly().inverse(); }

LoopNest LoopNest::from_origin() const {
  std::vector<RelationAxis> axes;
  for (const auto& axis : axes_) axes.push_back({axis.runs.from_origin(), axis.source_stride, axis.destination_stride});
  return LoopNest(element_bytes_, std::move(axes));
}

LoopNest LoopNest::inverse() const {
  auto axes = axes_;
  for (auto& axis : axes) axis = {axis.runs.inverse(), axis.destination_stride, axis.source_stride};
  return LoopNest(element_bytes_, std::move(axes), destination_base_, source_base_);
}

LoopNest LoopNest::restrict(std::size_t axis, Index first, Index last) const {
  if (axis >= axes_.size())
    throw Error(ErrorKind::argument,
                "axis " + std::to_string(axis) + " is outside [0, " + std::to_string(axes_.size()) + ")");
  auto axes = axes_;
  axes[axis].runs = axes[axis].runs.restrict(first, last);
  return LoopNest(element_bytes_, std::move(axes), source_base_, destination_base_);
}

std::optional<Index> LoopNest::contiguous_source() const {
  if (empty()) return std::nullopt;
  const auto message = assembly().canonical();
  if (message.axes_.empty()) return message.source_base_;
  const auto& axis = message.axes_[0];
  if (message.axes_.size() > 1 || !axis.runs.single_run() || axis.source_stride != element_bytes_) return std::nullopt;
  return message.source_base_ + axis.runs.periods()[0].runs[0].source * axis.source_stride;
}

std::optional<Index> LoopNest::contiguous_destination() const { return inverse().contiguous_source(); }

AccessPattern LoopNest::source_pattern() const {
  AccessPattern pattern;
  pattern.block_bytes = element_bytes_;
  auto add = [&](Index count, Index stride) {
    if (count <= 1) return;
    if (pattern.loops.empty() && stride == pattern.block_bytes)
      pattern.block_bytes *= count;
    else if (!pattern.loops.empty() && stride == pattern.loops.back().count * pattern.loops.back().stride)
      pattern.loops.back().count *= count;
    else
      pattern.loops.push_back({count, stride});
  };
  const auto message = assembly().canonical();
  for (std::size_t k = message.axes_.size(); k-- > 0;) {
    const auto& axis = message.axes_[k];
    if (axis.runs.empty()) continue;
    // Of several the one that most is in.
    const auto& periods = axis.runs.periods();
    const auto& period = *std::max_element(periods.begin(), periods.end(), [](const auto& a, const auto& b) {
      return a.elements_per_period() * a.repeats < b.elements_per_period() * b.repeats;
    });
    const auto& run = *std::max_element(period.runs.begin(), period.runs.end(), [](const auto& a, const auto& b) {
      return a.length * a.count < b.length * b.count;
    });
    if (axis.runs.periods().size() > 1 || period.runs.size() > 1) pattern.regular = false;
    add(run.length, axis.source_stride);
    add(run.count, run.source_step * axis.source_stride);
    add(period.repeats, period.source_period * axis.source_stride);
  }
  return pattern;
}

AccessPattern LoopNest::destination_pattern() const { return inverse().source_pattern(); }

namespace {

void move_axis(const LoopNest& relation, std::size_t k, std::byte* destination, const std::byte* source) {
  if (k == relation.axes().size()) {
    std::memcpy(destination, source, std::size_t(relation.element_bytes()));
    return;
  }
  const auto& axis = relation.axes()[k];
  axis.runs.for_each_run([&](Index, Index s, Index d, Index length) {
    for (Index e = 0; e < length; ++e)
      move_axis(relation, k + 1, destination + (d + e) * axis.destination_stride,
                source + (s + e) * axis.source_stride);
  });
}

}  // namespace

void LoopNest::move_plain(std::byte* destination, const std::byte* source) const {
  if (!empty()) move_axis(*this, 0, destination + destination_base_, source + source_base_);
}

}  // namespace longshore
