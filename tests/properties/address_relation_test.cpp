// Address relations of every sort against the plain set of their pairs: algebra, programs, encodings.
#include "support/generators.hpp"

#include <cstring>
#include <set>
#include <string>

#include "support/relations.hpp"
#include "support/simulate.hpp"

namespace longshore::test {
namespace {

/// Cases are cheap here, and what is wrong is rare. The number is read once a process, when its first property begins.
class ManyCases : public ::testing::EmptyTestEventListener {
  void OnTestSuiteStart(const ::testing::TestSuite& suite) override {
    static const std::set<std::string> here{"AddressRelation", "Assembler", "Encoding", "RelationProgram"};
    if (!quick() && here.contains(suite.name())) ::setenv("RC_PARAMS", "max_success=1500", 0);
  }
};
const bool many_cases = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ManyCases);
  return true;
}();

/// Parts of any sorts, or what some motion of some plan is.
Sample draw_sample(Index element = 0) {
  if (element == 0 && chance(25)) {
    const auto spec = draw_move(200);
    RC_LOG() << spec << '\n';
    const auto plan = plan_of(spec);
    std::vector<Motion> motions;
    for (Index rank = 0; rank < plan.world_size(); ++rank)
      plan.for_each_send(rank, [&](const Motion& motion) { motions.push_back(motion); });
    if (!motions.empty()) {
      const auto nest = plan.relation(motions[std::size_t(draw(0, Index(motions.size()) - 1))]);
      RC_ASSERT(nest.distinct_destinations());  // else every plan would be enumerated
      return {spec.element_bytes, {nest}, pairs_of(nest), false};
    }
  }
  auto sample = any_distinct(draw, element);
  RC_LOG() << sample.element << "-byte elements:";
  for (const auto& pair : sample.pairs) RC_LOG() << ' ' << pair;
  RC_LOG() << '\n';
  return sample;
}

/// The sample as one of the things that can be made of the same pairs.
AddressRelation draw_form(const Sample& sample, Reduction reduction = {}) {
  const auto relation = sample.relation(reduction);
  auto packed = [](const AddressRelation& given) {  // lists that stay bit-packed
    return Encoding(given, draw(0, 1) ? EncodingKind::packed : EncodingKind::delta).decode();
  };
  switch (draw(0, 6)) {
    case 0: return relation;
    case 5: return packed(relation);
    case 1: return relation.canonical();
    case 2: return AddressRelation::from_pairs(sample.element, sample.pairs, reduction);
    case 3: return AddressRelation::from_reader(sample.element, *relation.reader(), reduction);
    default: {
      const Index cut = draw(0, relation.elements());
      const auto first = relation.restrict(0, cut), second = relation.restrict(cut, relation.elements());
      return AddressRelation::concatenate(
          std::vector{chance(30) ? packed(first) : first, chance(30) ? packed(second) : second});
    }
  }
}

std::pair<Index, Index> draw_stretch(Index n) {
  const Index first = draw(0, n);
  return {first, draw(first, n)};
}

RC_GTEST_PROP(AddressRelation, is_its_pairs, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  const auto& pairs = sample.pairs;
  RC_ASSERT(relation.pairs() == pairs);
  RC_ASSERT(relation.elements() == Index(pairs.size()));
  RC_ASSERT(relation.bytes() == relation.elements() * sample.element);
  for (std::size_t k = 0; k < pairs.size(); ++k) RC_ASSERT(relation.at(Index(k)) == pairs[k]);
  RC_ASSERT_THROWS_AS(relation.at(relation.elements()), Error);
  Interval source, destination;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    auto widen = [&](Interval& extent, Index offset) {
      if (k == 0) extent = {offset, offset};
      extent = {std::min(extent.first, offset), std::max(extent.last, offset + sample.element)};
    };
    widen(source, pairs[k].source), widen(destination, pairs[k].destination);
  }
  RC_ASSERT(relation.source_extent() == source);
  RC_ASSERT(relation.destination_extent() == destination);
  RC_ASSERT(relation.workspace_bytes() > 0);
}

RC_GTEST_PROP(AddressRelation, every_stretch_is_read_and_cut_alike, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  for (int k = 0; k < 10; ++k) {
    const auto [first, last] = draw_stretch(relation.elements());
    const auto expected = slice(sample.pairs, first, last);
    RC_ASSERT(pairs_of(*relation.reader(first, last)) == expected);
    const auto cut = relation.restrict(first, last);
    RC_ASSERT(cut.pairs() == expected);
    RC_ASSERT(cut == AddressRelation::from_pairs(sample.element, expected));
    const auto reader = relation.reader(first, last);
    OffsetRun one;
    Pairs slowly;
    while (reader->read({&one, 1}) > 0)
      for (Index e = 0; e < one.count; ++e) slowly.push_back(one.at(e));
    RC_ASSERT(slowly == expected);
  }
}

