#include "longshore/movers/local_moves.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "copies/joint_row.hpp"
#include "core/find_or_add.hpp"
#include "movers/nest_message.hpp"
#include "plans/interleaving.hpp"
#include "plans/motion_relations.hpp"

namespace longshore {

namespace {

/// Of a destination row, what a part of a transpose has at least.
constexpr Index turned_row_bytes = 512;

/// Bounds of `parts` nearly equal slices of [0, n).
std::vector<Index> bounds(Index n, Index parts) {
  parts = std::clamp<Index>(parts, 1, std::max<Index>(n, 1));
  std::vector<Index> result;
  for (Index p = 0; p <= parts; ++p) result.push_back(Index(Wide(n) * p / parts));
  return result;
}

class TaskMaker {
 public:
  TaskMaker(const MotionPlan& plan, const CopyTaskOptions& options, std::vector<CopyTask>& tasks)
      : plan_(plan), options_(options), tasks_(tasks), relations_(plan) {}

  Index part_bytes(const Layout& layout, Index rank) const { return layout.local_size(rank) * plan_.element_bytes(); }

  void single(const VisibleMotion& one) {
    const auto& [given, source, destination, number] = one;
    const Motion& motion = *given;
    const auto placed = relations_.place(motion);
    const auto how = program_options(motion.destination);
    const Index phase = Index(std::size_t(destination + placed.destination) % line_bytes);
    pieces_.resize(std::max(pieces_.size(), 2 * relations_.shapes()));
    auto& known = pieces_[2 * placed.shape + (how.stores != Stores::cached)];
    const auto k = find_or_add(
        known, [&](const auto& one) { return one.first == phase || one.first == anywhere; },
        [&] { return cut(relations_.nest(placed.shape), how, phase); });
    for (const auto& piece : known[k].second)
      tasks_.push_back({CopyTask::Single{piece.program, destination + placed.destination + piece.first.destination,
                                         source + placed.source + piece.first.source, number},
                        piece.bytes});
  }

  __attribute__((cold)) void joint(const std::vector<const VisibleMotion*>& motions, Direction direction) {
    std::vector<LoopNest> relations;
    Index bytes = 0;
    for (const auto* one : motions) {
      relations.push_back(plan_.relation_by_dimension(*one->motion));
      bytes += relations.back().bytes();
    }
    const bool pull = direction == Direction::pull;
    std::byte* const shared = pull ? motions[0]->destination : motions[0]->source;
    const auto how = program_options(motions[0]->motion->destination);
    auto add = [&](std::vector<LoopNest> part, const std::vector<const VisibleMotion*>& members) {
      std::vector<std::byte*> pointers;
      auto numbers = std::make_unique<std::uint32_t[]>(members.size());
      for (const auto* one : members) {
        numbers[pointers.size()] = one->number;
        pointers.push_back(pull ? one->source : one->destination);
      }
      std::byte* const first = (pull ? shared : pointers[0]) + part[0].at(0).destination;
      JointCopy copy(std::move(part), pull ? JointCopy::Shared::destination : JointCopy::Shared::source, how, shared);
      const Index n = copy.bytes();
      tasks_.push_back({CopyTask::Joint{std::move(copy), shared, std::move(pointers), std::move(numbers), first}, n});
    };

    // Slice the longest axis outside the interleaved one; failing
    // that, the interleaved one by the shared side's indices.
    const Index parts = ceil_div(bytes, options_.task_bytes);
    const std::size_t n = relations[0].axes().size(), d = interleaved_dimension(plan_)->dimension;
    const std::size_t interleaved = plan_.destination().order() == Order::C ? d : n - 1 - d;
    std::size_t axis = 0;
    auto positions = [&](std::size_t k) { return k < interleaved ? relations[0].axes()[k].runs.elements() : 0; };
    for (std::size_t k = 1; k < interleaved; ++k)
      if (positions(k) > positions(axis)) axis = k;
    if (parts <= 1) {
      add(std::move(relations), motions);
    } else if (positions(axis) >= parts) {
      const auto cuts = bounds(positions(axis), parts);
      for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
        std::vector<LoopNest> part;
        for (const auto& relation : relations) part.push_back(relation.restrict(axis, cuts[p], cuts[p + 1]));
        add(std::move(part), motions);
      }
    } else {
      auto seen = [&](const LoopNest& r) {
        const auto& runs = r.axes()[interleaved].runs;
        return pull ? runs : runs.inverse();
      };
      Index last = 0;
      for (const auto& relation : relations) {
        const auto runs = seen(relation);
        last = std::max(last, runs.at(runs.elements() - 1).destination + 1);
      }
      const auto cuts = bounds(last, parts);
      for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
        std::vector<LoopNest> part;
        std::vector<const VisibleMotion*> members;
        for (std::size_t m = 0; m < relations.size(); ++m) {
          const auto runs = seen(relations[m]);
          const Index low = runs.position_of_destination(cuts[p]), high = runs.position_of_destination(cuts[p + 1]);
          if (low == high) continue;
          part.push_back(relations[m].restrict(interleaved, low, high));
          members.push_back(motions[m]);
        }
        if (!part.empty()) add(std::move(part), members);
      }
    }
  }

