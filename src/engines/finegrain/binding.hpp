/// What binding a plan between blocks and one between layouts have in common: all
/// ranks call it, one of them compares what they bring and makes the movers of all.
#pragma once

#include <unordered_map>
#include <vector>

#include "engines/finegrain/move.hpp"
#include "movers/bind_texts.hpp"

namespace longshore::finegrain {

inline void check_options(const MoveOptions& options) {
  if (options.max_mem < 0)
    throw Error(ErrorKind::argument,
                "max_mem is " + std::to_string(options.max_mem) + " bytes; it must not be negative");
  if (options.proxy)
    throw Error(ErrorKind::argument, "proxy is for threads and processes; ranks of the finegrain engine take turns");
}

/// The digests of plans, each made once: many ranks may bring the same one.
template <class Plan>
class Digests {
 public:
  std::uint64_t operator()(const Plan& plan) {
    const auto [place, fresh] = known_.try_emplace(&plan);
    if (fresh) place->second = plan.digest();
    return place->second;
  }
  bool same(const Plan& a, const Plan& b) { return &a == &b || (*this)(a) == (*this)(b); }

 private:
  std::unordered_map<const Plan*, std::uint64_t> known_;
};

/// A rank at a bind(). `Kind` has agrees(other), facts() and check(all), all of
/// a rank that has an equal plan, and, static, check_together(all) for what is wrong between ranks
/// and compile(all, move), which fills all ends of the move.
template <class Kind, class Plan>
class Binding : public Arrival {
 public:
  using All = std::vector<Kind*>;

  void carry_out(World& world, Group& group) final {
    const Arrivals arrivals = world.arrivals(group);
    All all;
    for (Index r = 0; r < arrivals.size(); ++r) all.push_back(&arrivals.at<Kind>(r));
    compare(all);
    check(all);
    const auto move = std::make_shared<Move>(world.shared_from_this(), all.size());
    Kind::compile(all, *move);
    for (auto* one : all) {
      move->end(one->rank_).complete(one->rank_);
      move->check_memory(one->rank_, one->max_mem_);
      one->move_ = move;
    }
  }
  /// Comes back with everybody's move.
  std::shared_ptr<Move> arrive(World& world) {
    if (!world.arrive(rank_, world.everybody(), *this)) throw WorldEnded{};  // there is no mover to return
    return move_;
  }

 protected:
  Binding(const char* call, Index rank, const Plan& plan, Index max_mem)
      : Arrival(call), rank_(rank), plan_(plan), max_mem_(max_mem) {}
  ~Binding() = default;

  const Index rank_;
  const Plan& plan_;

 private:
  static void compare(const All& all) {
    Digests<Plan> digests;
    for (const auto* one : all)
      if (!digests.same(one->plan_, all[0]->plan_) || !one->agrees(*all[0]))
        throw_disagreement(Index(all.size()), [&](Index rank) {
          const auto& said = *all[std::size_t(rank)];
          Facts facts = said.facts();
          facts.push_back({digest_fact, std::to_string(digests(said.plan_))});
          return facts_text(facts);
        });
  }
  static void check(const All& all) {
    std::vector<std::string> failures;
    for (const auto* one : all) {
      try {
        one->check(all);
      } catch (const Error& error) {
        failures.resize(all.size());
        failures[std::size_t(one->rank_)] = failure_text(error);
      }
    }
    if (!failures.empty()) throw_failures(Index(all.size()), [&](Index rank) { return failures[std::size_t(rank)]; });
    Kind::check_together(all);
  }

  const Index max_mem_;
  std::shared_ptr<Move> move_;
};

}  // namespace longshore::finegrain