RC_GTEST_PROP(AddressRelation, equality_is_of_sequences, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample), again = draw_form(sample);
  RC_ASSERT(relation == again);
  RC_ASSERT(relation.same_pairs(again));
  if (sample.pairs.empty()) return;
  auto changed = sample.pairs;
  auto& pair = changed[std::size_t(draw(0, Index(changed.size()) - 1))];
  pair.source += draw(0, 1) ? sample.element : -sample.element;
  RC_ASSERT(!(AddressRelation::from_pairs(sample.element, changed) == relation));
  RC_ASSERT(!AddressRelation::from_pairs(sample.element, changed).same_pairs(relation));
  auto shuffled = sample.pairs;
  std::reverse(shuffled.begin(), shuffled.end());
  RC_ASSERT((AddressRelation::from_pairs(sample.element, shuffled) == relation) == (shuffled == sample.pairs));
  RC_ASSERT(AddressRelation::from_pairs(sample.element, shuffled).same_pairs(relation));
}

RC_GTEST_PROP(AddressRelation, canonical_is_the_same_and_stays, ()) {
  const auto sample = draw_sample();
  const auto canonical = draw_form(sample).canonical();
  RC_ASSERT(canonical.pairs() == sample.pairs);
  RC_ASSERT(canonical.canonical().pairs() == sample.pairs);
}

RC_GTEST_PROP(AddressRelation, inverse_swaps_where_it_may, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  const auto expected = swapped(sample.pairs);
  if (destinations_overlap(expected, sample.element)) {
    RC_ASSERT_THROWS_AS(relation.inverse(), Error);
    return;
  }
  RC_ASSERT(relation.inverse().pairs() == expected);
  RC_ASSERT(relation.inverse().inverse() == relation);
}

RC_GTEST_PROP(AddressRelation, sorts_as_a_list_of_pairs_does, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  auto expected = sample.pairs;
  const bool source_first = chance(50);
  const auto order = source_first ? PairOrder::source_first : PairOrder::destination_first;
  const auto less = source_first ? by_source : by_destination;
  RC_ASSERT(relation.is_sorted(order) == std::is_sorted(expected.begin(), expected.end(), less));
  std::sort(expected.begin(), expected.end(), less);
  const auto sorted = relation.sorted(order);
  RC_ASSERT(sorted.pairs() == expected);
  RC_ASSERT(sorted.is_sorted(order));
  RC_ASSERT(sorted.same_pairs(relation));
  RC_ASSERT(relation.is_sorted(PairOrder::given) && relation.sorted(PairOrder::given) == relation);
}

RC_GTEST_PROP(AddressRelation, composes_as_two_loops_do, ()) {
  const auto first = draw_sample();
  auto next = draw_sample(first.element);
  // Onto the destinations of the first, in whole elements or not.
  if (!first.pairs.empty() && !next.pairs.empty() && chance(80)) {
    const Index by = first.pairs[0].destination - next.pairs[0].source + (chance(10) ? 1 : 0);
    for (auto& pair : next.pairs) pair.source += by;
    next.parts = {next.pairs};
  }
  Pairs expected;
  for (const auto& a : first.pairs)
    for (const auto& b : next.pairs)
      if (a.destination == b.source) expected.push_back({a.source, b.destination});
  RC_CLASSIFY(!expected.empty());
  const auto composed = draw_form(first).compose(next.relation());
  RC_ASSERT(composed.pairs() == expected);
}

RC_GTEST_PROP(AddressRelation, halves_meet_in_a_dense_message, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  const auto assembly = relation.assembly(), disassembly = relation.disassembly();
  Pairs to, from;
  for (const auto& pair : sample.pairs) {
    const Index at = Index(to.size()) * sample.element;
    to.push_back({pair.source, at}), from.push_back({at, pair.destination});
  }
  RC_ASSERT(assembly.pairs() == to);
  RC_ASSERT(disassembly.pairs() == from);
  RC_ASSERT(assembly.compose(disassembly) == relation);
}

RC_GTEST_PROP(AddressRelation, segments_are_its_sides, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  const auto source = relation.source_segments(), destination = relation.destination_segments();
  auto check = [&](const std::vector<Segment>& segments, Index OffsetPair::*side) {
    std::size_t k = 0;
    for (const auto& segment : segments)
      for (Index at = 0; at < segment.bytes; at += sample.element, ++k)
        RC_ASSERT((sample.pairs[k].*side == segment.offset + at));
    RC_ASSERT(k == sample.pairs.size());
    for (std::size_t j = 1; j < segments.size(); ++j)
      RC_ASSERT(segments[j].offset != segments[j - 1].offset + segments[j - 1].bytes);
  };
  check(source, &OffsetPair::source), check(destination, &OffsetPair::destination);
  RC_ASSERT(AddressRelation::from_segments(sample.element, source, destination) == relation);
}

