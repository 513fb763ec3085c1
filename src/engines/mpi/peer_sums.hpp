/// engines/mpi: the sums of the safety-checking mode, from those who send to those who receive.
#pragma once

#include "movers/checked_mover.hpp"
#include "mpi/messages.hpp"

namespace longshore::mpi {

/// `receivers[k]` gets the sum of send k; that of receive k comes
/// from `senders[k]`. Ranks of the communicator, its own too.
std::unique_ptr<SumsExchange> make_peer_sums(std::shared_ptr<Communicator> communicator, std::vector<int> receivers,
                                             std::vector<int> senders);

}  // namespace longshore::mpi
