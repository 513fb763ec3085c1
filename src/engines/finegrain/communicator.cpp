#include "longshore/engines/finegrain_communicator.hpp"

#include "engines/finegrain/collectives.hpp"

namespace longshore::finegrain {

namespace {

class Creation final : public Arrival {
 public:
  Creation() : Arrival("create()") {}
  void carry_out(World& world, Group& group) override {
    const Arrivals all = world.arrivals(group);
    group.context = world.new_context();
    for (Index i = 0; i < all.size(); ++i) all.at<Creation>(i).rank_ = i;
  }
  Index rank() const { return rank_; }

 private:
  Index rank_ = nobody;
};

}  // namespace

Communicator Communicator::create(Rank& me, RankMap members) {
  World& world = me.world_;
  if (members.empty())
    throw Error(ErrorKind::argument, "a communicator has at least one member; give a map that has some");
  if (members.world() != world.size())
    throw Error(ErrorKind::argument, "the members are of a world of " + std::to_string(members.world()) +
                                         " ranks; this one has " + std::to_string(world.size()));
  if (!world.check_turn(me.rank_)) throw WorldEnded{};  // there is nothing to return
  auto group = world.join(members);
  Creation creation;
  if (!world.arrive(me.rank_, *group, creation)) throw WorldEnded{};
  return Communicator(world.shared_from_this(), std::move(group), me.rank_, creation.rank());
}

const RankMap& Communicator::members() const& { return group_->members; }

Index Communicator::world_rank(Index member) const {
  if (member < 0 || member >= size()) refuse_member(member, *group_, "");
  return members().select(member);
}

void Communicator::send(Index to, Index tag, std::span<const std::byte> message) {
  world_->send(me_, world_rank(to), channel(*group_, tag), message);
}

void Communicator::receive(Index from, Index tag, std::span<std::byte> message) {
  world_->receive(me_, world_rank(from), channel(*group_, tag), message);
}

std::vector<std::byte> Communicator::receive(Index from, Index tag) {
  return world_->receive(me_, world_rank(from), channel(*group_, tag));
}

void Communicator::barrier() { collective_barrier(*world_, *group_, me_); }

void Communicator::gather(Index root, std::span<const std::byte> mine, std::span<std::byte> all) {
  collective_gather(*world_, *group_, me_, root, mine, all);
}

void Communicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  collective_all_gather(*world_, *group_, me_, mine, all);
}

void Communicator::broadcast(Index root, std::span<std::byte> message) {
  collective_broadcast(*world_, *group_, me_, root, message);
}

void Communicator::all_reduce(std::span<std::byte> numbers, const Reduction& reduction) {
  collective_all_reduce(*world_, *group_, me_, numbers, reduction);
}

}  // namespace longshore::finegrain
