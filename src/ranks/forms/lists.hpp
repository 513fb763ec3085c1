/// Lists that can be of any order: an int array, bits packed, and blocks along lines.
#pragma once

#include <cmath>

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// The canonical representation: 32 bits a member, or 64 where the world needs them.
class ArrayForm {
 public:
  static constexpr std::string_view name = "array";
  ArrayForm(const Members& members, Index world);
  static Index bytes_of(Index size, Index world) { return size * (world > INT32_MAX ? 8 : 4); }

  Index size() const { return Index(narrow_.empty() ? wide_.size() : narrow_.size()); }
  Index select(Index i) const { return wide_.empty() ? Index(narrow_[std::size_t(i)]) : wide_[std::size_t(i)]; }
  Index rank(Index) const { return unknown; }
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return Index(4 * narrow_.size() + 8 * wide_.size()); }
  /// The members in 32 bits, or nullptr.
  const std::int32_t* narrow() const { return wide_.empty() ? narrow_.data() : nullptr; }
  void write(WordWriter& out) const;
  static ArrayForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead&) const { return Checked::structure; }

 private:
  std::vector<std::int32_t> narrow_;
  std::vector<Index> wide_;
};

/// The thesis's optimized array: each member in as many bits as the world needs.
class PackedForm {
 public:
  static constexpr std::string_view name = "packed";
  PackedForm(const Members& members, Index world);
  static Index bytes_of(Index size, Index world) {
    return FixedIntegers::bytes_of(size, FixedIntegers::bits_of(std::max<Index>(world, 1) - 1));
  }

  Index size() const { return values_.size(); }
  Index select(Index i) const { return values_[i]; }
  Index rank(Index) const { return unknown; }
  void read(Index first, Index n, Index* out) const { read_each(*this, first, n, out); }
  Index bytes() const { return values_.memory_bytes(); }
  void write(WordWriter& out) const { write_fixed(out, values_); }
  static PackedForm stored(WordReader& in, const FormHead& head) { return PackedForm(read_fixed(in, head.size)); }
  Checked check(const FormHead&) const { return Checked::structure; }

 private:
  explicit PackedForm(FixedIntegers values) : values_(std::move(values)) {}
  FixedIntegers values_;
};

/// A line through a block of up to 128 values, and the bits that what is left over needs.
struct LineFit {
  Index base;  ///< of the line, less the lowest residual
  float slope;
  int width;
  Index at(Index k) const { return base + Index(double(slope) * double(k)); }
};
LineFit fit_line(const Index* values, Index n);

/// Blocks of 128 members: a line each, and in as many bits as the block
/// needs what is added to it. A question touches a head and eight bytes.
class LinearForm {
 public:
  static constexpr std::string_view name = "linear";
  static constexpr Index block = 128;

  explicit LinearForm(const Members& members);
  /// Of a block whose residuals have so many bits.
  static constexpr Index block_bytes(int width) { return Index(sizeof(Head)) + block / 8 * width; }

  Index size() const { return size_; }
  Index select(Index i) const { return at(heads_[std::size_t(i / block)], i % block); }
  Index rank(Index) const { return unknown; }
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return Index(heads_.size() * sizeof(Head) + packed_.size()); }
  void write(WordWriter& out) const;
  static LinearForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead&) const { return Checked::structure; }

 private:
  struct Head {
    Index base : 57 = 0;
    std::uint64_t width : 7 = 0;
    float slope = 0;
    std::uint32_t unit = 0;  ///< where the bits begin, in units of 16 bytes: what one bit of each of 128 takes

    Index line(Index k) const { return base + Index(double(slope) * double(k)); }
  };
  static constexpr Index unit_bytes = block / 8, spare_bytes = 8;  ///< behind the last, for loads of eight bytes
  static constexpr int most_width = 48;

  LinearForm() = default;
  Index at(const Head& head, Index k) const {
    const int width = int(head.width);
    const std::uint64_t rest = bits_at(packed_.data() + Index(head.unit) * unit_bytes, std::uint64_t(k * width));
    return head.line(k) + Index(rest & ((std::uint64_t{1} << width) - 1));
  }

  Index size_ = 0;
  std::vector<Head> heads_;
  std::vector<std::byte> packed_;
};

}  // namespace longshore::ranks
