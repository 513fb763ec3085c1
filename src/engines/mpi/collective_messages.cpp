#include "engines/mpi/collective_messages.hpp"

#include <algorithm>
#include <limits>

namespace longshore::mpi {

namespace {

/// One buffer with a place for each of several processes, as MPI's v-collectives have it.
struct PlacedMessages {
  std::vector<PeerEnd> ends;
  std::vector<std::byte> buffer;
  std::vector<int> counts, places;
  std::vector<std::size_t> starts;  ///< of each end's message in the buffer

  /// `slots`: how many processes the collective is among; `slot_of`: which of them a process is.
  template <class F>
  void lay_out(std::vector<PeerEnd> given, std::size_t slots, F&& slot_of) {
    ends = std::move(given);
    counts.assign(slots, 0), places.assign(slots, 0);
    std::size_t bytes = 0;
    for (const auto& [peer, message] : ends) {
      const auto slot = std::size_t(slot_of(peer));
      starts.push_back(bytes);
      places[slot] = int(bytes), counts[slot] = int(message->packet_bytes(0));
      bytes += std::size_t(counts[slot]);
    }
    buffer.resize(bytes);
  }
};

class CollectiveMessages final : public Messages {
 public:
  /// `comm`: of these messages alone, since collectives of one communicator must be started in the same order by all,
  /// and movers need not be. `graph`: it has neighbours.
  CollectiveMessages(std::shared_ptr<Communicator> communicator, MPI_Comm comm, bool graph, PlacedMessages out,
                     PlacedMessages in)
      : communicator_(std::move(communicator)), comm_(comm), graph_(graph), out_(std::move(out)), in_(std::move(in)) {}
  ~CollectiveMessages() override {
    if (comm_ != MPI_COMM_NULL && mpi_alive()) MPI_Comm_free(&comm_);
  }

