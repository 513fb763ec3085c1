#include "movers/joined_message.hpp"

#include <numeric>
#include <utility>

namespace longshore {

namespace {

class JoinedMessage final : public Message {
 public:
  explicit JoinedMessage(std::vector<std::unique_ptr<Message>> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) bytes_ += part->packet_bytes(0);
  }
  Index packets() const override { return 1; }
  Index packet_bytes(Index) const override { return bytes_; }
  Index largest_packet_bytes() const override { return bytes_; }
  void pack(Index, std::byte* slot, Stores) const override {
    for (const auto& part : parts_) {
      part->pack(0, slot, Stores::cached);
      slot += part->packet_bytes(0);
    }
  }
  void unpack(Index, const std::byte* slot) const override {
    for (const auto& part : parts_) {
      part->unpack(0, slot);
      slot += part->packet_bytes(0);
    }
  }
  std::byte* contiguous(Index) const override { return nullptr; }
  Index workspace_bytes() const override {
    Index bytes = Index(sizeof *this + parts_.capacity() * sizeof parts_[0]);
    for (const auto& part : parts_) bytes += part->workspace_bytes();
    return bytes;
  }

 private:
  std::vector<std::unique_ptr<Message>> parts_;
  Index bytes_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Message>> joined(std::vector<std::unique_ptr<Message>> messages, Index most_bytes) {
  std::vector<std::unique_ptr<Message>> result, some;
  Index bytes = 0;
  auto flush = [&] {
    if (some.size() == 1)
      result.push_back(std::move(some[0]));
    else if (!some.empty())
      result.push_back(std::make_unique<JoinedMessage>(std::move(some)));
    some.clear(), bytes = 0;
  };
  for (auto& message : messages) {
    if (message->packets() == 0) continue;
    const Index n = message->packet_bytes(0);
    const bool whole = message->packets() == 1 && n <= most_bytes;
    if (!whole || bytes > most_bytes - n) flush();
    if (whole)
      some.push_back(std::move(message)), bytes += n;
    else
      result.push_back(std::move(message));
  }
  flush();
  return result;
}

}  // namespace longshore
