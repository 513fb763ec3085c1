#include "relations/typemap.hpp"

#include <algorithm>
#include <numeric>

namespace longshore {

namespace {

using Piece = Typemap::Piece;
using Level = Typemap::Level;

/// What says the same in fewer words: no places, no loops of one.
Level tidy(const Level& given) {
  Level level;
  for (auto run : given) {
    if (run.length < 0 || run.count < 0)
      throw Error(ErrorKind::argument,
                  "a typemap cannot be repeated " + std::to_string(std::min(run.length, run.count)) + " times");
    if (run.length == 0 || run.count == 0) continue;
    if (run.length == 1 && run.count > 1) run = {run.offset, run.count, run.step};
    if (run.count > 1 && run.step == checked_mul(run.length, run.stride))
      run = {run.offset, checked_mul(run.length, run.count), run.stride};
    if (run.length == 1) run.stride = 0;
    if (run.count == 1) run.step = 0;
    level.push_back(run);
  }
  return level;
}

/// The last run of a list is a repetition of the one before it: they are one.
void fold_last(Level& list) {
  if (list.size() < 2 || list.back().count > 1) return;
  auto& last = list[list.size() - 2];
  const Index step = list.back().offset - last.offset;
  if (last.length != list.back().length || last.stride != list.back().stride) return;
  if (last.count > 1 && step != last.count * last.step) return;
  if (last.count == 1) last.step = step;
  ++last.count;
  list.pop_back();
}

/// Puts a run at the end of a list, where it goes on in step as part of the last one.
void join(Level& list, const TypemapRun& run) {
  if (!list.empty() && run.places() == 1 && list.back().count == 1) {
    auto& last = list.back();
    if (last.length == 1) last.stride = run.offset - last.offset;
    if (run.offset - last.offset == last.length * last.stride) {
      ++last.length;
      return;
    }
  }
  fold_last(list);
  list.push_back(run);
}

/// The lines that `listed` makes of a piece; as much as `most_typemap_lines` + 1 for more.
Index lines_of(const Piece& piece, Index unit) {
  if (piece.levels.empty()) return 1;
  Wide lines = 0;
  for (const auto& run : piece.levels.back()) lines += piece.block == unit ? 1 : run.count;
  for (std::size_t k = 0; k + 1 < piece.levels.size(); ++k) {
    lines *= places_of(piece.levels[k]);
    if (lines > most_typemap_lines) break;
  }
  return Index(std::min<Wide>(lines, most_typemap_lines + 1));
}

Index common_unit(std::span<const Piece> pieces) {
  Index unit = 0;
  for (const auto& piece : pieces) unit = std::gcd(unit, piece.block);
  return unit;
}

template <class F>
void for_each_place(std::span<const Level> levels, Index offset, F&& f) {
  if (levels.empty()) return f(offset);
  for (const auto& run : levels[0])
    for (Index c = 0; c < run.count; ++c)
      for (Index e = 0; e < run.length; ++e)
        for_each_place(levels.subspan(1), offset + run.offset + c * run.step + e * run.stride, f);
}

/// One level as pairs of (place in memory, position), `inner` bytes of the message to each.
RelationAxis axis_of(const Level& level, Index inner) {
  if (is_loop(level)) return {PairedRuns::run(level[0].length), level[0].stride, inner};
  Index stride = 0;
  for (const auto& run : level)
    stride = std::gcd(stride, std::gcd(std::gcd(run.stride, run.step), run.offset - level[0].offset));
  if (stride == 0) stride = 1;
  std::vector<PairedRun> runs;
  Index position = 0;
  for (const auto& run : level) {
    const Index source = (run.offset - level[0].offset) / stride;
    auto add = [&](Index from, Index length, Index count, Index step) {
      runs.push_back({position, from, position, length, count, length, step, length});
      position += length * count;
    };
    if (run.length == 1 || run.stride == stride)
      add(source, run.length, run.count, run.step / stride);
    else
      for (Index c = 0; c < run.count; ++c) add(source + c * (run.step / stride), 1, run.length, run.stride / stride);
  }
  return {PairedRuns({PairedPeriod{std::move(runs), 1, 0, 0, 0}}), stride, inner};
}

LoopNest nest_of(const Piece& piece, Index element, Index message) {
  std::vector<RelationAxis> axes;
  Index base = piece.displacement, inner = piece.bytes();
  for (const auto& level : piece.levels) {
    inner /= places_of(level);
    axes.push_back(axis_of(level, inner));
    base += level[0].offset;
  }
  axes.push_back({PairedRuns::run(piece.block / element), element, element});
  return LoopNest(element, std::move(axes), base, message).canonical();
}

/// A piece whose two outermost loops are one level: blocks of `length` at `count` places.
Piece with_blocks(Piece piece) {
  const auto outer = piece.levels[0][0];
  auto& run = piece.levels[1][0];
  run.offset += outer.offset, run.count = outer.length, run.step = outer.stride;
  piece.levels.erase(piece.levels.begin());
  return piece;
}

/// Two pieces one after the other as one, where they are the same content at different places: of the same levels, or
/// all but the outermost of them. The blocks of indexed datatypes and the last parts of darrays come together so.
bool merge(Piece& piece, const Piece& next) {
  const auto &a = piece.levels, &b = next.levels;
  if (piece.block != next.block || a.empty() || b.empty()) return false;
  auto inside = [](const std::vector<Level>& levels) { return std::span(levels).subspan(1); };
  const Index shift = next.displacement - piece.displacement;
  if (a == b || std::ranges::equal(a, inside(b))) piece.levels.insert(piece.levels.begin(), Level{{0, 1, 0}});
  if (std::ranges::equal(inside(a), b)) {
    join(piece.levels[0], {shift, 1, 0});
    return true;
  }
  if (a.size() > 1 && std::ranges::equal(inside(a), inside(b))) {
    for (auto run : b[0]) run.offset += shift, join(piece.levels[0], run);
    return true;
  }
  // Whole blocks and a part of one, or the other way around.
  auto has_blocks_of = [&](const std::vector<Level>& more, const std::vector<Level>& less) {
    return more.size() == less.size() + 1 && less.size() > 1 && is_loop(more[0]) && is_loop(more[1]) &&
           std::ranges::equal(inside(more).subspan(1), inside(less));
  };
  if (has_blocks_of(a, b)) {
    piece = with_blocks(std::move(piece));
    return merge(piece, next);
  }
  return has_blocks_of(b, a) && merge(piece, with_blocks(next));
}

constexpr Wide farthest = Wide{1} << 61;

}  // namespace

bool is_loop(const Level& level) { return level.size() == 1 && level[0].count == 1; }

Index places_of(const Level& level) {
  Index n = 0;
  for (const auto& run : level) n = checked_add(n, checked_mul(run.length, run.count));
  return n;
}

Level listed(std::span<const Piece> pieces, Index unit) {
  Index lines = 0;
  for (const auto& piece : pieces) lines = std::min(lines + lines_of(piece, unit), most_typemap_lines + 1);
  if (lines > most_typemap_lines)
    throw Error(ErrorKind::memory_limit,
                "a datatype repeats irregular content of more than 2^26 runs; build it of fewer, longer ones");
  Level list;
  for (const auto& piece : pieces) {
    const Index length = piece.block / unit;
    if (piece.levels.empty()) {
      join(list, {piece.displacement, length, length > 1 ? unit : 0});
      continue;
    }
    const std::span<const Level> outer(piece.levels.data(), piece.levels.size() - 1);
    for_each_place(outer, piece.displacement, [&](Index offset) {
      for (const auto& run : piece.levels.back()) {
        if (length == 1)
          join(list, {offset + run.offset, run.length, run.stride, run.count, run.step});
        else
          for (Index c = 0; c < run.count; ++c)
            join(list, {offset + run.offset + c * run.step, length, unit, run.length, run.stride});
      }
    });
  }
  fold_last(list);
  return list;
}

Index Typemap::Piece::bytes() const {
  Index n = block;
  for (const auto& level : levels) n = checked_mul(n, places_of(level));
  return n;
}

Typemap Typemap::basic(Index bytes) {
  Typemap map;
  if (bytes <= 0) return map;
  map.pieces_.push_back({0, bytes, {}});
  map.bytes_ = map.element_bytes_ = bytes;
  map.reach(0, bytes);
  return map;
}

void Typemap::reach(Wide first, Wide last) {
  if (first < -farthest || last > farthest)
    throw Error(ErrorKind::overflow, "a datatype reaches farther than 2^61 bytes");
  if (extent_ != Interval{}) first = std::min<Wide>(first, extent_.first), last = std::max<Wide>(last, extent_.last);
  extent_ = {Index(first), Index(last)};
}

Typemap Typemap::shifted(Index displacement) const {
  Typemap map = *this;
  if (empty()) return map;
  map.extent_ = {};
  map.reach(Wide(extent_.first) + displacement, Wide(extent_.last) + displacement);
  for (auto& piece : map.pieces_) piece.displacement += displacement;
  return map;
}

Typemap Typemap::repeated(Index n, Index stride) const { return repeated(Level{{0, n, stride}}); }

Typemap Typemap::repeated(const Level& places) const {
  const Level level = tidy(places);
  const Index n = places_of(level);
  Typemap map;
  if (empty() || n == 0) return map;
  if (level.size() == 1 && level[0].count > 1) {  // two loops
    const auto& run = level[0];
    return repeated(Level{{0, run.length, run.stride}}).repeated(Level{{run.offset, run.count, run.step}});
  }
  checked_mul(bytes_, n);
  for (const auto& run : level) {
    const Wide a = Wide(run.stride) * (run.length - 1), b = Wide(run.step) * (run.count - 1);
    map.reach(extent_.first + run.offset + std::min<Wide>(a, 0) + std::min<Wide>(b, 0),
              extent_.last + run.offset + std::max<Wide>(a, 0) + std::max<Wide>(b, 0));
  }
  if (pieces_.size() > 1) {
    // Either all copies one after the other, or the pieces as one irregular level inside: whatever takes fewer lines.
    const Index unit = common_unit(pieces_);
    Index lines = 0;
    for (const auto& piece : pieces_) lines = std::min(lines + lines_of(piece, unit), most_typemap_lines + 1);
    if (Wide(n) * Index(pieces_.size()) <= lines) {
      Typemap copies;
      for_each_place(std::span(&level, 1), 0, [&](Index offset) { copies.append(shifted(offset)); });
      return copies;
    }
    map.pieces_.push_back({0, unit, {tidy(listed(pieces_, unit))}});
  } else {
    map.pieces_ = pieces_;
  }
  auto& piece = map.pieces_[0];
  map.bytes_ = bytes_ * n, map.element_bytes_ = element_bytes_;
  if (is_loop(level)) {
    const auto& loop = level[0];
    piece.displacement += loop.offset;
    if (loop.length == 1) return map;
    if (piece.levels.empty() && loop.stride == piece.block) {
      piece.block *= loop.length;
      return map;
    }
    if (!piece.levels.empty() && is_loop(piece.levels[0])) {
      auto& inner = piece.levels[0][0];
      if (Wide(inner.length) * inner.stride == loop.stride) {
        inner.length *= loop.length;
        return map;
      }
    }
    piece.levels.insert(piece.levels.begin(), {{0, loop.length, loop.stride}});
    return map;
  }
  piece.levels.insert(piece.levels.begin(), level);
  return map;
}

void Typemap::append(Piece piece) {
  if (!pieces_.empty() && piece.levels.empty() && pieces_.back().levels.empty() &&
      pieces_.back().displacement + pieces_.back().block == piece.displacement) {
    pieces_.back().block += piece.block;
    return;
  }
  if (!pieces_.empty() && merge(pieces_.back(), piece)) return;
  if (Index(pieces_.size()) >= most_typemap_lines)
    throw Error(ErrorKind::memory_limit,
                "a datatype has more than 2^26 separate blocks; build it of fewer, longer ones");
  pieces_.push_back(std::move(piece));
}

void Typemap::append(const Typemap& other) {
  for (const auto& piece : other.pieces_) append(piece);
  if (!other.empty()) reach(other.extent_.first, other.extent_.last);
  bytes_ = checked_add(bytes_, other.bytes_);
  element_bytes_ = std::gcd(element_bytes_, other.element_bytes_);
}

AddressRelation Typemap::assembly() const {
  if (empty()) return AddressRelation(1);
  std::vector<AddressRelation::Part> parts;
  Index message = 0;
  for (const auto& piece : pieces_) {
    if (!piece.levels.empty()) {
      parts.push_back(nest_of(piece, element_bytes_, message));
    } else {
      if (parts.empty() || !std::holds_alternative<AddressRelation::RunList>(parts.back()))
        parts.push_back(AddressRelation::RunList{});
      std::get<AddressRelation::RunList>(parts.back())
          .push_back({piece.displacement, message, piece.block / element_bytes_, element_bytes_, element_bytes_});
    }
    message += piece.bytes();
  }
  return AddressRelation::from_parts(element_bytes_, std::move(parts)).canonical();
}

}  // namespace longshore
