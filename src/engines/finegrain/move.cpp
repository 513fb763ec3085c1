#include "engines/finegrain/move.hpp"

#include <algorithm>

namespace longshore::finegrain {

namespace {

class MoveWait final : public Wait {
 public:
  /// `does`: "waits in wait()"
  MoveWait(const Move& move, Index rank, const char* does) : move_(move), rank_(rank), does_(does) {}
  /// Somebody has not started what is to be copied to this rank or together with what is copied from it.
  Index whom(const World&, std::string& words) const override {
    const Index round = move_.end(rank_).started;
    words = std::string(does_) + " of a move";
    for (const auto reader : move_.end(rank_).readers)
      if (move_.end(reader).copied < round)
        for (const auto source : move_.end(reader).sources)
          if (const End& end = move_.end(source); end.started < round) {
            words += " for " + rank_name(source) +
                     (end.left ? ", which has destroyed its mover" : ", which has not started it");
            return source;
          }
    return rank_;
  }

 private:
  const Move& move_;
  Index rank_;
  const char* does_;
};

class FinegrainMover final : public Mover {
 public:
  FinegrainMover(std::shared_ptr<Move> move, Index rank, std::vector<BoundMemory> memory)
      : Mover(std::move(memory)), move_(std::move(move)), rank_(rank) {}
  ~FinegrainMover() override { move_->leave(rank_); }

  Index workspace_bytes() const override { return move_->workspace_bytes(rank_); }
  Index moved_bytes() const override { return me().bytes; }
  std::string describe() const override {
    std::string text = "finegrain engine, " + rank_name(rank_) + " of " + std::to_string(move_->ends.size()) + ": " +
                       std::to_string(me().motions) + " motions, " + std::to_string(me().bytes) + " bytes, from " +
                       std::to_string(me().sources.size() - 1) + " other ranks";
    for (const auto& task : me().tasks) text += "\n  " + task.describe();
    return text;
  }

 private:
  void begin() override { move_->start(rank_); }
  bool advance() override { return move_->test(rank_); }
  void finish() override { move_->wait(rank_); }
  const End& me() const { return move_->end(rank_); }

  std::shared_ptr<Move> move_;
  Index rank_;
};

}  // namespace

void End::complete(Index rank) {
  add_source(rank), add_reader(rank);
  for (auto* ranks : {&sources, &readers}) {
    std::sort(ranks->begin(), ranks->end());
    ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
    ranks->shrink_to_fit();
  }
  tasks.shrink_to_fit();
  for (const auto& task : tasks) bytes = checked_add(bytes, task.bytes);
}

void Move::start(Index rank) {
  if (!world_->check_turn(rank)) return;
  world_->progress();
  End& me = end(rank);
  ++me.started;
  bool complete = false;
  for (const auto reader : me.readers)
    if (End& to = ends[reader]; !to.left)
      complete |= ++to.ready == to.sources.size();
    else if (to.started >= me.started)
      acknowledge(rank);  // it left this move when this rank had not started it
  if (!complete) return;
  world_->outside(rank, [&] {
    for (const auto reader : me.readers)
      if (End& to = ends[reader]; !to.left && to.ready == to.sources.size()) copy(to);
  });
}

void Move::copy(End& to) {
  try {
    for (const auto& task : to.tasks) task.run();
  } catch (...) {
    to.failure = std::current_exception();
  }
  to.ready = 0;
  ++to.copied;
  for (const auto source : to.sources) acknowledge(source);
}

void Move::acknowledge(Index source) {
  End& from = end(source);
  if (++from.done < from.readers.size()) return;
  from.done = 0;
  from.finished = from.started;
  if (from.waits) world_->wake(source);
}

void Move::check_copy(Index rank) {
  if (std::uncaught_exceptions() > 0) return;  // called by a destructor, on the way out with an error
  if (auto failure = std::exchange(end(rank).failure, nullptr)) std::rethrow_exception(std::move(failure));
}

void Move::wait(Index rank) {
  End& me = end(rank);
  MoveWait wait(*this, rank, "waits in wait()");
  for (bool goes_on = true; me.active() && goes_on;) {
    me.waits = true;
    goes_on = world_->block(rank, wait);
    me.waits = false;
  }
  check_copy(rank);
}

bool Move::test(Index rank) {
  if (end(rank).active()) {
    const MoveWait wait(*this, rank, "asks in test()");
    if (!world_->yield(rank, &wait)) return true;  // there is nothing left to ask for
  }
  if (end(rank).active()) return false;
  check_copy(rank);
  return true;
}

void Move::leave(Index rank) {
  End& me = end(rank);
  me.left = true;
  if (me.copied == me.started) return;
  me.copied = me.started;
  world_->progress();
  for (const auto source : me.sources)  // the others, when they start
    if (end(source).started >= me.started) acknowledge(source);
}

Index Move::workspace_bytes(Index rank) const {
  const End& me = end(rank);
  Index bytes =
      Index(sizeof(End) + (me.sources.capacity() + me.readers.capacity()) * sizeof(std::uint32_t)) + program_bytes;
  for (const auto& task : me.tasks) bytes += task.workspace_bytes();
  return bytes;
}

void Move::check_memory(Index rank, Index max_mem) const {
  if (const Index bytes = workspace_bytes(rank); max_mem > 0 && bytes > max_mem)
    throw Error(ErrorKind::memory_limit, rank_name(rank) + " needs " + std::to_string(bytes) +
                                             " bytes beyond its arrays, max_mem allows " + std::to_string(max_mem) +
                                             "; allow at least that much");
}

std::unique_ptr<Mover> make_mover(std::shared_ptr<Move> move, Index rank, std::vector<BoundMemory> memory) {
  return std::make_unique<FinegrainMover>(std::move(move), rank, std::move(memory));
}

}  // namespace longshore::finegrain
