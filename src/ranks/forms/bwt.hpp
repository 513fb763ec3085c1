/// Blocks of 1000 members through bzip2's block sorting (thesis
/// section 4.3.2), with the block that was decompressed last at hand.
#pragma once

#include <mutex>

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

bool bzip2_available();

class BwtForm {
 public:
  static constexpr std::string_view name = "bwt";
  static constexpr Index block = 1000;
  /// Throws `Error(argument)` where libbz2 is missing.
  BwtForm(const Members& members, Index world);
  /// With the block at hand, whether there is one yet or not.
  static Index bytes_of(Index compressed, Index size);
  /// Bytes that so many members take, compressed.
  static Index compressed_bytes(std::span<const Index> members, Index world);

  Index size() const { return size_; }
  Index select(Index i) const;
  Index rank(Index) const { return unknown; }
  void read(Index first, Index n, Index* out) const;
  Index bytes() const;
  void write(WordWriter& out) const;
  static BwtForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead&) const { return Checked::structure; }

 private:
  /// The one-block cache: questions one after the other are answered from it. Threads take turns.
  struct Last {
    std::mutex mutex;
    Index block = -1;
    std::vector<Index> members;
  };

  BwtForm(Index size, int width) : size_(size), width_(width), last_(std::make_unique<Last>()) {}
  const std::vector<Index>& members_of(Index b) const;

  Index size_;
  int width_;  ///< bytes of a member before compression: 4, or 8 where the world needs them
  std::vector<Index> ends_;
  std::vector<std::byte> data_;
  std::unique_ptr<Last> last_;
};

}  // namespace longshore::ranks
