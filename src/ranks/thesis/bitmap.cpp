// The bitmap of section 4.1.3: a bit for each rank from the first member to the last, and sums before each block of
// 1024 bits, which are found by bisection; inside a block by counting.
#include <bit>
#include <cmath>

#include "ranks/thesis/modules.hpp"
#include "sequences/bit_ops.hpp"
#include "sequences/stored_words.hpp"

namespace longshore::thesis {

namespace {

class SumsBitmap : public CustomForm {
 public:
  static constexpr Index block = 1024, words_a_block = block / 64;

  SumsBitmap(Index base, std::vector<std::uint64_t> words, Index bits);
  static Index bytes_of(Index span) { return with_form<SumsBitmap>(ceil_div(span, block) * (block / 8 + 4) + 4); }

  std::string_view name() const override { return "bitmap"; }
  Index size() const override { return Index(sums_.back()); }
  Index select(Index i) const override;
  std::optional<Index> rank(Index w) const override;
  void read(Index first, Index n, Index* out) const override;
  Index bytes() const override { return Index(sizeof *this + words_.size() * 8 + sums_.size() * 4); }
  std::optional<std::vector<std::uint64_t>> words() const override {
    WordWriter out;
    out.index(base_), out.index(bits_), out.list(words_);
    return out.words();
  }
  bool check(Index world, bool ascending) const override;

 private:
  Index base_, bits_;
  std::vector<std::uint64_t> words_;  ///< whole blocks
  std::vector<std::uint32_t> sums_;   ///< members before each block, and all
};

SumsBitmap::SumsBitmap(Index base, std::vector<std::uint64_t> words, Index bits)
    : base_(base), bits_(bits), words_(std::move(words)) {
  words_.resize(std::size_t(ceil_div(Index(words_.size()), words_a_block) * words_a_block));
  std::uint64_t sum = 0;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    if (w % words_a_block == 0) sums_.push_back(std::uint32_t(sum));
    sum += std::uint64_t(std::popcount(words_[w]));
  }
  if (sum > UINT32_MAX) throw Error(ErrorKind::argument, "bitmap: more than 2^32 members");
  sums_.push_back(std::uint32_t(sum));
}

Index SumsBitmap::select(Index i) const {
  auto b = std::size_t(std::upper_bound(sums_.begin(), sums_.end(), std::uint32_t(i)) - sums_.begin()) - 1;
  const auto& ops = bit_ops();
  const std::uint64_t* words = words_.data() + b * words_a_block;
  int within = int(i - sums_[b]);
  Index bit = Index(b) * block;
  if (const int half = ops.count(words, 512); within >= half) within -= half, words += 8, bit += 512;
  return base_ + bit + ops.select(words, within);
}

std::optional<Index> SumsBitmap::rank(Index w) const {
  const Index bit = w - base_;
  if (bit < 0 || bit >= bits_ || !(words_[std::size_t(bit / 64)] >> (bit % 64) & 1)) return nobody;
  const Index b = bit / block;
  const auto& ops = bit_ops();
  const std::uint64_t* words = words_.data() + b * words_a_block;
  const int within = int(bit % block), first = std::min(within, 512);
  return sums_[std::size_t(b)] + ops.count(words, first) + ops.count(words + 8, within - first);
}

void SumsBitmap::read(Index first, Index n, Index* out) const {
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

bool SumsBitmap::check(Index world, bool ascending) const {
  if (!ascending || base_ + bits_ > world) throw Error(ErrorKind::argument, "bitmap: ranks outside the world");
  return true;
}

class BitmapModule : public RankModule {
 public:
  std::string_view name() const override { return "bitmap"; }
  Estimate estimate(const Members&, const Analysis& a) const override {
    if (const char* why = no_set(a)) return Estimate::impossible(why);
    if (a.span() > most_bits) return Estimate::impossible("too many bits");
    return Estimate::of(a, SumsBitmap::bytes_of(a.span()), 28 + 9 * std::log2(double(a.span()) / SumsBitmap::block + 1),
                        20, 2);
  }
  RankMap::Form build(const Members& members, const Analysis& a) const override {
    std::vector<std::uint64_t> words(std::size_t(ceil_div(a.span(), 64)));
    members.each_piece([&](Index, std::span<const Index> values) {
      for (const Index value : values)
        words[std::size_t(value - a.lowest) / 64] |= std::uint64_t{1} << ((value - a.lowest) % 64);
    });
    auto form = std::make_shared<SumsBitmap>(a.lowest, std::move(words), a.span());
    if (form->size() != a.size) throw Error(ErrorKind::argument, "bitmap: the ranks do not ascend");
    return custom(std::move(form));
  }
  std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> stored, Index, Index world) const override {
    WordReader in(stored, "the rank map");
    const Index base = in.within(0, world, "a base"), bits = in.within(0, world - base, "a number of bits");
    const auto words = in.list();
    in.end();
    if (Index(words.size()) != ceil_div(bits, SumsBitmap::block) * SumsBitmap::words_a_block)
      in.refuse("has another number of words than its bits say");
    for (Index bit = bits; bit < 64 * Index(words.size()); ++bit)
      if (words[std::size_t(bit / 64)] >> (bit % 64) & 1) in.refuse("has a member behind its last bit");
    return std::make_shared<SumsBitmap>(base, std::vector(words.begin(), words.end()), bits);
  }
};

}  // namespace

const RankModule& bitmap_module() {
  static const BitmapModule module;
  return module;
}

}  // namespace longshore::thesis
