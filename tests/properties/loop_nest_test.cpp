// The algebra of address relations and the programs compiled from them, against enumerated pairs.
#include "support/generators.hpp"

#include <complex>
#include <cstring>
#include <map>

#include "longshore/copies/packets.hpp"
#include "support/pairs.hpp"
#include "support/simulate.hpp"

namespace longshore::test {
namespace {

using Pairs = std::vector<LoopNest::Pair>;

/// The relation of some motion of some plan, as it comes or dimension by dimension.
LoopNest draw_relation(Index element_bytes = 0) {
  auto spec = draw_move(300);
  if (element_bytes > 0) spec.element_bytes = element_bytes;
  RC_LOG() << spec << '\n';
  const auto plan = plan_of(spec);
  std::vector<Motion> motions;
  for (Index rank = 0; rank < plan.world_size(); ++rank)
    plan.for_each_send(rank, [&](const Motion& motion) { motions.push_back(motion); });
  if (motions.empty()) return LoopNest(spec.element_bytes, {RelationAxis{}});
  const auto& motion = motions[std::size_t(draw(0, Index(motions.size()) - 1))];
  return chance(50) ? plan.relation(motion) : plan.relation_by_dimension(motion);
}

/// Bytes that hold one side of all pairs.
Index span(const LoopNest& relation, Index LoopNest::Pair::*side) {
  Index end = 0;
  for (const auto& pair : pairs_of(relation)) end = std::max(end, pair.*side + relation.element_bytes());
  return end;
}

Bytes numbered(Index n) {
  Bytes bytes;
  for (Index i = 0; i < n; ++i) bytes.push_back(element_byte(i, 0));
  return bytes;
}

RC_GTEST_PROP(LoopNest, at_follows_message_order, ()) {
  const auto relation = draw_relation();
  const auto pairs = pairs_of(relation);
  RC_ASSERT(relation.elements() == Index(pairs.size()));
  for (Index p = 0; p < relation.elements(); ++p) RC_ASSERT(relation.at(p) == pairs[std::size_t(p)]);
  RC_ASSERT_THROWS_AS(relation.at(relation.elements()), Error);
}

RC_GTEST_PROP(LoopNest, canonical_keeps_the_pairs_in_order, ()) {
  const auto relation = draw_relation();
  const auto canonical = relation.canonical();
  RC_ASSERT(pairs_of(canonical) == pairs_of(relation));
  RC_ASSERT(canonical.canonical() == canonical);
  RC_ASSERT(canonical.empty() || canonical.axes().size() <= relation.axes().size());
}

RC_GTEST_PROP(LoopNest, halves_and_inverse, ()) {
  const auto relation = draw_relation();
  const auto pairs = pairs_of(relation), assembly = pairs_of(relation.assembly()),
             disassembly = pairs_of(relation.disassembly()), inverse = pairs_of(relation.inverse());
  RC_ASSERT(assembly.size() == pairs.size() && disassembly.size() == pairs.size() && inverse.size() == pairs.size());
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const Index at = Index(p) * relation.element_bytes();
    RC_ASSERT(assembly[p] == (LoopNest::Pair{pairs[p].source, at}));
    RC_ASSERT(disassembly[p] == (LoopNest::Pair{at, pairs[p].destination}));
    RC_ASSERT(inverse[p] == (LoopNest::Pair{pairs[p].destination, pairs[p].source}));
  }
}

RC_GTEST_PROP(LoopNest, restrict_cuts_one_axis, ()) {
  const auto relation = draw_relation();
  if (relation.axes().empty() || relation.empty()) return;
  const auto axis = std::size_t(draw(0, Index(relation.axes().size()) - 1));
  const Index n = relation.axes()[axis].runs.elements();
  const Index first = draw(0, n), last = draw(first, n);
  Index inner = 1;
  for (std::size_t k = axis + 1; k < relation.axes().size(); ++k) inner *= relation.axes()[k].runs.elements();
  Pairs expected;
  const auto pairs = pairs_of(relation);
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const Index position = Index(p) / inner % n;
    if (first <= position && position < last) expected.push_back(pairs[p]);
  }
  RC_ASSERT(pairs_of(relation.restrict(axis, first, last)) == expected);
}

/// Where one side's offsets lie one after the other, if they do.
std::optional<Index> dense_contiguous(const LoopNest& relation, Index LoopNest::Pair::*side) {
  const auto pairs = pairs_of(relation);
  for (std::size_t p = 0; p < pairs.size(); ++p)
    if (pairs[p].*side != pairs[0].*side + Index(p) * relation.element_bytes()) return std::nullopt;
  return pairs.empty() ? std::nullopt : std::optional(pairs[0].*side);
}

RC_GTEST_PROP(LoopNest, contiguous_is_said_exactly_where_it_is_true, ()) {
  const auto relation = draw_relation();
  RC_ASSERT(relation.contiguous_source() == dense_contiguous(relation, &LoopNest::Pair::source));
  RC_ASSERT(relation.contiguous_destination() == dense_contiguous(relation, &LoopNest::Pair::destination));
}

