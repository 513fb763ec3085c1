/// Moves between memories that one process can see, its own or
/// mapped from its neighbours: which way to go, and the tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "longshore/copies/joint_copy.hpp"
#include "longshore/copies/relation_program.hpp"
#include "longshore/plans/motion_plan.hpp"

namespace longshore {

/// One part's memory as seen from here.
struct VisiblePart {
  Index rank;
  std::byte* data;
};

/// Work that can be done by itself. Tasks of one list write disjoint memory.
struct CopyTask {
  struct Single {
    std::shared_ptr<const CopyProgram> program;  ///< motions that are alike but for where they begin share it
    std::byte* destination;
    const std::byte* source;
    std::uint32_t motion = 0;  ///< the number of the motion that it carries, or carries a part of
  };
  struct Joint {
    JointCopy copy;
    std::byte* shared;
    std::vector<std::byte*> members;
    std::unique_ptr<const std::uint32_t[]> motions;  ///< a member each
    std::byte* destination = nullptr;                ///< where it begins to write
  };
  /// Motions between blocks: stretches of relations, of which one
  /// may be cut into several tasks. They share their programs.
  struct Batch {
    struct Stretch {
      std::shared_ptr<const RelationProgram> program;
      Index first, last;  ///< positions
      std::byte* destination;
      const std::byte* source;
      bool in_order = false;  ///< of one side, when the other is a message: the array's bytes are those of the message
      std::uint32_t motion = 0;
    };
    std::shared_ptr<const std::vector<Stretch>> stretches;
    Index destination_shift = 0, source_shift = 0;  ///< bytes to other arrays, in which all lies alike
  };
  std::variant<Single, Joint, Batch> work;
  Index bytes = 0;
  std::vector<int> peers{};  ///< other processes whose memory is read or written, each once

  void run() const;
  /// The same a part at a time, in order: a batch has as many as stretches, all else is one.
  std::size_t parts() const;
  void run(std::size_t part) const;
  /// The numbers of the motions that a part is of.
  std::span<const std::uint32_t> motions(std::size_t part) const;
  /// About where it begins to write.
  const std::byte* written() const;
  std::string describe() const;
  Index workspace_bytes() const;
};

struct CopyTaskOptions {
  Combine combine;
  Index task_bytes = INT64_MAX;  ///< split into tasks of about this size
  /// Parts of so many bytes are beyond the cache of a core: they are written as `stores` say, and lines that belong to
  /// several are visited once for all of them, as those of smaller parts are where `joint_from_bytes` says so.
  Index far = far_bytes;
  std::optional<Stores> stores = {};   ///< none: as `stores_of_far_parts` says
  const KernelTable* table = nullptr;  ///< null: the fastest this CPU has
};

/// How parts beyond the cache of a core are written, by the profile of a table; null: of the one this CPU is best with.
Stores stores_of_far_parts(const MotionPlan& plan, const KernelTable* table = nullptr);

/// A motion between two parts that can be seen.
struct VisibleMotion {
  const Motion* motion;
  std::byte *source, *destination;
  std::uint32_t number = 0;  ///< that tasks have of it
};

/// The tasks that carry these motions. Joint copies are made where `direction` finds several parts sharing cache lines.
std::vector<CopyTask> copy_tasks(const MotionPlan& plan, const std::vector<VisibleMotion>& motions, Direction direction,
                                 const CopyTaskOptions& options = {});
/// The tasks that carry every motion from one of `sources` to one of `destinations`. Each side may be part of the
/// plan's ranks only. Joint copies are made where `direction` finds several parts sharing cache lines.
std::vector<CopyTask> copy_tasks(const MotionPlan& plan, const std::vector<VisiblePart>& sources,
                                 const std::vector<VisiblePart>& destinations, Direction direction,
                                 const CopyTaskOptions& options = {});

/// Puts tasks into an order in which so many threads that take one after the other write far from each other: tasks
/// that begin near each other may share cache lines, and who writes to them at the same time keeps the others waiting.
void spread_out(std::vector<CopyTask>& tasks, int threads);

}  // namespace longshore
