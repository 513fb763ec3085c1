#include "longshore/ranks/rank_map.hpp"

#include <algorithm>

#include "ranks/forms.hpp"
#include "ranks/lookup.hpp"
#include "ranks/make.hpp"
#include "ranks/runs.hpp"

namespace longshore {

using ranks::ChildForm;
using ranks::form_of;
using ranks::keep;
using ranks::ProductForm;
using ranks::visit_form;

namespace {

const RankForm& kept(const RankMap::Form& form) { return *std::get<std::shared_ptr<const RankForm>>(form); }

/// Whether `rank` answers without an index and without looking through all members.
bool finds(const RankMap& map) {
  if (map.ascending() || map.nest() != nullptr) return true;
  if (const auto* product = form_of<ProductForm>(map)) return finds(product->outer());
  if (const auto* child = form_of<ChildForm>(map)) return finds(child->parent()) && finds(child->positions());
  if (map.lookup() != LookupKind::none) return true;
  return visit_form(kept(map.form()), [&](const auto& form) { return form.rank(form.select(0)) != ranks::unknown; });
}

/// How many maps stand behind one another.
int generations(const RankMap& map) {
  const auto* child = form_of<ChildForm>(map);
  return child == nullptr ? 1 : 1 + generations(child->parent());
}

/// How deep maps are within maps, as `read_map` counts them.
int depth(const RankMap& map) {
  if (const auto* child = form_of<ChildForm>(map))
    return 1 + std::max(depth(child->parent()), depth(child->positions()));
  return map.nest() != nullptr ? 0 : 1;  // a product or chunks are made of what has no maps within
}

void check_world(Index world) {
  if (world < 0 || world > RankMap::largest_world)
    throw Error(ErrorKind::argument, "a world of " + std::to_string(world) + " ranks; there are 0 to 2^40");
}

}  // namespace

RankMap::RankMap(Form form, Index world, bool ascending)
    : form_(std::move(form)), world_(world), ascending_(ascending) {
  if (const auto* closed = nest())
    size_ = closed->size();
  else
    size_ = visit_form(kept(form_), [](const auto& kept) { return kept.size(); });
  if (const auto* array = form_of<ranks::ArrayForm>(*this)) array_ = array->narrow();
  ascending_ = ascending_ || size_ < 2;  // however it was made: fewer than two are in order
}

RankMap RankMap::of_nest(AffineNest nest, Index world) {
  check_world(world);
  if (nest.size() > 0 && nest.highest() >= world) ranks::refuse_rank(nest.highest(), nest.rank(nest.highest()), world);
  const bool ascending = nest.ascending();
  return RankMap(std::move(nest), world, ascending);
}

RankMap RankMap::of(std::span<const Index> members, Index world) { return of(members, world, Strategy::hybrid()); }
RankMap RankMap::of_runs(std::span<const AffineRun> runs, Index world) {
  return of_runs(runs, world, Strategy::hybrid());
}

RankMap RankMap::of(std::span<const Index> members, Index world, const Strategy& strategy) {
  check_world(world);
  return ranks::make_checked(Members(members), world, strategy);
}

RankMap RankMap::of_runs(std::span<const AffineRun> runs, Index world, const Strategy& strategy) {
  check_world(world);
  return ranks::make_checked(Members(runs), world, strategy);
}

RankMap RankMap::child(const RankMap& parent, const RankMap& positions) {
  if (positions.world() != parent.size())
    throw Error(ErrorKind::argument, "the positions are of a world of " + std::to_string(positions.world()) +
                                         ", the parent has " + std::to_string(parent.size()) + " members");
  const auto* outer = parent.nest();
  const auto* inner = positions.nest();
  if (inner != nullptr && inner->depth() == 1 && inner->size() == parent.size() && inner->ascending()) return parent;
  if (outer != nullptr && inner != nullptr && outer->depth() == 1 && inner->size() > 0) {
    // Loops over a stride are loops.
    std::vector<AffineNest::Axis> axes;
    for (std::size_t k = 0; k < inner->depth(); ++k)
      axes.push_back({inner->axis(k).count, inner->axis(k).stride * outer->axis(0).stride});
    if (auto nest = AffineNest::make(outer->select(inner->base()), axes))
      return of_nest(std::move(*nest), parent.world());
  }
  // Neither side grows from generation to generation: positions
  // are no child themselves, and two maps stand behind a child.
  if (form_of<ChildForm>(positions) != nullptr) {
    const auto flat = ranks::flattened(positions, Strategy::hybrid());
    if (form_of<ChildForm>(flat) == nullptr) return child(parent, flat);
  }
  constexpr int deepest = 2;
  if (const auto* grandchild = form_of<ChildForm>(parent); grandchild != nullptr && generations(parent) >= deepest) {
    const auto between = ranks::flattened(child(grandchild->positions(), positions), Strategy::hybrid());
    if (form_of<ChildForm>(between) == nullptr) return child(grandchild->parent(), between);
  }
  // What is too large to be flattened stays as it is, as long as it can be stored.
  if (std::max(depth(parent), depth(positions)) >= ranks::most_depth)
    throw Error(ErrorKind::memory_limit, "a map of " + std::to_string(positions.size()) +
                                             " members is too large to be made one of its own, and " +
                                             std::to_string(ranks::most_depth) + " maps stand behind it already");
  const bool ascending = parent.ascending() && positions.ascending();
  return RankMap(keep(ChildForm(parent, positions)), parent.world(), ascending);
}

std::pair<Index, Index> RankMap::extent() const {
  if (empty()) return {0, -1};
  if (nest() != nullptr) return {nest()->lowest(), nest()->highest()};
  if (ascending_) return {select(0), select(size_ - 1)};
  std::pair<Index, Index> found{INT64_MAX, -1};
  Members(*this).each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values) found = {std::min(found.first, w), std::max(found.second, w)};
  });
  return found;
}

