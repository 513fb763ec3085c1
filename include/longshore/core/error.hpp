/// core: checked 64-bit arithmetic and errors; nothing else.
#pragma once

#include <stdexcept>
#include <string>

namespace longshore {

/// What went wrong, so that a caller can react without reading the words.
enum class ErrorKind {
  argument,      ///< an argument outside its range
  layout,        ///< a layout that cannot be parsed or does not hold together
  shape,         ///< extents that disagree
  type,          ///< element types that disagree or do not support an operation
  buffer,        ///< local memory of the wrong size, order, strides, overlap or protection
  memory_limit,  ///< a move that cannot be done within the memory allowed
  overflow,      ///< a size, count or offset that does not fit in 64 bits
  disagreement,  ///< ranks were given different things
  transport,     ///< the engine under the move failed
  deadlock,      ///< ranks wait for each other, or for one that has gone
};

/// Every error Longshore throws. The message names rank, dimension, index and bound where there are any.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace longshore