RC_GTEST_PROP(LoopNest, a_regular_pattern_visits_what_the_relation_does, ()) {
  const auto relation = draw_relation();
  const auto check = [&](const AccessPattern& pattern, Index LoopNest::Pair::*side) {
    if (relation.empty() || !pattern.regular) return;
    Indices blocks{0};  // offsets of the blocks, innermost loop first
    for (const auto& loop : pattern.loops) {
      Indices more;
      for (Index i = 0; i < loop.count; ++i)
        for (const Index at : blocks) more.push_back(at + i * loop.stride);
      blocks = std::move(more);
    }
    const auto pairs = pairs_of(relation);
    const Index each = pattern.block_bytes / relation.element_bytes();
    RC_ASSERT(Index(blocks.size()) * each == Index(pairs.size()));
    for (std::size_t p = 0; p < pairs.size(); ++p)
      RC_ASSERT((pairs[p].*side - pairs[0].*side) ==
                blocks[p / std::size_t(each)] + Index(p) % each * relation.element_bytes());
  };
  check(relation.source_pattern(), &LoopNest::Pair::source);
  check(relation.destination_pattern(), &LoopNest::Pair::destination);
}

RC_GTEST_PROP(CopyProgram, is_the_twin_of_move_plain, ()) {
  const auto relation = draw_relation();
  const auto source = numbered(span(relation, &LoopNest::Pair::source));
  const auto size = std::size_t(span(relation, &LoopNest::Pair::destination));
  Bytes plain(size, untouched), compiled = plain;
  relation.move_plain(plain.data(), source.data());
  CopyProgram::Options options;
  options.table = *rc::gen::elementOf(available_kernels());
  options.stores = chance(50) ? Stores::streaming : Stores::cached;
  const CopyProgram program(relation, options);
  program.run(compiled.data(), source.data());
  RC_ASSERT(compiled == plain);
  RC_ASSERT(!program.describe().empty());
  RC_ASSERT(program.workspace_bytes() > 0);
}

template <class T>
ScalarBytes scalar(T value) {
  ScalarBytes bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Small integers, so that every type computes exactly.
template <class T>
T draw_value() {
  if constexpr (std::is_arithmetic_v<T>)
    return T(draw(0, 12) - 6);
  else
    return T(typename T::value_type(draw(0, 12) - 6), typename T::value_type(draw(0, 12) - 6));
}

template <class T>
T conjugated(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return std::conj(x);
}

/// What NumPy computes: integers modulo 2^n.
template <class T>
T combined(T alpha, T source, T beta, T destination) {
  if constexpr (std::is_integral_v<T>)
    return T(std::uint64_t(alpha) * std::uint64_t(source) + std::uint64_t(beta) * std::uint64_t(destination));
  else
    return alpha * source + beta * destination;
}

template <class T>
void check_combine(ElementType type) {
  RC_LOG() << element_name(type) << '\n';
  const auto relation = draw_relation(Index(sizeof(T)));
  const T alpha = draw_value<T>(), beta = draw_value<T>();
  const bool conjugate = chance(50);
  std::vector<T> source(std::size_t(span(relation, &LoopNest::Pair::source)) / sizeof(T) + 1);
  std::vector<T> destination(std::size_t(span(relation, &LoopNest::Pair::destination)) / sizeof(T) + 1);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = T(Index(i * 7 % 23) - 11);
  for (std::size_t i = 0; i < destination.size(); ++i) destination[i] = T(Index(i * 5 % 19) - 9);
  auto expected = destination;
  for (const auto& pair : pairs_of(relation)) {
    auto& d = expected[std::size_t(pair.destination) / sizeof(T)];
    d = combined(alpha,
                 conjugate ? conjugated(source[std::size_t(pair.source) / sizeof(T)])
                           : source[std::size_t(pair.source) / sizeof(T)],
                 beta, d);
  }
  CopyProgram::Options options;
  options.combine = Combine(type, scalar(alpha), scalar(beta), conjugate);
  const auto* from = reinterpret_cast<const std::byte*>(source.data());
  auto direct = destination;
  CopyProgram(relation, options).run(reinterpret_cast<std::byte*>(direct.data()), from);
  RC_ASSERT(direct == expected);

  const PacketedMessage message(relation, Index(sizeof(T)) * draw(1, 20), PacketedMessage::Halves::both, options);
  Bytes packet(std::size_t(message.largest_packet_bytes()));
  for (Index p = 0; p < message.packets(); ++p) {
    message.pack(p, packet.data(), from);
    message.unpack(p, reinterpret_cast<std::byte*>(destination.data()), packet.data());
  }
  RC_ASSERT(destination == expected);
}

RC_GTEST_PROP(Combine, computes_as_a_scalar_loop_does, ()) {
  static const std::map<ElementType, void (*)(ElementType)> checks = {
      {ElementType::int8, check_combine<std::int8_t>},
      {ElementType::int16, check_combine<std::int16_t>},
      {ElementType::int32, check_combine<std::int32_t>},
      {ElementType::int64, check_combine<std::int64_t>},
      {ElementType::uint8, check_combine<std::uint8_t>},
      {ElementType::uint16, check_combine<std::uint16_t>},
      {ElementType::uint32, check_combine<std::uint32_t>},
      {ElementType::uint64, check_combine<std::uint64_t>},
      {ElementType::float32, check_combine<float>},
      {ElementType::float64, check_combine<double>},
      {ElementType::complex64, check_combine<std::complex<float>>},
      {ElementType::complex128, check_combine<std::complex<double>>},
  };
  for (const auto& [type, check] : checks) check(type);
}

}  // namespace
}  // namespace longshore::test
