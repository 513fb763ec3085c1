#include "movers/stretch_message.hpp"

#include <algorithm>

namespace longshore {

namespace {

class StretchMessage final : public Message {
 public:
  StretchMessage(std::shared_ptr<const MessageStretches> all, bool sending, std::optional<Index> capacity, Index shift)
      : all_(std::move(all)), stretches_(all_->stretches), starts_(all_->starts), sending_(sending), shift_(shift) {
    if (stretches_.empty()) return;
    element_ = stretches_[0].program->element_bytes();
    elements_ = all_->elements;
    per_packet_ = capacity ? std::max<Index>(1, *capacity / element_) : elements_;
  }

  Index packets() const override { return elements_ == 0 ? 0 : ceil_div(elements_, per_packet_); }
  Index packet_bytes(Index packet) const override { return (last_of(packet) - packet * per_packet_) * element_; }
  Index largest_packet_bytes() const override { return std::min(per_packet_, elements_) * element_; }

  void pack(Index packet, std::byte* slot, Stores) const override {
    visit(packet, [&](const Stretch& s, Index at, Index first, Index last) {
      run(s, first, last, slot + (at - first) * element_, s.source + shift_);
    });
  }
  void unpack(Index packet, const std::byte* slot) const override {
    visit(packet, [&](const Stretch& s, Index at, Index first, Index last) {
      run(s, first, last, s.destination + shift_, slot + (at - first) * element_);
    });
  }
  std::byte* contiguous(Index packet) const override {
    const Index first = packet * per_packet_, last = last_of(packet);
    const auto k = stretch_at(first);
    const Stretch& s = stretches_[k];
    if (last > starts_[k] + s.last - s.first || !s.in_order) return nullptr;
    std::byte* const data = sending_ ? const_cast<std::byte*>(s.source) : s.destination;
    return data + shift_ + (s.first + first - starts_[k]) * element_;
  }
  Index workspace_bytes() const override {
    const bool others = shift_ != 0;  // they are counted where they belong
    return Index(sizeof *this) +
           (others ? 0 : Index(stretches_.capacity() * sizeof(Stretch) + starts_.capacity() * sizeof(Index)));
  }

 private:
  Index last_of(Index packet) const { return std::min(elements_, (packet + 1) * per_packet_); }
  std::size_t stretch_at(Index position) const {
    return std::size_t(std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin()) - 1;
  }
  /// f(stretch, where it is in the packet, the first and last of its program's positions) for what a packet holds.
  template <class F>
  void visit(Index packet, F&& f) const {
    const Index first = packet * per_packet_, last = last_of(packet);
    for (std::size_t k = stretch_at(first); k < stretches_.size() && starts_[k] < last; ++k) {
      const Stretch& s = stretches_[k];
      const Index before = s.first - starts_[k];  // from the message's positions to the program's
      const Index from = std::max(first, starts_[k]), to = std::min(last, s.last - before);
      f(s, from - first, from + before, to + before);
    }
  }
  static void run(const Stretch& s, Index first, Index last, std::byte* destination, const std::byte* source) {
    if (first == 0 && last == s.program->elements())
      s.program->run(destination, source);
    else
      s.program->run(first, last, destination, source);
  }

  std::shared_ptr<const MessageStretches> all_;
  const std::vector<Stretch>& stretches_;
  const std::vector<Index>& starts_;
  bool sending_;
  Index shift_;
  Index element_ = 1, elements_ = 0, per_packet_ = 1;
};

}  // namespace

MessageStretches::MessageStretches(std::vector<Stretch> list) : stretches(std::move(list)) {
  starts.reserve(stretches.size());
  for (const auto& stretch : stretches) {
    starts.push_back(elements);
    elements = checked_add(elements, stretch.last - stretch.first);
  }
}

std::unique_ptr<Message> stretch_message(std::shared_ptr<const MessageStretches> stretches, bool sending,
                                         std::optional<Index> capacity, Index shift) {
  return std::make_unique<StretchMessage>(std::move(stretches), sending, capacity, shift);
}

std::unique_ptr<Message> stretch_message(std::vector<Stretch> stretches, bool sending, std::optional<Index> capacity) {
  return stretch_message(std::make_shared<const MessageStretches>(std::move(stretches)), sending, capacity, 0);
}

}  // namespace longshore
