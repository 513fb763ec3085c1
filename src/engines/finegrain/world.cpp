#include "engines/finegrain/world.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>

#include "longshore/ranks/rank_module.hpp"

namespace longshore::finegrain {

namespace {

constexpr std::size_t most_lines = 6;
constexpr Index least_stack_bytes = 16 << 10;
constexpr std::size_t few_turns = 64, turns_ahead = 4;

/// The exception that is being handled, as an `Error` that names the rank, once.
std::exception_ptr named(Index rank) {
  auto nest = [&](ErrorKind kind, std::string what) {
    const std::string name = rank_name(rank);
    const bool said = what.starts_with(name) && !std::isdigit(static_cast<unsigned char>(what.c_str()[name.size()]));
    try {
      std::throw_with_nested(Error(kind, said ? what : name + ": " + what));
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

/// The members' world ranks in order, read piece by piece.
template <class Visit>
void each_rank(const Group& group, Visit visit) {
  Members(group.members).each_piece([&](Index, std::span<const Index> ranks) {
    for (const Index rank : ranks) visit(rank);
  });
}

}  // namespace

class Reception : public Wait {
 public:
  Reception(Index from, Channel channel) : from(from), channel(channel) {}
  Index whom(const World&, std::string& words) const override {
    words = "waits for a message of " + rank_name(from) + " (" + channel.words() + ")";
    return from;
  }
  bool take(Index sender, Channel by, std::span<const std::byte> message) override {
    if (sender != from || by != channel) return false;
    keep(message);
    return true;
  }
  virtual void keep(std::span<const std::byte> message) = 0;

  const Index from;
  const Channel channel;

 protected:
  ~Reception() = default;
};

namespace {

/// Of a message whose size is known.
class SizedReception final : public Reception {
 public:
  SizedReception(Index from, Channel channel, std::span<std::byte> into)
      : Reception(from, channel), into_(into), arrived_(into.size()) {}
  void keep(std::span<const std::byte> message) override {
    arrived_ = message.size();
    if (message.size() == into_.size()) std::copy(message.begin(), message.end(), into_.begin());
  }
  void check_size(Index rank) const {
    if (arrived_ != into_.size())
      throw Error(ErrorKind::shape, rank_name(rank) + " receives " + std::to_string(into_.size()) + " bytes of " +
                                        rank_name(from) + " (" + channel.words() + "), which has sent " +
                                        std::to_string(arrived_));
  }

 private:
  std::span<std::byte> into_;
  std::size_t arrived_;
};

class AnyReception final : public Reception {
 public:
  using Reception::Reception;
  void keep(std::span<const std::byte> arrived) override { message.assign(arrived.begin(), arrived.end()); }

  std::vector<std::byte> message;
};

}  // namespace

std::string Channel::words() const {
  const std::string words = "tag " + std::to_string(tag);
  return context == Group::world ? words : "communicator " + std::to_string(context) + ", " + words;
}

std::string Group::name(Index i) const {
  if (context == world) return rank_name(i);
  return rank_name(i) + words() + " (" + rank_name(members.world_rank(i)) + " of the world)";
}

std::string Group::title() const {
  if (context == world) return "the world";
  if (context == in_making) return "a communicator of " + std::to_string(size()) + " ranks";
  return "communicator " + std::to_string(context);
}

std::string Group::words() const { return context == world ? "" : " of " + title(); }

Index Arrival::whom(const World& world, std::string& words) const {
  Index first = nobody, missing = 0;
  each_rank(*group_, [&](Index rank) {
    if (!world.arrived_at(rank, *group_) && missing++ == 0) first = rank;
  });
  words = std::string("waits in ") + call_ + group_->words() + " for " + rank_name(first);
  if (missing > 1) words += " and " + std::to_string(missing - 1) + " more";
  return first;
}

std::size_t World::Hash::operator()(const Address& address) const {
  std::uint64_t hash = 0;
  for (const Index x : {address.to, address.from, address.channel.context, address.channel.tag}) {
    hash = (hash ^ std::uint64_t(x)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return std::size_t(hash);
}

World::World(Index ranks, const std::function<void(Rank&)>& program, const Options& options)
    : program_(program), options_(options), random_(options.seed), everybody_{{}, Group::world} {
  if (ranks < 0 || ranks >= Index{gone})
    throw Error(ErrorKind::argument,
                "a world of " + std::to_string(ranks) + " ranks; there may be 0 to " + std::to_string(gone - 1));
  if (options.stack_bytes < least_stack_bytes)
    throw Error(ErrorKind::argument, "stacks of " + std::to_string(options.stack_bytes) +
                                         " bytes; a rank needs at least " + std::to_string(least_stack_bytes));
  if (options.idle_turns < 0)
    throw Error(ErrorKind::argument, std::to_string(options.idle_turns) + " idle turns; give 0, for never, or more");
  everybody_.members = RankMap::whole(ranks);
  tasks_.resize(std::size_t(ranks));
  queue_.resize(std::size_t(ranks));
  fibers_.emplace(std::size_t(ranks), std::size_t(options.stack_bytes), [this] { live(); });
}

Statistics World::go() {
  for (Index r = 0; r < size(); ++r) enqueue(r);
  while (returned_ < size()) {
    while (waiting_turns_ > 0) {
      give_turn(next());
      if (Group* const group = std::exchange(complete_, nullptr); group && !failure_) carry_out(*group);
    }
    if (failure_)
      wake_all();
    else if (returned_ < size())
      end([&] { return deadlock(); });
  }
  statistics_.stacks = Index(fibers_->stacks());
  fibers_.reset();
  if (failure_) std::rethrow_exception(failure_);
  check_mail();
  return statistics_;
}

template <class Make>
void World::end(Make&& make) {
  try {
    throw make();  // where there is no memory for an error, that is the error
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
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
    if (options_.seed != 0) std::swap(soon, queued(settled_ + std::size_t(random_() % (waiting_turns_ - settled_))));
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
    while ((goes_on = fibers_->resume(task.slot)) && work_) work_outside(rank);
    current_ = nobody;
    if (!fibers_->intact(task.slot))
      end([&] {
        return Error(ErrorKind::memory_limit,
                     rank_name(rank) + " has overflowed its stack: give ranks larger ones (Options::stack_bytes)");
      });
  }
  if (goes_on) return;
  task.slot = gone, ++returned_;
  progress();
}

void World::outside(Index rank, const std::function<void()>& work) {
  if (!check_turn(rank)) return;
  work_ = &work;
  fibers_->suspend();
  if (work_failure_) std::rethrow_exception(std::exchange(work_failure_, nullptr));
}

void World::work_outside(Index rank) {
  current_ = nobody;  // there is no stack to wait on
  try {
    (*work_)();
  } catch (...) {
    work_failure_ = std::current_exception();
  }
  work_ = nullptr;
  current_ = rank;
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

bool World::ended() const {
  if (failure_ && std::uncaught_exceptions() == 0) throw WorldEnded{};
  return failure_ != nullptr;
}

bool World::check_turn(Index rank) const {
  if (current_ != rank) {
    const auto where = current_ != nobody    ? "by " + rank_name(current_)
                       : returned_ == size() ? "when that world is over"
                                             : "where nothing may wait: in a function that combines";
    throw Error(ErrorKind::argument, rank_name(rank) + "'s part of a world is used " + where);
  }
  return !ended();
}

void World::check_peer(Index rank) const {
  if (rank < 0 || rank >= size())
    throw Error(ErrorKind::argument, "there is no " + rank_name(rank) + "; the world has " + std::to_string(size()));
}

bool World::block(Index rank, Wait& wait) {
  if (!check_turn(rank)) return false;
  progress();
  tasks_[std::size_t(rank)].wait = &wait;
  fibers_->suspend();
  return !ended();
}

void World::wake(Index rank) {
  if (std::exchange(tasks_[std::size_t(rank)].wait, nullptr)) enqueue(rank);
}

void World::wake_all() {
  for (Index r = 0; r < size(); ++r) wake(r);
}

bool World::yield(Index rank, const Wait* asks) {
  if (!check_turn(rank)) return false;
  if (options_.idle_turns > 0) count_idle_turn(rank, asks);
  enqueue(rank);
  fibers_->suspend();
  return !ended();
}

void World::progress() { ++idle_turn_, had_idle_turn_ = 0, idle_turns_ = 0; }

/// An idle turn is over when all that wait for a turn, and this rank, have had one in which they did nothing but yield.
void World::count_idle_turn(Index rank, const Wait* asks) {
  if (std::exchange(tasks_[std::size_t(rank)].idle_turn, idle_turn_) == idle_turn_) return;
  const std::size_t going_on = waiting_turns_ + 1;
  if (++had_idle_turn_ < going_on) return;
  ++idle_turn_, had_idle_turn_ = 0;
  if (++idle_turns_ >= options_.idle_turns)
    end([&] {
      return deadlock(rank, asks,
                      std::to_string(going_on) + " of " + std::to_string(size()) + " ranks ask or yield, and in " +
                          std::to_string(idle_turns_) + " turns of each nobody has come any further");
    });
}

void World::send(Index from, Index to, Channel channel, std::span<const std::byte> message) {
  if (!check_turn(from)) return;
  check_peer(to);
  ++statistics_.messages;
  progress();
  if (Wait* const wait = tasks_[std::size_t(to)].wait; wait && wait->take(from, channel, message))
    wake(to);
  else
    mail_[{to, from, channel}].emplace_back(message.begin(), message.end());
}

void World::receive(Index to, Reception& reception) {
  if (!check_turn(to)) return;
  check_peer(reception.from);
  const auto found = mail_.find({to, reception.from, reception.channel});
  if (found == mail_.end()) {
    block(to, reception);
    return;
  }
  progress();
  reception.keep(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) mail_.erase(found);
}

void World::receive(Index to, Index from, Channel channel, std::span<std::byte> message) {
  SizedReception reception(from, channel, message);
  receive(to, reception);
  reception.check_size(to);
}

std::vector<std::byte> World::receive(Index to, Index from, Channel channel) {
  AnyReception reception(from, channel);
  receive(to, reception);
  return std::move(reception.message);
}

bool World::arrive(Index rank, Group& group, Arrival& arrival) {
  if (!check_turn(rank)) return false;
  if (group.arrived == 0) {
    group.first_arrived = rank;
  } else if (const char* const call = static_cast<const Arrival&>(wait_of(group.first_arrived)).call();
             std::strcmp(call, arrival.call()) != 0) {
    throw Error(ErrorKind::disagreement, "this rank has called " + std::string(arrival.call()) + group.words() +
                                             " where " + rank_name(group.first_arrived) + " has called " + call);
  }
  arrival.group_ = &group;
  if (++group.arrived == group.size()) complete_ = &group;
  if (!block(rank, arrival)) return false;
  if (arrival.failure_) std::rethrow_exception(arrival.failure_);
  return true;
}

void World::carry_out(Group& group) {
  group.arrived = 0;
  arrivals_.clear();
  try {
    const Index first = group.members.select(0);
    if (!arrived_at(first, group)) throw no_member(group);
    static_cast<Arrival*>(tasks_[std::size_t(first)].wait)->carry_out(*this, group);
    if (arrivals_.empty())
      each_rank(group, [&](Index rank) { wake(rank); });
    else
      for (const auto& entry : arrivals_) wake(entry.rank);
  } catch (...) {
    dismiss(group, std::current_exception());
  }
}

Arrivals World::arrivals(const Group& group) {
  arrivals_.reserve(std::size_t(group.size()));
  each_rank(group, [&](Index rank) {
    if (group.context == Group::in_making && !arrived_at(rank, group)) throw no_member(group);
    arrivals_.push_back({static_cast<Arrival*>(tasks_[std::size_t(rank)].wait), rank});
  });
  return {group, arrivals_};
}

/// All who have come, members or not.
void World::dismiss(const Group& group, const std::exception_ptr& failure) {
  for (Index r = 0; r < size(); ++r)
    if (arrived_at(r, group)) {
      static_cast<Arrival*>(tasks_[std::size_t(r)].wait)->failure_ = failure;
      wake(r);
    }
}

Error World::no_member(const Group& group) const {
  auto members = group.members.to_vector();
  std::sort(members.begin(), members.end());
  Index rank = 0;
  while (!arrived_at(rank, group) || std::binary_search(members.begin(), members.end(), rank)) ++rank;
  return Error(ErrorKind::argument, rank_name(rank) + " makes " + group.title() + " and is none of them");
}

std::shared_ptr<Group> World::join(const RankMap& members) {
  const std::pair key(members.size(), members.select(0));
  const auto [first, last] = in_making_.equal_range(key);
  auto place = std::find_if(first, last, [&](const auto& entry) { return entry.second->members == members; });
  if (place == last) place = in_making_.emplace(key, std::make_shared<Group>(Group{members, Group::in_making}));
  auto group = place->second;
  if (group->arrived + 1 == group->size()) in_making_.erase(place);
  return group;
}

Error World::deadlock() const {
  // Everybody who is left waits for somebody: from anyone, the way leads into a circle or to a rank that has returned.
  Index rank = 0;
  while (returned(rank)) ++rank;
  return deadlock(
      rank, nullptr,
      std::to_string(size() - returned_) + " of " + std::to_string(size()) + " ranks wait and none can go on");
}

Error World::deadlock(Index rank, const Wait* asks, std::string text) const {
  std::vector<std::string> lines;
  std::unordered_map<Index, std::size_t> met;
  const Wait* wait = asks ? asks : tasks_[std::size_t(rank)].wait;
  while (wait && met.try_emplace(rank, lines.size()).second) {
    std::string words;
    const Index next = wait->whom(*this, words);
    lines.push_back(rank_name(rank) + " " + words);
    rank = next;
    wait = tasks_[std::size_t(rank)].wait;
  }
  if (const auto circle = met.find(rank); circle != met.end())
    lines.erase(lines.begin(), lines.begin() + Index(circle->second));
  else
    lines.push_back(rank_name(rank) + (returned(rank) ? " has returned" : " has its turns, but comes no further"));
  if (lines.size() > most_lines) {
    const std::size_t left_out = lines.size() - most_lines + 1;
    const auto first = lines.begin() + Index(most_lines / 2);
    *first = std::to_string(left_out) + " more ranks wait for one another";
    lines.erase(first + 1, first + Index(left_out));
  }
  text = "deadlock: " + text;
  for (const auto& line : lines) text += "\n  " + line;
  return Error(ErrorKind::deadlock, text);
}

void World::check_mail() const {
  const std::pair<const Address, Queue>* first = nullptr;
  std::size_t messages = 0;
  for (const auto& entry : mail_) {
    if (entry.first.channel.tag < 0) continue;
    messages += entry.second.size();
    if (!first || entry.first < first->first) first = &entry;
  }
  if (!first) return;
  const auto& [address, queue] = *first;
  throw Error(ErrorKind::disagreement,
              rank_name(address.to) + " has returned without receiving a message of " + rank_name(address.from) + " (" +
                  address.channel.words() + ", " + std::to_string(queue.front().size()) + " bytes)" +
                  (messages > 1 ? ", and " + std::to_string(messages - 1) + " more were left" : ""));
}

Statistics run(Index ranks, const std::function<void(Rank&)>& program, const Options& options) {
  return std::make_shared<World>(ranks, program, options)->go();
}

}  // namespace longshore::finegrain
