#include "movers/checked_mover.hpp"

#include <sched.h>

#include <cstring>
#include <exception>

#include "core/digest.hpp"
#include "movers/block_copies.hpp"

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

class CheckedMover final : public Mover {
 public:
  CheckedMover(std::unique_ptr<Mover> mover, CheckedMotions motions, std::unique_ptr<SumsExchange> exchange)
      : Mover(bound_memory(motions.source, motions.destination)),
        mover_(std::move(mover)),
        motions_(std::move(motions)),
        exchange_(std::move(exchange)) {
    BlockCopies copies(motions_.options.visit, motions_.source.format().order, {});
    for (const auto& motion : motions_.sends)
      read_.push_back(copies.assembly(motion, motions_.source.grid(motion.source)));
    for (const auto& motion : motions_.receives)
      written_.push_back(copies.arrival(motion, motions_.destination.grid(motion.destination)));
    workspace_bytes_ = copies.workspace_bytes() + Index(sizeof *this);
    for (const auto* motions : {&motions_.sends, &motions_.receives})
      workspace_bytes_ += Index(motions->capacity() * (sizeof(BlockMotion) + sizeof(Stretch) + 2 * sizeof sent_[0]));
  }

  Index workspace_bytes() const override { return mover_->workspace_bytes() + workspace_bytes_; }
  Index staging_bytes() const override { return mover_->staging_bytes(); }
  Index moved_bytes() const override { return mover_->moved_bytes(); }
  std::string describe() const override { return "checked:\n" + mover_->describe(); }
  std::string obstacle() const override { return mover_->obstacle(); }

 private:
  void begin() override {
    sent_ = sums(read_);
    mover_->start();
    if (exchange_) exchange_->start(sent_);
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
    const auto expected = exchange_ ? exchange_->expected() : sent_;
    const auto now = sums(read_);
    for (std::size_t k = 0; k < now.size(); ++k)
      if (now[k] != sent_[k])
        throw Error(ErrorKind::buffer, "the points " + motions_.sends[k].source_region.to_string() + " of block " +
                                           std::to_string(motions_.sends[k].source) +
                                           " were written between start() and wait(), while " +
                                           motions_.sends[k].to_string() + " was under way");
    if (!motions_.options.reduction.is_replace()) return;
    const auto got = sums(written_);
    for (std::size_t k = 0; k < got.size(); ++k)
      if (got[k] != expected[k])
        throw Error(ErrorKind::transport,
                    motions_.receives[k].to_string() +
                        ": what has arrived is not what was sent, or was written before wait() was over");
  }
  std::vector<std::uint64_t> sums(const std::vector<Stretch>& stretches) const {
    std::vector<std::uint64_t> sums;
    std::vector<std::byte> message;
    for (const auto& stretch : stretches) {
      const Index bytes = stretch.last * stretch.program->element_bytes();
      message.resize(std::size_t(bytes));
      stretch.program->run(message.data(), stretch.source);
      sums.push_back(sum_of(message.data(), bytes));
    }
    return sums;
  }

  std::unique_ptr<Mover> mover_;
  CheckedMotions motions_;
  std::unique_ptr<SumsExchange> exchange_;
  std::vector<Stretch> read_, written_;
  std::vector<std::uint64_t> sent_;
  Index workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Mover> make_checked_mover(std::unique_ptr<Mover> mover, CheckedMotions motions,
                                          std::unique_ptr<SumsExchange> exchange) {
  return std::make_unique<CheckedMover>(std::move(mover), std::move(motions), std::move(exchange));
}

}  // namespace longshore
