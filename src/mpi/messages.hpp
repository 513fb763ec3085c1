/// mpi: the messages that go through MPI. Whole: all in flight at once. Packets: where
/// memory is short, packets through a few slots in an order that cannot deadlock.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "copies/message.hpp"
#include "mpi/communicator.hpp"

namespace longshore::mpi {

/// A message and the process at the other end.
struct PeerEnd {
  int peer = 0;
  std::unique_ptr<Message> message;
};

/// How messages are staged. All ranks choose alike: both ends of a message must cut it in the same way.
struct Staging {
  bool whole = true;
  Index packet_bytes = 0;   ///< not whole: the largest packet
  bool preallocate = true;  ///< whole: the buffers are there all the time, not only between start and completion
};

class Messages {
 public:
  virtual ~Messages() = default;
  virtual void start() = 0;
  /// Bounded work: at most a few packets. True if anything was done.
  virtual bool advance() = 0;
  virtual bool done() const = 0;
  /// The processes at the other ends, some of them twice.
  virtual std::vector<int> peers() const = 0;
  /// Those without which it does not get on.
  virtual std::vector<int> awaited() const = 0;
  /// Adds those from whom something has yet to come.
  virtual void add_missing(std::set<int>& peers) const = 0;
  virtual Index staging_bytes() const = 0;
  /// All that is held: buffers, and what packs and unpacks them.
  virtual Index workspace_bytes() const = 0;
  /// Gives up what is in flight, for a mover that is destroyed before wait(). True where MPI may still read or write
  /// the arrays; buffers of which that is so are kept for good.
  [[nodiscard]] virtual bool abandon() = 0;
};

/// Of what packs and unpacks these messages.
Index workspace_bytes(const std::vector<PeerEnd>& ends);
/// The staging that these messages need here if every packet of theirs is in flight at once.
Index staging_bytes(const std::vector<PeerEnd>& outgoing, const std::vector<PeerEnd>& incoming);

/// Messages of one packet each, if whole; else of packets of at most the agreed size. `bytes`: what all slots together
/// may take, for packets. Not collective. Null where there are none.
std::unique_ptr<Messages> make_messages(std::shared_ptr<Communicator> communicator, int tag,
                                        std::vector<PeerEnd> outgoing, std::vector<PeerEnd> incoming,
                                        const Staging& staging, Index bytes);

/// The requests of one message of any size, split into messages of at most 1 GiB so that every count fits an int.
class Requests {
 public:
  enum class Mode { eager, synchronous };
  /// Synchronous: complete only when the receiver has taken it, so that a fast sender cannot fill the receiver's MPI
  /// library.
  void send(MPI_Comm comm, int peer, int tag, const std::byte* data, Index bytes, Mode mode);
  void receive(MPI_Comm comm, int peer, int tag, std::byte* data, Index bytes);
  bool test();  ///< true once, when all of it has arrived or left; false when idle
  bool active() const { return !requests_.empty(); }
  /// Takes a receive back, leaves a send to MPI. Active afterwards: MPI may still write or read the data.
  void abandon();

 private:
  std::vector<MPI_Request> requests_;
  bool sending_ = false;
};

}  // namespace longshore::mpi
