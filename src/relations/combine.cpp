#include "longshore/relations/combine.hpp"

#include <complex>
#include <cstring>

namespace longshore {

namespace {

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

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <class T, bool Accumulate, bool Conjugate>
void combine_loops(const Combine& combine, std::byte* destination, const std::byte* source, const BlockLoops& loops) {
  const T alpha = load<T>(combine.alpha().data()), beta = load<T>(combine.beta().data());
  const Index n = loops.block / Index(sizeof(T));
  for (Index j = 0; j < loops.n1; ++j)
    for (Index i = 0; i < loops.n0; ++i) {
      std::byte* d = destination + j * loops.d1 + i * loops.d0;
      const std::byte* s = source + j * loops.s1 + i * loops.s0;
      for (Index e = 0; e < n; ++e) {
        T value = load<T>(s + e * Index(sizeof(T)));
        if constexpr (Conjugate) value = std::conj(value);
        value = multiply(alpha, value);
        if constexpr (Accumulate) value = add(multiply(beta, load<T>(d + e * Index(sizeof(T)))), value);
        std::memcpy(d + e * Index(sizeof(T)), &value, sizeof(T));
      }
    }
}

template <class T>
auto choose(const ScalarBytes& alpha, const ScalarBytes& beta, bool& conjugate) {
  using Apply = void (*)(const Combine&, std::byte*, const std::byte*, const BlockLoops&);
  if constexpr (!is_complex<T>::value) conjugate = false;
  const bool accumulate = load<T>(beta.data()) != T(0);
  if (!conjugate && !accumulate && load<T>(alpha.data()) == T(1)) return Apply(nullptr);
  if constexpr (is_complex<T>::value)
    if (conjugate) return accumulate ? Apply(combine_loops<T, true, true>) : Apply(combine_loops<T, false, true>);
  return accumulate ? Apply(combine_loops<T, true, false>) : Apply(combine_loops<T, false, false>);
}

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
  throw Error(ErrorKind::type, "alpha, beta and conjugate need a numeric element type; these elements can only be copied");
}

}  // namespace

Index element_size(ElementType type) {
  if (type == ElementType::bytes) return 0;
  return with_type(type, [](auto x) { return Index(sizeof(x)); });
}

std::string_view element_name(ElementType type) {
  static constexpr std::string_view names[] = {"bytes",  "int8",   "int16",   "int32",   "int64",     "uint8",     "uint16",
                                               "uint32", "uint64", "float32", "float64", "complex64", "complex128"};
  return names[int(type)];
}

Combine::Combine(ElementType type, const ScalarBytes& alpha, const ScalarBytes& beta, bool conjugate)
    : type_(type), alpha_(alpha), beta_(beta), conjugate_(conjugate) {
  apply_ = with_type(type, [&](auto x) { return choose<decltype(x)>(alpha_, beta_, conjugate_); });
}

}  // namespace longshore
