// Two typemaps side by side: the k-th byte of one goes to the k-th byte of the other.
#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "relations/typemap.hpp"

namespace longshore {

namespace {

using Piece = Typemap::Piece;
using Level = Typemap::Level;

/// Reads the places of a level as runs in step.
class PlacesReader {
 public:
  explicit PlacesReader(const Level& list) : list_(list) { next(); }
  bool done() const { return left_.count == 0; }
  const AffineRun& left() const { return left_; }
  /// The first n places of what is left.
  AffineRun take(Index n) {
    const AffineRun taken{left_.first, left_.step, n};
    left_.first += n * left_.step, left_.count -= n;
    if (left_.count == 0) next();
    return taken;
  }

 private:
  void next() {
    if (at_ == list_.size()) return;
    const auto& run = list_[at_];
    if (run.length == 1)
      left_ = {run.offset, run.step, run.count};
    else
      left_ = {run.offset + repetition_ * run.step, run.stride, run.length};
    if (run.length == 1 || ++repetition_ == run.count) ++at_, repetition_ = 0;
  }

  const Level& list_;
  std::size_t at_ = 0;
  Index repetition_ = 0;
  AffineRun left_;
};

/// Calls f(source run, destination run) for as long runs as are in step on both sides.
template <class F>
void for_each_common_run(const Level& source, const Level& destination, F&& f) {
  Index lines = 0;
  for (PlacesReader s(source), d(destination); !s.done();) {
    const Index n = std::min(s.left().count, d.left().count);
    if (++lines > most_typemap_lines)
      throw Error(ErrorKind::memory_limit,
                  "two datatypes have no more in common than 2^26 short runs; move through a dense message");
    f(s.take(n), d.take(n));
  }
}

/// All distances in a list: the stride that its places are multiples of.
Index raster_of(const Level& list) {
  Index raster = 0;
  for (const auto& run : list)
    raster = std::gcd(raster, std::gcd(std::gcd(run.stride, run.step), run.offset - list[0].offset));
  return raster == 0 ? 1 : raster;
}

/// The levels of a piece from the innermost outwards, each used up from its inner end.
class Walk {
 public:
  Walk(const Piece& piece, Index element) : base_(piece.displacement) {
    levels_.push_back({{0, piece.block / element, element}});
    levels_.insert(levels_.end(), piece.levels.rbegin(), piece.levels.rend());
    for (auto& level : levels_)
      if (is_loop(level)) base_ += std::exchange(level[0].offset, 0);
    skip();
  }
  Index base() const { return base_; }
  bool done() const { return at_ == levels_.size(); }
  bool loops() const { return is_loop(levels_[at_]); }
  Index left() const { return places_of(levels_[at_]); }  ///< places of the level at hand
  Index stride() const { return levels_[at_][0].stride; }
  /// The inner n places of the loop at hand are used up: it goes on in steps of n.
  void take(Index n) {
    auto& loop = levels_[at_][0];
    loop.length /= n, loop.stride *= n;
    skip();
  }
  /// The least multiple of `places` that ends with a whole level or part of a loop.
  Index period(Index places) const {
    Index whole = left();
    for (std::size_t k = at_ + 1; k < levels_.size() && whole % places != 0; ++k) {
      const Wide common = Wide(places / std::gcd(places, whole)) * whole, all = Wide(places_of(levels_[k])) * whole;
      if (is_loop(levels_[k]) && common <= all && all % common == 0) return Index(common);
      whole = Index(all);
    }
    return whole;
  }
  /// Uses up the inner `places` places, a number that `period` gave, and lists them.
  Level list(Index places) {
    Piece inner{0, 1, {}};
    while (places > 1) {
      auto& level = levels_[at_];
      const Index n = std::min(places, left());
      places /= n;
      if (n == left()) {
        inner.levels.insert(inner.levels.begin(), level);
        ++at_;
      } else {
        inner.levels.insert(inner.levels.begin(), Level{{0, n, level[0].stride}});
        take(n);
      }
    }
    skip();
    return listed(std::span(&inner, 1), 1);
  }

 private:
  void skip() {
    while (!done() && left() == 1) ++at_;
  }

