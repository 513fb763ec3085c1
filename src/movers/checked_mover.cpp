#include "movers/checked_mover.hpp"

#include <sched.h>

#include <cstring>
#include <exception>
#include <iterator>

#include "core/digest.hpp"

namespace longshore {

namespace {

std::uint64_t sum_of(const std::byte* data, Index bytes) {
  Digest sum;
  Index at = 0;
  for (; at + 8 <= bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, data + at, 8);
    sum.mix(word);
  }
  for (; at < bytes; ++at) sum.mix(std::uint64_t(data[at]));
  return sum.value();
}

/// Of one end: its name, its message and what that has, five or six pieces of memory. The allocator takes some bytes
/// for each.
constexpr Index allocator_bytes = 6 * 24;

class CheckedMover final : public Mover {
 public:
  CheckedMover(std::unique_ptr<Mover> mover, CheckedTransfers transfers, std::unique_ptr<SumsExchange> exchange)
      : Mover(looked_at_for(*mover)),
        mover_(std::move(mover)),
        transfers_(std::move(transfers)),
        exchange_(std::move(exchange)) {
    workspace_bytes_ = transfers_.programs_bytes + Index(sizeof *this);
    for (auto* ends : {&transfers_.sends, &transfers_.receives}) {
      ends->shrink_to_fit();
      for (const auto& end : *ends)
        workspace_bytes_ += Index(sizeof end + end.name.capacity() + 2 * sizeof sent_[0]) + allocator_bytes +
                            end.message->workspace_bytes();
    }
  }

  Index workspace_bytes() const override { return mover_->workspace_bytes() + workspace_bytes_; }
  Index staging_bytes() const override { return mover_->staging_bytes(); }
  Index moved_bytes() const override { return mover_->moved_bytes(); }
  std::string describe() const override { return "checked:\n" + mover_->describe(); }
  std::string obstacle() const override { return mover_->obstacle(); }

 private:
  using Sums = std::vector<std::uint64_t>;

  void give_up(const Error& error) override { give_up_for(*mover_, error); }
  void begin() override {
    sent_ = sums(transfers_.sends);
    mover_->start();
    if (exchange_) exchange_->start(Sums(sent_.begin(), sent_.end() - Index(transfers_.kept)));
  }
  bool advance() override {
    if (!mover_->test() || (exchange_ && !exchange_->test())) return false;
    compare();
    return true;
  }
  void finish() override {
    mover_->wait();
    while (exchange_ && !exchange_->test()) sched_yield();
    compare();
  }
  void compare() {
    if (std::uncaught_exceptions() > 0) return;  // called by a destructor, on the way out with an error
    Sums expected = exchange_ ? exchange_->expected() : Sums();
    expected.insert(expected.end(), sent_.end() - Index(transfers_.kept), sent_.end());
    const auto now = sums(transfers_.sends);
    for (std::size_t k = 0; k < now.size(); ++k)
      if (now[k] != sent_[k])
        throw Error(ErrorKind::buffer,
                    "the source of " + transfers_.sends[k].name + " was written between start() and wait()");
    const auto got = sums(transfers_.receives);
    for (std::size_t k = 0; k < got.size(); ++k)
      if (transfers_.receives[k].compares && got[k] != expected[k])
        throw Error(ErrorKind::transport,
                    transfers_.receives[k].name +
                        ": what has arrived is not what was sent, or was written before wait() was over");
  }
  static Sums sums(const std::vector<CheckedTransfers::End>& ends) {
    Sums sums;
    std::vector<std::byte> bytes;
    for (const auto& end : ends) {
      if (!end.compares || end.message->packets() == 0) {
        sums.push_back(0);
        continue;
      }
      bytes.resize(std::size_t(end.message->packet_bytes(0)));
      end.message->pack(0, bytes.data(), Stores::cached);
      sums.push_back(sum_of(bytes.data(), Index(bytes.size())));
    }
    return sums;
  }

  std::unique_ptr<Mover> mover_;
  CheckedTransfers transfers_;
  std::unique_ptr<SumsExchange> exchange_;
  Sums sent_;
  Index workspace_bytes_ = 0;
};

}  // namespace

void CheckedTransfers::add(Share& share) {
  const Index before = share.programs_bytes();
  auto end = [&](const Transfer& transfer, MessageEnd end) {
    auto messages = share.messages({&transfer, 1}, end, {});
    return End{std::move(messages.at(0)), share.name(transfer), transfer.peer,
               end == MessageEnd::assembly || share.update().is_copy()};
  };
  // Those that are kept stay at the end.
  auto split = [&](std::vector<End>& ends) {
    std::vector<End> tail(std::make_move_iterator(ends.end() - Index(kept)), std::make_move_iterator(ends.end()));
    ends.resize(ends.size() - kept);
    return tail;
  };
  auto own_sends = split(sends), own_receives = split(receives);
  const auto& transfers = share.transfers();
  for (const auto& transfer : transfers.outgoing) sends.push_back(end(transfer, MessageEnd::assembly));
  for (const auto& transfer : transfers.incoming) receives.push_back(end(transfer, MessageEnd::arrival));
  for (const auto& transfer : transfers.local) {
    own_sends.push_back(end(transfer, MessageEnd::assembly));
    own_receives.push_back(end(transfer, MessageEnd::arrival));
  }
  kept = own_sends.size();
  std::move(own_sends.begin(), own_sends.end(), std::back_inserter(sends));
  std::move(own_receives.begin(), own_receives.end(), std::back_inserter(receives));
  programs_bytes += share.programs_bytes() - before;
}

std::vector<int> CheckedTransfers::peers(const std::vector<End>& ends) const {
  std::vector<int> peers;
  for (std::size_t k = 0; k + kept < ends.size(); ++k) peers.push_back(ends[k].peer);
  return peers;
}

std::unique_ptr<Mover> make_checked_mover(std::unique_ptr<Mover> mover, CheckedTransfers transfers,
                                          std::unique_ptr<SumsExchange> exchange) {
  return std::make_unique<CheckedMover>(std::move(mover), std::move(transfers), std::move(exchange));
}

}  // namespace longshore