// --- programs

RelationProgram::Options draw_options() {
  return {chance(50) ? Stores::streaming : Stores::cached,
          chance(20) ? nullptr : *rc::gen::elementOf(available_kernels())};
}

RC_GTEST_PROP(RelationProgram, is_the_twin_of_move_plain, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  Field source(sample.pairs, &OffsetPair::source, sample.element, true);
  Field expected(sample.pairs, &OffsetPair::destination, sample.element, false);
  const RelationProgram program(relation, draw_options());
  {
    auto plain = expected, compiled = expected, all = expected;
    move(sample.pairs, sample.element, {}, all.data(), source.data());
    relation.move_plain(plain.data(), source.data());
    program.run(compiled.data(), source.data());
    RC_ASSERT(plain == all);
    RC_ASSERT(compiled == all);
  }
  for (int k = 0; k < 6; ++k) {
    const auto [first, last] = draw_stretch(relation.elements());
    auto some = expected, plain = expected;
    program.run(first, last, some.data(), source.data());
    move(slice(sample.pairs, first, last), sample.element, {}, plain.data(), source.data());
    RC_ASSERT(some == plain);
  }
  RC_ASSERT(program.elements() == relation.elements() && program.element_bytes() == sample.element);
  RC_ASSERT(program.source_extent() == relation.source_extent());
  RC_ASSERT(program.destination_extent() == relation.destination_extent());
  RC_ASSERT(!program.describe().empty() && program.workspace_bytes() > 0);
  RC_ASSERT_THROWS_AS(program.run(0, relation.elements() + 1, nullptr, nullptr), Error);
}

RC_GTEST_PROP(RelationProgram, scales_what_it_moves, ()) {
  const auto type =
      *rc::gen::elementOf(std::vector{ElementType::uint8, ElementType::int16, ElementType::uint32, ElementType::int64});
  const auto sample = draw_sample(element_size(type));
  const auto relation = draw_form(sample);
  ScalarBytes alpha{}, beta{};
  alpha[0] = std::byte(draw(0, 3)), beta[0] = std::byte(draw(0, 3));
  const Combine combine(type, alpha, beta, chance(50));
  Field source(sample.pairs, &OffsetPair::source, sample.element, true);
  const Field before(sample.pairs, &OffsetPair::destination, sample.element, false);
  auto options = draw_options();
  options.combine = combine;
  const RelationProgram program(relation, options);
  auto check = [&](Index first, Index last) {
    auto some = before, plain = before;
    if (first == 0 && last == relation.elements())
      program.run(some.data(), source.data());
    else
      program.run(first, last, some.data(), source.data());
    for (const auto& pair : slice(sample.pairs, first, last)) {
      std::byte* const to = plain.data() + pair.destination;
      if (combine.is_copy())
        std::memcpy(to, source.data() + pair.source, std::size_t(sample.element));
      else
        combine.apply(to, source.data() + pair.source, {sample.element});
    }
    RC_ASSERT(some == plain);
  };
  check(0, relation.elements());
  for (int k = 0; k < 4; ++k) {
    const auto [first, last] = draw_stretch(relation.elements());
    check(first, last);
  }
}

RC_GTEST_PROP(Assembler, stretches_that_make_the_whole, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  Field source(sample.pairs, &OffsetPair::source, sample.element, true);
  Field expected(sample.pairs, &OffsetPair::destination, sample.element, false);
  auto arrived = expected;
  move(sample.pairs, sample.element, {}, expected.data(), source.data());
  const Assembler assembler(relation, draw_options());
  const Disassembler disassembler(relation, draw_options());
  Indices cuts{0, relation.elements()};
  for (Index k = draw(0, 5); k > 0; --k) cuts.push_back(draw(0, relation.elements()));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::size_t> turns(cuts.size() - 1);  // stretches may come in any order
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  if (chance(50)) std::reverse(turns.begin(), turns.end());
  for (const auto k : turns) {
    const Index first = cuts[k], last = cuts[k + 1];
    Bytes message(std::size_t((last - first) * sample.element + 2 * Field::guard), untouched);
    assembler.run(message.data() + Field::guard, source.data(), first, last);
    for (Index e = first; e < last; ++e)
      RC_ASSERT(std::memcmp(message.data() + Field::guard + (e - first) * sample.element,
                            source.data() + sample.pairs[std::size_t(e)].source, std::size_t(sample.element)) == 0);
    for (Index g = 0; g < Field::guard; ++g)
      RC_ASSERT(message[std::size_t(g)] == untouched && message[message.size() - 1 - std::size_t(g)] == untouched);
    disassembler.run(arrived.data(), message.data() + Field::guard, first, last);
  }
  RC_ASSERT(arrived == expected);
}