Index RankMap::select_form(Index i) const {
  return visit_form(kept(form_), [i](const auto& form) { return form.select(i); });
}

void RankMap::refuse_position(Index i) const {
  throw Error(ErrorKind::argument, "position " + std::to_string(i) + " is outside [0, " + std::to_string(size_) + ")");
}

Index RankMap::rank(Index w) const {
  if (const auto* closed = nest()) return closed->rank(w);
  if (w < 0 || w >= world_ || size_ == 0) return nobody;
  const Index found = visit_form(kept(form_), [w](const auto& form) { return form.rank(w); });
  return found != ranks::unknown ? found : search(w);
}

Index RankMap::search(Index w) const {
  if (ascending_) {
    Index low = 0, high = size_;
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (select(middle) < w)
        low = middle + 1;
      else
        high = middle;
    }
    return low < size_ && select(low) == w ? low : nobody;
  }
  if (lookup_) return lookup_->find(*this, w);
  constexpr Index piece = 512;
  Index values[piece];
  for (Index first = 0; first < size_; first += piece) {
    const Index n = std::min(piece, size_ - first);
    read(first, n, values);
    const auto at = std::find(values, values + n, w) - values;
    if (at < n) return first + at;
  }
  return nobody;
}

void RankMap::world_ranks(std::span<const Index> positions, std::span<Index> out) const {
  if (positions.size() != out.size())
    throw Error(ErrorKind::argument,
                std::to_string(positions.size()) + " positions, but room for " + std::to_string(out.size()));
  for (const Index i : positions)
    if (i < 0 || i >= size_) refuse_position(i);
  auto all = [&](const auto& form) {
    for (std::size_t k = 0; k < positions.size(); ++k) out[k] = form.select(positions[k]);
  };
  if (const auto* closed = nest())
    all(*closed);
  else
    visit_form(kept(form_), all);
}

void RankMap::ranks(std::span<const Index> world_ranks, std::span<Index> out) const {
  if (world_ranks.size() != out.size())
    throw Error(ErrorKind::argument,
                std::to_string(world_ranks.size()) + " ranks, but room for " + std::to_string(out.size()));
  // More than a few questions pay for an index of their own.
  constexpr Index few = 16;
  const bool indexed = Index(world_ranks.size()) <= few || finds(*this);
  const RankMap& asked = indexed ? *this : with_lookup(LookupKind::hash);
  for (std::size_t k = 0; k < world_ranks.size(); ++k) out[k] = asked.rank(world_ranks[k]);
}

void RankMap::read(Index first, Index n, Index* out) const {
  if (first < 0 || n < 0 || first > size_ || n > size_ - first)
    refuse_position(first < 0 || first > size_ ? first : size_);
  if (n == 0) return;
  if (const auto* closed = nest()) return closed->read(first, n, out);
  visit_form(kept(form_), [&](const auto& form) { form.read(first, n, out); });
}

