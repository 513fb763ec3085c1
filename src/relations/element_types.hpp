/// From an `ElementType` to the C++ type it names, for the rooms' arithmetic.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "longshore/relations/combine.hpp"

namespace longshore {

template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};

/// Integers compute modulo 2^n, as NumPy's do; the unsigned twin makes that defined.
template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return T(std::uint64_t(a) * std::uint64_t(b));
  } else if constexpr (is_complex<T>::value) {
    // Written out: the library's operator recovers infinities, which costs a branch an element and BLAS does not do.
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    return a * b;
  }
}

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(std::uint64_t(a) + std::uint64_t(b));
  else
    return a + b;
}

/// An element at any address.
template <class T>
T load_element(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

/// Calls f with a value of the type's C++ type. Throws `Error(type)` for `ElementType::bytes`.
template <class F>
auto with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::int8: return f(std::int8_t());
    case ElementType::int16: return f(std::int16_t());
    case ElementType::int32: return f(std::int32_t());
    case ElementType::int64: return f(std::int64_t());
    case ElementType::uint8: return f(std::uint8_t());
    case ElementType::uint16: return f(std::uint16_t());
    case ElementType::uint32: return f(std::uint32_t());
    case ElementType::uint64: return f(std::uint64_t());
    case ElementType::float32: return f(float());
    case ElementType::float64: return f(double());
    case ElementType::complex64: return f(std::complex<float>());
    case ElementType::complex128: return f(std::complex<double>());
    case ElementType::bytes: break;
  }
  throw Error(ErrorKind::type, "arithmetic needs a numeric element type; these elements can only be copied");
}

}  // namespace longshore
