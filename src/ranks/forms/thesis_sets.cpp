#include "ranks/forms/thesis_sets.hpp"

#include <bit>

#include "sequences/bit_ops.hpp"

namespace longshore::ranks {

// --- gaps

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

// --- bitmap

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
    for (const Index value : values)
      words[std::size_t(value - lowest) / 64] |= std::uint64_t{1} << ((value - lowest) % 64);
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
  if (Index(words.size()) != ceil_div(bits, block) * (block / 64))
    in.refuse("has another number of words than its bits say");
  SumsBitmapForm form(base, {words.begin(), words.end()}, bits);
  if (form.size() != head.size)
    in.refuse("has " + std::to_string(form.size()) + " bits set for " + std::to_string(head.size) + " members");
  return form;
}

Checked SumsBitmapForm::check(const FormHead& head) const {
  const Bitmap bits(words_, bits_, Bitmap::Find::ones);  // refuses bits behind the last
  if (!head.ascending || base_ + bits.size() > head.world)
    throw Error(ErrorKind::argument, "bitmap: ranks outside the world");
  return Checked::all;
}

// --- BDD

namespace {

constexpr std::uint64_t below(int bit) { return (std::uint64_t{1} << bit) - 1; }

/// Paths that agree above `bit`: that they part as those of a diagram do, and so share no member.
void check_paths(std::span<const BddPath> paths, int bit) {
  auto refuse = [] { throw Error(ErrorKind::argument, "bdd: paths that are not those of a diagram"); };
  while (paths.size() > 1) {
    if (bit-- == 0) refuse();
    const auto has = [&](std::uint64_t BddPath::*what) {
      return [=](const BddPath& path) { return bool(path.*what >> bit & 1); };
    };
    const auto free = std::count_if(paths.begin(), paths.end(), has(&BddPath::free));
    if (free == std::ptrdiff_t(paths.size())) continue;
    const auto ones = std::find_if(paths.begin(), paths.end(), has(&BddPath::ones));
    if (free != 0 || !std::all_of(ones, paths.end(), has(&BddPath::ones))) refuse();
    const auto zeros = std::size_t(ones - paths.begin());
    check_paths(paths.first(zeros), bit);
    paths = paths.subspan(zeros);
  }
}

}  // namespace

BddForm::BddForm(std::span<const BddPath> paths, int bits)
    : ones_(Index(paths.size()), bits), free_(Index(paths.size()), bits), below_(bits + 1, bits + 1) {
  check_paths(paths, bits);
  std::vector<Index> sums(std::size_t(bits) + 1);
  for (std::size_t p = 0; p < paths.size(); ++p) {
    ones_.set(Index(p), Index(paths[p].ones)), free_.set(Index(p), Index(paths[p].free));
    // Ranks of this path below 2^i: none where a bit from i on must be 1, else as many as bits below i are free.
    for (int i = 0; i <= bits; ++i)
      if (paths[p].ones >> i == 0) sums[std::size_t(i)] += Index{1} << std::popcount(paths[p].free & below(i));
  }
  for (int i = 0; i <= bits; ++i) below_.set(i, sums[std::size_t(i)]);
}

