#include "ranks/forms/thesis_sets.hpp"

#include <bit>

#include "sequences/bit_ops.hpp"

namespace longshore::ranks {

// --- gaps -----------------------------------------------------------------------------------------------------------------------

GapForm::GapForm(const Members& members) {
  Index before = -1, largest = 0, highest = 0;
  members.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index value : values) {
      if (value <= before) throw Error(ErrorKind::argument, "gap: the ranks do not ascend");
      if (first++ > 0) largest = std::max(largest, value - before);
      before = highest = value;
    }
  });
  gaps_ = FixedIntegers(members.size(), FixedIntegers::bits_of(largest));
  sums_ = FixedIntegers(ceil_div(members.size(), block), FixedIntegers::bits_of(highest));
  members.each_piece([&](Index first, std::span<const Index> values) {
    for (const Index value : values) {
      if (first % block == 0)
        sums_.set(first / block, value);
      else
        gaps_.set(first, value - before);
      before = value, ++first;
    }
  });
}

Index GapForm::bytes_of(Index size, Index largest_gap, Index highest) {
  return FixedIntegers::bytes_of(size, FixedIntegers::bits_of(largest_gap)) +
         FixedIntegers::bytes_of(ceil_div(size, block), FixedIntegers::bits_of(highest));
}

void GapForm::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  Index value = *out++ = select(first);
  for (Index i = first + 1; i < first + n; ++i) *out++ = value = i % block == 0 ? sums_[i / block] : value + gaps_[i];
}

void GapForm::write(WordWriter& out) const {
  write_fixed(out, gaps_);
  write_fixed(out, sums_);
}

GapForm GapForm::stored(WordReader& in, const FormHead& head) {
  GapForm form;
  form.gaps_ = read_fixed(in, head.size);
  form.sums_ = read_fixed(in, ceil_div(head.size, block));
  return form;
}

// --- bitmap ---------------------------------------------------------------------------------------------------------------------

SumsBitmapForm::SumsBitmapForm(Index base, std::vector<std::uint64_t> words, Index bits)
    : base_(base), bits_(bits), words_(std::move(words)) {
  constexpr Index words_a_block = block / 64;
  words_.resize(std::size_t(ceil_div(Index(words_.size()), words_a_block) * words_a_block));
  std::uint64_t sum = 0;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    if (w % words_a_block == 0) sums_.push_back(std::uint32_t(sum));
    sum += std::uint64_t(std::popcount(words_[w]));
  }
  if (sum > UINT32_MAX) throw Error(ErrorKind::argument, "bitmap: more than 2^32 members");
  sums_.push_back(std::uint32_t(sum));
}

SumsBitmapForm::SumsBitmapForm(const Members& members, Index lowest, Index highest) {
  const Index bits = members.size() == 0 ? 0 : highest - lowest + 1;
  std::vector<std::uint64_t> words(std::size_t(ceil_div(bits, 64)));
  members.each_piece([&](Index, std::span<const Index> values) {
    for (const Index value : values) words[std::size_t(value - lowest) / 64] |= std::uint64_t{1} << ((value - lowest) % 64);
  });
  *this = SumsBitmapForm(lowest, std::move(words), bits);
  if (size() != members.size()) throw Error(ErrorKind::argument, "bitmap: the ranks do not ascend");
}

Index SumsBitmapForm::select(Index i) const {
  auto b = std::size_t(std::upper_bound(sums_.begin(), sums_.end(), std::uint32_t(i)) - sums_.begin()) - 1;
  const auto& ops = bit_ops();
  const std::uint64_t* words = words_.data() + b * (block / 64);
  int within = int(i - sums_[b]);
  Index bit = Index(b) * block;
  if (const int half = ops.count(words, 512); within >= half) within -= half, words += 8, bit += 512;
  return base_ + bit + ops.select(words, within);
}

Index SumsBitmapForm::rank(Index w) const {
  const Index bit = w - base_;
  if (bit < 0 || bit >= bits_ || !(words_[std::size_t(bit / 64)] >> (bit % 64) & 1)) return nobody;
  const Index b = bit / block;
  const auto& ops = bit_ops();
  const std::uint64_t* words = words_.data() + b * (block / 64);
  const int within = int(bit % block), first = std::min(within, 512);
  return sums_[std::size_t(b)] + ops.count(words, first) + ops.count(words + 8, within - first);
}

void SumsBitmapForm::read(Index first, Index n, Index* out) const {
  if (n <= 0) return;
  const Index bit = select(first) - base_;
  auto w = std::size_t(bit / 64);
  std::uint64_t word = words_[w] >> (bit % 64) << (bit % 64);
  for (; n > 0; --n) {
    while (word == 0) word = words_[++w];
    *out++ = base_ + Index(w) * 64 + std::countr_zero(word);
    word &= word - 1;
  }
}

void SumsBitmapForm::write(WordWriter& out) const {
  out.index(base_), out.index(bits_);
  out.list(words_);
}

