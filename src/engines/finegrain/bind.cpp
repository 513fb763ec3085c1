/// bind(): all ranks call it, one of them compares what they bring and makes the movers of all.
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "core/digest.hpp"
#include "core/disagreement.hpp"
#include "engines/finegrain/move.hpp"
#include "movers/checked_mover.hpp"

namespace longshore::finegrain {

namespace {

/// Brings the sums of what a rank sends to those who check what they have received.
class SumMessages final : public SumsExchange {
 public:
  /// To whom every message of the rank's goes, and from whom it comes, in the order that both ends have in common.
  SumMessages(std::shared_ptr<World> world, Index rank, Index tag, std::vector<int> to, std::vector<int> from)
      : world_(std::move(world)), rank_(rank), tag_(tag), to_(std::move(to)), from_(std::move(from)) {}

  void start(const std::vector<std::uint64_t>& sent) override {
    for (std::size_t k = 0; k < sent.size(); ++k)
      world_->send(rank_, to_[k], {Group::world, tag_}, std::as_bytes(std::span(&sent[k], 1)));
  }
  /// Called when the move is complete, so that all have been sent.
  bool test() override {
    sums_.resize(from_.size());
    for (std::size_t k = 0; k < sums_.size(); ++k)
      world_->receive(rank_, from_[k], {Group::world, tag_}, std::as_writable_bytes(std::span(&sums_[k], 1)));
    return true;
  }
  std::vector<std::uint64_t> expected() const override { return sums_; }

 private:
  std::shared_ptr<World> world_;
  Index rank_, tag_;
  std::vector<int> to_, from_;
  std::vector<std::uint64_t> sums_;
};

/// The digests of plans, each made once: many ranks may bring the same one.
using Digests = std::unordered_map<const void*, std::uint64_t>;

/// A rank at a bind().
class Binding final : public Arrival {
 public:
  Binding(Index rank, const std::vector<Field>& fields, const MoveOptions& options)
      : Arrival("bind()"), rank_(rank), options_(options) {
    for (const auto& field : fields) shares_.push_back(&field.share());
  }

  void carry_out(World& world, Group& group) override {
    const Arrivals arrivals = world.arrivals(group);
    All all;
    for (Index r = 0; r < arrivals.size(); ++r) all.push_back(&arrivals.at<Binding>(r));
    compare(all);
    std::vector<std::vector<Share*>> fields(shares_.size());
    for (std::size_t f = 0; f < fields.size(); ++f)
      for (const auto* one : all) fields[f].push_back(one->shares_[f]);
    check(all, fields);
    const auto move = std::make_shared<Move>(world.shared_from_this(), all.size());
    const Index tag = world.private_tag();
    KeptPlans plans;
    std::shared_ptr<const std::vector<Incoming>> incoming;  // most ranks get the same as the one before
    for (auto* one : all) one->take_part(move, fields, tag, plans, incoming);
    for (const auto* one : all)
      for (const auto* share : one->shares_) move->program_bytes += share->programs_bytes();
    for (auto* one : all) {
      move->end(one->rank_).complete(one->rank_);
      move->check_memory(one->rank_, one->options_.max_mem);
    }
  }
  /// Comes back with this rank's mover.
  std::unique_ptr<Mover> arrive(World& world) {
    if (!world.arrive(rank_, world.everybody(), *this)) throw WorldEnded{};  // there is no mover to return
    return std::move(mover_);
  }

 private:
  using All = std::vector<Binding*>;

  Facts facts() const {
    Facts facts = facts_of(shares_);
    facts.push_back({"placement", options_.placement == Placement::wrap ? "wrap" : "direct"});
    facts.push_back({"checked", options_.checked ? "true" : "false"});
    return facts;
  }
  /// Of what the facts tell.
  std::uint64_t digest(Digests& plans) const {
    Digest digest;
    for (const auto* share : shares_) {
      const auto [plan, fresh] = plans.try_emplace(share->plan());
      if (fresh) plan->second = share->plan_digest();
      digest.mix(share->digest(plan->second));
    }
    digest.mix(std::array{Index(options_.placement), Index(options_.checked)});
    return digest.value();
  }
  static void compare(const All& all) {
    Digests plans;
    const std::uint64_t first = all[0]->digest(plans);
    for (const auto* one : all)
      if (one->digest(plans) != first)
        throw_disagreement(Index(all.size()), [&](Index rank) {
          const auto& said = *all[std::size_t(rank)];
          Facts facts = said.facts();
          facts.push_back({digest_fact, std::to_string(said.digest(plans))});
          return facts_text(facts);
        });
  }

