#include "longshore/relations/reduction.hpp"

#include "relations/element_types.hpp"

namespace longshore {

namespace {

constexpr std::string_view names[] = {"replace",     "add",         "multiply",    "minimum",
                                      "maximum",     "logical_and", "logical_or",  "logical_xor",
                                      "bitwise_and", "bitwise_or",  "bitwise_xor", "user"};

template <class T, ReduceOp op>
T reduced(T a, T b) {
  if constexpr (op == ReduceOp::add)
    return add(a, b);
  else if constexpr (op == ReduceOp::multiply)
    return multiply(a, b);
  else if constexpr (op == ReduceOp::minimum)
    return b < a || b != b ? (a != a ? a : b) : a;
  else if constexpr (op == ReduceOp::maximum)
    return a < b || b != b ? (a != a ? a : b) : a;
  else if constexpr (op == ReduceOp::logical_and)
    return T(a != T(0) && b != T(0));
  else if constexpr (op == ReduceOp::logical_or)
    return T(a != T(0) || b != T(0));
  else if constexpr (op == ReduceOp::logical_xor)
    return T((a != T(0)) != (b != T(0)));
  else if constexpr (op == ReduceOp::bitwise_and)
    return T(a & b);
  else if constexpr (op == ReduceOp::bitwise_or)
    return T(a | b);
  else
    return T(a ^ b);
}

template <class T, ReduceOp op>
void reduce_loop(std::byte* destination, const std::byte* source, Index n, Index destination_step, Index source_step) {
  for (Index k = 0; k < n; ++k, destination += destination_step, source += source_step) {
    const T value = reduced<T, op>(load_element<T>(destination), load_element<T>(source));
    std::memcpy(destination, &value, sizeof(T));
  }
}

using Apply = void (*)(std::byte*, const std::byte*, Index, Index, Index);

template <class T>
Apply choose(ReduceOp op) {
  switch (op) {
    case ReduceOp::add: return reduce_loop<T, ReduceOp::add>;
    case ReduceOp::multiply: return reduce_loop<T, ReduceOp::multiply>;
    case ReduceOp::logical_and: return reduce_loop<T, ReduceOp::logical_and>;
    case ReduceOp::logical_or: return reduce_loop<T, ReduceOp::logical_or>;
    case ReduceOp::logical_xor: return reduce_loop<T, ReduceOp::logical_xor>;
    default: break;
  }
  if constexpr (!is_complex<T>::value) {
    if (op == ReduceOp::minimum) return reduce_loop<T, ReduceOp::minimum>;
    if (op == ReduceOp::maximum) return reduce_loop<T, ReduceOp::maximum>;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::bitwise_and) return reduce_loop<T, ReduceOp::bitwise_and>;
    if (op == ReduceOp::bitwise_or) return reduce_loop<T, ReduceOp::bitwise_or>;
    if (op == ReduceOp::bitwise_xor) return reduce_loop<T, ReduceOp::bitwise_xor>;
  }
  return nullptr;
}

}  // namespace

std::string_view reduce_name(ReduceOp op) { return names[int(op)]; }

ReduceOp reduce_op(std::string_view name) {
  if (name == "min") name = "minimum";
  if (name == "max") name = "maximum";
  std::string known;
  for (std::size_t k = 0; k < std::size_t(ReduceOp::user); ++k) {
    if (names[k] == name) return ReduceOp(k);
    known += (k ? ", " : "") + std::string(names[k]);
  }
  throw Error(ErrorKind::argument, "there is no combining operation '" + std::string(name) + "'; there are " + known);
}

Reduction::Reduction(ElementType type, ReduceOp op) : type_(type), op_(op) {
  if (op == ReduceOp::replace) {
    type_ = ElementType::bytes;
    return;
  }
  apply_ = with_type(type, [op](auto zero) { return choose<decltype(zero)>(op); });
  if (apply_ == nullptr)
    throw Error(ErrorKind::type,
                std::string(reduce_name(op)) + " is not defined for elements of " + std::string(element_name(type)));
}

Reduction::Reduction(Index element_bytes, Function function) : op_(ReduceOp::user) {
  if (element_bytes <= 0 || !function)
    throw Error(ErrorKind::argument, "a combining function is for elements of at least one byte, and must be one");
  user_ = std::make_shared<const User>(User{element_bytes, std::move(function)});
}

Index Reduction::element_bytes() const { return user_ ? user_->element_bytes : element_size(type_); }

}  // namespace longshore
