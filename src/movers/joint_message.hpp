/// movers: a message whose elements share cache lines of the destination with what the receiver has itself: it unpacks
/// and copies at once, so that each line is written once.
#pragma once

#include <memory>

#include "copies/message.hpp"
#include "longshore/copies/copy_program.hpp"

namespace longshore {

/// How the relation of a message, as `MotionPlan::relation_by_dimension` gives it, is cut into packets of at most
/// `capacity` bytes: along an axis outside `interleaved`, the one that the members of a joint copy differ in, into
/// stretches without a gap. Both ends cut alike.
class JointCut {
 public:
  JointCut(LoopNest relation, std::size_t interleaved, Index capacity);
  /// False where a single row does not fit, or rows have gaps.
  bool possible() const { return !stretches_.empty(); }

  /// Some of its positions along the cut axis: the first pair's indices there, and how many there are.
  struct Stretch {
    Index source, destination, length;
  };
  Index packets() const { return outer_ * Index(stretches_.size()); }
  const Stretch& stretch(Index packet) const { return stretches_[std::size_t(packet % Index(stretches_.size()))]; }
  Index bytes(const Stretch& stretch) const { return stretch.length * row_bytes_; }
  Index largest_bytes() const;
  const std::vector<Stretch>& stretches() const { return stretches_; }
  Index workspace_bytes() const { return Index(sizeof *this + stretches_.capacity() * sizeof(Stretch)); }

  /// Of a relation that differs from the message's in the interleaved axis and strides only: where the packet's pairs
  /// are, and the relation of one packet with stretches of so many positions, from there.
  OffsetPair place(const LoopNest& relation, Index packet) const;
  LoopNest packet_relation(const LoopNest& relation, Index length) const;
  /// The latter of the message, with the packet for its source.
  LoopNest from_packet(Index length) const;
  const LoopNest& relation() const { return relation_; }

 private:
  LoopNest relation_;
  std::size_t interleaved_, cut_ = 0;
  Index outer_ = 1, row_bytes_ = 0;
  std::vector<Stretch> stretches_;
};

/// The sender's end.
std::unique_ptr<Message> joint_message(JointCut cut, std::byte* source);
/// The receiver's, who brings `local` from `source` at the same time.
std::unique_ptr<Message> joint_message(JointCut cut, LoopNest local, std::byte* source, std::byte* destination,
                                       const CopyProgram::Options& options);

}  // namespace longshore