  static void check(const All& all, const std::vector<std::vector<Share*>>& fields) {
    std::vector<std::string> failures;
    auto attempt = [&](Index rank, auto&& f) {
      try {
        f();
      } catch (const Error& error) {
        failures.resize(all.size());
        failures[std::size_t(rank)] = failure_text(error);
      }
    };
    for (const auto* one : all)
      attempt(one->rank_, [&] {
        check_options(one->options_);
        for (const auto& field : fields)
          field[std::size_t(one->rank_)]->check({.wrap = one->options_.placement == Placement::wrap,
                                                 .processes = Index(all.size()),
                                                 .world = "the world",
                                                 .checked = one->options_.checked,
                                                 .here = field},
                                                int(one->rank_));
      });
    OverlapCheck overlaps;
    for (std::size_t k = 0; k < all.size() && failures.empty(); ++k)
      attempt(all[k]->rank_, [&] {
        for (const auto* share : all[k]->shares_) {
          if (share->process() != all[k]->rank_)
            throw Error(ErrorKind::argument,
                        rank_name(share->process()) + " binds the same Field; every rank needs one of its own");
          share->add_to(overlaps);
        }
      });
    if (!failures.empty()) throw_failures(Index(all.size()), [&](Index rank) { return failures[std::size_t(rank)]; });
    overlaps.check();
  }
  static void check_options(const MoveOptions& options) {
    if (options.max_mem < 0)
      throw Error(ErrorKind::argument,
                  "max_mem is " + std::to_string(options.max_mem) + " bytes; it must not be negative");
    if (options.phases == Phases::always)
      throw Error(ErrorKind::argument, "ranks of the finegrain engine are copied for all at once, not in phases");
    if (options.proxy)
      throw Error(ErrorKind::argument, "proxy is for threads and processes; ranks of the finegrain engine take turns");
  }

  void take_part(const std::shared_ptr<Move>& move, const std::vector<std::vector<Share*>>& fields, Index tag,
                 KeptPlans& plans, std::shared_ptr<const std::vector<Incoming>>& incoming) {
    std::vector<BoundMemory> memory;
    CheckedTransfers checked;
    for (std::size_t f = 0; f < shares_.size(); ++f) {
      shares_[f]->field = Index(f);
      shares_[f]->resolve(std::span(shares_).first(f));
    }
    for (std::size_t f = 0; f < shares_.size(); ++f) {
      add_copies(*move, fields[f]);
      if (options_.checked) checked.add(*shares_[f]);
      for (auto& bound : shares_[f]->memory()) {
        if (bound.owner && (move->memory.empty() || move->memory.back() != bound.owner))
          move->memory.push_back(bound.owner);
        memory.push_back(std::move(bound));
      }
    }
    std::vector<Incoming> told;
    for (auto* share : shares_) told.push_back(share->incoming(plans)), share->forget();
    if (!incoming || *incoming != told) incoming = std::make_shared<const std::vector<Incoming>>(std::move(told));
    mover_ = make_mover(move, rank_, std::move(memory));
    if (options_.checked) {
      checked.programs_bytes = 0;  // they are those of all
      auto sums = std::make_unique<SumMessages>(move->world().shared_from_this(), rank_, tag,
                                                checked.peers(checked.sends), checked.peers(checked.receives));
      mover_ = make_checked_mover(std::move(mover_), std::move(checked), std::move(sums));
    }
    longshore::Arrivals::follow(*mover_, incoming, int(rank_));
  }
  /// `field`: everybody's shares of one field.
  void add_copies(Move& move, const std::vector<Share*>& field) const {
    Share& mine = *field[std::size_t(rank_)];
    End& end = move.end(rank_);
    std::vector<const Transfer*> reads;
    for (const auto* list : {&mine.transfers().incoming, &mine.transfers().local})
      for (const auto& transfer : *list) {
        if (transfer.peer != rank_ && (reads.empty() || reads.back()->peer != transfer.peer))
          end.add_source(transfer.peer), move.end(transfer.peer).add_reader(rank_);
        reads.push_back(&transfer);
      }
    end.motions += Index(reads.size());
    auto seen = [&](const Transfer& transfer) {
      return Seen{field[std::size_t(transfer.peer)]->data(Side::source, transfer),
                  mine.data(Side::destination, transfer)};
    };
    auto tasks = mine.copies(reads, seen, Direction::pull, std::numeric_limits<Index>::max(), 1);
    std::move(tasks.begin(), tasks.end(), std::back_inserter(end.tasks));
  }

  const Index rank_;
  std::vector<Share*> shares_;
  const MoveOptions& options_;
  std::unique_ptr<Mover> mover_;
};

}  // namespace

std::unique_ptr<Mover> bind(const std::vector<Field>& fields, Rank& me, const MoveOptions& options) {
  return Binding(me.rank_, fields, options).arrive(me.world_);
}

std::unique_ptr<Mover> bind(const BlockPlan& plan, Rank& me, XArray source, XArray destination,
                            const MoveOptions& options) {
  return bind({Field(plan, std::move(source), std::move(destination), options.update, options.visit)}, me, options);
}

std::unique_ptr<Mover> bind(const MotionPlan& plan, Rank& me, LocalArray source, LocalArray destination,
                            const MoveOptions& options) {
  return bind({Field(plan, {{me.rank(), std::move(source)}}, {{me.rank(), std::move(destination)}}, options.update)},
              me, options);
}

}  // namespace longshore::finegrain
