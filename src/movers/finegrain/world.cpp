#include "movers/finegrain/world.hpp"

#include <algorithm>
#include <cstring>

namespace longshore::finegrain {

namespace {

constexpr std::size_t most_lines = 6;
constexpr Index least_stack_bytes = 16 << 10;
constexpr std::size_t few_turns = 64, turns_ahead = 4;

/// The exception that is being handled, as an `Error` that names the rank.
std::exception_ptr named(Index rank) {
  auto nest = [&](ErrorKind kind, const char* what) {
    try {
      std::throw_with_nested(Error(kind, rank_name(rank) + ": " + what));
    } catch (...) {
      return std::current_exception();
    }
  };
  try {
    throw;
  } catch (const Error& error) {
    return nest(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return nest(ErrorKind::memory_limit, "not enough memory");
  } catch (const std::exception& error) {
    return nest(ErrorKind::argument, error.what());
  } catch (...) {
    return nest(ErrorKind::argument, "an exception that is no std::exception");
  }
}

class Reception final : public Wait {
 public:
  Reception(Index from, Index tag, std::span<std::byte> into) : from_(from), tag_(tag), into_(into) {}
  Index whom(const World&, std::string& words) const override {
    words = "waits for a message of " + rank_name(from_) + " (tag " + std::to_string(tag_) + ")";
    return from_;
  }
  bool take(Index from, Index tag, std::span<const std::byte> message) override {
    if (from != from_ || tag != tag_) return false;
    arrived_ = message.size();
    if (message.size() == into_.size()) std::copy(message.begin(), message.end(), into_.begin());
    return true;
  }
  void check_size(Index rank) const {
    if (arrived_ != into_.size())
      throw Error(ErrorKind::shape, rank_name(rank) + " receives " + std::to_string(into_.size()) + " bytes of " +
                                        rank_name(from_) + " (tag " + std::to_string(tag_) + "), which has sent " +
                                        std::to_string(arrived_));
  }

 private:
  Index from_, tag_;
  std::span<std::byte> into_;
  std::size_t arrived_ = 0;
};

void check_equal(std::size_t mine, std::size_t first, Index rank, const char* call) {
  if (mine != first)
    throw Error(ErrorKind::disagreement,
                rank_name(rank) + " brings " + std::to_string(mine) + " bytes to " + call + ", rank 0 " + std::to_string(first));
}

class Gathering final : public Guest {
 public:
  Gathering(Index root, std::span<const std::byte> mine, std::span<std::byte> all)
      : Guest("gather()"), root_(root), mine_(mine), all_(all) {}
  void hold(World& world) override {
    const auto& to = world.guest<Gathering>(root_);
    const std::size_t wanted = mine_.size() * std::size_t(world.size());
    if (to.all_.size() != wanted)
      throw Error(ErrorKind::shape,
                  rank_name(root_) + " gathers " + std::to_string(wanted) + " bytes into " + std::to_string(to.all_.size()));
    for (Index r = 0; r < world.size(); ++r) {
      const auto& from = world.guest<Gathering>(r);
      check_equal(from.mine_.size(), mine_.size(), r, "gather()");
      if (from.root_ != root_)
        throw Error(ErrorKind::disagreement,
                    rank_name(r) + " gathers at " + rank_name(from.root_) + ", rank 0 at " + rank_name(root_));
      std::copy(from.mine_.begin(), from.mine_.end(), to.all_.begin() + r * Index(mine_.size()));
    }
  }

 private:
  Index root_;
  std::span<const std::byte> mine_;
  std::span<std::byte> all_;
};

class Reducing final : public Guest {
 public:
  Reducing(std::span<std::byte> numbers, const Reduction& reduction)
      : Guest("all_reduce()"), numbers_(numbers), reduction_(reduction) {}
  void hold(World& world) override {
    const Index bytes = reduction_.element_bytes();
    for (Index r = 1; r < world.size(); ++r) {
      const auto& other = world.guest<Reducing>(r);
      check_equal(other.numbers_.size(), numbers_.size(), r, "all_reduce()");
      if (!(other.reduction_ == reduction_)) throw Error(ErrorKind::disagreement, rank_name(r) + " reduces otherwise than rank 0");
    }
    for (Index r = 1; r < world.size(); ++r)
      reduction_.apply(numbers_.data(), world.guest<Reducing>(r).numbers_.data(), Index(numbers_.size()) / bytes, bytes, bytes);
    for (Index r = 1; r < world.size(); ++r) std::copy(numbers_.begin(), numbers_.end(), world.guest<Reducing>(r).numbers_.begin());
  }

 private:
  std::span<std::byte> numbers_;
  const Reduction& reduction_;
};

void check_tag(Index tag) {
  if (tag < 0) throw Error(ErrorKind::argument, "tag " + std::to_string(tag) + " is negative");
}

class Barrier final : public Guest {
 public:
  Barrier() : Guest("barrier()") {}
};

}  // namespace

Index Guest::whom(const World& world, std::string& words) const {
  Index first = -1, missing = 0;
  for (Index r = world.size() - 1; r >= 0; --r)
    if (!world.meets(r)) first = r, ++missing;
  words = std::string("waits in ") + call_ + " for " + rank_name(first);
  if (missing > 1) words += " and " + std::to_string(missing - 1) + " more";
  return first;
}

std::size_t World::Hash::operator()(const Address& address) const {
  std::uint64_t hash = 0;
  for (const Index x : {address.to, address.from, address.tag}) {
    hash = (hash ^ std::uint64_t(x)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return std::size_t(hash);
}

World::World(Index ranks, const std::function<void(Rank&)>& program, const Options& options)
    : program_(program), seed_(options.seed), random_(options.seed) {
  if (ranks < 0 || ranks >= Index{gone})
    throw Error(ErrorKind::argument,
                "a world of " + std::to_string(ranks) + " ranks; there may be 0 to " + std::to_string(gone - 1));
  if (options.stack_bytes < least_stack_bytes)
    throw Error(ErrorKind::argument, "stacks of " + std::to_string(options.stack_bytes) + " bytes; a rank needs at least " +
                                         std::to_string(least_stack_bytes));
  tasks_.resize(std::size_t(ranks));
  queue_.resize(std::size_t(ranks));
  fibers_.emplace(std::size_t(ranks), std::size_t(options.stack_bytes), [this] { live(); });
}

Statistics World::go() {
  for (Index r = 0; r < size(); ++r) enqueue(r);
  while (returned_ < size()) {
    while (waiting_turns_ > 0) give_turn(next());
    if (failure_) {
      wake_all();
    } else if (guests_ == size()) {
      hold_meeting();
    } else if (returned_ < size()) {
      failure_ = std::make_exception_ptr(Error(ErrorKind::deadlock, deadlock()));
    }
  }
  statistics_.stacks = Index(fibers_->stacks());
  fibers_.reset();
  if (failure_) std::rethrow_exception(failure_);
  check_mail();
  return statistics_;
}

std::uint32_t& World::queued(std::size_t k) {
  const std::size_t place = head_ + k;
  return queue_[place < queue_.size() ? place : place - queue_.size()];
}

void World::enqueue(Index rank) { queued(waiting_turns_++) = std::uint32_t(rank); }

Index World::next() {
  // Where there are many, whose turn it is soon is settled some turns ahead, so that its stack is in the cache by then.
  const std::size_t settled = std::min(waiting_turns_, waiting_turns_ > few_turns ? turns_ahead : 1);
  for (; settled_ < settled; ++settled_) {
    std::uint32_t& soon = queued(settled_);
    if (seed_ != 0) std::swap(soon, queued(settled_ + std::size_t(random_() % (waiting_turns_ - settled_))));
    if (const auto slot = tasks_[soon].slot; slot != fresh && settled_ > 0) fibers_->prefetch(slot);
  }
  const Index rank = queue_[head_];
  if (++head_ == queue_.size()) head_ = 0;
  --waiting_turns_, --settled_;
  return rank;
}

void World::give_turn(Index rank) {
  Task& task = tasks_[std::size_t(rank)];
  bool goes_on = false;
  if (task.slot != fresh || !failure_) {
    if (task.slot == fresh) task.slot = fibers_->add();
    ++statistics_.switches;
    current_ = rank;
    goes_on = fibers_->resume(task.slot);
    current_ = nobody;
    if (!fibers_->intact(task.slot) && !failure_)
      failure_ = std::make_exception_ptr(Error(
          ErrorKind::memory_limit, rank_name(rank) + " has overflowed its stack: give ranks larger ones (Options::stack_bytes)"));
  }
  if (!goes_on) task.slot = gone, ++returned_;
}

/// What happens on a rank's stack.
void World::live() {
  const Index rank = current_;
  try {
    Rank me(*this, rank);
    program_(me);
  } catch (const WorldEnded&) {
  } catch (...) {
    if (!failure_) failure_ = named(rank);
  }
}

void World::check_turn(Index rank) const {
  if (current_ != rank)
    throw Error(ErrorKind::argument, rank_name(rank) + "'s part of a world is used " +
                                         (current_ == nobody ? "when that world is over" : "by " + rank_name(current_)));
  if (failure_) throw WorldEnded{};
}

void World::check_peer(Index rank) const {
  if (rank < 0 || rank >= size())
    throw Error(ErrorKind::argument, "there is no " + rank_name(rank) + "; the world has " + std::to_string(size()));
}

void World::block(Index rank, Wait& wait) {
  check_turn(rank);
  tasks_[std::size_t(rank)].wait = &wait;
  fibers_->suspend();
  if (failure_) throw WorldEnded{};
}

void World::wake(Index rank) {
  if (std::exchange(tasks_[std::size_t(rank)].wait, nullptr)) enqueue(rank);
}

void World::wake_all() {
  for (Index r = 0; r < size(); ++r) wake(r);
}

void World::yield(Index rank) {
  check_turn(rank);
  enqueue(rank);
  fibers_->suspend();
  if (failure_) throw WorldEnded{};
}

void World::send(Index from, Index to, Index tag, std::span<const std::byte> message) {
  check_turn(from);
  check_peer(to);
  ++statistics_.messages;
  if (Wait* const wait = tasks_[std::size_t(to)].wait; wait && wait->take(from, tag, message))
    wake(to);
  else
    mail_[{to, from, tag}].emplace_back(message.begin(), message.end());
}

void World::receive(Index to, Index from, Index tag, std::span<std::byte> message) {
  check_turn(to);
  check_peer(from);
  Reception reception(from, tag, message);
  if (const auto found = mail_.find({to, from, tag}); found != mail_.end()) {
    reception.take(from, tag, found->second.front());
    found->second.pop_front();
    if (found->second.empty()) mail_.erase(found);
  } else {
    block(to, reception);
  }
  reception.check_size(to);
}

void World::meet(Index rank, Guest& guest) {
  check_turn(rank);
  if (guests_ == 0) {
    first_guest_ = rank;
  } else if (const char* const call = this->guest<Guest>(first_guest_).call_; std::strcmp(call, guest.call_) != 0) {
    throw Error(ErrorKind::disagreement,
                "this rank has called " + std::string(guest.call_) + " where " + rank_name(first_guest_) + " has called " + call);
  }
  ++guests_;
  block(rank, guest);
  if (guest.failure_) std::rethrow_exception(guest.failure_);
}

void World::hold_meeting() {
  std::exception_ptr failure;
  try {
    guest<Guest>(0).hold(*this);
  } catch (...) {
    failure = std::current_exception();
  }
  guests_ = 0;
  for (Index r = 0; r < size(); ++r) {
    if (failure) guest<Guest>(r).failure_ = failure;
    wake(r);
  }
}

std::string World::deadlock() const {
  // Everybody who is left waits for somebody: from anyone, the way leads into a circle or to a rank that has returned.
  Index rank = 0;
  while (returned(rank)) ++rank;
  std::vector<std::string> lines;
  std::unordered_map<Index, std::size_t> met;
  while (!returned(rank) && met.try_emplace(rank, lines.size()).second) {
    std::string words;
    const Index next = wait_of(rank).whom(*this, words);
    lines.push_back(rank_name(rank) + " " + words);
    rank = next;
  }
  if (returned(rank))
    lines.push_back(rank_name(rank) + " has returned");
  else
    lines.erase(lines.begin(), lines.begin() + Index(met[rank]));
  if (lines.size() > most_lines) {
    const std::size_t left_out = lines.size() - most_lines + 1;
    const auto first = lines.begin() + Index(most_lines / 2);
    *first = std::to_string(left_out) + " more ranks wait for one another";
    lines.erase(first + 1, first + Index(left_out));
  }
  std::string text =
      "deadlock: " + std::to_string(size() - returned_) + " of " + std::to_string(size()) + " ranks wait and none can go on";
  for (const auto& line : lines) text += "\n  " + line;
  return text;
}

void World::check_mail() const {
  const std::pair<const Address, Queue>* first = nullptr;
  std::size_t messages = 0;
  for (const auto& entry : mail_) {
    if (entry.first.tag < 0) continue;
    messages += entry.second.size();
    if (!first || entry.first < first->first) first = &entry;
  }
  if (!first) return;
  const auto& [address, queue] = *first;
  throw Error(ErrorKind::disagreement, rank_name(address.to) + " has returned without receiving a message of " +
                                           rank_name(address.from) + " (tag " + std::to_string(address.tag) + ", " +
                                           std::to_string(queue.front().size()) + " bytes)" +
                                           (messages > 1 ? ", and " + std::to_string(messages - 1) + " more were left" : ""));
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

void Rank::barrier() {
  Barrier mine;
  world_.meet(rank_, mine);
}

void Rank::gather(Index root, std::span<const std::byte> mine, std::span<std::byte> all) {
  if (root < 0 || root >= size())
    throw Error(ErrorKind::argument, "there is no " + rank_name(root) + " to gather at; the world has " + std::to_string(size()));
  Gathering gathering(root, mine, all);
  world_.meet(rank_, gathering);
}

void Rank::all_reduce(std::span<std::byte> numbers, const Reduction& reduction) {
  if (reduction.is_replace() || Index(numbers.size()) % reduction.element_bytes() != 0)
    throw Error(ErrorKind::argument,
                "all_reduce() of " + std::to_string(numbers.size()) + " bytes needs an operation, and whole numbers");
  Reducing reducing(numbers, reduction);
  world_.meet(rank_, reducing);
}

Statistics run(Index ranks, const std::function<void(Rank&)>& program, const Options& options) {
  return std::make_shared<World>(ranks, program, options)->go();
}

}  // namespace longshore::finegrain
