#include "communicators.hpp"

#include <algorithm>
#include <chrono>

#include <longshore/engines/finegrain_communicator.hpp>
#include <longshore/ranks/rank_module.hpp>

namespace longshore::bench {

namespace {

using finegrain::Communicator;
using finegrain::Rank;

/// From when the first of them begins until the last one has finished.
class Stretch {
 public:
  explicit Stretch(Index members) : members_(members) {}
  void begin() {
    if (begun_++ == 0) start_ = Clock::now();
  }
  void end(double& seconds) {
    if (++ended_ < members_) return;
    seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    begun_ = ended_ = 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Index members_, begun_ = 0, ended_ = 0;
  Clock::time_point start_;
};

/// The messages of each member, by their numbers: those of member i are numbers[starts[i]] ... numbers[starts[i + 1] -
/// 1].
class Hands {
 public:
  Hands(std::span<const Index> members_of, Index members)
      : starts_(std::size_t(members) + 1), numbers_(members_of.size()) {
    for (const Index i : members_of) ++starts_[std::size_t(i)];
    Index sum = 0;
    for (auto& start : starts_) sum += start, start = sum;
    for (std::size_t k = members_of.size(); k-- > 0;)
      numbers_[std::size_t(--starts_[std::size_t(members_of[k])])] = Index(k);
  }
  std::span<const Index> of(Index member) const {
    const auto first = starts_[std::size_t(member)], last = starts_[std::size_t(member) + 1];
    return std::span(numbers_).subspan(std::size_t(first), std::size_t(last - first));
  }

 private:
  std::vector<Index> starts_, numbers_;
};

struct Message {
  Index number, from, to;
  bool operator==(const Message&) const = default;
};

void expect(bool right, const char* what, Index where) {
  if (!right)
    throw Error(ErrorKind::transport, std::string(what) + " " + std::to_string(where) + " is not what was sent");
}

/// What the members of one communicator share, and what each of them does.
class Experiment {
 public:
  Experiment(std::span<const Index> members, const CommunicatorWork& work)
      : members_(members),
        work_(work),
        sent_(work.senders, Index(members.size())),
        received_(work.receivers, Index(members.size())),
        gathered_(members.size()),
        stretch_(Index(members.size())) {}

  void use(Rank& me, Communicator& home, const RankMap& map, CommunicatorSeconds& seconds) {
    home.barrier();
    stretch_.begin();
    auto group = Communicator::create(me, map);
    stretch_.end(seconds.create);
    home.barrier();
    stretch_.begin();
    exchange(group);
    group.barrier();
    stretch_.end(seconds.messages);
    home.barrier();
    stretch_.begin();
    for (Index round = 0; round < work_.gathers; ++round) gather(me, group, round);
    stretch_.end(seconds.gathers);
    home.barrier();
  }

 private:
  void exchange(Communicator& group) const {
    const Index i = group.rank();
    for (const Index k : sent_.of(i)) {
      const Message message{k, i, work_.receivers[std::size_t(k)]};
      group.send(message.to, 0, std::as_bytes(std::span(&message, 1)));
    }
    for (const Index k : received_.of(i)) {
      const Message sent{k, work_.senders[std::size_t(k)], i};
      Message message{};
      group.receive(sent.from, 0, std::as_writable_bytes(std::span(&message, 1)));
      expect(message == sent, "message", k);
    }
  }

  void gather(const Rank& me, Communicator& group, Index round) {
    const Index mine = me.rank() + round;
    const bool root = group.rank() == 0;
    if (root) std::fill(gathered_.begin(), gathered_.end(), nobody);
    group.gather(0, std::as_bytes(std::span(&mine, 1)),
                 root ? std::as_writable_bytes(std::span(gathered_)) : std::span<std::byte>());
    if (root)
      for (std::size_t i = 0; i < members_.size(); ++i)
        expect(gathered_[i] == members_[i] + round, "gathered number", Index(i));
  }

  std::span<const Index> members_;
  const CommunicatorWork& work_;
  Hands sent_, received_;
  std::vector<Index> gathered_;
  Stretch stretch_;
};

}  // namespace

RankMap array_map(std::span<const Index> members, Index world) {
  Analysis known;
  known.size = Index(members.size()), known.world = world;
  return RankMap(rank_module("array").build(Members(members), known), world,
                 std::is_sorted(members.begin(), members.end()));
}

std::vector<std::vector<CommunicatorSeconds>> communicator_seconds(std::span<const Index> members,
                                                                   std::span<const RankMap> maps,
                                                                   std::span<const Index> repeats,
                                                                   const CommunicatorWork& work) {
  const Index world = maps[0].world(), most = *std::max_element(repeats.begin(), repeats.end());
  std::vector<std::vector<CommunicatorSeconds>> seconds;
  for (const Index times : repeats) seconds.emplace_back(std::size_t(times));
  std::vector<bool> member(std::size_t(world), false);
  for (const Index r : members) member[std::size_t(r)] = true;
  Experiment experiment(members, work);
  finegrain::run(world, [&](Rank& me) {
    if (member[std::size_t(me.rank())]) {
      auto home = Communicator::create(me, maps[0]);
      CommunicatorSeconds first;  // touches stacks and memory, and counts for nothing
      experiment.use(me, home, maps[0], first);
      for (Index round = 0; round < most; ++round)
        for (std::size_t turn = 0; turn < maps.size(); ++turn) {
          const std::size_t k = (turn + std::size_t(round)) % maps.size();  // another one is the first each time
          if (round < repeats[k]) experiment.use(me, home, maps[k], seconds[k][std::size_t(round)]);
        }
    }
    me.barrier();
  });
  return seconds;
}

}  // namespace longshore::bench
