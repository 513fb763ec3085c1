/// What a relation does where several of its pairs have one destination: the combining operation that the paper's footnote
/// allows (Dinda & O'Hallaron, section 2).
#pragma once

#include <string_view>

#include "longshore/relations/combine.hpp"

namespace longshore {

enum class ReduceOp : std::uint8_t {
  replace,  ///< no combining: destinations are unique
  add, multiply, minimum, maximum,
  logical_and, logical_or, logical_xor,
  bitwise_and, bitwise_or, bitwise_xor
};

std::string_view reduce_name(ReduceOp op);  ///< "add", "minimum", ...
/// The operation of a name ("min" and "max" too). Throws `Error(argument)`.
ReduceOp reduce_op(std::string_view name);

/// destination = destination op source, element by element in message order, so that results do not depend on how a relation is
/// kept. Integers compute modulo 2^n; minimum and maximum carry a NaN on, as NumPy's do.
class Reduction {
 public:
  Reduction() = default;  ///< replace
  /// Throws `Error(type)` where the type has no such operation (minimum of complex numbers, bits of floating-point numbers).
  Reduction(ElementType type, ReduceOp op);

  bool is_replace() const { return op_ == ReduceOp::replace; }
  ElementType type() const { return type_; }
  ReduceOp op() const { return op_; }

  /// n elements, with strides in bytes; not for `replace`.
  void apply(std::byte* destination, const std::byte* source, Index n, Index destination_step, Index source_step) const {
    apply_(destination, source, n, destination_step, source_step);
  }
  bool operator==(const Reduction& other) const { return op_ == other.op_ && type_ == other.type_; }

 private:
  ElementType type_ = ElementType::bytes;
  ReduceOp op_ = ReduceOp::replace;
  void (*apply_)(std::byte*, const std::byte*, Index, Index, Index) = nullptr;
};

}  // namespace longshore
