/// The `threads` engine for blocks: motions become relations, and relations tasks.
#include <algorithm>

#include "longshore/plans/block_relation.hpp"
#include "movers/threads/tasks_mover.hpp"

namespace longshore {

namespace {

/// Checks the arrays against their floor plan's blocks and makes grids of them.
std::vector<Grid> grids_of(const BlockArrays& blocks, const FloorPlan& plan, Index element_bytes, bool written, const char* what) {
  if (Index(blocks.arrays.size()) != plan.size())
    throw Error(ErrorKind::argument, std::to_string(blocks.arrays.size()) + " " + what + " arrays for " +
                                         std::to_string(plan.size()) + " blocks");
  std::vector<Grid> grids;
  for (Index k = 0; k < plan.size(); ++k) {
    const auto& array = blocks.arrays[std::size_t(k)];
    const std::string who = std::string("the ") + what + " array of block " + std::to_string(k) + " ";
    const Region region = plan.region(k).grow(blocks.ghost);
    if (Point(array.shape) != region.shape())
      throw Error(ErrorKind::shape, who + "has shape " + Point(array.shape).to_string() + ", its region with ghost cells " +
                                        region.to_string() + " has " + region.shape().to_string());
    if (region.empty()) {
      grids.push_back({region, nullptr, std::vector<Index>(region.dims()), element_bytes});
      continue;
    }
    if (array.data == nullptr) throw Error(ErrorKind::buffer, who + "has no memory");
    if (written && array.read_only) throw Error(ErrorKind::buffer, who + "is read-only; give the move one that can be written");
    if (array.strides.size() != region.dims())
      throw Error(ErrorKind::buffer, who + "has " + std::to_string(array.strides.size()) + " strides for " +
                                         std::to_string(region.dims()) + " dimensions");
    grids.push_back({region, array.data, array.strides, element_bytes});
  }
  return grids;
}

/// No array may share memory with one that is written, itself not counted. Arrays that interleave without sharing an element
/// cannot be told from those that do share, and are refused too.
void check_apart(const std::vector<Grid>& sources, const std::vector<Grid>* destinations) {
  struct Span {
    const std::byte *first, *last;
    bool written;
    std::string name;
  };
  std::vector<Span> spans;
  auto add = [&](const std::vector<Grid>& grids, bool written, const char* what) {
    for (std::size_t k = 0; k < grids.size(); ++k) {
      const Grid& grid = grids[k];
      if (grid.region.empty()) continue;
      Index low = 0, high = grid.element_bytes;
      for (std::size_t d = 0; d < grid.region.dims(); ++d) {
        const Index reach = checked_mul(grid.region.extent(d) - 1, grid.strides[d]);
        (reach < 0 ? low : high) = checked_add(reach < 0 ? low : high, reach);
      }
      spans.push_back({grid.data + low, grid.data + high, written, std::string(what) + " array of block " + std::to_string(k)});
    }
  };
  add(sources, destinations == nullptr, destinations ? "source" : "");
  if (destinations) add(*destinations, true, "destination");
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  const Span *reach = nullptr, *reach_written = nullptr;
  for (const auto& span : spans) {
    const Span* before = span.written ? reach : reach_written;
    if (before && before->last > span.first)
      throw Error(ErrorKind::buffer, "the " + before->name + " and the " + span.name + " share memory; give every block its own");
    if (!reach || span.last > reach->last) reach = &span;
    if (span.written && (!reach_written || span.last > reach_written->last)) reach_written = &span;
  }
}

/// Fills tasks with stretches of motions until they have their bytes.
class Batches {
 public:
  explicit Batches(Index task_bytes) : most_(task_bytes) {}

  void add(const BlockMotion& motion, const AddressRelation& relation, std::byte* destination, const std::byte* source) {
    const auto program = std::make_shared<const RelationProgram>(relation);
    const Index element = relation.element_bytes();
    for (Index first = 0; first < relation.elements();) {
      const Index n = std::min(relation.elements() - first, std::max<Index>(1, (most_ - open_.bytes) / element));
      batch_.stretches.push_back({program, first, first + n, destination, source});
      open_.bytes += n * element;
      open_.sources.push_back(motion.source), open_.destinations.push_back(motion.destination);
      first += n;
      if (open_.bytes >= most_) flush();
    }
  }
  std::vector<CopyTask> finish() {
    if (!batch_.stretches.empty()) flush();
    return std::move(tasks_);
  }

 private:
  void flush() {
    for (auto* blocks : {&open_.sources, &open_.destinations}) {
      std::sort(blocks->begin(), blocks->end());
      blocks->erase(std::unique(blocks->begin(), blocks->end()), blocks->end());
    }
    open_.work = std::exchange(batch_, {});
    tasks_.push_back(std::exchange(open_, CopyTask{CopyTask::Batch{}, {}, {}, 0}));
  }

  Index most_;
  CopyTask::Batch batch_;
  CopyTask open_{CopyTask::Batch{}, {}, {}, 0};
  std::vector<CopyTask> tasks_;
};

}  // namespace

std::unique_ptr<Mover> bind_threads(const BlockPlan& plan, Index element_bytes, BlockArrays sources,
                                    std::optional<BlockArrays> destinations, const MoveOptions& options, Order visit) {
  if (plan.rank())
    throw Error(ErrorKind::argument, "the plan is rank " + std::to_string(*plan.rank()) +
                                         "'s; the threads engine has every rank's blocks and needs everybody's plan");
  if (!options.combine.is_copy()) throw Error(ErrorKind::argument, "motions between blocks can only copy");
  if (!destinations && !(plan.source() == plan.destination()))
    throw Error(ErrorKind::argument, "sources can be the destinations only where both have the same floor plan");
  const auto from = grids_of(sources, plan.source(), element_bytes, !destinations, "source");
  std::vector<Grid> others;
  if (destinations) others = grids_of(*destinations, plan.destination(), element_bytes, true, "destination");
  check_apart(from, destinations ? &others : nullptr);
  const auto& to = destinations ? others : from;
  plan.check_races(!destinations);

  Index total = 0;
  plan.for_each([&](const BlockMotion& motion) {
    total = checked_add(total, checked_mul(motion.source_region.size(), element_bytes));
  });
  const int threads = threads_of(options);
  Batches batches(task_bytes(total, threads));
  for (const auto& motion : plan.motions()) {
    const Grid &s = from[std::size_t(motion.source)], &d = to[std::size_t(motion.destination)];
    batches.add(motion, block_relation(motion, s, d, visit), d.data, s.data);
  }
  std::vector<std::shared_ptr<void>> keep_alive;
  for (auto& array : sources.arrays) keep_alive.push_back(std::move(array.keep_alive));
  if (destinations)
    for (auto& array : destinations->arrays) keep_alive.push_back(std::move(array.keep_alive));
  return make_tasks_mover(batches.finish(), threads, options, std::move(keep_alive));
}

}  // namespace longshore
