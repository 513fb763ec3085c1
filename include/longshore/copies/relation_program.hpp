/// Address relations compiled for execution, from any position of the message to any other.
#pragma once

#include <utility>

#include "longshore/copies/copy_program.hpp"
#include "longshore/relations/address_relation.hpp"

namespace longshore {

/// A relation's parts with a kernel for each: nests as `CopyProgram`s, lists as 32-bit indices of equal blocks. What
/// repeats is folded first, so that it does not matter how the relation was given. Immutable; threads may share it.
class RelationProgram {
 public:
  struct Options {
    /// How destinations are written; none: streaming from `far_bytes` on.
    std::optional<Stores> stores;
    const KernelTable* table = nullptr;  ///< null: `kernels()`
    /// Stretches of fewer bytes are written with ordinary stores all the same: pieces of a message are sent at once.
    Index near_bytes = 0;
    Combine combine{};  ///< what is done where it writes, of a relation without a reduction; a copy, unless told
  };
  RelationProgram(const AddressRelation& relation, const Options& options);
  explicit RelationProgram(const AddressRelation& relation) : RelationProgram(relation, Options{}) {}
  ~RelationProgram();
  RelationProgram(RelationProgram&&) noexcept;
  RelationProgram& operator=(RelationProgram&&) noexcept;

  /// Moves every pair. Offsets are relative to the two pointers. The arrays must not overlap.
  void run(std::byte* destination, const std::byte* source) const;
  /// Moves the pairs at the message's positions [first, last). Throws `Error(argument)` outside [0, elements()).
  void run(Index first, Index last, std::byte* destination, const std::byte* source) const;

  Index elements() const;
  Index element_bytes() const;
  Interval source_extent() const;
  Interval destination_extent() const;
  std::string describe() const;  ///< what runs, in words
  Index workspace_bytes() const;

 private:
  struct Implementation;
  std::unique_ptr<const Implementation> implementation_;
};

/// Source array -> dense message, the executor of the sender.
class Assembler {
 public:
  explicit Assembler(const AddressRelation& relation, const RelationProgram::Options& options = {});
  /// The elements at positions [first, last) to a message that begins with element `first`.
  void run(std::byte* message, const std::byte* source, Index first, Index last) const {
    program_.run(first, last, message - first * program_.element_bytes(), source);
  }
  void run(std::byte* message, const std::byte* source) const { program_.run(message, source); }
  const RelationProgram& program() const& { return program_; }
  RelationProgram program() && { return std::move(program_); }

 private:
  RelationProgram program_;
};

/// Dense message -> destination array, the executor of the receiver.
class Disassembler {
 public:
  explicit Disassembler(const AddressRelation& relation, const RelationProgram::Options& options = {});
  /// A message that begins with element `first`, up to element `last`, to where its elements belong.
  void run(std::byte* destination, const std::byte* message, Index first, Index last) const {
    program_.run(first, last, destination, message - first * program_.element_bytes());
  }
  void run(std::byte* destination, const std::byte* message) const { program_.run(destination, message); }
  const RelationProgram& program() const& { return program_; }
  RelationProgram program() && { return std::move(program_); }

 private:
  RelationProgram program_;
};

}  // namespace longshore
