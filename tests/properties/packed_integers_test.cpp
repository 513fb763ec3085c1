// Packed lists against the values themselves.
#include "longshore/sequences/packed_integers.hpp"

#include <algorithm>

#include "support/generators.hpp"

namespace longshore::test {
namespace {

using Scheme = PackedIntegers::Scheme;

/// Stretches of different character: what a mesh numbering looks like, and what nobody would expect.
Indices draw_values() {
  Indices values;
  for (Index stretches = draw(0, 4); stretches > 0; --stretches) {
    const Index n = *rc::gen::element<Index>(0, 1, 2, 5, 31, 100, 127, 128, 129, 260);
    const std::uint64_t step = *rc::gen::arbitrary<std::uint64_t>() >> draw(0, 63);
    const int shift = int(draw(0, 64));  // of the noise; 64: none
    std::uint64_t value =
        chance(20) ? std::uint64_t(INT64_MAX) - 3 : *rc::gen::arbitrary<std::uint64_t>() >> draw(0, 63);
    std::uint64_t noise = *rc::gen::arbitrary<std::uint64_t>();
    const bool ascending = chance(60);
    for (Index i = 0; i < n; ++i) {
      noise = noise * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t more = shift == 64 ? 0 : (noise ^ noise >> 29) >> shift;
      values.push_back(Index(value + more));
      value += ascending ? step + more : 0;
    }
  }
  return values;
}

void holds(const PackedIntegers& list, const Indices& values) {
  RC_ASSERT(list.size() == Index(values.size()));
  Indices all(values.size());
  list.read(0, list.size(), all.data());
  RC_ASSERT(all == values);
  if (values.empty()) return;
  RC_ASSERT(list.minimum() == *std::min_element(values.begin(), values.end()));
  RC_ASSERT(list.maximum() == *std::max_element(values.begin(), values.end()));
  for (int k = 0; k < 10; ++k) {
    const Index position = draw(0, list.size() - 1);
    RC_ASSERT(list[position] == values[std::size_t(position)]);
    const Index n = draw(0, list.size() - position), base = values[std::size_t(draw(0, list.size() - 1))];
    Indices stretch(std::size_t(n), 0);
    list.read(position, n, stretch.data());
    std::vector<std::uint32_t> low(std::size_t(n), 0);
    list.read(position, n, low.data(), base);
    for (Index i = 0; i < n; ++i) {
      const Index value = values[std::size_t(position + i)];
      RC_ASSERT(stretch[std::size_t(i)] == value);
      RC_ASSERT(low[std::size_t(i)] == std::uint32_t(std::uint64_t(value) - std::uint64_t(base)));
    }
  }
}

RC_GTEST_PROP(PackedIntegers, holds_what_it_was_given, ()) {
  const auto values = draw_values();
  const PackedIntegers offsets(values, Scheme::offsets), deltas(values, Scheme::deltas);
  holds(offsets, values);
  holds(deltas, values);
  const auto smallest = PackedIntegers::smallest(values);
  RC_ASSERT(smallest == offsets || smallest == deltas);
  RC_ASSERT(smallest.stored_bytes() == std::min(offsets.stored_bytes(), deltas.stored_bytes()));
}

RC_GTEST_PROP(PackedIntegers, comes_back_from_its_stored_form, ()) {
  const auto values = draw_values();
  const PackedIntegers list(values, *rc::gen::element(Scheme::offsets, Scheme::deltas));
  std::vector<std::byte> bytes(std::size_t(draw(0, 3)));
  const auto before = bytes.size();
  list.append_to(bytes);
  RC_ASSERT(Index(bytes.size() - before) == list.stored_bytes());
  bytes.push_back(std::byte{7});
  auto in = std::span<const std::byte>(bytes).subspan(before);
  const auto back = PackedIntegers::from_bytes(in);
  RC_ASSERT(in.size() == 1u);
  RC_ASSERT(back == list);
  holds(back, values);
}

RC_GTEST_PROP(PackedIntegers, damaged_bytes_are_refused_or_a_list, ()) {
  const PackedIntegers list(draw_values(), *rc::gen::element(Scheme::offsets, Scheme::deltas));
  std::vector<std::byte> bytes;
  list.append_to(bytes);
  for (Index edits = draw(1, 3); edits > 0 && !bytes.empty(); --edits) {
    const auto at =
        std::size_t(draw(0, chance(50) ? std::min<Index>(Index(bytes.size()), 20) - 1 : Index(bytes.size()) - 1));
    if (chance(20))
      bytes.resize(at);
    else
      bytes[at] = std::byte(draw(0, 255));
  }
  std::span<const std::byte> in(bytes);
  try {
    const auto read = PackedIntegers::from_bytes(in);
    std::vector<std::byte> again;
    read.append_to(again);
    RC_ASSERT(again == std::vector<std::byte>(bytes.begin(), bytes.end() - std::ptrdiff_t(in.size())));
    Indices values(std::size_t(read.size()), 0);
    read.read(0, read.size(), values.data());
    RC_ASSERT(PackedIntegers(values, read.scheme()) == read);
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::argument);
    RC_ASSERT(in.size() == bytes.size());
  }
}

}  // namespace
}  // namespace longshore::test
