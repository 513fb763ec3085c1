#include "movers/joint_message.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "longshore/copies/joint_copy.hpp"

namespace longshore {

JointCut::JointCut(LoopNest relation, std::size_t interleaved, Index capacity)
    : relation_(std::move(relation)), interleaved_(interleaved) {
  const auto& axes = relation_.axes();
  std::optional<std::size_t> cut;
  Index inner = relation_.element_bytes(), row = 0;
  for (std::size_t k = axes.size(); k-- > 0; inner *= axes[k].runs.elements()) {
    if (k >= interleaved) continue;
    if (inner > capacity) break;
    cut = k, row = inner;
    if (!axes[k].runs.single_run()) break;
  }
  if (!cut) return;
  cut_ = *cut, row_bytes_ = row;
  for (std::size_t k = 0; k < cut_; ++k) outer_ *= axes[k].runs.elements();
  const Index fits = capacity / row_bytes_;
  axes[cut_].runs.for_each_run([&](Index, Index source, Index destination, Index length) {
    const Index each = ceil_div(length, ceil_div(length, fits));
    for (Index first = 0; first < length; first += each)
      stretches_.push_back({source + first, destination + first, std::min(each, length - first)});
  });
}

Index JointCut::largest_bytes() const {
  Index largest = 0;
  for (const auto& stretch : stretches_) largest = std::max(largest, bytes(stretch));
  return largest;
}

OffsetPair JointCut::place(const LoopNest& relation, Index packet) const {
  const auto& at = stretch(packet);
  const auto& along = relation.axes()[cut_];
  OffsetPair place{at.source * along.source_stride, at.destination * along.destination_stride};
  Index position = packet / Index(stretches_.size());
  for (std::size_t k = cut_; k-- > 0;) {
    const auto& axis = relation.axes()[k];
    const auto pair = axis.runs.at(position % axis.runs.elements());
    position /= axis.runs.elements();
    place.source += pair.source * axis.source_stride;
    place.destination += pair.destination * axis.destination_stride;
  }
  return place;
}

LoopNest JointCut::packet_relation(const LoopNest& relation, Index length) const {
  std::vector<RelationAxis> axes(relation.axes().begin() + Index(cut_), relation.axes().end());
  axes[0].runs = PairedRuns::run(length);
  return LoopNest(relation.element_bytes(), std::move(axes), relation.source_base(), relation.destination_base());
}

/// Outside the interleaved axis indices stay what they are, as those of the other members do.
LoopNest JointCut::from_packet(Index length) const {
  auto axes = packet_relation(relation_, length).axes();
  Index stride = relation_.element_bytes(), base = 0;
  for (std::size_t k = axes.size(); k-- > 0; stride *= axes[k].runs.elements()) {
    axes[k].source_stride = stride;
    if (k + cut_ == interleaved_)
      axes[k].runs = axes[k].runs.inverse().source_to_position().inverse();
    else
      base -= axes[k].runs.at(0).source * stride;
  }
  return LoopNest(relation_.element_bytes(), std::move(axes), base, relation_.destination_base());
}

namespace {

class JointMessage : public Message {
 public:
  explicit JointMessage(JointCut cut) : cut_(std::move(cut)) {}
  Index packets() const override { return cut_.packets(); }
  Index packet_bytes(Index packet) const override { return cut_.bytes(cut_.stretch(packet)); }
  Index largest_packet_bytes() const override { return cut_.largest_bytes(); }
  std::byte* contiguous(Index) const override { return nullptr; }

 protected:
  [[noreturn]] static void wrong_end() {
    throw Error(ErrorKind::argument, "a joint message is packed by its sender and unpacked by its receiver");
  }
  /// Calls make(length) for all lengths that stretches have.
  template <class F>
  void for_each_length(F&& make) const {
    std::vector<Index> lengths;
    for (const auto& stretch : cut_.stretches())
      if (std::find(lengths.begin(), lengths.end(), stretch.length) == lengths.end()) {
        lengths.push_back(stretch.length);
        make(stretch.length);
      }
  }
  JointCut cut_;
};

class JointSender final : public JointMessage {
 public:
  JointSender(JointCut cut, std::byte* source) : JointMessage(std::move(cut)), source_(source) {
    for_each_length([this](Index length) {
      const auto packing = cut_.packet_relation(cut_.relation(), length).assembly();
      const bool regular = packing.canonical().source_pattern().regular;
      for (const auto stores : {Stores::cached, Stores::streaming}) {
        const CopyProgram::Options options{stores, nullptr, {}};
        const std::pair key(length, stores);
        if (regular)
          programs_.emplace(key, CopyProgram(packing, options));
        else  // blocks of several lengths are put together line by line, as those of several members are
          programs_.emplace(key, JointCopy({packing}, JointCopy::Shared::destination, options));
      }
    });
  }
  bool streams() const override { return true; }
  void pack(Index packet, std::byte* slot, Stores stores) const override {
    std::byte* const from = source_ + cut_.place(cut_.relation(), packet).source;
    const auto& program = programs_.at({cut_.stretch(packet).length, stores});
    if (const auto* joint = std::get_if<JointCopy>(&program))
      joint->run(slot, {from});
    else
      std::get<CopyProgram>(program).run(slot, from);
  }
  void unpack(Index, const std::byte*) const override { wrong_end(); }
  Index workspace_bytes() const override {
    Index bytes = Index(sizeof *this) + cut_.workspace_bytes();
    for (const auto& [key, program] : programs_)
      bytes += std::visit([](const auto& one) { return one.workspace_bytes(); }, program);
    return bytes;
  }

 private:
  std::byte* source_;
  std::map<std::pair<Index, Stores>, std::variant<CopyProgram, JointCopy>> programs_;
};

class JointReceiver final : public JointMessage {
 public:
  JointReceiver(JointCut cut, LoopNest local, std::byte* source, std::byte* destination,
                const CopyProgram::Options& options)
      : JointMessage(std::move(cut)), local_(std::move(local)), source_(source), destination_(destination) {
    for_each_length([&](Index length) {
      copies_.emplace(length, JointCopy({cut_.packet_relation(local_, length), cut_.from_packet(length)},
                                        JointCopy::Shared::destination, options));
    });
  }
  void pack(Index, std::byte*, Stores) const override { wrong_end(); }
  void unpack(Index packet, const std::byte* slot) const override {
    const auto [source, destination] = cut_.place(local_, packet);
    copies_.at(cut_.stretch(packet).length)
        .run(destination_ + destination, {source_ + source, const_cast<std::byte*>(slot)});
  }
  Index workspace_bytes() const override {
    Index bytes = Index(sizeof *this) + cut_.workspace_bytes();
    for (const auto& [length, copy] : copies_) bytes += copy.workspace_bytes();
    return bytes;
  }

 private:
  LoopNest local_;
  std::byte *source_, *destination_;
  std::map<Index, JointCopy> copies_;
};

}  // namespace

std::unique_ptr<Message> joint_message(JointCut cut, std::byte* source) {
  return std::make_unique<JointSender>(std::move(cut), source);
}

std::unique_ptr<Message> joint_message(JointCut cut, LoopNest local, std::byte* source, std::byte* destination,
                                       const CopyProgram::Options& options) {
  return std::make_unique<JointReceiver>(std::move(cut), std::move(local), source, destination, options);
}

}  // namespace longshore
