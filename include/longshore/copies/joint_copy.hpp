/// Several relations carried out together because they share cache lines on one side: a destination whose
/// lines hold elements of several sources is swept once, each line completed while it is in cache; or a
/// source whose lines feed several destinations is read once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longshore/copies/copy_program.hpp"

namespace longshore {

/// K member relations, all of which have the same array on their `shared` side. Immutable; threads may share it.
class JointCopy {
 public:
  enum class Shared { destination, source };

  /// Members as `MotionPlan::relation_by_dimension` gives them: the same axes in the same order, alike in everything
  /// but the innermost axis that is not whole. Throws `Error(argument)` where they are not. `at`: where the shared
  /// array is to lie, if that is known: less is planned then, and somewhere else `run` is slower.
  JointCopy(std::vector<LoopNest> members, Shared shared, const CopyProgram::Options& options,
            const std::byte* at = nullptr);
  ~JointCopy();
  JointCopy(JointCopy&&) noexcept;
  JointCopy& operator=(JointCopy&&) noexcept;

  /// Moves every pair of every member: `shared` is the one array, `members[k]`
  /// the other array of member k. Which of them is written follows from `Shared`.
  void run(std::byte* shared, const std::vector<std::byte*>& members) const;
  Index bytes() const;
  std::string describe() const;
  Index workspace_bytes() const;  ///< memory held, the staging of one running thread included

 private:
  struct Implementation;
  std::unique_ptr<const Implementation> implementation_;
};

}  // namespace longshore
