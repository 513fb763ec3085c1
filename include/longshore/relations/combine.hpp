/// What a move does where it writes: `destination = beta * destination + alpha * op(source)`, op being the identity or
/// the complex conjugate, as ScaLAPACK's pdtran and COSTA have it. Plain copies need none of this.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "longshore/relations/block_loops.hpp"

namespace longshore {

/// The element types that can be computed with. Anything else is bytes, and can only be copied.
enum class ElementType {
  bytes,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  complex64,
  complex128
};

Index element_size(ElementType type);  ///< in bytes; 0 for `bytes`
std::string_view element_name(ElementType type);

/// A scalar of some element type, kept as that type's bytes (native byte order).
using ScalarBytes = std::array<std::byte, 16>;

/// alpha, beta and conjugate of one move.
class Combine {
 public:
  /// The plain copy.
  Combine() = default;
  /// Throws `Error(type)` for `ElementType::bytes`.
  Combine(ElementType type, const ScalarBytes& alpha, const ScalarBytes& beta, bool conjugate);

  /// True when the destination simply receives the source's bytes (alpha 1, beta 0, no conjugate).
  bool is_copy() const { return apply_ == nullptr; }
  ElementType type() const { return type_; }
  /// The loops of `BlockLoops`, `block` being any multiple of the element size. With beta 0 the destination is not
  /// read, so that uninitialised memory and NaNs in it do not matter.
  void apply(std::byte* destination, const std::byte* source, const BlockLoops& loops) const {
    apply_(*this, destination, source, loops);
  }
  ScalarBytes alpha() const { return alpha_; }
  ScalarBytes beta() const { return beta_; }
  bool conjugate() const { return conjugate_; }
  bool operator==(const Combine&) const = default;

 private:
  ElementType type_ = ElementType::bytes;
  ScalarBytes alpha_{}, beta_{};
  bool conjugate_ = false;
  void (*apply_)(const Combine&, std::byte*, const std::byte*, const BlockLoops&) = nullptr;
};

}  // namespace longshore
