#include "mpi/node_board.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/relax.hpp"
#include "mpi/agreement.hpp"

namespace longshore::mpi {

namespace {

using namespace std::chrono_literals;

/// Processes that only look give the processor back sooner.
constexpr auto long_turn = 100us;
/// After long turns of a millisecond together, beyond a tenth of the time, others are taken to be at work: for so long
/// at first, and twice as long each time that they still are.
constexpr std::chrono::nanoseconds most_turns = 1ms, first_work = 4ms, longest_work = 250ms;

using Clock = std::chrono::steady_clock;

/// What a thread that waits has found about others on its processor.
class Others {
 public:
  bool at_work() const { return until_ > Clock::time_point() && Clock::now() < until_; }
  void have_turn() {
    const auto before = Clock::now();
    sched_yield();
    const auto after = Clock::now();
    turns_ = std::max(turns_ - (after - last_) / 10, 0ns);
    last_ = after;
    if (after - before > long_turn) turns_ += after - before;
    if (turns_ < most_turns) return;
    work_ = after - until_ < work_ ? std::min(work_ * 2, longest_work) : first_work;
    until_ = after + work_;
    turns_ = 0ns;
  }

 private:
  std::chrono::nanoseconds turns_{}, work_ = first_work;
  Clock::time_point last_{}, until_{};
};
thread_local Others others;

}  // namespace

NodeBoard::NodeBoard(std::shared_ptr<const void> memory, std::byte* data, int me, int processes, bool crowded)
    : memory_(std::move(memory)),
      slots_(reinterpret_cast<Slot*>(data)),
      signals_(reinterpret_cast<SignalLine*>(slots_ + 2 * processes)),
      me_(me),
      processes_(processes),
      crowded_(crowded) {}

std::unique_ptr<NodeBoard> NodeBoard::make(MPI_Comm node, bool crowded) {
  int me = 0, processes = 1;
  check_mpi(MPI_Comm_rank(node, &me), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(node, &processes), "MPI_Comm_size");
  if (processes == 1) return nullptr;
  // Who cannot make or see it goes without, and so do all.
  std::shared_ptr<SharedSegment> segment;
  std::unique_ptr<NodeBoard> board;
  SharedSegment::Address address;
  if (me == 0)
    static_cast<void>(attempt([&] {
      segment = SharedSegment::create(bytes(processes));
      address = segment->address();
      board.reset(new NodeBoard(segment, segment->data(), me, processes, crowded));
      for (int process = 0; process < processes; ++process) new (board->signals_ + process) SignalLine;
    }));
  check_mpi(MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, node), "MPI_Bcast");
  if (me != 0 && address.descriptor >= 0)
    static_cast<void>(attempt([&] {
      const auto view = SegmentView::map(address, true);
      board.reset(new NodeBoard(view, view->data(), me, processes, crowded));
    }));
  int mine = board != nullptr, everybody = 0;
  check_mpi(MPI_Allreduce(&mine, &everybody, 1, MPI_INT, MPI_MIN, node), "MPI_Allreduce");
  // Who is the last to see a round may still look for it when the others have freed the communicator.
  if (segment) segment->seal();
  return everybody ? std::move(board) : nullptr;
}

void NodeBoard::gather(std::span<const std::byte> mine, std::span<std::byte> all, int looks,
                       const std::function<void()>& waiting) {
  ++round_;
  std::memcpy(slot(me_).said, mine.data(), mine.size());
  slot(me_).round.store(round_, std::memory_order_release);
  for (int process = 0; process < processes_; ++process)
    if (process != me_) wake(process);
  for (int process = 0; process < processes_; ++process) {
    const Slot& from = slot(process);
    const auto has_come = [&] { return from.round.load(std::memory_order_acquire) >= round_; };
    for (int look = 0; !has_come(); ++look)
      if (look < looks)
        relax();
      else
        waiting(), step_aside(has_come);
    std::memcpy(all.data() + std::size_t(process) * mine.size(), from.said, mine.size());
  }
}

void NodeBoard::yield() const {
  if (crowded_)
    others.have_turn();
  else
    sched_yield();
}

bool NodeBoard::is_taken() { return others.at_work(); }

}  // namespace longshore::mpi
