#include "longshore/relations/combine.hpp"

#include "relations/element_types.hpp"

namespace longshore {

namespace {

template <class T, bool Accumulate, bool Conjugate>
void combine_loops(const Combine& combine, std::byte* destination, const std::byte* source, const BlockLoops& loops) {
  const T alpha = load_element<T>(combine.alpha().data()), beta = load_element<T>(combine.beta().data());
  const Index n = loops.block / Index(sizeof(T));
  for (Index j = 0; j < loops.n1; ++j)
    for (Index i = 0; i < loops.n0; ++i) {
      std::byte* d = destination + j * loops.d1 + i * loops.d0;
      const std::byte* s = source + j * loops.s1 + i * loops.s0;
      for (Index e = 0; e < n; ++e) {
        T value = load_element<T>(s + e * Index(sizeof(T)));
        if constexpr (Conjugate) value = std::conj(value);
        value = multiply(alpha, value);
        if constexpr (Accumulate) value = add(multiply(beta, load_element<T>(d + e * Index(sizeof(T)))), value);
        std::memcpy(d + e * Index(sizeof(T)), &value, sizeof(T));
      }
    }
}

template <class T>
auto choose(const ScalarBytes& alpha, const ScalarBytes& beta, bool& conjugate) {
  using Apply = void (*)(const Combine&, std::byte*, const std::byte*, const BlockLoops&);
  if constexpr (!is_complex<T>::value) conjugate = false;
  const bool accumulate = load_element<T>(beta.data()) != T(0);
  if (!conjugate && !accumulate && load_element<T>(alpha.data()) == T(1)) return Apply(nullptr);
  if constexpr (is_complex<T>::value)
    if (conjugate) return accumulate ? Apply(combine_loops<T, true, true>) : Apply(combine_loops<T, false, true>);
  return accumulate ? Apply(combine_loops<T, true, false>) : Apply(combine_loops<T, false, false>);
}

}  // namespace

Index element_size(ElementType type) {
  if (type == ElementType::bytes) return 0;
  return with_type(type, [](auto x) { return Index(sizeof(x)); });
}

std::string_view element_name(ElementType type) {
  static constexpr std::string_view names[] = {"bytes",   "int8",      "int16",     "int32",  "int64",
                                               "uint8",   "uint16",    "uint32",    "uint64", "float32",
                                               "float64", "complex64", "complex128"};
  return names[int(type)];
}

Combine::Combine(ElementType type, const ScalarBytes& alpha, const ScalarBytes& beta, bool conjugate)
    : type_(type), alpha_(alpha), beta_(beta), conjugate_(conjugate) {
  apply_ = with_type(type, [&](auto x) { return choose<decltype(x)>(alpha_, beta_, conjugate_); });
}

}  // namespace longshore