std::vector<Index> RankMap::to_vector() const {
  std::vector<Index> members(std::size_t(size_), 0);
  read(0, size_, members.data());
  return members;
}

RankMap RankMap::slice(Index first, Index last, Index step) const {
  if (step == 0 || step == INT64_MIN || first < (step < 0 ? -1 : 0) || first > size_ || last < -1 || last > size_)
    throw Error(ErrorKind::argument, "a slice from " + std::to_string(first) + " to " + std::to_string(last) + " by " +
                                         std::to_string(step) + " of " + std::to_string(size_) + " members");
  const Index way = step > 0 ? last - first : first - last, count = way <= 0 ? 0 : ceil_div(way, std::abs(step));
  if (count == 0) return of_nest(AffineNest(), world_);
  const auto taken = child(*this, of_nest(AffineNest::stride(first, count, step), size_));
  // A small part of a map is kept for itself, a large one with what it is a part of, unless it is a few runs.
  constexpr Index small = Index{1} << 22, few = 1024;
  if (form_of<ChildForm>(taken) == nullptr || (count > small && !ranks::known_runs(taken, few))) return taken;
  return rebuilt(taken, Strategy::hybrid());
}

RankMap RankMap::with_lookup(LookupKind kind) const {
  RankMap map = *this;
  map.lookup_ = nullptr;
  if (const auto* product = form_of<ProductForm>(map)) {
    map.form_ = keep(product->with_outer(product->outer().with_lookup(kind)));
    return map;
  }
  if (const auto* child = form_of<ChildForm>(map)) {
    map.form_ = keep(ChildForm(child->parent().with_lookup(kind), child->positions().with_lookup(kind)));
    return map;
  }
  if (kind == LookupKind::none || finds(map)) return map;
  map.lookup_ = std::make_shared<const RankLookup>(map, kind);
  return map;
}

LookupKind RankMap::lookup() const {
  if (const auto* product = form_of<ProductForm>(*this)) return product->outer().lookup();
  if (const auto* child = form_of<ChildForm>(*this)) {
    const auto own = child->positions().lookup();
    return own != LookupKind::none || !finds(child->positions()) ? own : child->parent().lookup();
  }
  return lookup_ ? lookup_->kind() : LookupKind::none;
}

Index RankMap::bytes() const {
  const Index index = lookup_ ? lookup_->bytes() : 0;
  if (const auto* closed = nest()) return closed->bytes() + index;
  return index +
         visit_form(kept(form_), []<class Form>(const Form& form) { return ranks::kept_bytes<Form> + form.bytes(); });
}

std::string_view RankMap::representation() const {
  if (const auto* closed = nest()) return closed->depth() == 1 ? "stride" : "nest";
  return visit_form(kept(form_), [](const auto& form) {
    if constexpr (requires { form.own_name(); })
      return form.own_name();
    else
      return form.name;
  });
}

bool RankMap::operator==(const RankMap& other) const {
  if (size_ != other.size_) return false;
  // The loops of an order are these and no others: the first axis
  // is as long as the first step goes on, and so for the firsts.
  if (nest() && other.nest()) return *nest() == *other.nest();
  if (!nest() && !other.nest() && std::get<1>(form_) == std::get<1>(other.form_)) return true;
  // Words are compared where they are few for the members that they stand for.
  constexpr Index gain = 64;
  if (!nest() && !other.nest() && representation() == other.representation() && bytes() < size_ / gain &&
      ranks::same_words(*this, other))
    return true;
  // And so are runs.
  constexpr Index most_runs = Index{1} << 20;
  if (const auto mine = ranks::known_runs(*this, std::min(size_ / gain, most_runs)))
    if (const auto theirs = ranks::known_runs(other, std::min(size_ / gain, most_runs)))
      return ranks::merged_runs(*mine) == ranks::merged_runs(*theirs);
  constexpr Index piece = 1024;
  std::vector<Index> a(piece), b(piece);
  for (Index first = 0; first < size_; first += piece) {
    const Index n = std::min(piece, size_ - first);
    read(first, n, a.data());
    other.read(first, n, b.data());
    if (!std::equal(a.begin(), a.begin() + n, b.begin())) return false;
  }
  return true;
}

}  // namespace longshore
