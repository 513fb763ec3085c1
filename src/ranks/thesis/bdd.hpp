/// Binary decision diagrams as the thesis keeps them (section 4.1.2): as their paths to true.
#pragma once

#include "longshore/sequences/fixed_integers.hpp"
#include "ranks/thesis/modules.hpp"

namespace longshore::thesis {

/// A path that leads to true: the bits that are 1, and those that do not matter.
struct BddPath {
  std::uint64_t ones, free;
  bool operator==(const BddPath&) const = default;
};

/// The paths of the diagram of ascending intervals below 2^bits, the highest bit first, that of a 0 before that of a 1;
/// by BuDDy, under a lock, which is given back as it was found. Throws `Error(argument)` where the library is missing
/// or in use by others, or there are more than `most` paths.
std::vector<BddPath> bdd_paths_by_buddy(std::span<const Interval> intervals, int bits, Index most);
bool buddy_available();
/// The same without a diagram, where halves that are equal are seen by comparing them; `most` paths where there are
/// more.
std::vector<BddPath> plain_bdd_paths(std::span<const Interval> intervals, int bits, Index most);

/// The paths in two bits a node, and how many members are below each power of two. Of the paths that have gone the same
/// way down to a bit, it matters to all or to none; and where it does, those with a 0 come first.
class Bdd : public CustomForm {
 public:
  static constexpr Index most_paths = Index{1} << 17;  ///< SELECT looks at each of them
  /// Paths as `bdd_paths_by_buddy` gives them. Throws `Error(argument)` where they are no paths of a diagram.
  Bdd(std::span<const BddPath> paths, int bits);
  static Index bytes_of(Index paths, int bits) {
    return with_form<Bdd>(2 * FixedIntegers::bytes_of(paths, bits) + FixedIntegers::bytes_of(bits + 1, bits + 1));
  }

  std::string_view name() const override { return "bdd"; }
  Index size() const override { return below_[below_.size() - 1]; }
  /// The thesis's procedure 1: the rank is put together bit by bit, and paths that go another way are left behind.
  /// Those that are left are neighbours, so that no list of them is needed.
  Index select(Index i) const override;
  std::optional<Index> rank(Index w) const override;
  void read(Index first, Index n, Index* out) const override;
  Index bytes() const override {
    return Index(sizeof *this) + ones_.memory_bytes() + free_.memory_bytes() + below_.memory_bytes();
  }
  std::optional<std::vector<std::uint64_t>> words() const override;
  bool check(Index world, bool ascending) const override;

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

}  // namespace longshore::thesis
