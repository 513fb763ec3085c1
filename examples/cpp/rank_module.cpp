// A representation of one's own for rank maps: the processes of the lower triangle of an n x n grid, row by row, as
// those who keep a symmetric matrix want them. SELECT and RANK are a few instructions, and n is all that is kept.
#include <cmath>
#include <cstdio>
#include <vector>

#include "longshore/ranks/rank_module.hpp"

using namespace longshore;

namespace {

/// Row r has the r + 1 ranks from r n on.
class Triangle : public CustomForm {
 public:
  explicit Triangle(Index n) : n_(n) {}
  static Index size_of(Index n) { return n * (n + 1) / 2; }
  /// The row that a position is in.
  static Index row_of(Index i) {
    auto row = Index((std::sqrt(8 * double(i) + 1) - 1) / 2);
    while (size_of(row) > i) --row;
    while (size_of(row + 1) <= i) ++row;
    return row;
  }

  std::string_view name() const override { return "triangle"; }
  Index size() const override { return size_of(n_); }
  Index select(Index i) const override {
    const Index row = row_of(i);
    return row * n_ + i - size_of(row);
  }
  std::optional<Index> rank(Index w) const override {
    const Index row = w / n_, column = w % n_;
    return row < n_ && column <= row ? size_of(row) + column : nobody;
  }
  Index bytes() const override { return sizeof *this; }
  std::optional<std::vector<std::uint64_t>> words() const override { return std::vector{std::uint64_t(n_)}; }
  /// Nobody has to look at the members: they ascend, and the last one is the highest.
  bool check(Index world, bool ascending) const override {
    if (!ascending || n_ * n_ > world) throw Error(ErrorKind::argument, "triangle: ranks outside the world");
    return true;
  }

 private:
  Index n_;
};

class TriangleModule : public RankModule {
 public:
  std::string_view name() const override { return "triangle"; }
  Estimate estimate(const Members&, const Analysis& a) const override {
    const Index n = side_of(a.size);
    if (!a.ascending || a.lowest != 0 || n < 2 || a.ranges != n || a.highest != n * n - 1)
      return Estimate::impossible("the ranks are no triangle");
    return Estimate::of(a, Index(sizeof(Triangle)) + RankForm::counts_bytes, 8, 6, 0, std::to_string(n) + " rows");
  }
  RankMap::Form build(const Members& members, const Analysis& a) const override {
    auto form = std::make_shared<Triangle>(side_of(a.size));
    // The analysis left open whether each row is as long as it should be.
    members.each_piece([&](Index first, std::span<const Index> ranks) {
      for (const Index w : ranks)
        if (form->select(first++) != w) throw Error(ErrorKind::argument, "triangle: the ranks are none");
    });
    return custom(std::move(form));
  }
  std::shared_ptr<const CustomForm> read(std::span<const std::uint64_t> words, Index size, Index) const override {
    const Index n = side_of(size);
    if (words.size() != 1 || words[0] != std::uint64_t(n)) throw Error(ErrorKind::argument, "triangle: other words");
    return std::make_shared<Triangle>(n);
  }

 private:
  /// n where there are n (n + 1) / 2 members, else 0.
  static Index side_of(Index members) {
    const Index n = Triangle::row_of(members);
    return Triangle::size_of(n) == members ? n : 0;
  }
};

}  // namespace

int main() {
  constexpr Index n = 1000;
  std::vector<Index> members;
  for (Index row = 0; row < n; ++row)
    for (Index column = 0; column <= row; ++column) members.push_back(row * n + column);

  const TriangleModule triangle;
  Strategy strategy;
  strategy.modules = standard_modules();
  strategy.modules.push_back(&triangle);
  std::fputs(explain(Members(members), n * n, strategy).to_string().c_str(), stdout);
  const auto map = RankMap::of(members, n * n, strategy);
  std::printf("%lld ranks as %s in %lld bytes\n", (long long)map.size(), map.representation().data(),
              (long long)map.bytes());

  // Who reads it needs the module too.
  const auto back = RankMap::from_bytes(map.to_bytes(), map.size(), strategy.modules);
  bool good = map.representation() == "triangle" && back.representation() == "triangle" && back == map;
  for (Index i = 0; i < map.size(); ++i)
    good = good && map.world_rank(i) == members[std::size_t(i)] && back.rank(members[std::size_t(i)]) == i;
  good = good && !map.contains(1) && map.contains(n);
  return good ? 0 : 1;
}
