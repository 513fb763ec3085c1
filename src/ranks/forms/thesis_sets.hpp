/// The thesis's representations of sets, as it defines them: gap
/// encoding (section 4.1.4), bitmap (4.1.3), BDD paths (4.1.2).
#pragma once

#include "ranks/forms/common.hpp"

namespace longshore::ranks {

/// Gaps in as many bits as the largest needs, and their sums before each block of 32.
class GapForm {
 public:
  static constexpr std::string_view name = "gap";
  static constexpr Index block = 32;
  explicit GapForm(const Members& members);
  static Index bytes_of(Index size, Index largest_gap, Index highest);

  Index size() const { return gaps_.size(); }
  Index select(Index i) const {
    Index value = sums_[i / block];
    for (Index k = i / block * block + 1; k <= i; ++k) value += gaps_[k];
    return value;
  }
  Index rank(Index) const { return unknown; }
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return gaps_.memory_bytes() + sums_.memory_bytes(); }
  void write(WordWriter& out) const;
  static GapForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead&) const { return Checked::structure; }

 private:
  GapForm() = default;
  FixedIntegers gaps_;  ///< gap 0 is not used
  FixedIntegers sums_;  ///< the first member of each block
};

/// A bit for each rank from the first member to the last, sums before each block of 1024 bits, found by bisection;
/// inside a block by counting.
class SumsBitmapForm {
 public:
  static constexpr std::string_view name = "bitmap";
  static constexpr Index block = 1024;
  SumsBitmapForm(const Members& members, Index lowest, Index highest);
  static Index bytes_of(Index span) { return ceil_div(span, block) * (block / 8 + 4) + 4; }

  Index size() const { return sums_.empty() ? 0 : Index(sums_.back()); }
  Index select(Index i) const;
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return Index(words_.size() * 8 + sums_.size() * 4); }
  void write(WordWriter& out) const;
  static SumsBitmapForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

 private:
  SumsBitmapForm(Index base, std::vector<std::uint64_t> words, Index bits);
  Index base_ = 0, bits_ = 0;
  std::vector<std::uint64_t> words_;  ///< whole blocks
  std::vector<std::uint32_t> sums_;   ///< members before each block, and all
};

/// A path of a binary decision diagram that leads to true: the bits that are 1, and those that do not matter.
struct BddPath {
  std::uint64_t ones, free;
  bool operator==(const BddPath&) const = default;
};

/// The paths to true of the diagram of ascending ranges, the highest bit first; by BuDDy, under a
/// lock, which is given back as it was found. Throws `Error(argument)` where the library is missing
/// or in use by others, or there are more than `most` paths.
std::vector<BddPath> bdd_paths_by_buddy(std::span<const Interval> ranges, int bits, Index most);
bool buddy_available();

/// The paths in two bits a node, and how many members are below each power of two. Of the paths that have gone the same
/// way down to a bit, it matters to all or to none; and where it does, those with a 0 come first.
class BddForm {
 public:
  static constexpr std::string_view name = "bdd";
  static constexpr Index most_paths = Index{1} << 17;  ///< SELECT looks at each of them
  /// Paths as `bdd_paths_by_buddy` gives them. Throws `Error(argument)` where they are no paths of a diagram.
  BddForm(std::span<const BddPath> paths, int bits);
  static Index bytes_of(Index paths, int bits) {
    return 2 * FixedIntegers::bytes_of(paths, bits) + FixedIntegers::bytes_of(bits + 1, bits + 1);
  }

  Index size() const { return below_.empty() ? 0 : below_[below_.size() - 1]; }
  /// The thesis's procedure 1: the rank is put together bit by bit, and paths that go another way are left behind.
  /// Those that are left are neighbours, so that no list of them is needed.
  Index select(Index i) const;
  Index rank(Index w) const;
  void read(Index first, Index n, Index* out) const;
  Index bytes() const { return ones_.memory_bytes() + free_.memory_bytes() + below_.memory_bytes(); }
  void write(WordWriter& out) const;
  static BddForm stored(WordReader& in, const FormHead& head);
  Checked check(const FormHead& head) const;

 private:
  struct Reader;
  bool is_free(Index path, int bit) const { return free_[path] >> bit & 1; }
  /// Of paths that a bit matters to: the first that has a 1.
  Index first_one(Index first, Index last, int bit) const;
  /// Members of paths [first, last), where all bits from `bit` on are given.
  Index members(Index first, Index last, int bit) const;

  FixedIntegers ones_, free_;  ///< a field a path
  FixedIntegers below_;        ///< members below 2^i, i in [0, bits]
};

}  // namespace longshore::ranks
