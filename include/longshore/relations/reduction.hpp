/// What a relation does where several of its pairs have one destination: the combining operation that the paper's
/// footnote allows (Dinda & O'Hallaron, section 2).
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "longshore/relations/combine.hpp"

namespace longshore {

enum class ReduceOp : std::uint8_t {
  replace,  ///< no combining: destinations are unique
  add,
  multiply,
  minimum,
  maximum,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  user  ///< a function of the caller's
};

std::string_view reduce_name(ReduceOp op);  ///< "add", "minimum", ...
/// The operation of a name ("min" and "max" too). Throws `Error(argument)`.
ReduceOp reduce_op(std::string_view name);

/// destination = destination op source, element by element in message order, so that results do not depend on how a
/// relation is kept. Integers compute modulo 2^n; minimum and maximum carry a NaN on, as NumPy's do.
class Reduction {
 public:
  /// n elements of both, with strides in bytes: destination[k] = f(destination[k], source[k]).
  using Function = std::function<void(std::byte* destination, const std::byte* source, Index n, Index destination_step,
                                      Index source_step)>;

  Reduction() = default;  ///< replace
  /// Throws `Error(type)` where the type has no such operation
  /// (minimum of complex numbers, bits of floating-point numbers).
  Reduction(ElementType type, ReduceOp op);
  /// A function of one's own, for elements of so many bytes. Relations that have one cannot be stored.
  Reduction(Index element_bytes, Function function);

  bool is_replace() const { return op_ == ReduceOp::replace; }
  ElementType type() const { return type_; }
  ReduceOp op() const { return op_; }
  Index element_bytes() const;  ///< of what it is for; 0: anything

  /// n elements, with strides in bytes; not for `replace`.
  void apply(std::byte* destination, const std::byte* source, Index n, Index destination_step,
             Index source_step) const {
    if (apply_) return apply_(destination, source, n, destination_step, source_step);
    user_->function(destination, source, n, destination_step, source_step);
  }
  bool operator==(const Reduction& other) const {
    return op_ == other.op_ && type_ == other.type_ && user_ == other.user_;
  }

 private:
  ElementType type_ = ElementType::bytes;
  ReduceOp op_ = ReduceOp::replace;
  void (*apply_)(std::byte*, const std::byte*, Index, Index, Index) = nullptr;
  struct User {
    Index element_bytes;
    Function function;
  };
  std::shared_ptr<const User> user_;
};

}  // namespace longshore
