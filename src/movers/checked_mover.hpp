/// The safety-checking mode (the Data Mover, section 2): what is moved is summed up before and after.
#pragma once

#include <memory>
#include <vector>

#include "longshore/movers/mover.hpp"

namespace longshore {

/// Brings the sums of what leaves one process to those for whom it is.
class SumsExchange {
 public:
  virtual ~SumsExchange() = default;
  /// Begins to send the sums of this process's sends; those it expects arrive in the order of its receives.
  virtual void start(const std::vector<std::uint64_t>& sent) = 0;
  /// Without blocking: true when all have gone and come.
  virtual bool test() = 0;
  /// What was expected, once test() has said so.
  virtual std::vector<std::uint64_t> expected() const = 0;
};

/// What one process's motions read and write.
struct CheckedMotions {
  std::vector<BlockMotion> sends, receives;
  XArray source, destination;
  BlockOptions options;
};

/// Does what `mover` does. wait() throws `Error(buffer)` where something that is being sent was written since start(),
/// naming block and points, and `Error(transport)` where what has arrived is not what was sent. `exchange` null: sends
/// and receives are the same motions, all of this process.
std::unique_ptr<Mover> make_checked_mover(std::unique_ptr<Mover> mover, CheckedMotions motions,
                                          std::unique_ptr<SumsExchange> exchange = nullptr);

}  // namespace longshore
