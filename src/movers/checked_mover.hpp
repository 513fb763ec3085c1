/// The safety-checking mode (the Data Mover, section 2): what is moved is summed up before and after.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "movers/share.hpp"

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

/// What a process sends and receives, as messages that can be packed to be summed up. What it keeps is among both, at
/// the end of each and in one order.
struct CheckedTransfers {
  struct End {
    std::unique_ptr<Message> message;
    std::string name;
    int peer = 0;
    bool compares = true;  ///< what has arrived is what was sent; not where it was computed with
  };
  std::vector<End> sends, receives;
  std::size_t kept = 0;      ///< how many of each are the process's own
  Index programs_bytes = 0;  ///< of those that the share had to make for this

  void add(Share& share);
  /// Of `sends` or `receives`: at the other ends, of what is not kept.
  std::vector<int> peers(const std::vector<End>& ends) const;
};

/// Does what `mover` does. wait() throws `Error(buffer)` where something that is being sent was written since start(),
/// naming what, and `Error(transport)` where what has arrived is not what was sent. `exchange` null: everything is
/// kept.
std::unique_ptr<Mover> make_checked_mover(std::unique_ptr<Mover> mover, CheckedTransfers transfers,
                                          std::unique_ptr<SumsExchange> exchange = nullptr);

}  // namespace longshore
