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
  const Index blocks = ceil_div(bits, block_bits);
  before_.reserve(std::size_t(blocks) + 1);
  auto samples = [&](std::vector<std::uint32_t>& at, Index before, Index here, Index b) {
    for (Index k = ceil_div(before, sample) * sample; k < before + here; k += sample) at.push_back(std::uint32_t(b));
  };
  for (Index b = 0; b < blocks; ++b) {
    before_.push_back(std::uint32_t(ones_));
    const Index here = std::min(block_bits, bits - b * block_bits);
    const Index ones = ops_->count(words_.data() + b * block_words, int(here));
    samples(one_at_, ones_, ones, b);
    if (find == Find::both) samples(zero_at_, b * block_bits - ones_, here - ones, b);
    ones_ += ones;
    if (ones_ > most || (find == Find::both && (b + 1) * block_bits - ones_ > most))
      throw Error(ErrorKind::argument, "a bitmap of " + std::to_string(bits) + " bits has more than " + std::to_string(most) +
                                           " ones or zeros");
  }
  before_.push_back(std::uint32_t(ones_));
  const auto last = std::uint32_t(std::max<Index>(blocks, 1) - 1);
  one_at_.push_back(last);
  if (find == Find::both) zero_at_.push_back(last);
  for (auto* list : {&before_, &one_at_, &zero_at_}) list->shrink_to_fit();
}

Index Bitmap::bytes_of(Index bits, Index ones, Find find) {
  Index counts = ceil_div(bits, block_bits) + 1 + ceil_div(ones, sample) + 1;
  if (find == Find::both) counts += ceil_div(bits - ones, sample) + 1;
  return 8 * words_of(bits) + 4 * counts;
}

Index Bitmap::memory_bytes() const {
  return Index(8 * words_.size() + 4 * (before_.size() + one_at_.size() + zero_at_.size()));
}

Index Bitmap::rank(Index i) const {
  const auto b = std::size_t(i / block_bits);
  const int within = int(i % block_bits);
  // Behind the last block there are no words to count.
  return b + 1 == before_.size() ? before_[b] : before_[b] + ops_->count(words_.data() + Index(b) * block_words, within);
}

Index Bitmap::select(Index k) const {
  const auto s = std::size_t(k / sample);
  return ops_->find_one({words_.data(), before_.data()}, k, one_at_[s], one_at_[s + 1]);
}

Index Bitmap::select_zero(Index k) const {
  const auto s = std::size_t(k / sample);
  return ops_->find_zero({words_.data(), before_.data()}, k, zero_at_[s], zero_at_[s + 1]);
}

}  // namespace longshore
