#include "longshore/movers/mover.hpp"

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

void Mover::start() {
  const Turn turn(*this, "start()");
  make_ready();
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

}  // namespace longshore
