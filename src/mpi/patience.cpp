#include "mpi/patience.hpp"

#include <algorithm>
#include <utility>

namespace longshore::mpi {

namespace {

constexpr std::chrono::milliseconds between_looks{500};
/// MPI may need several calls to bring what has been sent.
constexpr int polls_between_looks = 100;

}  // namespace

bool Patience::due() {
  const bool fresh = !std::exchange(waiting_, true);
  if (fresh) suspect_ = -1;
  if (!fresh && ++polls_ < polls_between_looks) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!fresh && now < next_) return false;
  polls_ = 0, next_ = now + between_looks;
  return !fresh;
}

void Patience::look(const std::vector<Awaited>& awaited) {
  auto gone = [this](const Awaited& one) { return one.left || communicator_->has_ended(one.rank); };
  auto same = [this](const Awaited& one) { return one.rank == suspect_; };
  const auto before = std::find_if(awaited.begin(), awaited.end(), same);
  if (before == awaited.end() || !gone(*before)) {
    const auto first = std::find_if(awaited.begin(), awaited.end(), gone);
    suspect_ = first == awaited.end() ? -1 : first->rank;
    return;
  }
  if (before->left) throw given_up(*communicator_, suspect_);
  throw Error(ErrorKind::transport, "rank " + std::to_string(suspect_) + " (process " +
                                        std::to_string(communicator_->process_number(suspect_)) +
                                        " of this node) has ended while rank " + std::to_string(communicator_->rank()) +
                                        " waited for it: what was to be written holds anything");
}

Error given_up(const Communicator& communicator, int rank) {
  return Error(ErrorKind::transport, "rank " + std::to_string(rank) +
                                         " has given up this move, for its mover failed or was destroyed, while " +
                                         "rank " + std::to_string(communicator.rank()) +
                                         " waited for it: what was to be written holds anything; bind the mover anew");
}

}  // namespace longshore::mpi
