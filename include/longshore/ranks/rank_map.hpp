/// ranks: `RankMap`, which world rank a group member is, in the representation that suits it.
///
///   const auto group = RankMap::of(list, world);   // how it is kept is chosen: `strategy.hpp` says how
///   group.world_rank(3), group.rank(w);            // SELECT and RANK
///
/// `rank_groups.hpp` has the algebra of groups, `rank_module.hpp` shows how to add a representation.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "longshore/ranks/affine_nest.hpp"

namespace longshore {

struct Strategy;
class RankModule;
class RankLookup;  ///< an index for `rank`
using Modules = std::vector<const RankModule*>;

/// What is kept of a map that has no closed form: one of the library's own forms, or what a module keeps
/// (`CustomForm`).
struct RankForm {
  static constexpr std::uint8_t custom = 0;
  static constexpr Index counts_bytes = 2 * sizeof(void*);  ///< of the maps that share it
  const std::uint8_t which = custom;
};

/// As MPI_Group_compare says it.
enum class Comparison {
  identical,  ///< the same members in the same order
  similar,    ///< the same members in another order
  unequal,
};

/// An index for `rank` on maps whose ranks do not ascend and
/// whose representation cannot answer. Maps that can need none.
enum class LookupKind {
  none,       ///< members are looked through, one after the other
  lazy,       ///< `hash`, when `rank` is asked for the first time
  hash,       ///< a table of group ranks: about 27 bits a member
  shortcuts,  ///< a shortcut for each eight steps on a cycle: about 4 bits a member, a few times as slow
};

/// An immutable value, cheap to copy: distinct ranks of a world of up to 2^40, in an order. Group rank i is world rank
/// `world_rank(i)`. Copies, and maps made of other maps, share what they have in common.
class RankMap {
 public:
  static constexpr Index largest_world = Index{1} << 40;

  /// Of nobody, in a world of nobody.
  RankMap() = default;
  /// Of these ranks in this order. Throws `Error(argument)` where one is outside [0, world) or comes twice.
  static RankMap of(std::span<const Index> members, Index world, const Strategy& strategy);
  static RankMap of(std::span<const Index> members, Index world);
  /// The same, given as runs one after the other, which are not enumerated where that can be avoided.
  static RankMap of_runs(std::span<const AffineRun> runs, Index world, const Strategy& strategy);
  static RankMap of_runs(std::span<const AffineRun> runs, Index world);
  static RankMap whole(Index world) { return of_nest(AffineNest::stride(0, world, 1), world); }
  static RankMap of_nest(AffineNest nest, Index world);
  /// Member i is the member at position `positions.world_rank(i)` of the parent, whose representation is shared: a
  /// re-ordered group keeps its parent's set and a permutation, a child what it takes of its parent. A chain of more
  /// than two is flattened. `positions` is of a world of parent.size().
  static RankMap child(const RankMap& parent, const RankMap& positions);

  Index size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Index world() const { return world_; }
  /// Whether ranks ascend, so that the map is a set in its natural order.
  bool ascending() const { return ascending_; }

  /// The lowest and the highest member; {0, -1} of nobody. Of maps
  /// that do not ascend and are no closed forms, by a look at all.
  std::pair<Index, Index> extent() const;

  /// SELECT: the world rank of a member. Throws `Error(argument)` outside [0, size()).
  Index world_rank(Index i) const {
    if (i < 0 || i >= size_) refuse_position(i);
    return select(i);
  }
  /// The same unchecked.
  Index select(Index i) const {
    if (const auto* nest = std::get_if<AffineNest>(&form_)) return nest->select(i);
    return array_ != nullptr ? array_[i] : select_form(i);
  }
  Index operator[](Index i) const { return select(i); }
  /// RANK: the position of a world rank, or `nobody`.
  Index rank(Index w) const;
  bool contains(Index w) const { return rank(w) != nobody; }
  /// In bulk. Throw `Error(argument)` for the first position that is outside; ranks of no member become `nobody`.
  void world_ranks(std::span<const Index> positions, std::span<Index> out) const;
  void ranks(std::span<const Index> world_ranks, std::span<Index> out) const;
  /// Members [first, first + n) in order, faster than one by one.
  void read(Index first, Index n, Index* out) const;
  std::vector<Index> to_vector() const;

  /// Members first, first + step, ... below `last`.
  RankMap slice(Index first, Index last, Index step = 1) const;
  /// The same map with such an index, shared otherwise. Where none is needed, nothing is made.
  RankMap with_lookup(LookupKind kind) const;
  LookupKind lookup() const;

  /// What is kept, with all indexes, beside this object.
  Index bytes() const;
  std::string_view representation() const;
  /// In closed form, or nullptr.
  const AffineNest* nest() const { return std::get_if<AffineNest>(&form_); }

  /// Equal as maps: the same members in the same order, whatever the representation.
  bool operator==(const RankMap& other) const;

  /// Version, representation, content, checksum; the same on every machine. Of an index only its kind is kept.
  std::vector<std::byte> to_bytes() const;
  /// What `to_bytes` wrote. Throws `Error(argument)` saying what is wrong; never trusts a length, a rank or a link. A
  /// few bytes can stand for many members, and checking takes time for each: bytes from strangers are given a bound.
  static RankMap from_bytes(std::span<const std::byte> bytes, Index most_members = std::numeric_limits<Index>::max());
  /// The same; what a module has written is read by the one of these that has its name, and otherwise by those that
  /// come with the library.
  static RankMap from_bytes(std::span<const std::byte> bytes, Index most_members, const Modules& modules);
  /// False, and why, where ranks are outside the world, come twice, or are not found where they are.
  bool validate(std::string& reason) const;

  class Iterator;
  Iterator begin() const;
  Iterator end() const;

  using Form = std::variant<AffineNest, std::shared_ptr<const RankForm>>;
  /// For those who make maps: trusted with `form` being of distinct ranks below `world`.
  RankMap(Form form, Index world, bool ascending);
  const Form& form() const { return form_; }

 private:
  Index select_form(Index i) const;
  Index search(Index w) const;
  [[noreturn]] void refuse_position(Index i) const;

  Form form_;
  /// the members, where they are kept as such: nothing is faster, a call would be felt
  const std::int32_t* array_ = nullptr;
  Index size_ = 0, world_ = 0;
  bool ascending_ = true;
  std::shared_ptr<const RankLookup> lookup_;
};

/// Random access; what it gives is a value, not a reference.
class RankMap::Iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = Index;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Index;

  Iterator() = default;
  Iterator(const RankMap* map, Index at) : map_(map), at_(at) {}
  Index operator*() const { return map_->select(at_); }
  Index operator[](difference_type n) const { return map_->select(at_ + n); }
  Iterator& operator++() { return ++at_, *this; }
  Iterator operator++(int) { return {map_, at_++}; }
  Iterator& operator--() { return --at_, *this; }
  Iterator operator--(int) { return {map_, at_--}; }
  Iterator& operator+=(difference_type n) { return at_ += n, *this; }
  Iterator& operator-=(difference_type n) { return at_ -= n, *this; }
  friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
  friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
  friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) { return a.at_ - b.at_; }
  bool operator==(const Iterator& other) const { return at_ == other.at_; }
  auto operator<=>(const Iterator& other) const { return at_ <=> other.at_; }

 private:
  const RankMap* map_ = nullptr;
  Index at_ = 0;
};

inline RankMap::Iterator RankMap::begin() const { return {this, 0}; }
inline RankMap::Iterator RankMap::end() const { return {this, size_}; }

}  // namespace longshore
