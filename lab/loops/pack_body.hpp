/// The bodies of the plain loops. Everything lies in an unnamed namespace and calls nothing of the standard library:
/// each including file compiles it for another instruction set, and the linker must never merge the copies.
#pragma once

#include "pack.hpp"

namespace longshore::bench {
namespace {

template <Index block>
struct Element {
  static void move(std::byte* to, const std::byte* from) { __builtin_memcpy(to, from, block); }
};
template <class Word>
struct WordElement {
  using Any [[gnu::may_alias]] = Word;
  static void move(std::byte* to, const std::byte* from) {
    *reinterpret_cast<Any*>(to) = *reinterpret_cast<const Any*>(from);
  }
};
template <>
struct Element<4> : WordElement<float> {};
template <>
struct Element<8> : WordElement<double> {};

/// Strides of 0 are known at run time only, a block of 0 bytes is one of run-time length.
template <Index block, Index to_stride, Index from_stride>
void run_nest(std::byte* __restrict to, const std::byte* __restrict from, const PackNest& nest) {
  const PackLoop outer = nest.loops[0], middle = nest.loops[1], inner = nest.loops[2];
  const Index to_step = to_stride ? to_stride : inner.to, from_step = from_stride ? from_stride : inner.from;
  for (Index i = 0; i < outer.count; ++i)
    for (Index j = 0; j < middle.count; ++j) {
      std::byte* __restrict t = to + i * outer.to + j * middle.to;
      const std::byte* __restrict f = from + i * outer.from + j * middle.from;
      for (Index k = 0; k < inner.count; ++k) {
        if constexpr (block == 0)
          __builtin_memcpy(t + k * to_step, f + k * from_step, std::size_t(nest.block));
        else
          Element<block>::move(t + k * to_step, f + k * from_step);
      }
    }
}

template <Index block>
NestFunction nest_of(const PackNest& nest) {
  const PackLoop& inner = nest.loops[2];
  if (inner.to == block && inner.from == 4 * block) return &run_nest<block, block, 4 * block>;
  if (inner.to == 4 * block && inner.from == block) return &run_nest<block, 4 * block, block>;
  if (inner.to == block) return &run_nest<block, block, 0>;
  if (inner.from == block) return &run_nest<block, 0, block>;
  return &run_nest<block, 0, 0>;
}

NestFunction choose_nest(const PackNest& nest) {
  switch (nest.block) {
    case 4: return nest_of<4>(nest);
    case 8: return nest_of<8>(nest);
    case 12: return nest_of<12>(nest);
    case 16: return nest_of<16>(nest);
    case 24: return nest_of<24>(nest);
    case 32: return nest_of<32>(nest);
    case 40: return nest_of<40>(nest);
    case 48: return nest_of<48>(nest);
    case 64: return nest_of<64>(nest);
    case 128: return nest_of<128>(nest);
    case 256: return nest_of<256>(nest);
    case 512: return nest_of<512>(nest);
    default: return &run_nest<0, 0, 0>;
  }
}

template <Index block>
struct Lists {
  static void gather(std::byte* __restrict to, const std::byte* __restrict from, const std::int32_t* __restrict places,
                     Index n) {
    for (Index k = 0; k < n; ++k) Element<block>::move(to + k * block, from + places[k] * block);
  }
  static void scatter(std::byte* __restrict to, const std::byte* __restrict from, const std::int32_t* __restrict places,
                      Index n) {
    for (Index k = 0; k < n; ++k) Element<block>::move(to + places[k] * block, from + k * block);
  }
};

template <bool gathers>
ListFunction choose_list(Index block) {
  switch (block) {
    case 4: return gathers ? &Lists<4>::gather : &Lists<4>::scatter;
    case 8: return gathers ? &Lists<8>::gather : &Lists<8>::scatter;
    case 12: return gathers ? &Lists<12>::gather : &Lists<12>::scatter;
    case 16: return gathers ? &Lists<16>::gather : &Lists<16>::scatter;
    case 24: return gathers ? &Lists<24>::gather : &Lists<24>::scatter;
    case 32: return gathers ? &Lists<32>::gather : &Lists<32>::scatter;
    case 40: return gathers ? &Lists<40>::gather : &Lists<40>::scatter;
    case 48: return gathers ? &Lists<48>::gather : &Lists<48>::scatter;
    default: return nullptr;
  }
}

constexpr PackLoops loops_called(const char* name) {
  return {name, &choose_nest, &choose_list<true>, &choose_list<false>};
}

}  // namespace
}  // namespace longshore::bench
