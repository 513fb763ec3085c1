#include "relations/fold.hpp"

#include <array>
#include <unordered_map>
#include <utility>

#include "core/digest.hpp"

namespace longshore {

namespace {

/// A loop of `count` equal things, `source_step` and `destination_step`
/// bytes apart; `inner` is the shape of one, or none for an element.
struct Shape {
  int inner = -1;
  Index count = 1, source_step = 0, destination_step = 0;
  bool operator==(const Shape&) const = default;
};

struct ShapeHash {
  std::size_t operator()(const Shape& shape) const {
    Digest digest;
    for (const Index x : {Index(shape.inner), shape.count, shape.source_step, shape.destination_step})
      digest.mix(std::uint64_t(x));
    return std::size_t(digest.value());
  }
};

/// Something of a known shape somewhere.
struct Item {
  int shape = -1;
  Index source = 0, destination = 0;
};

/// Joins runs that go on in step: elements and short runs become the longest runs that a single look ahead finds.
class Joiner {
 public:
  /// Takes a run; true where `out` received the run before it, which is complete.
  bool take(const OffsetRun& run, OffsetRun& out) {
    if (pending_.count == 0) {
      pending_ = run;
      return false;
    }
    const Index s = run.source - pending_.source, d = run.destination - pending_.destination;
    if (pending_.count == 1 && (run.count == 1 || (run.source_step == s && run.destination_step == d))) {
      pending_ = {pending_.source, pending_.destination, 1 + run.count, s, d};
      return false;
    }
    const bool in_step = run.count == 1 ||
                         (run.source_step == pending_.source_step && run.destination_step == pending_.destination_step);
    if (in_step && pending_.count > 1 && s == pending_.count * pending_.source_step &&
        d == pending_.count * pending_.destination_step) {
      pending_.count += run.count;
      return false;
    }
    out = std::exchange(pending_, run);
    return true;
  }
  const OffsetRun& last() const { return pending_; }

 private:
  OffsetRun pending_;
};

class Folder {
 public:
  explicit Folder(Index element_bytes) : element_(element_bytes) {}

  void add(const OffsetRun& run) {
    OffsetRun complete;
    if (joiner_.take(run, complete)) fold_run(complete);
  }

  std::vector<AddressRelation::Part> finish() {
    if (joiner_.last().count > 0) fold_run(joiner_.last());
    for (std::size_t level = 0; level < levels; ++level) close(level);
    return parts();
  }

 private:
  /// So many loops around a run at most.
  static constexpr std::size_t levels = 10;
  /// After so many runs it is known whether folding pays: whether what is left is this many times less.
  static constexpr Index trial = 4096, worthwhile = 4;
  /// A nest of fewer elements among others is not worth a kernel call of its own.
  static constexpr Index least = 128;

  /// Items in step, which the next may join.
  struct Group {
    Item first;
    Shape shape{-1, 0, 0, 0};
  };

  int intern(const Shape& shape) {
    const auto [at, fresh] = ids_.try_emplace(shape, int(shapes_.size()));
    if (fresh) shapes_.push_back(shape);
    return at->second;
  }

  void fold_run(const OffsetRun& run) {
    if (hopeless_) return rest_.push_back(run);
    if (++runs_ == trial && Index(items_.size()) * worthwhile > runs_) {
      for (std::size_t level = 0; level < levels; ++level) close(level);
      hopeless_ = true;
      return rest_.push_back(run);
    }
    const Shape shape{-1, run.count, run.count > 1 ? run.source_step : 0, run.count > 1 ? run.destination_step : 0};
    if (last_id_ < 0 || !(shapes_[std::size_t(last_id_)] == shape)) last_id_ = intern(shape);
    fold_item(0, {last_id_, run.source, run.destination});
  }

  /// An item joins the open group of a level, or ends it and opens the next.
  void fold_item(std::size_t level, const Item& item) {
    if (level == levels) {
      items_.push_back(item);
      return;
    }
    auto& [first, shape] = groups_[level];
    if (shape.count > 0 && shape.inner == item.shape) {
      const Index s = item.source - first.source, d = item.destination - first.destination;
      if (shape.count == 1) shape.source_step = s, shape.destination_step = d;
      if (s == shape.count * shape.source_step && d == shape.count * shape.destination_step) {
        ++shape.count;
        return;
      }
    }
    close(level);
    groups_[level] = {item, {item.shape, 1, 0, 0}};
  }

  void close(std::size_t level) {
    auto [item, shape] = std::exchange(groups_[level], {});
    if (shape.count == 0) return;
    if (shape.count > 1) item.shape = intern(shape);
    fold_item(level + 1, item);
  }

  LoopNest nest(const Item& item) const {
    std::vector<RelationAxis> axes;
    for (int id = item.shape; id >= 0; id = shapes_[std::size_t(id)].inner) {
      const auto& shape = shapes_[std::size_t(id)];
      if (shape.count > 1) axes.push_back({PairedRuns::run(shape.count), shape.source_step, shape.destination_step});
    }
    return LoopNest(element_, std::move(axes), item.source, item.destination).canonical();
  }

  std::vector<AddressRelation::Part> parts() const {
    std::vector<AddressRelation::Part> parts;
    AddressRelation::RunList list;
    auto flush = [&] {
      if (list.empty()) return;
      Index elements = 0;
      for (const auto& run : list) elements += run.count;
      if (Index(list.size() * sizeof(OffsetRun) / sizeof(OffsetPair)) < elements) {
        parts.push_back(std::exchange(list, {}));
        return;
      }
      AddressRelation::PairList pairs;
      pairs.reserve(std::size_t(elements));
      for (const auto& run : list)
        for (Index k = 0; k < run.count; ++k) pairs.push_back(run.at(k));
      list.clear();
      parts.push_back(std::move(pairs));
    };
    const bool alone = items_.size() == 1 && rest_.empty();
    for (const auto& item : items_) {
      const auto& shape = shapes_[std::size_t(item.shape)];
      // Single runs and small nests among others are lines of a list.
      if (!alone && shape.inner < 0) {
        list.push_back({item.source, item.destination, shape.count, shape.source_step, shape.destination_step});
        continue;
      }
      auto part = nest(item);
      if (!alone && part.elements() < least) {
        for_each_run(*part.reader(0, part.elements()), [&](const OffsetRun& run) { list.push_back(run); });
        continue;
      }
      flush();
      parts.push_back(std::move(part));
    }
    list.insert(list.end(), rest_.begin(), rest_.end());
    flush();
    return parts;
  }

  Index element_, runs_ = 0;
  bool hopeless_ = false;
  int last_id_ = -1;
  Joiner joiner_;
  std::array<Group, levels> groups_;
  std::vector<Shape> shapes_;
  std::unordered_map<Shape, int, ShapeHash> ids_;
  std::vector<Item> items_;
  AddressRelation::RunList rest_;  ///< what came after folding was given up
};

}  // namespace

std::vector<AddressRelation::Part> fold(Index element_bytes, RunReader& reader) {
  Folder folder(element_bytes);
  for_each_run(reader, [&](const OffsetRun& run) { folder.add(run); });
  return folder.finish();
}

}  // namespace longshore