  void start() override {
    communicator_->world();  // throws where the user has freed the communicator
    for (std::size_t k = 0; k < out_.ends.size(); ++k)
      out_.ends[k].message->pack(0, out_.buffer.data() + out_.starts[k], Stores::cached);
    if (graph_)
      check_mpi(
          MPI_Ineighbor_alltoallv(out_.buffer.data(), out_.counts.data(), out_.places.data(), MPI_BYTE,
                                  in_.buffer.data(), in_.counts.data(), in_.places.data(), MPI_BYTE, comm_, &request_),
          "MPI_Ineighbor_alltoallv");
    else
      check_mpi(MPI_Ialltoallv(out_.buffer.data(), out_.counts.data(), out_.places.data(), MPI_BYTE, in_.buffer.data(),
                               in_.counts.data(), in_.places.data(), MPI_BYTE, comm_, &request_),
                "MPI_Ialltoallv");
    done_ = false;
  }
  bool advance() override {
    if (done_) return false;
    int arrived = 0;
    check_mpi(MPI_Test(&request_, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
    if (!arrived) return false;
    for (std::size_t k = 0; k < in_.ends.size(); ++k) in_.ends[k].message->unpack(0, in_.buffer.data() + in_.starts[k]);
    done_ = true;
    return true;
  }
  bool done() const override { return done_; }
  std::vector<int> awaited() const override { return peers(); }
  std::vector<int> peers() const override {
    std::vector<int> peers;
    for (const auto* messages : {&out_, &in_})
      for (const auto& end : messages->ends) peers.push_back(end.peer);
    return peers;
  }
  void add_missing(std::set<int>& peers) const override {
    if (done_) return;
    for (const auto& end : in_.ends) peers.insert(end.peer);
  }
  Index staging_bytes() const override { return Index(out_.buffer.size() + in_.buffer.size()); }
  Index workspace_bytes() const override {
    Index bytes = Index(sizeof *this) + staging_bytes();
    for (const auto* placed : {&out_, &in_})
      bytes +=
          mpi::workspace_bytes(placed->ends) + Index((placed->counts.size() + placed->places.size()) * sizeof(int) +
                                                     placed->starts.size() * sizeof(std::size_t));
    return bytes;
  }
  bool abandon() override {
    if (done_) return false;
    // A collective cannot be taken back, and MPI may still read and write the buffers: they stay for good.
    new std::vector<std::byte>(std::move(out_.buffer));
    new std::vector<std::byte>(std::move(in_.buffer));
    for (auto* placed : {&out_, &in_})
      for (auto* numbers : {&placed->counts, &placed->places}) new std::vector<int>(std::move(*numbers));
    comm_ = MPI_COMM_NULL;
    return false;
  }

 private:
  std::shared_ptr<Communicator> communicator_;
  MPI_Comm comm_;
  bool graph_;
  PlacedMessages out_, in_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool done_ = true;
};

MPI_Comm make_graph(MPI_Comm comm, const std::vector<int>& senders, const std::vector<int>& receivers) {
  MPI_Comm graph = MPI_COMM_NULL;
  check_mpi(
      MPI_Dist_graph_create_adjacent(comm, int(senders.size()), senders.data(), MPI_UNWEIGHTED, int(receivers.size()),
                                     receivers.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph),
      "MPI_Dist_graph_create_adjacent");
  return graph;
}

/// Messages up to this size are chosen to go in one collective; larger ones go better by themselves.
constexpr Index most_collective_bytes = Index{1} << 20;

}  // namespace

MessageTraffic agree_on_exchange(const std::shared_ptr<Communicator>& communicator, Submission& mine,
                                 const Budget& budget, const Options& options, Routes& routes) {
  const auto outgoing = routes.outgoing(), incoming = routes.incoming();
  const auto senders = routes.senders(), receivers = routes.receivers();
  const auto others = std::size_t(communicator->size() - 1);
  // Counts and places are ints, and everything has a buffer.
  const bool possible = options.aggregate && options.packet_bytes == 0 && budget.max_mem == Budget::unbounded &&
                        std::max(outgoing.bytes, incoming.bytes) <= std::numeric_limits<int>::max();
  const bool dense = others > 1 && senders.size() == others && receivers.size() == others &&
                     std::max(outgoing.bytes, incoming.bytes) / Index(others) <= most_collective_bytes;
  const auto agreed = agree(*communicator, mine, {possible, dense});
  auto exchange = options.exchange;
  if (exchange == Exchange::automatic) exchange = agreed[1] ? Exchange::all_to_all : Exchange::point_to_point;
  if (exchange == Exchange::point_to_point || !agreed[0])
    return agree_on_messages(communicator, mine, budget, routes.ring_bytes(), outgoing, incoming, options.packet_bytes,
                             options.preallocate);

  MessageTraffic traffic{nullptr, outgoing.bytes, incoming.bytes};
  const bool graph = exchange == Exchange::neighborhood;
  const MPI_Comm comm =
      graph ? make_graph(communicator->world(), senders, receivers) : duplicate(communicator->world());
  mine.failure = attempt([&] {
    PlacedMessages out, in;
    auto slot_among = [](const std::vector<int>& peers) {
      return [&peers](int peer) { return std::lower_bound(peers.begin(), peers.end(), peer) - peers.begin(); };
    };
    const auto itself = [](int peer) { return Index(peer); };
    const auto all = std::size_t(communicator->size());
    if (graph) {
      out.lay_out(outgoing.make({}, true), receivers.size(), slot_among(receivers));
      in.lay_out(incoming.make({}, true), senders.size(), slot_among(senders));
    } else {
      out.lay_out(outgoing.make({}, true), all, itself);
      in.lay_out(incoming.make({}, true), all, itself);
    }
    traffic.messages = std::make_unique<CollectiveMessages>(communicator, comm, graph, std::move(out), std::move(in));
  });
  agree(*communicator, mine);
  return traffic;
}

}  // namespace longshore::mpi