 private:
  CopyProgram::Options program_options(Index destination_rank) {
    if (last_ != destination_rank)
      last_far_ = part_bytes(plan_.destination(), last_ = destination_rank) >= options_.far;
    if (last_far_ && !far_) far_ = options_.stores.value_or(stores_of_far_parts(plan_, options_.table));
    return {last_far_ ? *far_ : Stores::cached, options_.table, options_.combine};
  }

  /// A part of a motion, and where it begins.
  struct Piece {
    std::shared_ptr<const CopyProgram> program;
    OffsetPair first;
    Index bytes;
  };
  /// Whether all destination rows of a nest begin with a line where the first does.
  static bool rows_keep_in_line(const LoopNest& nest) {
    return std::all_of(nest.axes().begin(), nest.axes().end() - 1,
                       [](const RelationAxis& axis) { return axis.destination_stride % line_bytes == 0; });
  }
  static constexpr Index anywhere = -1;
  /// The parts of a motion, and for destinations that begin where in a line they are.
  using Cut = std::pair<Index, std::vector<Piece>>;
  /// Programs of about so many bytes as a task should have. Parts that differ in where they begin only share one.
  /// `phase`: where in a line the destination begins.
  __attribute__((cold)) Cut cut(LoopNest nest, const CopyProgram::Options& how, Index phase) const {
    Index parts = ceil_div(nest.bytes(), options_.task_bytes);
    if (parts <= 1 || nest.axes().empty())
      return {anywhere, {{std::make_shared<const CopyProgram>(nest, how), {0, 0}, nest.bytes()}}};
    std::size_t axis = 0;
    Index unit = 1, head = 0;           // positions that stay together, after so many
    auto canonical = nest.canonical();  // else an axis of one position might seem to be the closest in the source
    const bool by_lines = is_turned(canonical) && rows_keep_in_line(canonical);
    if (by_lines && phase % nest.element_bytes() == 0) {
      nest = std::move(canonical);
      // Some destination rows would be slivers of all source rows. A part has whole source rows, and some whole lines
      // of each destination row: two parts would have each line that is between them.
      axis = nest.axes().size() - 1, unit = ceil_div(turned_row_bytes, nest.element_bytes());
      head = (line_bytes - phase) % line_bytes / nest.element_bytes();
      parts = std::min(parts, ceil_div(nest.axes()[axis].runs.elements(), unit));
    }
    std::vector<Piece> pieces;
    std::vector<std::pair<LoopNest, std::shared_ptr<const CopyProgram>>> known;
    const Index n = nest.axes()[axis].runs.elements();
    auto cuts = bounds(ceil_div(std::max(n - head, Index{1}), unit), parts);
    for (auto& cut : cuts) cut = std::min(cut * unit + head, n);
    cuts.front() = 0;
    for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
      const auto part = nest.restrict(axis, cuts[p], cuts[p + 1]);
      const auto moved = part.from_origin();
      const auto k = find_or_add(
          known, [&](const auto& one) { return one.first == moved; },
          [&] { return std::pair(moved, std::make_shared<const CopyProgram>(moved, how)); });
      pieces.push_back({known[k].second, part.at(0), part.bytes()});
    }
    return {by_lines ? phase : anywhere, std::move(pieces)};
  }

  const MotionPlan& plan_;
  const CopyTaskOptions& options_;
  std::vector<CopyTask>& tasks_;
  MotionRelations relations_;
  Index last_ = -1;  ///< rank that was asked about: most follow each other
  bool last_far_ = false;
  std::optional<Stores> far_;  ///< how far parts are written, once there was one
  /// Of each shape of relation, with cached stores and as far parts, by where in a line destinations begin.
  std::vector<std::vector<Cut>> pieces_;
};

}  // namespace