RC_GTEST_PROP(RelationProgram, reduces_in_message_order, ()) {
  const auto type = *rc::gen::element(ElementType::float32, ElementType::int8, ElementType::uint16,
                                      ElementType::complex64, ElementType::float64);
  const auto op = chance(50) ? ReduceOp::add : ReduceOp::multiply;
  const Reduction reduction(type, op);
  const auto sample = any_sample(draw, element_size(type));  // destinations that overlap, even by halves
  const auto relation = draw_form(sample, reduction);
  Field source(sample.pairs, &OffsetPair::source, sample.element, true);
  Field expected(sample.pairs, &OffsetPair::destination, sample.element, true);
  auto compiled = expected, plain = expected, halves = expected, stretches = expected, decoded = expected;
  move(sample.pairs, sample.element, reduction, expected.data(), source.data());
  relation.move_plain(plain.data(), source.data());
  RelationProgram(relation).run(compiled.data(), source.data());
  Bytes message(std::size_t(relation.bytes()) + 1);
  Assembler(relation).run(message.data(), source.data());
  Disassembler(relation).run(halves.data(), message.data());
  const Index cut = draw(0, relation.elements());
  const RelationProgram program(relation);
  program.run(0, cut, stretches.data(), source.data()),
      program.run(cut, relation.elements(), stretches.data(), source.data());
  for (const auto kind : encoding_kinds()) {
    auto moved = decoded;
    const Encoding encoding(relation, kind);
    encoding.disassemble(moved.data(), message.data(), 0, relation.elements());
    RC_ASSERT(moved == expected);
    RC_ASSERT(encoding.decode() == relation);
    RC_ASSERT(encoding.decode().reduction() == reduction);
  }
  RC_ASSERT(plain == expected);
  RC_ASSERT(compiled == expected);
  RC_ASSERT(halves == expected);
  RC_ASSERT(stretches == expected);
}

// --- encodings

RC_GTEST_PROP(Encoding, every_kind_is_the_relation, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  for (const auto kind : encoding_kinds()) {
    RC_LOG() << encoding_name(kind) << '\n';
    const Encoding encoding(relation, kind);
    RC_ASSERT(encoding.kind() == kind && encoding.elements() == relation.elements() &&
              encoding.element_bytes() == sample.element);
    const auto decoded = encoding.decode();
    RC_ASSERT(decoded.pairs() == sample.pairs);
    RC_ASSERT(decoded == relation);
    const auto [first, last] = draw_stretch(relation.elements());
    RC_ASSERT(pairs_of(*encoding.reader(first, last)) == slice(sample.pairs, first, last));
    RC_ASSERT_THROWS_AS(encoding.reader(0, relation.elements() + 1), Error);
    std::string reason;
    RC_ASSERT(encoding.validate(reason));
    const auto stored = encoding.to_bytes();
    RC_ASSERT(Index(stored.size()) % 8 == 0);
    const auto again = Encoding::from_bytes(stored);
    RC_ASSERT(again == encoding && again.to_bytes() == stored);
    RC_ASSERT(again.encoded_bytes() == encoding.encoded_bytes() && again.symbols() == encoding.symbols());
    RC_ASSERT(again.distinct_symbols() == encoding.distinct_symbols() &&
              encoding.distinct_symbols() <= encoding.symbols());
    RC_ASSERT(again.decode().pairs() == sample.pairs);
  }
}

RC_GTEST_PROP(Encoding, executes_as_the_compiled_halves_do, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  const Encoding encoding(relation, *rc::gen::elementOf(encoding_kinds()));
  const auto [first, last] = draw_stretch(relation.elements());
  Field source(sample.pairs, &OffsetPair::source, sample.element, true);
  Field expected(sample.pairs, &OffsetPair::destination, sample.element, false);
  auto moved = expected;
  Bytes message(std::size_t((last - first) * sample.element + 2 * Field::guard), untouched), compiled = message;
  Assembler(relation).run(compiled.data() + Field::guard, source.data(), first, last);
  encoding.assemble(message.data() + Field::guard, source.data(), first, last);
  RC_ASSERT(message == compiled);
  move(slice(sample.pairs, first, last), sample.element, {}, expected.data(), source.data());
  encoding.disassemble(moved.data(), message.data() + Field::guard, first, last);
  RC_ASSERT(moved == expected);
}

RC_GTEST_PROP(Encoding, automatic_takes_what_is_soon_decoded, ()) {
  const auto sample = draw_sample();
  const auto relation = draw_form(sample);
  const auto chosen = Encoding::automatic(relation);
  RC_ASSERT(chosen.decode().pairs() == sample.pairs);
  RC_ASSERT(chosen.predicted_decode_ns() <= 1.3 * Encoding(relation, EncodingKind::aapair).predicted_decode_ns() + 20);
}

}  // namespace
}  // namespace longshore::test
