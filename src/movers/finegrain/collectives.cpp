/// What a rank's program calls: messages, and meetings of all.
#include <algorithm>

#include "movers/finegrain/world.hpp"

namespace longshore::finegrain {

namespace {

void check_tag(Index tag) {
  if (tag < 0) throw Error(ErrorKind::argument, "tag " + std::to_string(tag) + " is negative");
}

void check_root(Index root, Index ranks, const char* what) {
  if (root < 0 || root >= ranks)
    throw Error(ErrorKind::argument,
                "there is no " + rank_name(root) + " " + what + "; the world has " + std::to_string(ranks));
}

void check_equal(std::size_t mine, std::size_t first, Index rank, const char* call) {
  if (mine != first)
    throw Error(ErrorKind::disagreement, rank_name(rank) + " brings " + std::to_string(mine) + " bytes to " + call + ", rank 0 " +
                                             std::to_string(first));
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
  void hold(World& world) override {
    for (Index r = 1; r < world.size(); ++r) {
      const auto& other = world.guest<Gathering>(r);
      check_equal(other.mine_.size(), mine_.size(), r, call());
      if (other.root_ != root_)
        throw Error(ErrorKind::disagreement,
                    rank_name(r) + " gathers at " + rank_name(other.root_) + ", rank 0 at " + rank_name(root_));
    }
    const Index first = root_ == everywhere ? 0 : root_, last = root_ == everywhere ? world.size() : root_ + 1;
    const Index wanted = checked_mul(Index(mine_.size()), world.size());
    for (Index to = first; to < last; ++to)
      if (const auto room = world.guest<Gathering>(to).all_.size(); Index(room) != wanted)
        throw Error(ErrorKind::shape,
                    rank_name(to) + " gathers " + std::to_string(wanted) + " bytes into " + std::to_string(room));
    const auto all = world.guest<Gathering>(first).all_;
    for (Index r = 0; r < world.size(); ++r) {
      const auto& from = world.guest<Gathering>(r);
      std::copy(from.mine_.begin(), from.mine_.end(), all.begin() + r * Index(mine_.size()));
    }
    for (Index to = first + 1; to < last; ++to) std::copy(all.begin(), all.end(), world.guest<Gathering>(to).all_.begin());
  }

 private:
  Index root_;
  std::span<const std::byte> mine_;
  std::span<std::byte> all_;
};

class Broadcasting final : public Guest {
 public:
  Broadcasting(Index root, std::span<std::byte> message) : Guest("broadcast()"), root_(root), message_(message) {}
  void hold(World& world) override {
    for (Index r = 1; r < world.size(); ++r) {
      const auto& other = world.guest<Broadcasting>(r);
      check_equal(other.message_.size(), message_.size(), r, call());
      if (other.root_ != root_)
        throw Error(ErrorKind::disagreement, rank_name(r) + " expects the message of " + rank_name(other.root_) +
                                                 ", rank 0 that of " + rank_name(root_));
    }
    const auto from = world.guest<Broadcasting>(root_).message_;
    for (Index r = 0; r < world.size(); ++r)
      if (r != root_) std::copy(from.begin(), from.end(), world.guest<Broadcasting>(r).message_.begin());
  }

 private:
  Index root_;
  std::span<std::byte> message_;
};

class Reducing final : public Guest {
 public:
  Reducing(std::span<std::byte> numbers, const Reduction& reduction)
      : Guest("all_reduce()"), numbers_(numbers), reduction_(reduction) {}
  void hold(World& world) override {
    const Index bytes = reduction_.element_bytes();
    for (Index r = 1; r < world.size(); ++r) {
      const auto& other = world.guest<Reducing>(r);
      check_equal(other.numbers_.size(), numbers_.size(), r, call());
      if (!same_kind(other.reduction_, reduction_))
        throw Error(ErrorKind::disagreement, rank_name(r) + " reduces otherwise than rank 0");
    }
    for (Index r = 1; r < world.size(); ++r)
      reduction_.apply(numbers_.data(), world.guest<Reducing>(r).numbers_.data(), Index(numbers_.size()) / bytes, bytes, bytes);
    for (Index r = 1; r < world.size(); ++r) std::copy(numbers_.begin(), numbers_.end(), world.guest<Reducing>(r).numbers_.begin());
  }

 private:
  std::span<std::byte> numbers_;
  const Reduction& reduction_;
};

}  // namespace

bool same_kind(const Reduction& a, const Reduction& b) {
  return a.op() == b.op() && a.type() == b.type() && a.element_bytes() == b.element_bytes();
}

Index Rank::size() const { return world_.size(); }
void Rank::yield() { world_.yield(rank_); }

void Rank::send(Index to, Index tag, std::span<const std::byte> message) {
  check_tag(tag);
  world_.send(rank_, to, tag, message);
}

void Rank::receive(Index from, Index tag, std::span<std::byte> message) {
  check_tag(tag);
  world_.receive(rank_, from, tag, message);
}

std::vector<std::byte> Rank::receive(Index from, Index tag) {
  check_tag(tag);
  return world_.receive(rank_, from, tag);
}

void Rank::barrier() {
  Barrier mine;
  world_.meet(rank_, mine);
}

void Rank::gather(Index root, std::span<const std::byte> mine, std::span<std::byte> all) {
  check_root(root, size(), "to gather at");
  Gathering gathering(root, mine, all);
  world_.meet(rank_, gathering);
}

void Rank::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  Gathering gathering(Gathering::everywhere, mine, all);
  world_.meet(rank_, gathering);
}

void Rank::broadcast(Index root, std::span<std::byte> message) {
  check_root(root, size(), "to hear from");
  Broadcasting broadcasting(root, message);
  world_.meet(rank_, broadcasting);
}

void Rank::all_reduce(std::span<std::byte> numbers, const Reduction& reduction) {
  if (reduction.is_replace() || Index(numbers.size()) % reduction.element_bytes() != 0)
    throw Error(ErrorKind::argument,
                "all_reduce() of " + std::to_string(numbers.size()) + " bytes needs an operation, and whole numbers");
  Reducing reducing(numbers, reduction);
  world_.meet(rank_, reducing);
}

}  // namespace longshore::finegrain
