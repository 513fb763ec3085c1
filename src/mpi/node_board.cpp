#include "mpi/node_board.hpp"

#include <cstring>

#include "core/relax.hpp"
#include "mpi/agreement.hpp"

namespace longshore::mpi {

NodeBoard::NodeBoard(std::shared_ptr<const void> memory, std::byte* data, int me, int processes)
    : memory_(std::move(memory)), slots_(reinterpret_cast<Slot*>(data)), me_(me), processes_(processes) {}

std::unique_ptr<NodeBoard> NodeBoard::make(MPI_Comm node) {
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
      board.reset(new NodeBoard(segment, segment->data(), me, processes));
    }));
  check_mpi(MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, node), "MPI_Bcast");
  if (me != 0 && address.descriptor >= 0)
    static_cast<void>(attempt([&] {
      const auto view = SegmentView::map(address, true);
      board.reset(new NodeBoard(view, view->data(), me, processes));
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
  for (int process = 0; process < processes_; ++process) {
    const Slot& from = slot(process);
    for (int look = 0; from.round.load(std::memory_order_acquire) < round_; ++look)
      if (look < looks)
        relax();
      else
        waiting();
    std::memcpy(all.data() + std::size_t(process) * mine.size(), from.said, mine.size());
  }
}

}  // namespace longshore::mpi
