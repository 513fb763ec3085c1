#include "movers/proxy_mover.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/start_thread.hpp"

namespace longshore {

namespace {

class ProxyMover final : public Mover {
 public:
  /// The arrays are looked at by whoever starts: Python's want its lock, which who destroys a mover may hold while the
  /// thread goes on.
  explicit ProxyMover(std::unique_ptr<Mover> mover)
      : Mover(looked_at_for(*mover)),
        mover_(std::move(mover)),
        thread_(start_thread([this] { serve(); }, "the proxy of a mover", "bind without proxy")) {}
  ~ProxyMover() override {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return state_ != State::moving; });
      state_ = State::leaving;
    }
    changed_.notify_all();
    thread_.join();
  }

  Index workspace_bytes() const override { return mover_->workspace_bytes() + Index(sizeof *this); }
  Index staging_bytes() const override { return mover_->staging_bytes(); }
  Index moved_bytes() const override { return mover_->moved_bytes(); }
  std::string describe() const override { return "by a thread of its own:\n" + mover_->describe(); }
  std::string obstacle() const override { return mover_->obstacle(); }

 private:
  enum class State { idle, moving, moved, leaving };

  void give_up(const Error& error) override { give_up_for(*mover_, error); }
  void begin() override {
    {
      std::lock_guard lock(mutex_);
      state_ = State::moving;
    }
    changed_.notify_all();
  }
  bool advance() override {
    std::unique_lock lock(mutex_);
    if (state_ == State::moving) return false;
    complete();
    return true;
  }
  void finish() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ != State::moving; });
    complete();
  }
  void complete() {
    state_ = State::idle;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return state_ == State::moving || state_ == State::leaving; });
      if (state_ == State::leaving) return;
      lock.unlock();
      std::exception_ptr failure;
      try {
        mover_->move();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      state_ = State::moved;
      changed_.notify_all();
    }
  }

  std::unique_ptr<Mover> mover_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::idle;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

std::unique_ptr<Mover> make_proxy_mover(std::unique_ptr<Mover> mover) {
  return std::make_unique<ProxyMover>(std::move(mover));
}

}  // namespace longshore
