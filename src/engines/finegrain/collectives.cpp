/// What a rank's program calls: messages, and collective operations.
#include "engines/finegrain/collectives.hpp"

#include <algorithm>

namespace longshore::finegrain {

namespace {

void check_root(Index root, const Group& group, const char* what) {
  if (root < 0 || root >= group.size()) refuse_member(root, group, what);
}

void check_equal(std::size_t brought, std::size_t first, Index member, const Arrivals& all, const char* call) {
  if (brought != first)
    throw Error(ErrorKind::disagreement, all.name(member) + " brings " + std::to_string(brought) + " bytes to " + call +
                                             ", rank 0 " + std::to_string(first));
}

class Barrier final : public Arrival {
 public:
  Barrier() : Arrival("barrier()") {}
};

class Gathering final : public Arrival {
 public:
  static constexpr Index everywhere = -1;

  Gathering(Index root, std::span<const std::byte> mine, std::span<std::byte> all)
      : Arrival(root == everywhere ? "all_gather()" : "gather()"), root_(root), mine_(mine), all_(all) {}
  void carry_out(World& world, Group& group) override {
    const Arrivals all = world.arrivals(group);
    for (Index r = 1; r < all.size(); ++r) {
      const auto& other = all.at<Gathering>(r);
      check_equal(other.mine_.size(), mine_.size(), r, all, call());
      if (other.root_ != root_)
        throw Error(ErrorKind::disagreement,
                    all.name(r) + " gathers at " + rank_name(other.root_) + ", rank 0 at " + rank_name(root_));
    }
    const Index first = root_ == everywhere ? 0 : root_, last = root_ == everywhere ? all.size() : root_ + 1;
    const Index wanted = checked_mul(Index(mine_.size()), all.size());
    for (Index to = first; to < last; ++to)
      if (const auto room = all.at<Gathering>(to).all_.size(); Index(room) != wanted)
        throw Error(ErrorKind::shape,
                    all.name(to) + " gathers " + std::to_string(wanted) + " bytes into " + std::to_string(room));
    const auto room = all.at<Gathering>(first).all_;
    for (Index r = 0; r < all.size(); ++r) {
      const auto& from = all.at<Gathering>(r);
      std::copy(from.mine_.begin(), from.mine_.end(), room.begin() + r * Index(mine_.size()));
    }
    for (Index to = first + 1; to < last; ++to) std::copy(room.begin(), room.end(), all.at<Gathering>(to).all_.begin());
  }

 private:
  Index root_;
  std::span<const std::byte> mine_;
  std::span<std::byte> all_;
};

class Broadcasting final : public Arrival {
 public:
  Broadcasting(Index root, std::span<std::byte> message) : Arrival("broadcast()"), root_(root), message_(message) {}
  void carry_out(World& world, Group& group) override {
    const Arrivals all = world.arrivals(group);
    for (Index r = 1; r < all.size(); ++r) {
      const auto& other = all.at<Broadcasting>(r);
      check_equal(other.message_.size(), message_.size(), r, all, call());
      if (other.root_ != root_)
        throw Error(ErrorKind::disagreement, all.name(r) + " expects the message of " + rank_name(other.root_) +
                                                 ", rank 0 that of " + rank_name(root_));
    }
    const auto from = all.at<Broadcasting>(root_).message_;
    for (Index r = 0; r < all.size(); ++r)
      if (r != root_) std::copy(from.begin(), from.end(), all.at<Broadcasting>(r).message_.begin());
  }

