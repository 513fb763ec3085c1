#include "ranks/lookup.hpp"

#include <algorithm>

#include "ranks/make.hpp"

namespace longshore {

namespace {

constexpr Index steps_a_shortcut = 8;

}  // namespace

RankLookup::Hash::Hash(const RankMap& map) {
  const Members members(map);
  Index highest = -1;
  lowest = map.world();
  members.each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values) lowest = std::min(lowest, w), highest = std::max(highest, w);
  });
  const Index hashed = map.size() + map.size() / 7 + 1, own = std::max<Index>(highest - lowest + 1, 0);
  const int bits = FixedIntegers::bits_of(map.size());
  own_places = FixedIntegers::bytes_of(own, bits) <= FixedIntegers::bytes_of(hashed, bits + tag_bits);
  slots = own_places ? FixedIntegers(own, bits) : FixedIntegers(hashed, bits + tag_bits);
  members.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index w : values) {
      ++first;
      if (own_places) {
        slots.set(w - lowest, first);
        continue;
      }
      auto [slot, tag] = place_of(w);
      while (slots[slot] != 0) slot = next(slot);
      slots.set(slot, first << tag_bits | tag);
    }
  });
}

RankLookup::Hash::Place RankLookup::Hash::place_of(Index w) const {
  auto mixed = (std::uint64_t(w) ^ std::uint64_t(w) >> 23) * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u;
  // The high bits say where, the low ones are the tag.
  return {Index((unsigned __int128)(mixed)*std::uint64_t(slots.size()) >> 64), Index(mixed & ((1 << tag_bits) - 1))};
}

Index RankLookup::Hash::find(const RankMap& map, Index w) const {
  if (own_places) {
    const Index place = w - lowest;
    return place < 0 || place >= slots.size() ? nobody : slots[place] - 1;
  }
  const auto [first, tag] = place_of(w);
  for (Index slot = first;; slot = next(slot)) {
    const Index kept = slots[slot];
    if (kept == 0) return nobody;
    if ((kept & ((1 << tag_bits) - 1)) == tag && map.select((kept >> tag_bits) - 1) == w) return (kept >> tag_bits) - 1;
  }
}

RankLookup::Shortcuts::Shortcuts(const RankMap& map) {
  auto members = map.to_vector();
  std::sort(members.begin(), members.end());
  set = ranks::make_trusted(Members(members), map.world(), Strategy::hybrid());
  const auto n = std::size_t(map.size());
  std::vector<Index> next(n);
  for (std::size_t i = 0; i < n; ++i) next[i] = set.rank(map.select(Index(i)));
  // Along each cycle longer than a shortcut, every eighth position gets a way back to the one eight steps before.
  std::vector<Index> to(n, nobody);
  std::vector<bool> seen(n);
  std::vector<Index> cycle;
  for (std::size_t begin = 0; begin < n; ++begin) {
    cycle.clear();
    for (auto i = begin; !seen[i]; i = std::size_t(next[i])) seen[i] = true, cycle.push_back(Index(i));
    const auto length = Index(cycle.size());
    if (length <= steps_a_shortcut) continue;
    for (Index k = 0; k < length; k += steps_a_shortcut) {
      const Index before = k == 0 ? (length - 1) / steps_a_shortcut * steps_a_shortcut : k - steps_a_shortcut;
      to[std::size_t(cycle[std::size_t(k)])] = cycle[std::size_t(before)];
    }
  }
  std::vector<std::uint64_t> words(static_cast<std::size_t>(Bitmap::words_of(Index(n))));
  std::vector<Index> ways;
  for (std::size_t i = 0; i < n; ++i)
    if (to[i] != nobody) words[i / 64] |= std::uint64_t{1} << (i % 64), ways.push_back(to[i]);
  marked = Bitmap(std::move(words), Index(n), Bitmap::Find::ones);
  back = FixedIntegers::of(ways);
}

Index RankLookup::Shortcuts::find(const RankMap& map, Index w) const {
  const Index position = set.rank(w);
  if (position == nobody) return nobody;
  // From the position in the set, the cycle leads to the one before it: forwards, but for one jump back.
  bool jumped = false;
  for (Index i = position;;) {
    const Index value = map.select(i);
    if (value == w) return i;
    if (!jumped && marked.test(i)) {
      i = back[marked.rank(i)];
      jumped = true;
    } else {
      i = set.rank(value);
    }
  }
}

RankLookup::RankLookup(const RankMap& map, LookupKind kind) : kind_(kind) {
  if (kind == LookupKind::hash) hash_ = std::make_unique<const Hash>(map);
  if (kind == LookupKind::shortcuts) shortcuts_ = std::make_unique<const Shortcuts>(map);
  if (hash_) hash_bytes_ = hash_->bytes();
}

Index RankLookup::find(const RankMap& map, Index w) const {
  if (shortcuts_) return shortcuts_->find(map, w);
  if (kind_ == LookupKind::lazy)
    std::call_once(once_, [&] {
      hash_ = std::make_unique<const Hash>(map);
      hash_bytes_ = hash_->bytes();
    });
  return hash_->find(map, w);
}

Index RankLookup::bytes() const {
  constexpr Index own = sizeof(RankLookup) + 2 * sizeof(void*);  // with the counts of its owners
  if (!shortcuts_) return own + hash_bytes_;
  const auto& [set, marked, back] = *shortcuts_;
  return own + Index(sizeof(Shortcuts)) + set.bytes() + marked.memory_bytes() + back.memory_bytes();
}

}  // namespace longshore
