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
  const auto now = std::chrono::steady_clock::now();
  const bool fresh = !std::exchange(waiting_, true);
  if (fresh) suspect_ = -1;
  if (!fresh && (++polls_ < polls_between_looks || now < next_)) return false;
  polls_ = 0, next_ = now + between_looks;
  return !fresh;
}

void Patience::look(const std::vector<Awaited>& awaited) {
  const auto gone = std::find_if(awaited.begin(), awaited.end(),
                                 [this](const Awaited& one) { return one.left || communicator_->has_ended(one.rank); });
  const int suspect = gone == awaited.end() ? -1 : gone->rank;
  if (suspect < 0 || std::exchange(suspect_, suspect) != suspect) {
    suspect_ = suspect;
    return;
  }
  const std::string who = "rank " + std::to_string(suspect), me = "rank " + std::to_string(communicator_->rank());
  throw Error(ErrorKind::transport,
              gone->left ? who + " has given up this move, for its mover failed or was destroyed, while " + me +
                               " waited for it: what was to be written holds anything; bind the mover anew"
                         : who + " (process " + std::to_string(communicator_->process_number(suspect)) +
                               " of this node) has ended while " + me +
                               " waited for it: what was to be written holds anything");
}

}  // namespace longshore::mpi
