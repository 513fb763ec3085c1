/// engines/mpi: accesses to the arrays of a window that are got at through MPI.
#pragma once

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engines/mpi/access_messages.hpp"
#include "longshore/copies/relation_program.hpp"
#include "longshore/movers/window.hpp"
#include "mpi/communicator.hpp"
#include "mpi/patience.hpp"
#include "mpi/progress_thread.hpp"

namespace longshore::mpi {

class RemoteAccess;

/// What those of one window have in common: those in pieces, in the order in which they began, and those that others
/// ask this process for. They get on whenever somebody here has a turn in MPI for one of them, in the thread for
/// progress, and in whoever waits for others in this library.
struct RemoteAccesses {
  explicit RemoteAccesses(std::shared_ptr<Communicator> of);
  std::shared_ptr<Communicator> communicator;
  MPI_Win window = MPI_WIN_NULL;             ///< none where nobody needs it
  std::unique_ptr<AccessMessages> messages;  ///< where every process has a thread that answers them; else none
  ProgressThread* progress = nullptr;        ///< the window's; null where it has none
  const bool far_gets_by_messages;           ///< those from other nodes, where there are messages
  std::vector<RemoteAccess*> in_pieces;
  std::map<int, int> under_way;  ///< pieces, by process
  void go_on();
};

/// An MPI_Rget or MPI_Rput, or several where it is large; messages instead where what lies there is many short
/// stretches, and where MPI's own way costs more.
class RemoteAccess final : public Access {
 public:
  /// To array `number`, of that rank, whose first element MPI counts as `displacement` in its window; `window` is kept.
  RemoteAccess(std::shared_ptr<RemoteAccesses> all, std::shared_ptr<const Window> window, int rank, Index number,
               Index displacement, bool put);
  ~RemoteAccess() override;
  void begin_get(const AddressRelation& given, std::byte* to);
  void begin_put(const AddressRelation& given, const std::byte* from);
  bool test() override;
  void wait() override;
  /// Sees what has come, and asks for more of what goes in pieces. In this thread's turn in MPI.
  void go_on();
  bool has_more() const { return !failure_ && (asked_ < elements_ || !requests_.empty()); }

 private:
  void begin(const AddressRelation& relation);
  void ask(const AddressRelation& relation, std::byte* here);
  std::byte* stage(const AddressRelation& relation);
  bool goes_by_messages(const AddressRelation& relation) const;
  Index largest_piece() const;  ///< bytes
  int& under_way() { return all_->under_way[rank_]; }

  std::shared_ptr<RemoteAccesses> all_;
  std::shared_ptr<const Window> window_;
  int rank_;
  bool near_;  ///< that rank is on this node
  Index number_, displacement_;
  bool put_, begun_ = false, done_ = false, in_pieces_ = false, by_messages_ = false;
  std::deque<AccessMessages::Asked> requests_;
  std::exception_ptr failure_;
  std::byte* here_ = nullptr;            // dense, of all its elements
  std::unique_ptr<std::byte[]> staged_;  // what is not dense here; else none
  std::optional<Disassembler> unpack_;
  std::byte* to_ = nullptr;
  AddressRelation relation_;  // of what goes in pieces, and its elements: all of them, and those asked for
  Index elements_ = 0, asked_ = 0;
  Patience patience_;
};

}  // namespace longshore::mpi
