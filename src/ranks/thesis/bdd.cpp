#include "ranks/thesis/bdd.hpp"

#include <bit>
#include <cmath>

#include "sequences/stored_words.hpp"

namespace longshore::thesis {

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

Bdd::Bdd(std::span<const BddPath> paths, int bits)
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

Index Bdd::first_one(Index first, Index last, int bit) const {
  while (first < last) {
    const Index middle = first + (last - first) / 2;
    if (ones_[middle] >> bit & 1)
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

Index Bdd::members(Index first, Index last, int bit) const {
  Index sum = 0;
  for (Index p = first; p < last; ++p) sum += Index{1} << std::popcount(std::uint64_t(free_[p]) & below(bit));
  return sum;
}

Index Bdd::select(Index i) const {
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

std::optional<Index> Bdd::rank(Index w) const {
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
struct Bdd::Reader {
  const Bdd& form;
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

void Bdd::read(Index first, Index n, Index* out) const {
  Reader{*this, first, n, out}.below_bit(0, ones_.size(), int(below_.size()) - 1, 0);
}

std::optional<std::vector<std::uint64_t>> Bdd::words() const {
  WordWriter out;
  out.index(below_.size() - 1), out.index(ones_.size());
  for (Index p = 0; p < ones_.size(); ++p) out.index(ones_[p]), out.index(free_[p]);
  return out.words();
}

bool Bdd::check(Index world, bool ascending) const {
  // Paths share no member, and SELECT goes through them upwards.
  if (size() > 0 && (!ascending || select(size() - 1) >= world))
    throw Error(ErrorKind::argument, "bdd: ranks beyond the world");
  return true;
}

namespace {

/// The paths of what intervals have in [base, base + 2^bit), appended to those that are there.
class PathFinder {
 public:
  PathFinder(std::vector<BddPath>& out, Index most) : out_(out), most_(std::size_t(most)) {}

  void find(std::span<const Interval> intervals, Index base, int bit, BddPath path) {
    if (intervals.empty() || out_.size() == most_) return;
    if (intervals[0].first <= base && intervals[0].last >= base + (Index{1} << bit)) {
      path.free |= below(bit);
      out_.push_back(path);
      return;
    }
    const Index half = (Index{1} << bit) / 2, middle = base + half;
    const auto cut = std::partition_point(intervals.begin(), intervals.end(),
                                          [middle](const Interval& i) { return i.last <= middle; });
    const auto high = intervals.subspan(std::size_t(cut - intervals.begin()));
    const bool both = !high.empty() && high[0].first < middle;
    const auto low = intervals.first(intervals.size() - high.size() + both);
    if (same(low, base, high, middle, half)) {
      path.free |= std::uint64_t(half);
      return find(low, base, bit - 1, path);
    }
    find(low, base, bit - 1, path);
    path.ones |= std::uint64_t(half);
    find(high, middle, bit - 1, path);
  }

 private:
  /// Whether intervals have the same in [a_base, a_base + length) and in [b_base, b_base + length).
  static bool same(std::span<const Interval> a, Index a_base, std::span<const Interval> b, Index b_base, Index length) {
    const auto within = [length](const Interval& i, Index base) {
      return Interval{std::max<Index>(i.first - base, 0), std::min(i.last - base, length)};
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const Interval& x, const Interval& y) { return within(x, a_base) == within(y, b_base); });
  }

  std::vector<BddPath>& out_;
  std::size_t most_;
};

/// As many as the paths of aligned blocks of powers of two that intervals of this mean length have wherever they begin.
Index likely_paths(const Analysis& a) {
  const double length = double(a.size) / double(a.ranges);
  return std::min(a.size, Index(double(a.ranges) * std::max(1.0, std::log2(length) + 0.25)));
}

int bits_of(const Analysis& a) { return std::max(1, FixedIntegers::bits_of(a.highest)); }

std::vector<Interval> intervals_of(const Members& members, const Analysis& a) {
  return a.runs.empty() ? members.intervals() : Members(a.runs).intervals();
}

class BddModule : public RankModule {
 public:
  std::string_view name() const override { return "bdd"; }
  Estimate estimate(const Members& members, const Analysis& a) const override {
    if (const char* why = no_set(a)) return Estimate::impossible(why);
    if (!buddy_available())
      return Estimate::impossible("needs the library libbdd.so.0 (Debian: apt-get install libbdd0c2)");
    // Sets of many intervals that hardly repeat are taken for what they are likely to have.
    constexpr Index few = 2048, many = Index{1} << 20;
    const bool looked = a.ranges <= (a.nest || a.repetitive ? many : few);
    const int bits = bits_of(a);
    const Index most = looked ? Bdd::most_paths : Bdd::most_paths / 2;
    const Index paths =
        looked ? Index(plain_bdd_paths(intervals_of(members, a), bits, most + 1).size()) : likely_paths(a);
    if (paths > most) return Estimate::impossible("no diagram of few paths");
    return Estimate::of(a, Bdd::bytes_of(paths, bits), 150 + 4.5 * double(paths), 200 + 8.5 * double(paths), 0,
                        (looked ? "" : "about ") + std::to_string(paths) + " paths");
  }
  RankMap::Form build(const Members& members, const Analysis& a) const override {
    const auto paths = bdd_paths_by_buddy(intervals_of(members, a), bits_of(a), Bdd::most_paths);
    return custom(std::make_shared<Bdd>(paths, bits_of(a)));
  }
  std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> words, Index size, Index) const override {
    WordReader in(words, "the rank map");
    const Index bits = in.within(1, 40, "a number of bits"), n = in.count(2);
    if (n > Bdd::most_paths)
      in.refuse("has " + std::to_string(n) + " paths, more than " + std::to_string(Bdd::most_paths));
    std::vector<BddPath> paths(std::size_t(n), BddPath{});
    Index members = 0;
    for (auto& [ones, free] : paths) {
      ones = in.word(), free = in.word();
      if ((ones & free) != 0 || (ones | free) >> bits != 0) in.refuse("has a path that is none");
      members = checked_add(members, Index{1} << std::popcount(free));
    }
    in.end();
    if (members != size) in.refuse("has paths of another number of members");
    return std::make_shared<Bdd>(paths, int(bits));
  }
};

}  // namespace

std::vector<BddPath> plain_bdd_paths(std::span<const Interval> intervals, int bits, Index most) {
  std::vector<BddPath> paths;
  PathFinder(paths, most).find(intervals, 0, bits, {0, 0});
  return paths;
}

const RankModule& bdd_module() {
  static const BddModule module;
  return module;
}

}  // namespace longshore::thesis