 private:
  Index root_;
  std::span<std::byte> message_;
};

class Reducing final : public Arrival {
 public:
  Reducing(std::span<std::byte> numbers, const Reduction& reduction)
      : Arrival("all_reduce()"), numbers_(numbers), reduction_(reduction) {}
  void carry_out(World& world, Group& group) override {
    const Arrivals all = world.arrivals(group);
    const Index bytes = reduction_.element_bytes();
    for (Index r = 1; r < all.size(); ++r) {
      const auto& other = all.at<Reducing>(r);
      check_equal(other.numbers_.size(), numbers_.size(), r, all, call());
      if (!same_kind(other.reduction_, reduction_))
        throw Error(ErrorKind::disagreement, all.name(r) + " reduces otherwise than rank 0");
    }
    for (Index r = 1; r < all.size(); ++r)
      reduction_.apply(numbers_.data(), all.at<Reducing>(r).numbers_.data(), Index(numbers_.size()) / bytes, bytes,
                       bytes);
    for (Index r = 1; r < all.size(); ++r)
      std::copy(numbers_.begin(), numbers_.end(), all.at<Reducing>(r).numbers_.begin());
  }

 private:
  std::span<std::byte> numbers_;
  const Reduction& reduction_;
};

}  // namespace

bool same_kind(const Reduction& a, const Reduction& b) {
  return a.op() == b.op() && a.type() == b.type() && a.element_bytes() == b.element_bytes();
}

Channel channel(const Group& group, Index tag) {
  if (tag < 0) throw Error(ErrorKind::argument, "tag " + std::to_string(tag) + " is negative");
  return {group.context, tag};
}

void refuse_member(Index member, const Group& group, const char* what) {
  throw Error(ErrorKind::argument, "there is no " + rank_name(member) + what + "; " + group.title() + " has " +
                                       std::to_string(group.size()));
}

void collective_barrier(World& world, Group& group, Index me) {
  Barrier mine;
  world.arrive(me, group, mine);
}

void collective_gather(World& world, Group& group, Index me, Index root, std::span<const std::byte> mine,
                       std::span<std::byte> all) {
  check_root(root, group, " to gather at");
  Gathering gathering(root, mine, all);
  world.arrive(me, group, gathering);
}

void collective_all_gather(World& world, Group& group, Index me, std::span<const std::byte> mine,
                           std::span<std::byte> all) {
  Gathering gathering(Gathering::everywhere, mine, all);
  world.arrive(me, group, gathering);
}

void collective_broadcast(World& world, Group& group, Index me, Index root, std::span<std::byte> message) {
  check_root(root, group, " to hear from");
  Broadcasting broadcasting(root, message);
  world.arrive(me, group, broadcasting);
}

void collective_all_reduce(World& world, Group& group, Index me, std::span<std::byte> numbers,
                           const Reduction& reduction) {
  if (reduction.is_replace() || Index(numbers.size()) % reduction.element_bytes() != 0)
    throw Error(ErrorKind::argument,
                "all_reduce() of " + std::to_string(numbers.size()) + " bytes needs an operation, and whole numbers");
  Reducing reducing(numbers, reduction);
  world.arrive(me, group, reducing);
}

Index Rank::size() const { return world_.size(); }
void Rank::yield() { world_.yield(rank_); }

void Rank::send(Index to, Index tag, std::span<const std::byte> message) {
  world_.send(rank_, to, channel(world_.everybody(), tag), message);
}

void Rank::receive(Index from, Index tag, std::span<std::byte> message) {
  world_.receive(rank_, from, channel(world_.everybody(), tag), message);
}

std::vector<std::byte> Rank::receive(Index from, Index tag) {
  return world_.receive(rank_, from, channel(world_.everybody(), tag));
}

void Rank::barrier() { collective_barrier(world_, world_.everybody(), rank_); }

void Rank::gather(Index root, std::span<const std::byte> mine, std::span<std::byte> all) {
  collective_gather(world_, world_.everybody(), rank_, root, mine, all);
}

void Rank::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  collective_all_gather(world_, world_.everybody(), rank_, mine, all);
}

void Rank::broadcast(Index root, std::span<std::byte> message) {
  collective_broadcast(world_, world_.everybody(), rank_, root, message);
}

void Rank::all_reduce(std::span<std::byte> numbers, const Reduction& reduction) {
  collective_all_reduce(world_, world_.everybody(), rank_, numbers, reduction);
}

}  // namespace longshore::finegrain