Stores stores_of_far_parts(const MotionPlan& plan, const KernelTable* table) {
  // What is turned, or put together line by line, gains nothing: ordinary stores fetch a line that is written whole.
  const auto& axes = plan.axes();
  const Layout& all = plan.destination();
  if (plan.source().order() != all.order() || !std::is_sorted(axes.begin(), axes.end()) || joint_direction(plan))
    return Stores::streaming;
  return far_stores(Wide(all.size()) * all.replicas() * plan.element_bytes(),
                    (table ? *table : kernels(Stores::streaming)).profile);
}

std::vector<CopyTask> copy_tasks(const MotionPlan& plan, const std::vector<VisibleMotion>& motions, Direction direction,
                                 const CopyTaskOptions& options) {
  std::vector<CopyTask> tasks;
  tasks.reserve(motions.size());
  TaskMaker maker(plan, options, tasks);
  const bool pull = direction == Direction::pull;
  const bool joint = options.combine.is_copy() && joint_direction(plan) == direction;
  const Index joint_from = joint ? std::min(joint_from_bytes(plan), options.far) : 0;
  const std::size_t along = joint ? interleaved_dimension(plan)->dimension : 0;

  // Motions that differ in nothing but the interleaved coordinate of the other side go together.
  using Key = std::pair<Index, Point>;  // the rank of the shared side, coordinates of the other
  std::map<Key, std::vector<const VisibleMotion*>> together;
  for (const auto& one : motions) {
    const auto& motion = *one.motion;
    const Index shared = pull ? motion.destination : motion.source;
    if (!joint || maker.part_bytes(pull ? plan.destination() : plan.source(), shared) < joint_from) {
      maker.single(one);
      continue;
    }
    auto key = pull ? motion.source_coordinates : motion.destination_coordinates;
    key[pull ? plan.axes()[along] : along] =
        pull ? 0 : plan.destination().replica(*plan.destination().process_of(motion.destination));
    together[{shared, std::move(key)}].push_back(&one);
  }
  for (const auto& [key, members] : together) {
    if (members.size() == 1)
      maker.single(*members[0]);
    else
      maker.joint(members, direction);
  }
  return tasks;
}

std::vector<CopyTask> copy_tasks(const MotionPlan& plan, const std::vector<VisiblePart>& sources,
                                 const std::vector<VisiblePart>& destinations, Direction direction,
                                 const CopyTaskOptions& options) {
  std::map<Index, std::byte*> from;
  for (const auto& part : sources) from[part.rank] = part.data;
  std::vector<List<Motion>> received;
  std::vector<VisibleMotion> motions;
  for (const auto& part : destinations) {
    received.push_back(plan.receives(part.rank));
    for (const auto& motion : received.back())
      if (const auto other = from.find(motion.source); other != from.end())
        motions.push_back({&motion, other->second, part.data});
  }
  return copy_tasks(plan, motions, direction, options);
}

