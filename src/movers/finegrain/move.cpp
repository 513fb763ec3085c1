#include "movers/finegrain/move.hpp"

namespace longshore::finegrain {

namespace {

class MoveWait final : public Wait {
 public:
  MoveWait(const Move& move, Index rank) : move_(move), rank_(rank) {}
  /// Somebody has not started what is to be copied to this rank or together with what is copied from it.
  Index whom(const World&, std::string& words) const override {
    const Index round = move_.end(rank_).started;
    for (const auto reader : move_.end(rank_).readers)
      if (move_.end(reader).copied < round)
        for (const auto source : move_.end(reader).sources)
          if (const End& end = move_.end(source); end.started < round) {
            words = "waits in wait() of a move for " + rank_name(source) +
                    (end.left ? ", which has destroyed its mover" : ", which has not started it");
            return source;
          }
    return rank_;
  }

 private:
  const Move& move_;
  Index rank_;
};

class FinegrainMover final : public Mover {
 public:
  FinegrainMover(std::shared_ptr<Move> move, Index rank)
      : Mover(bound_memory(move->end(rank).source, move->end(rank).destination)), move_(std::move(move)), rank_(rank) {}
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
  void begin() override {
    move_->world().check_turn(rank_);
    move_->start(rank_);
  }
  bool advance() override {
    if (me().active()) move_->world().yield(rank_);
    return !me().active();
  }
  void finish() override { move_->wait(rank_); }
  const End& me() const { return move_->end(rank_); }

  std::shared_ptr<Move> move_;
  Index rank_;
};

}  // namespace

void Move::start(Index rank) {
  ++end(rank).started;
  for (const auto reader : end(rank).readers)
    if (End& to = ends[reader]; ++to.ready == to.sources.size() && !to.left) {
      for (const auto& task : to.tasks) task.run();
      copied(to);
    }
}

void Move::copied(End& to) {
  to.ready = 0;
  ++to.copied;
  for (const auto source : to.sources)
    if (End& from = ends[source]; ++from.done == from.readers.size()) {
      from.done = 0;
      from.finished = from.started;
      if (from.waits) world_->wake(source);
    }
}

void Move::wait(Index rank) {
  End& me = end(rank);
  MoveWait wait(*this, rank);
  while (me.active()) {
    me.waits = true;
    world_->block(rank, wait);
    me.waits = false;
  }
}

void Move::leave(Index rank) {
  End& me = end(rank);
  me.left = true;
  if (me.copied < me.started) copied(me);
}

Index Move::workspace_bytes(Index rank) const {
  const End& me = end(rank);
  Index bytes = Index(sizeof(End) + (me.sources.capacity() + me.readers.capacity()) * sizeof(std::uint32_t)) + program_bytes;
  for (const auto& task : me.tasks) bytes += task.workspace_bytes();
  return bytes;
}

std::unique_ptr<Mover> make_mover(std::shared_ptr<Move> move, Index rank) {
  return std::make_unique<FinegrainMover>(std::move(move), rank);
}

}  // namespace longshore::finegrain
