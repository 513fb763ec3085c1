/// engines/mpi: the mover of the `mpi` engine, and what binding it to layouts and to blocks has in common.
#pragma once

#include <functional>
#include <optional>

#include "engines/mpi/node_traffic.hpp"
#include "longshore/engines/mpi.hpp"
#include "mpi/agreement.hpp"
#include "mpi/messages.hpp"

namespace longshore::mpi {

/// True where every thread of this process may call MPI.
bool threads_may_call_mpi();
const char* path_name(NodePath path);

/// The staging memory that every process may use, as agreed.
struct Budget {
  static constexpr Index unbounded = INT64_MAX;
  Index max_mem, element_bytes;
  Budget(Index max_mem, Index element_bytes) : max_mem(max_mem), element_bytes(element_bytes) {}
  /// What rings may take; messages need some, too, if there are any for sure.
  Index rings(bool messages_too) const;
};

/// What goes out (comes in) through MPI: its bytes, and how to make
/// the messages, whole or in packets of so many bytes at most; `one_a_peer`: everything to a peer is one message.
struct MessageSide {
  Index bytes = 0;
  std::function<std::vector<PeerEnd>(std::optional<Index> capacity, bool one_a_peer)> make;
};

/// The messages of a mover, with the bytes that they carry.
struct MessageTraffic {
  std::unique_ptr<Messages> messages;  ///< null: none
  Index sent_bytes = 0, received_bytes = 0;
};

/// What a process does between two moments at which it waits for others: a move has one stage, or several.
struct Stage {
  NodeTraffic node;
  MessageTraffic messages;
  std::size_t shares = 0;  ///< so many are carried out together
};

/// Collective: whole messages where every rank can hold them, else packets of a size that every rank can hold, all in
/// flight by a tag of their own. `packet_bytes`: no packet may be larger, 0 for no such bound. `preallocate`: see
/// `Options`. Throws on every rank what one of them throws.
MessageTraffic agree_on_messages(const std::shared_ptr<Communicator>& communicator, Submission& mine,
                                 const Budget& budget, Index ring_bytes, const MessageSide& outgoing,
                                 const MessageSide& incoming, Index packet_bytes = 0, bool preallocate = true);

/// `number`: the communicator's next_number(). `memory`: what it is bound to. `obstacle`: see `Mover::obstacle`.
/// `threaded`: it is driven by a thread other than those that call MPI, which must then not be called unless MPI allows
/// that.
std::unique_ptr<Mover> make_mpi_mover(std::shared_ptr<Communicator> communicator, Index number,
                                      std::vector<Stage> stages, Index moved_bytes, std::vector<BoundMemory> memory,
                                      std::string obstacle, bool threaded, int threads);

}  // namespace longshore::mpi
