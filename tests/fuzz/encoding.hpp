/// What must hold for any bytes whatsoever that are read as a stored encoding: an `Error` in
/// printable words, or an encoding that holds together, decodes and moves within its
/// extents. In a moment, and in memory that the bytes account for.
#pragma once

#include "fuzz/hostile.hpp"
#include "support/relations.hpp"

namespace longshore::test {

inline void check_decoded(const Encoding& encoding, const Bytes& bytes) {
  std::string reason;
  require(encoding.validate(reason), bytes, "is accepted, but does not hold together");
  require(encoding.element_bytes() >= 1 && encoding.elements() >= 0, bytes, "has no size");
  require(Encoding::from_bytes(encoding.to_bytes()).to_bytes() == encoding.to_bytes(), bytes,
          "does not survive its own bytes");
  const auto relation = encoding.decode();
  require(relation.elements() == encoding.elements(), bytes, "decodes to another number of elements");
  const Interval s = relation.source_extent(), d = relation.destination_extent();
  if (relation.elements() == 0)
    return require(s == Interval{} && d == Interval{}, bytes, "touches something with nothing");
  const Index element = relation.element_bytes(), n = relation.elements();
  for (const Index at : {Index{0}, n / 2, n - 1}) {
    const auto pair = relation.at(at);
    require(pairs_of(*encoding.reader(at, at + 1)) == Pairs{pair}, bytes, "reads what it does not decode to");
    require(pair.source >= s.first && pair.source + element <= s.last, bytes, "has a source outside its extent");
    require(pair.destination >= d.first && pair.destination + element <= d.last, bytes,
            "has a destination outside its extent");
  }
  auto in_reach = [](const Interval& extent) {
    return extent.last - extent.first <= 20000 && std::abs(extent.first) < Index{1} << 40;
  };
  if (n > 1000 || !in_reach(s) || !in_reach(d)) return;  // what no pointer gets to is not moved
  const auto pairs = relation.pairs();
  require(!encoding.reduction().is_replace() || !destinations_overlap(pairs, element), bytes, "writes bytes twice");
  Field source(pairs, &OffsetPair::source, element, true), expected(pairs, &OffsetPair::destination, element, true);
  auto executed = expected, compiled = expected;
  move(pairs, element, encoding.reduction(), expected.data(), source.data());
  Bytes message(std::size_t(n * element));
  encoding.assemble(message.data(), source.data(), 0, n);
  encoding.disassemble(executed.data(), message.data(), 0, n);
  RelationProgram(relation).run(compiled.data(), source.data());
  require(executed == expected && compiled == expected, bytes, "moves other bytes than its pairs say");
}

/// True where the bytes are an encoding.
inline bool check_encoding(const Bytes& bytes) {
  return check_read(bytes, [&] { check_decoded(Encoding::from_bytes(bytes), bytes); });
}

}  // namespace longshore::test