void spread_out(std::vector<CopyTask>& tasks, int threads) {
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const auto& a, const auto& b) { return std::less<>()(a.written(), b.written()); });
  const auto regions = bounds(Index(tasks.size()), threads);
  std::vector<CopyTask> spread;
  spread.reserve(tasks.size());
  for (Index k = 0; spread.size() < tasks.size(); ++k)
    for (std::size_t r = 0; r + 1 < regions.size(); ++r)
      if (regions[r] + k < regions[r + 1]) spread.push_back(std::move(tasks[std::size_t(regions[r] + k)]));
  tasks = std::move(spread);
}

namespace {

struct Execute {
  void operator()(const CopyTask::Single& w) const { w.program->run(w.destination, w.source); }
  void operator()(const CopyTask::Joint& w) const { w.copy.run(w.shared, w.members); }
  void operator()(const CopyTask::Batch& w) const {
    for (const auto& stretch : *w.stretches) run(w, stretch);
  }
  static void run(const CopyTask::Batch& w, const CopyTask::Batch::Stretch& s) {
    std::byte* const destination = s.destination + w.destination_shift;
    const std::byte* const source = s.source + w.source_shift;
    if (s.first == 0 && s.last == s.program->elements())
      s.program->run(destination, source);
    else
      s.program->run(s.first, s.last, destination, source);
  }
};

struct Describe {
  std::string operator()(const CopyTask::Single& w) const { return w.program->describe(); }
  std::string operator()(const CopyTask::Joint& w) const { return w.copy.describe(); }
  std::string operator()(const CopyTask::Batch& w) const {
    const auto words = w.stretches->front().program->describe();
    return w.stretches->size() == 1 ? words : words + " and " + std::to_string(w.stretches->size() - 1) + " more";
  }
};

struct Written {
  const std::byte* operator()(const CopyTask::Single& w) const { return w.destination; }
  const std::byte* operator()(const CopyTask::Joint& w) const { return w.destination; }
  const std::byte* operator()(const CopyTask::Batch& w) const {
    const auto& first = w.stretches->front();
    const auto extent = first.program->destination_extent();
    const Index n = std::max<Index>(first.program->elements(), 1);
    return first.destination + w.destination_shift + extent.first + Index(Wide(extent.size()) * first.first / n);
  }
};

struct WorkspaceBytes {
  /// Its part of what it shares with other tasks.
  Index operator()(const CopyTask::Single& w) const { return w.program->workspace_bytes() / w.program.use_count(); }
  Index operator()(const CopyTask::Joint& w) const { return w.copy.workspace_bytes(); }
  Index operator()(const CopyTask::Batch& w) const {
    // The programs belong to all tasks together, and stretches to those that began with them.
    const bool others = w.destination_shift != 0 || w.source_shift != 0;
    return others ? 0 : Index(w.stretches->capacity() * sizeof(CopyTask::Batch::Stretch));
  }
};

}  // namespace

void CopyTask::run() const { std::visit(Execute{}, work); }

std::size_t CopyTask::parts() const {
  const auto* batch = std::get_if<Batch>(&work);
  return batch ? batch->stretches->size() : 1;
}

void CopyTask::run(std::size_t part) const {
  if (const auto* batch = std::get_if<Batch>(&work))
    Execute::run(*batch, (*batch->stretches)[part]);
  else
    run();
}

std::span<const std::uint32_t> CopyTask::motions(std::size_t part) const {
  if (const auto* batch = std::get_if<Batch>(&work)) return {&(*batch->stretches)[part].motion, 1};
  if (const auto* single = std::get_if<Single>(&work)) return {&single->motion, 1};
  const auto& joint = std::get<Joint>(work);
  return {joint.motions.get(), joint.members.size()};
}

const std::byte* CopyTask::written() const { return std::visit(Written{}, work); }
std::string CopyTask::describe() const { return std::visit(Describe{}, work); }
Index CopyTask::workspace_bytes() const { return Index(sizeof(CopyTask)) + std::visit(WorkspaceBytes{}, work); }

}  // namespace longshore
