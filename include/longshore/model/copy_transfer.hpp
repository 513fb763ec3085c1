/// The copy-transfer model's expressions: a way of moving data, written as the copies and transfers that it consists of
/// (Stricker & Gross, "Optimizing memory system performance for communication in parallel computers", section 3).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

/// In which order memory is read or written (sections 2.2 and 3.2): 0 always the same place, such as the head of a
/// FIFO, 1 contiguous, n with a constant stride, ω where an index array says. Words are of 64 bits.
struct ReferencePattern {
  static constexpr Index by_index = -1;  ///< ω

  Index stride = 1;  ///< 0, 1, `by_index`, or from n >= 2 words from where one block begins to where the next one does
  Index block = 1;   ///< words of a block, fewer than the stride; 1 unless strided

  constexpr ReferencePattern() = default;
  constexpr ReferencePattern(Index stride, Index block = 1) : stride(stride), block(block) {}
  bool strided() const { return stride >= 2; }
  bool operator==(const ReferencePattern&) const = default;
};

enum class TransferKind {
  copy,                  ///< xCy: memory to memory, by the processor
  load_send,             ///< xS0: memory to the network's port, by the processor
  fetch_send,            ///< xF0: the same in the background, by a DMA or fetch engine
  receive_store,         ///< 0Ry: the network's port to memory, by the processor
  receive_deposit,       ///< 0Dy: the same in the background, by a DMA or deposit engine
  network_data,          ///< Nd: across the network, data only
  network_address_data,  ///< Nadp: across the network, each word with its address
};

/// "C", "S", "F", "R", "D", "Nd" or "Nadp".
const char* to_string(TransferKind kind);
/// Throws `Error(argument)` for other names.
TransferKind transfer_kind(std::string_view name);

/// How text is written: with the paper's signs ∘, ‖ and ω, or in ASCII with o, || and w. Both are read.
enum class Notation { paper, ascii };

/// What an expression is made of, and what is measured.
struct BasicTransfer {
  TransferKind kind = TransferKind::copy;
  ReferencePattern read, write;      ///< what a kind does not touch is the fixed place 0
  std::optional<double> congestion;  ///< of networks: how often a link's share it is given; none: as usual there

  bool network() const { return kind >= TransferKind::network_data; }
  /// "64C1", "1C64[2]" (blocks of two words, 64 apart), "ωS0", "Nd", "Nadp@4" (at a congestion of 4).
  std::string to_string(Notation notation = Notation::paper) const;
  bool operator==(const BasicTransfer&) const = default;
};

BasicTransfer local_copy(ReferencePattern read, ReferencePattern write);
BasicTransfer load_send(ReferencePattern read);
BasicTransfer fetch_send(ReferencePattern read);
BasicTransfer receive_store(ReferencePattern write);
BasicTransfer receive_deposit(ReferencePattern write);
BasicTransfer network_data(std::optional<double> congestion = {});
BasicTransfer network_address_data(std::optional<double> congestion = {});

/// A value: a basic transfer, steps one after the other (∘, `>>`), or transfers at the same time (‖, `|`). Members
/// stand in the order in which data flow. Compositions of compositions of the same kind are one: a >> (b >> c) has
/// three steps.
class TransferExpression {
 public:
  enum class Composition { basic, sequence, parallel };
  /// Compositions within compositions, and parentheses within parentheses.
  static constexpr int nesting_limit = 100;

  /// Throws `Error(argument)` for a stride, block, congestion or pattern that the kind cannot have.
  TransferExpression(BasicTransfer transfer);
  /// What cannot take place at the same time, because it shares a resource. Throws `Error(argument)` where one step
  /// writes another pattern than the next one reads, where there is no step, and beyond the nesting limit.
  static TransferExpression sequence(std::vector<TransferExpression> steps);
  /// What uses disjoint resources, and goes at the pace of the slowest.
  static TransferExpression parallel(std::vector<TransferExpression> members);
  /// "64C1 o (1S0 || Nd || 0D1) o 1C64". ∘ binds tighter than ‖. Throws `Error(argument)` that says at which
  /// character what is expected.
  static TransferExpression parse(std::string_view text);

  Composition composition() const { return composition_; }
  /// Of a `basic` one.
  const BasicTransfer& transfer() const& { return transfer_; }
  BasicTransfer transfer() && { return transfer_; }
  /// Of the others; at least two.
  const std::vector<TransferExpression>& parts() const& { return parts_; }
  std::vector<TransferExpression> parts() && { return std::move(parts_); }
  /// What the first part reads and the last one writes: x and y of the paper's xQy.
  ReferencePattern read() const;
  ReferencePattern write() const;

  /// In the paper's notation, with a composition within another one in parentheses; parses back to the same.
  std::string to_string(Notation notation = Notation::paper) const;
  bool operator==(const TransferExpression& other) const;

 private:
  TransferExpression(Composition composition, std::vector<TransferExpression> parts);

  Composition composition_ = Composition::basic;
  BasicTransfer transfer_;
  std::vector<TransferExpression> parts_;
  int nesting_ = 0;
};

/// ∘ and ‖.
TransferExpression operator>>(TransferExpression before, TransferExpression after);
TransferExpression operator|(TransferExpression one, TransferExpression other);

}  // namespace longshore
