/// What a rank's program calls: messages, and meetings.
#include "engines/finegrain/collectives.hpp"

#include <algorithm>

namespace longshore::finegrain {

namespace {

void check_root(Index root, const Circle& circle, const char* what) {
  if (root < 0 || root >= circle.size()) refuse_member(root, circle, what);
}

void check_equal(std::size_t brought, std::size_t first, Index member, const Guests& all, const char* call) {
  if (brought != first)
    throw Error(ErrorKind::disagreement, all.name(member) + " brings " + std::to_string(brought) + " bytes to " + call +
                                             ", rank 0 " + std::to_string(first));
}

class Barrier final : public Guest {
 public:
  Barrier() : Guest("barrier()") {}
};

class Gathering final : public Guest {
 public:
  static constexpr Index everywhere = -1;

  Gathering(Index root, std::span<const std::byte> mine, std::span<std::byte> all)
      : Guest(root == everywhere ? "all_gather()" : "gather()"), root_(root), mine_(mine), all_(all) {}
  void hold(World& world, Circle& circle) override {
    const Guests all = world.guests(circle);
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

class Broadcasting final : public Guest {
 public:
  Broadcasting(Index root, std::span<std::byte> message) : Guest("broadcast()"), root_(root), message_(message) {}
  void hold(World& world, Circle& circle) override {
    const Guests all = world.guests(circle);
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

class Reducing final : public Guest {
 public:
  Reducing(std::span<std::byte> numbers, const Reduction& reduction)
      : Guest("all_reduce()"), numbers_(numbers), reduction_(reduction) {}
  void hold(World& world, Circle& circle) override {
    const Guests all = world.guests(circle);
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

Channel channel(const Circle& circle, Index tag) {
  if (tag < 0) throw Error(ErrorKind::argument, "tag " + std::to_string(tag) + " is negative");
  return {circle.context, tag};
}

void refuse_member(Index member, const Circle& circle, const char* what) {
  throw Error(ErrorKind::argument, "there is no " + rank_name(member) + what + "; " + circle.title() + " has " +
                                       std::to_string(circle.size()));
}

void meet_at_barrier(World& world, Circle& circle, Index me) {
  Barrier mine;
  world.meet(me, circle, mine);
}

void meet_to_gather(World& world, Circle& circle, Index me, Index root, std::span<const std::byte> mine,
                    std::span<std::byte> all) {
  check_root(root, circle, " to gather at");
  Gathering gathering(root, mine, all);
  world.meet(me, circle, gathering);
}

void meet_to_all_gather(World& world, Circle& circle, Index me, std::span<const std::byte> mine,
                        std::span<std::byte> all) {
  Gathering gathering(Gathering::everywhere, mine, all);
  world.meet(me, circle, gathering);
}

void meet_to_broadcast(World& world, Circle& circle, Index me, Index root, std::span<std::byte> message) {
  check_root(root, circle, " to hear from");
  Broadcasting broadcasting(root, message);
  world.meet(me, circle, broadcasting);
}

void meet_to_all_reduce(World& world, Circle& circle, Index me, std::span<std::byte> numbers,
                        const Reduction& reduction) {
  if (reduction.is_replace() || Index(numbers.size()) % reduction.element_bytes() != 0)
    throw Error(ErrorKind::argument,
                "all_reduce() of " + std::to_string(numbers.size()) + " bytes needs an operation, and whole numbers");
  Reducing reducing(numbers, reduction);
  world.meet(me, circle, reducing);
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

void Rank::barrier() { meet_at_barrier(world_, world_.everybody(), rank_); }

void Rank::gather(Index root, std::span<const std::byte> mine, std::span<std::byte> all) {
  meet_to_gather(world_, world_.everybody(), rank_, root, mine, all);
}

void Rank::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  meet_to_all_gather(world_, world_.everybody(), rank_, mine, all);
}

void Rank::broadcast(Index root, std::span<std::byte> message) {
  meet_to_broadcast(world_, world_.everybody(), rank_, root, message);
}

void Rank::all_reduce(std::span<std::byte> numbers, const Reduction& reduction) {
  meet_to_all_reduce(world_, world_.everybody(), rank_, numbers, reduction);
}

}  // namespace longshore::finegrain
