#include "longshore/movers/mover.hpp"

#include <set>

#include "movers/arrivals.hpp"

namespace longshore {

/// One thread's call; while it lasts, no other thread has one.
class Mover::Turn {
 public:
  Turn(Mover& mover, const char* call) : mover_(mover) {
    const char* other = nullptr;
    if (!mover.call_.compare_exchange_strong(other, call, std::memory_order_acquire, std::memory_order_relaxed))
      throw Error(ErrorKind::argument, std::string(call) + " while another thread is in " + other +
                                           " of the same mover: bind a mover for each thread, or let them take turns");
  }
  ~Turn() { mover_.call_.store(nullptr, std::memory_order_release); }

 private:
  Mover& mover_;
};

void Mover::make_ready() {
  if (state_ == State::moving)
    throw Error(ErrorKind::argument, "this move has been started already: wait() for it first");
  for (const auto& [owner, what, number] : memory_)
    if (const auto change = owner && looks_ ? owner->change() : std::string(); !change.empty()) {
      const Error error(ErrorKind::buffer, std::string("the ") + what + " " + std::to_string(number) + " " + change +
                                               " since the move was bound: bind it anew");
      give_up(error);
      throw error;
    }
  state_ = State::idle;  // should what follows fail
}

Index Mover::kept_plans_bytes() const {
  if (!incoming_) return 0;
  std::set<const BlockPlan*> plans;
  Index bytes = 0;
  for (const auto& share : *incoming_)
    if (share.ours && share.blocks && plans.insert(share.blocks.get()).second) bytes += share.blocks->workspace_bytes();
  return bytes;
}

void Mover::start() {
  const Turn turn(*this, "start()");
  make_ready();
  follows_ = false;
  begin();
  state_ = State::moving;
}

void Mover::move() {
  const Turn turn(*this, "move()");
  make_ready();
  begin_and_finish();
}

bool Mover::test() {
  const Turn turn(*this, "test()");
  if (state_ == State::idle) throw Error(ErrorKind::argument, "test() without start(): no move has been started");
  if (state_ == State::moving) {
    state_ = State::idle;  // should it fail
    state_ = advance() ? State::moved : State::moving;
  }
  return state_ == State::moved;
}

void Mover::wait() {
  const Turn turn(*this, "wait()");
  if (state_ == State::idle) throw Error(ErrorKind::argument, "wait() without start(): no move has been started");
  if (std::exchange(state_, State::idle) == State::moving) finish();
}

std::optional<Arrival> Mover::next_arrival(bool blocking) {
  const Turn turn(*this, "next_arrival()");
  if (state_ == State::idle) throw Error(ErrorKind::argument, "arrivals without start(): no move has been started");
  if (!incoming_) throw Error(ErrorKind::argument, "this mover was not told what arrives here: wait() for it");
  if (!arrivals_) {
    arrivals_ = std::make_shared<Arrivals>(*incoming_, process_);
    arrives_in_units_ = expect(*arrivals_);
  }
  if (!std::exchange(follows_, true)) {
    arrivals_->restart();
    if (arrives_in_units_ && state_ == State::moving) tell(*arrivals_);
  }
  const Arrival* next = arrivals_->next();
  for (bool again = true; !next && again && state_ == State::moving; again = blocking) {
    state_ = State::idle;  // should it fail
    const bool complete = arrives_in_units_ || !blocking ? advance_one_unit() : (finish(), true);
    if (!complete && arrives_in_units_) tell(*arrivals_);
    state_ = complete ? State::moved : State::moving;
    next = arrivals_->next();
  }
  if (!next && state_ == State::moved) {
    arrivals_->land_all();
    next = arrivals_->next();
  }
  return next ? std::optional(*next) : std::nullopt;
}

}  // namespace longshore