Index BddForm::first_one(Index first, Index last, int bit) const {
  while (first < last) {
    const Index middle = first + (last - first) / 2;
    if (ones_[middle] >> bit & 1)
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

Index BddForm::members(Index first, Index last, int bit) const {
  Index sum = 0;
  for (Index p = first; p < last; ++p) sum += Index{1} << std::popcount(std::uint64_t(free_[p]) & below(bit));
  return sum;
}

Index BddForm::select(Index i) const {
  Index bits = 0, high = below_.size() - 1;  // how many the answer has, found in the auxiliary structure
  while (bits < high) {
    const Index middle = bits + (high - bits) / 2;
    if (below_[middle] > i)
      high = middle;
    else
      bits = middle + 1;
  }
  Index first = 0, last = ones_.size(), value = 0;
  for (int bit = int(below_.size()) - 2; bit >= bits; --bit)
    if (!is_free(first, bit)) last = first_one(first, last, bit);
  Index alive = below_[bits];
  for (int bit = int(bits) - 1; bit >= 0; --bit) {
    Index zeros = alive / 2, middle = first;  // members that go on with a 0 here
    const bool free = is_free(first, bit);
    if (!free) middle = first_one(first, last, bit), zeros = members(first, middle, bit);
    const bool one = i >= zeros;
    if (one) i -= zeros, value |= Index{1} << bit;
    if (!free) (one ? first : last) = middle;
    alive = one ? alive - zeros : zeros;
  }
  return value;
}

Index BddForm::rank(Index w) const {
  const int bits = int(below_.size()) - 1;
  if (w < 0 || w >> bits != 0) return nobody;
  Index first = 0, last = ones_.size(), before = 0, alive = size();
  for (int bit = bits - 1; bit >= 0; --bit) {
    if (first == last) return nobody;
    Index zeros = alive / 2, middle = first;
    const bool free = is_free(first, bit), one = w >> bit & 1;
    if (!free) middle = first_one(first, last, bit), zeros = members(first, middle, bit);
    before += one ? zeros : 0;
    if (!free) (one ? first : last) = middle;
    alive = one ? alive - zeros : zeros;
  }
  return first == last ? nobody : before;
}

/// Members in ascending order, by recursion over the bits: what SELECT does for one member, for one after the other.
struct BddForm::Reader {
  const BddForm& form;
  Index skip, n;  ///< members to be left out, and then to be given
  Index* out;

  /// The members of paths [first, last) that begin with the bits of `value` above `bit`.
  void below_bit(Index first, Index last, int bit, std::uint64_t value) {
    if (n == 0 || first == last) return;
    if (skip > 0) {
      const Index members = form.members(first, last, bit);
      if (members <= skip) {
        skip -= members;
        return;
      }
    }
    if (last - first == 1) return members_of(first, bit, value);
    --bit;
    const std::uint64_t with = value | std::uint64_t{1} << bit;
    if (form.is_free(first, bit)) {
      below_bit(first, last, bit, value);
      return below_bit(first, last, bit, with);
    }
    const Index middle = form.first_one(first, last, bit);
    below_bit(first, middle, bit, value);
    below_bit(middle, last, bit, with);
  }

  /// One path: its free bits count, around those that are not.
  void members_of(Index p, int bit, std::uint64_t value) {
    const std::uint64_t free = std::uint64_t(form.free_[p]) & below(bit);
    value |= std::uint64_t(form.ones_[p]) & below(bit);
    std::uint64_t part = 0;
    for (std::uint64_t rest = free; skip > 0; rest &= rest - 1, skip >>= 1)
      if (skip & 1) part |= rest & -rest;
    do {
      *out++ = Index(value | part), --n;
      part = (part - free) & free;
    } while (n > 0 && part != 0);
  }
};

void BddForm::read(Index first, Index n, Index* out) const {
  Reader{*this, first, n, out}.below_bit(0, ones_.size(), int(below_.size()) - 1, 0);
}

void BddForm::write(WordWriter& out) const {
  out.index(below_.size() - 1), out.index(ones_.size());
  for (Index p = 0; p < ones_.size(); ++p) out.index(ones_[p]), out.index(free_[p]);
}

BddForm BddForm::stored(WordReader& in, const FormHead& head) {
  const Index bits = in.within(1, 40, "a number of bits");
  const Index n = in.count(2);
  if (n > most_paths) in.refuse("has " + std::to_string(n) + " paths, more than " + std::to_string(most_paths));
  std::vector<BddPath> paths(std::size_t(n), BddPath{});
  Index size = 0;
  for (auto& path : paths) {
    path.ones = in.word(), path.free = in.word();
    if ((path.ones & path.free) != 0 || (path.ones | path.free) >> bits != 0) in.refuse("has a path that is none");
    size = checked_add(size, Index{1} << std::popcount(path.free));
  }
  if (size != head.size) in.refuse("has paths of another number of members");
  return BddForm(paths, int(bits));
}

Checked BddForm::check(const FormHead& head) const {
  // Paths share no member, and SELECT goes through them upwards.
  if (size() > 0 && (!head.ascending || select(size() - 1) >= head.world))
    throw Error(ErrorKind::argument, "bdd: ranks beyond the world");
  return Checked::all;
}

}  // namespace longshore::ranks
