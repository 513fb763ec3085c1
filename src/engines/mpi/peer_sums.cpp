#include "engines/mpi/peer_sums.hpp"

#include <map>

#include "mpi/patience.hpp"

namespace longshore::mpi {

namespace {

class PeerSums final : public SumsExchange {
 public:
  PeerSums(std::shared_ptr<Communicator> communicator, std::vector<int> receivers, std::vector<int> senders)
      : communicator_(std::move(communicator)),
        patience_(*communicator_),
        tag_(communicator_->next_tag()),
        receivers_(std::move(receivers)),
        senders_(std::move(senders)) {}
  ~PeerSums() override {
    if (mpi_alive())
      for (auto* ends : {&out_, &in_})
        for (auto& [peer, end] : *ends) {
          end.requests.abandon();
          if (end.requests.active()) new std::vector<std::uint64_t>(std::move(end.sums));  // MPI may still look at it
        }
  }

  void start(const std::vector<std::uint64_t>& sent) override {
    for (auto* ends : {&out_, &in_})
      for (auto& [peer, end] : *ends) end.sums.clear();
    for (std::size_t k = 0; k < sent.size(); ++k) out_[receivers_[k]].sums.push_back(sent[k]);
    for (const int peer : senders_) in_[peer].sums.push_back(0);
    for (auto& [peer, end] : in_) end.requests.receive(communicator_->world(), peer, tag_, end.data(), end.bytes());
    for (auto& [peer, end] : out_)
      end.requests.send(communicator_->world(), peer, tag_, end.data(), end.bytes(), Requests::Mode::eager);
  }
  bool test() override {
    check_not_finalised();
    bool done = true;
    for (auto* ends : {&out_, &in_})
      for (auto& [peer, end] : *ends) {
        if (!end.requests.active()) continue;
        if (end.requests.test())
          patience_.progress();
        else
          done = false;
      }
    if (!done) patience_.nothing([this] { return awaited(); });
    return done;
  }
  std::vector<std::uint64_t> expected() const override {
    std::map<int, std::size_t> taken;
    std::vector<std::uint64_t> expected;
    for (const int peer : senders_) expected.push_back(in_.at(peer).sums[taken[peer]++]);
    return expected;
  }

 private:
  struct End {
    std::vector<std::uint64_t> sums;
    Requests requests;
    std::byte* data() { return reinterpret_cast<std::byte*>(sums.data()); }
    Index bytes() const { return Index(sums.size() * sizeof(std::uint64_t)); }
  };
  std::vector<Awaited> awaited() const {
    std::vector<Awaited> awaited;
    for (const auto* ends : {&out_, &in_})
      for (const auto& [peer, end] : *ends)
        if (end.requests.active()) awaited.push_back({peer});
    return awaited;
  }

  std::shared_ptr<Communicator> communicator_;
  Patience patience_;
  int tag_;
  std::vector<int> receivers_, senders_;
  std::map<int, End> out_, in_;
};

}  // namespace

std::unique_ptr<SumsExchange> make_peer_sums(std::shared_ptr<Communicator> communicator, std::vector<int> receivers,
                                             std::vector<int> senders) {
  return std::make_unique<PeerSums>(std::move(communicator), std::move(receivers), std::move(senders));
}

}  // namespace longshore::mpi
