#include "copies/marked_program.hpp"

#include <algorithm>
#include <bit>

namespace longshore {

namespace {

/// Marks must be at least so close that a cache line of places has this many: a line of marked places takes as long as
/// so many listed ones. In the first-level cache listed ones are faster.
constexpr Index marked_per_line = 2, marked_per_near_line = 3, near_bytes = Index{32} << 10;

}  // namespace

bool MarkedProgram::take(OffsetPair pair) {
  if (count_ == 0) source_ = pair.source, destination_ = pair.destination;
  if (pair.source != source_ + count_ * block_) return false;
  Index bytes;
  if (__builtin_sub_overflow(pair.destination, destination_, &bytes) || bytes < 0 || bytes % block_ != 0) return false;
  const Index at = bytes / block_;
  // Ascending; and never more memory than twice what a list as close as it must be would take.
  if (at < places_ || at > count_ * (128 / block_) + 4096) return false;
  marks_.resize(std::size_t(at / 8 + 1));
  marks_.back() = std::uint8_t(marks_.back() | 1u << at % 8);
  places_ = at + 1;
  ++count_;
  return true;
}

bool MarkedProgram::finish() {
  const Index bytes = places_ * block_;
  const Index wanted = bytes <= near_bytes ? marked_per_near_line : marked_per_line;
  if (count_ * 64 < wanted * bytes) return false;
  for (Index at = 0, n = 0; at < places_; ++at) {
    if (at % stride == 0) before_.push_back(n);
    n += marks_[std::size_t(at / 8)] >> at % 8 & 1;
  }
  marks_.resize(marks_.size() + 8);  // the kernel reads words
  marks_.shrink_to_fit();
  return true;
}

std::optional<MarkedProgram> MarkedProgram::make(const KernelTable& table, Index block, RunReader& blocks) {
  if (!table.expand || (block != 4 && block != 8)) return {};
  MarkedProgram made;
  made.block_ = block;
  OffsetRun batch[64];
  while (const std::size_t n = blocks.read(batch))
    for (std::size_t k = 0; k < n; ++k)
      if (!made.take(batch[k].at(0))) return {};
  if (made.count_ == 0 || !made.finish()) return {};
  return made;
}

Index MarkedProgram::place(Index k) const {
  const auto page = std::upper_bound(before_.begin(), before_.end(), k) - 1 - before_.begin();
  Index left = k - before_[std::size_t(page)], byte = page * (stride / 8);
  for (;; ++byte) {
    const Index here = std::popcount(marks_[std::size_t(byte)]);
    if (left < here) break;
    left -= here;
  }
  std::uint8_t marks = marks_[std::size_t(byte)];
  for (; left > 0; --left) marks = std::uint8_t(marks & (marks - 1));
  return byte * 8 + std::countr_zero(marks);
}

void MarkedProgram::run(const KernelTable& table, Stores, std::byte* destination, const std::byte* source, Index first,
                        Index last) const {
  if (first >= last) return;
  const Index from = first == 0 ? 0 : place(first), to = last == count_ ? places_ : place(last);
  table.expand(destination + destination_, source + source_ + first * block_,
               {marks_.data(), from, to, last - first, block_});
}

std::string MarkedProgram::describe() const {
  return "scatter of " + std::to_string(count_) + " x " + std::to_string(block_) + "-byte blocks, marked among " +
         std::to_string(places_);
}

}  // namespace longshore