SumsBitmapForm SumsBitmapForm::stored(WordReader& in, const FormHead& head) {
  const Index base = in.within(0, head.world, "a base"), bits = in.within(0, head.world - base, "a number of bits");
  const auto words = in.list();
  if (Index(words.size()) != ceil_div(bits, block) * (block / 64)) in.refuse("has another number of words than its bits say");
  SumsBitmapForm form(base, {words.begin(), words.end()}, bits);
  if (form.size() != head.size)
    in.refuse("has " + std::to_string(form.size()) + " bits set for " + std::to_string(head.size) + " members");
  return form;
}

Checked SumsBitmapForm::check(const FormHead& head) const {
  const Bitmap bits(words_, bits_, Bitmap::Find::ones);  // refuses bits behind the last
  if (!head.ascending || base_ + bits.size() > head.world) throw Error(ErrorKind::argument, "bitmap: ranks outside the world");
  return Checked::all;
}

// --- BDD ------------------------------------------------------------------------------------------------------------------------

BddForm::BddForm(std::span<const BddPath> paths, int bits)
    : ones_(Index(paths.size()), bits), free_(Index(paths.size()), bits), below_(bits + 1, bits + 1) {
  std::vector<Index> below(std::size_t(bits) + 1);
  for (std::size_t p = 0; p < paths.size(); ++p) {
    ones_.set(Index(p), Index(paths[p].ones)), free_.set(Index(p), Index(paths[p].free));
    // Ranks of this path below 2^i: none where a bit from i on must be 1, else as many as bits below i are free.
    for (int i = 0; i <= bits; ++i)
      if (paths[p].ones >> i == 0)
        below[std::size_t(i)] += Index{1} << std::popcount(paths[p].free & ((std::uint64_t{1} << i) - 1));
  }
  for (int i = 0; i <= bits; ++i) below_.set(i, below[std::size_t(i)]);
}

Index BddForm::select(Index i) const {
  int bits = int(below_.size()) - 1;
  Index low = 0, high = bits;  // the highest bit that is set in the answer, found in the auxiliary structure
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (below_[middle] > i)
      high = middle;
    else
      low = middle + 1;
  }
  bits = int(low);
  struct Alive {
    std::uint64_t ones, free;
  };
  std::vector<Alive> alive;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (Index p = 0; p < ones_.size(); ++p)
    if (std::uint64_t(ones_[p]) >> bits == 0) alive.push_back({std::uint64_t(ones_[p]), std::uint64_t(free_[p]) & mask});
  Index value = 0;
  for (int j = bits - 1; j >= 0; --j) {
    const std::uint64_t bit = std::uint64_t{1} << j;
    Index zeros = 0;  // members that go on with a 0 here
    for (const auto& path : alive)
      if (!(path.ones & bit)) zeros += Index{1} << std::popcount(path.free & (bit - 1));
    const bool one = i >= zeros;
    if (one) i -= zeros, value |= Index(bit);
    std::erase_if(alive, [&](const Alive& path) { return !(path.free & bit) && bool(path.ones & bit) != one; });
  }
  return value;
}

Index BddForm::rank(Index w) const {
  const int bits = int(below_.size()) - 1;
  if (w < 0 || w >> bits != 0) return nobody;
  Index before = 0;
  bool member = false;
  for (Index p = 0; p < ones_.size(); ++p) {
    const auto ones = std::uint64_t(ones_[p]), free = std::uint64_t(free_[p]);
    bool equal = true;
    for (int j = bits - 1; j >= 0 && equal; --j) {
      const std::uint64_t bit = std::uint64_t{1} << j;
      const Index rest = Index{1} << std::popcount(free & (bit - 1));
      if (std::uint64_t(w) & bit) {
        if (!(ones & bit)) before += rest;  // those of this path with a 0 here
        equal = (ones | free) & bit;
      } else {
        equal = !(ones & bit);
      }
    }
    member |= equal;
  }
  return member ? before : nobody;
}

void BddForm::write(WordWriter& out) const {
  out.index(below_.size() - 1), out.index(ones_.size());
  for (Index p = 0; p < ones_.size(); ++p) out.index(ones_[p]), out.index(free_[p]);
}

BddForm BddForm::stored(WordReader& in, const FormHead& head) {
  const Index bits = in.within(1, 40, "a number of bits");
  std::vector<BddPath> paths(std::size_t(in.count(2)));
  if (Index(paths.size()) > most_paths) in.refuse("has more than " + std::to_string(most_paths) + " paths");
  Index size = 0;
  for (auto& path : paths) {
    path.ones = in.word(), path.free = in.word();
    if ((path.ones & path.free) != 0 || (path.ones | path.free) >> bits != 0) in.refuse("has a path that is none");
    size = checked_add(size, Index{1} << std::popcount(path.free));
  }
  for (std::size_t a = 0; a < paths.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (((paths[a].ones ^ paths[b].ones) & ~(paths[a].free | paths[b].free)) == 0) in.refuse("has paths that share a member");
  if (size != head.size) in.refuse("has paths of another number of members");
  return BddForm(paths, int(bits));
}

}  // namespace longshore::ranks
