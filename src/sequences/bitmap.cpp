#include "longshore/sequences/bitmap.hpp"

#include <bit>
#include <string>

#include "sequences/bit_ops.hpp"

namespace longshore {

Bitmap::Bitmap(std::vector<std::uint64_t> words, Index bits, Find find)
    : words_(std::move(words)), bits_(bits), ops_(&bit_ops()) {
  if (bits < 0 || Index(words_.size()) < ceil_div(bits, 64))
    throw Error(ErrorKind::argument,
                "a bitmap of " + std::to_string(bits) + " bits has " + std::to_string(words_.size()) + " words");
  if ((bits % 64 != 0 && words_[std::size_t(bits / 64)] >> (bits % 64) != 0) ||
      std::any_of(words_.begin() + ceil_div(bits, 64), words_.end(), [](std::uint64_t word) { return word != 0; }))
    throw Error(ErrorKind::argument, "a bitmap of " + std::to_string(bits) + " bits has bits set behind its last");
  words_.resize(std::size_t(words_of(bits)));
  const Index blocks = this->blocks();
  std::vector<std::uint32_t> ones_at, zeros_at;
  counts_.reserve(std::size_t(blocks) + 1);
  auto samples = [&](std::vector<std::uint32_t>& at, Index before, Index here, Index b) {
    for (Index k = ceil_div(before, sample) * sample; k < before + here; k += sample) at.push_back(std::uint32_t(b));
  };
  for (Index b = 0; b < blocks; ++b) {
    counts_.push_back(std::uint32_t(ones_));
    const Index here = std::min(block_bits, bits - b * block_bits);
    const Index ones = ops_->count(words_.data() + b * block_words, int(here));
    samples(ones_at, ones_, ones, b);
    if (find == Find::both) samples(zeros_at, b * block_bits - ones_, here - ones, b);
    ones_ += ones;
    if (ones_ > most || (find == Find::both && (b + 1) * block_bits - ones_ > most))
      throw Error(ErrorKind::argument, "a bitmap of " + std::to_string(bits) + " bits has more than " +
                                           std::to_string(most) + " ones or zeros");
  }
  counts_.push_back(std::uint32_t(ones_));
  const auto last = std::uint32_t(std::max<Index>(blocks, 1) - 1);
  ones_at.push_back(last);
  if (find == Find::both) zeros_at.push_back(last);
  counts_.reserve(counts_.size() + ones_at.size() + zeros_at.size());
  for (const auto* list : {&ones_at, &zeros_at}) counts_.insert(counts_.end(), list->begin(), list->end());
}

Index Bitmap::bytes_of(Index bits, Index ones, Find find) {
  Index counts = ceil_div(bits, block_bits) + 1 + ceil_div(ones, sample) + 1;
  if (find == Find::both) counts += ceil_div(bits - ones, sample) + 1;
  return 8 * words_of(bits) + 4 * counts;
}

Index Bitmap::memory_bytes() const { return Index(8 * words_.size() + 4 * counts_.size()); }

Index Bitmap::rank(Index i) const {
  const Index b = i / block_bits;
  const int within = int(i % block_bits);
  // Behind the last block there are no words to count.
  return b == blocks() ? before()[b] : before()[b] + ops_->count(words_.data() + b * block_words, within);
}

Index Bitmap::select(Index k) const {
  const auto* at = one_at() + k / sample;
  return ops_->find_one({words_.data(), before()}, k, at[0], at[1]);
}

Index Bitmap::select_zero(Index k) const {
  const auto* at = zero_at() + k / sample;
  return ops_->find_zero({words_.data(), before()}, k, at[0], at[1]);
}

}  // namespace longshore
