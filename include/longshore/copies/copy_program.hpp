/// Loop nests compiled for execution.
#pragma once

#include <memory>
#include <string>

#include "longshore/copies/kernels.hpp"
#include "longshore/relations/combine.hpp"
#include "longshore/relations/loop_nest.hpp"

namespace longshore {

/// A relation compiled for execution: axes ordered for the memory system, contiguous runs absorbed into blocks, the
/// leaf kernel chosen. Memory is proportional to the runs of one period of each axis. Immutable; threads may share it.
class CopyProgram {
 public:
  struct Options {
    Stores stores = Stores::cached;
    const KernelTable* table = nullptr;  ///< null: `kernels()`
    Combine combine;                     ///< default: copy
  };
  CopyProgram(const LoopNest& relation, const Options& options);
  explicit CopyProgram(const LoopNest& relation) : CopyProgram(relation, Options{}) {}
  ~CopyProgram();
  CopyProgram(CopyProgram&&) noexcept;
  CopyProgram& operator=(CopyProgram&&) noexcept;

  /// Moves every pair. Offsets are relative to the two pointers. The arrays must not overlap.
  void run(std::byte* destination, const std::byte* source) const;
  /// What runs, in words, for `explain` and for tests: "4 x transpose 512 x 512 of 8 bytes".
  std::string describe() const;
  Index workspace_bytes() const;  ///< memory this object holds

 private:
  struct Implementation;
  std::unique_ptr<const Implementation> implementation_;
};

}  // namespace longshore