  Index base_;
  std::vector<Level> levels_;
  std::size_t at_ = 0;
};

/// Two lists of equally many places as one axis.
RelationAxis axis_of(const Level& source, const Level& destination, OffsetPair& base) {
  const Index s = raster_of(source), d = raster_of(destination);
  std::vector<PairedRun> runs;
  Index position = 0;
  for_each_common_run(source, destination, [&](const AffineRun& from, const AffineRun& to) {
    const Index a = (from.first - source[0].offset) / s, b = (to.first - destination[0].offset) / d, n = from.count;
    if (n == 1 || (from.step == s && to.step == d))
      runs.push_back({position, a, b, n, 1, 0, 0, 0});
    else
      runs.push_back({position, a, b, 1, n, 1, from.step / s, to.step / d});
    position += n;
  });
  base.source += source[0].offset, base.destination += destination[0].offset;
  return {PairedRuns({PairedPeriod{compress(runs), 1, 0, 0, 0}}), s, d};
}

/// A piece in two, the first of so many bytes; false where that cuts through the content of a loop.
bool cut(const Piece& piece, Index bytes, Piece& first, Piece& rest) {
  first = rest = piece;
  if (piece.levels.empty()) {
    first.block = bytes, rest.block -= bytes, rest.displacement += bytes;
    return true;
  }
  const auto& level = piece.levels[0];
  const Index inner = piece.bytes() / places_of(level);
  if (!is_loop(level) || bytes % inner != 0) return false;
  const Index n = bytes / inner;
  first.levels[0][0].length = n, rest.levels[0][0].length -= n;
  rest.displacement += n * level[0].stride;
  return true;
}

/// The relation of two sequences of pieces, cut where both have a boundary.
class Pairing {
 public:
  Pairing(const Typemap& source, const Typemap& destination, Index element)
      : element_(element),
        sources_(source.pieces().begin(), source.pieces().end()),
        destinations_(destination.pieces().begin(), destination.pieces().end()) {}

  std::vector<AddressRelation::Part> parts() {
    while (!sources_.empty()) {
      const Index bytes = std::min(sources_.front().bytes(), destinations_.front().bytes());
      if (!shorten(sources_, bytes) || !shorten(destinations_, bytes)) {
        pair_lists();
        continue;
      }
      const Piece source = std::move(sources_.front()), destination = std::move(destinations_.front());
      sources_.pop_front(), destinations_.pop_front();
      if (source.levels.empty() && destination.levels.empty())
        runs().push_back({source.displacement, destination.displacement, bytes / element_, element_, element_});
      else
        parts_.push_back(pair_pieces(source, destination, element_));
    }
    return std::move(parts_);
  }

 private:
  /// Makes the first piece have so many bytes, where it can be cut there.
  static bool shorten(std::deque<Piece>& pieces, Index bytes) {
    if (pieces.front().bytes() == bytes) return true;
    Piece first, rest;
    if (!cut(pieces.front(), bytes, first, rest)) return false;
    pieces.front() = std::move(rest);
    pieces.push_front(std::move(first));
    return true;
  }

  /// As many pieces of both sides as it takes to a common boundary, listed.
  void pair_lists() {
    std::vector<Piece> source, destination;
    Index s = 0, d = 0;
    auto move_one = [](std::deque<Piece>& from, std::vector<Piece>& to, Index& bytes) {
      bytes += from.front().bytes();
      to.push_back(std::move(from.front()));
      from.pop_front();
    };
    do {
      auto& behind = s <= d ? sources_ : destinations_;
      if (s != d) shorten(behind, std::min(std::abs(s - d), behind.front().bytes()));
      s <= d ? move_one(sources_, source, s) : move_one(destinations_, destination, d);
    } while (s != d);
    for_each_common_run(listed(source, element_), listed(destination, element_),
                        [&](const AffineRun& from, const AffineRun& to) {
                          runs().push_back({from.first, to.first, from.count, from.step, to.step});
                        });
  }

  AddressRelation::RunList& runs() {
    if (parts_.empty() || !std::holds_alternative<AddressRelation::RunList>(parts_.back()))
      parts_.push_back(AddressRelation::RunList{});
    return std::get<AddressRelation::RunList>(parts_.back());
  }

  Index element_;
  std::deque<Piece> sources_, destinations_;
  std::vector<AddressRelation::Part> parts_;
};

}  // namespace

LoopNest pair_pieces(const Piece& source, const Piece& destination, Index element_bytes) {
  std::vector<RelationAxis> axes;  // the innermost first
  Walk s(source, element_bytes), d(destination, element_bytes);
  OffsetPair base{s.base(), d.base()};
  while (!s.done() && !d.done()) {
    if (const Index n = std::gcd(s.left(), d.left()); n > 1 && s.loops() && d.loops()) {
      axes.push_back({PairedRuns::run(n), s.stride(), d.stride()});
      s.take(n), d.take(n);
      continue;
    }
    // Loops out of step: they meet again after a common multiple.
    Index places = std::max(s.left(), d.left());
    for (Index before = 0; before != places;) {
      before = places;
      places = s.period(places);
      places = d.period(places);
    }
    axes.push_back(axis_of(s.list(places), d.list(places), base));
  }
  std::reverse(axes.begin(), axes.end());
  return LoopNest(element_bytes, std::move(axes), base.source, base.destination).canonical();
}

AddressRelation Typemap::to(const Typemap& destination) const {
  if (bytes_ != destination.bytes_)
    throw Error(ErrorKind::shape, "the source datatype has " + std::to_string(bytes_) +
                                      " bytes of data, the destination datatype " + std::to_string(destination.bytes_));
  if (empty()) return AddressRelation(1);
  const Index element = std::gcd(element_bytes_, destination.element_bytes_);
  return AddressRelation::from_parts(element, Pairing(*this, destination, element).parts()).canonical();
}

}  // namespace longshore
