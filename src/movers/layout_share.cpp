/// One process's share of a plan between layouts.
#include <algorithm>
#include <tuple>

#include "copies/joint_row.hpp"
#include "core/digest.hpp"
#include "longshore/movers/local_moves.hpp"
#include "movers/bind_texts.hpp"
#include "movers/block_copies.hpp"
#include "movers/joint_message.hpp"
#include "movers/nest_message.hpp"
#include "movers/share.hpp"
#include "movers/stretch_message.hpp"
#include "plans/interleaving.hpp"

namespace longshore {

namespace {

const Part* find_part(const std::vector<Part>& parts, Index rank) {
  const auto place =
      std::lower_bound(parts.begin(), parts.end(), rank, [](const Part& p, Index r) { return p.rank < r; });
  return place != parts.end() && place->rank == rank ? &*place : nullptr;
}

class LayoutShare final : public Share {
 public:
  LayoutShare(const MotionPlan& plan, std::vector<Part> sources, std::vector<Part> destinations, Update update,
              std::string element)
      : Share(plan.element_bytes(), std::move(update), std::move(element)),
        plan_(plan),
        sources_(std::move(sources)),
        destinations_(std::move(destinations)) {}

  Facts facts() const override { return layout_facts(plan_, update_, element_); }
  const void* plan() const override { return &plan_; }

  void check(const Holders& holders, int me) override {
    holders_ = holders, me_ = me;
    update_.check(element_bytes_);
    if (!holders.wrap)
      for (const auto& [layout, what] : {std::pair{&plan_.source(), "source"}, {&plan_.destination(), "destination"}})
        if (layout->world_size() > holders.processes)
          throw Error(ErrorKind::argument, std::string(what) + " layout " + layout->to_string() + " needs " +
                                               std::to_string(layout->world_size()) + " ranks, " + holders.world +
                                               " has " + std::to_string(holders.processes));
    check_side(sources_, plan_.source(), "source");
    check_side(destinations_, plan_.destination(), "destination");
  }
  void resolve(std::span<Share* const> before) override {
    for (auto* share : before)
      if (const auto* other = dynamic_cast<const LayoutShare*>(share); other && alike(*other)) {
        transfers_ = other->transfers_, motions_ = other->motions_;
        return;
      }
    Transfers found;
    std::vector<Motion> motions;
    motions.reserve(4 * (sources_.size() + destinations_.size()));
    auto add = [&](std::vector<Transfer>& list, const Motion& motion, int peer) {
      if (motions.size() == std::numeric_limits<std::uint32_t>::max())
        throw Error(ErrorKind::memory_limit, "a process can take part in 2^32 motions at most");
      list.push_back({peer, motion.source, motion.destination, checked_mul(motion.elements, element_bytes_),
                      std::uint32_t(motions.size())});
      motions.push_back(motion);
    };
    for (const auto& part : destinations_)  // first, so that their numbers are those of `incoming`
      plan_.for_each_receive(part.rank, [&](const Motion& motion) {
        const int peer = holders_.of(motion.source);
        add(peer == me_ ? found.local : found.incoming, motion, peer);
      });
    if (holders_.here.empty() ? holders_.processes > 1 || !holders_.wrap : holders_.checked)  // else nobody asks
      for (const auto& part : sources_)
        plan_.for_each_send(part.rank, [&](const Motion& motion) {
          if (const int peer = holders_.of(motion.destination); peer != me_) add(found.outgoing, motion, peer);
        });
    auto key = [](const Transfer& t) { return std::tuple(t.peer, t.source, t.destination); };
    for (auto* list : {&found.outgoing, &found.incoming})
      std::stable_sort(list->begin(), list->end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    motions_ = std::make_shared<const std::vector<Motion>>(std::move(motions));
    transfers_ = std::make_shared<const Transfers>(std::move(found));
  }
  void forget() override { transfers_.reset(), motions_.reset(); }
  Incoming incoming(KeptPlans&) const override { return {plan_, nullptr, field, holders_.processes, holders_.wrap}; }
  Direction direction() const override { return preferred_direction(plan_); }

  void add_to(OverlapCheck& overlaps) const override {
    for (const auto& part : sources_)
      overlaps.add(part.array, plan_.source(), part.rank, element_bytes_, OverlapCheck::Role::source);
    for (const auto& part : destinations_)
      overlaps.add(part.array, plan_.destination(), part.rank, element_bytes_, OverlapCheck::Role::destination);
  }
  std::vector<BoundMemory> memory() const override {
    std::vector<BoundMemory> memory;
    for (const auto& part : sources_) memory.push_back({part.array.owner, "source array of rank", part.rank});
    for (const auto& part : destinations_) memory.push_back({part.array.owner, "destination array of rank", part.rank});
    return memory;
  }
  std::vector<StorageMemory> storage(Side side) const override {
    std::vector<StorageMemory> memory;
    for (const auto& part : side == Side::source ? sources_ : destinations_)
      memory.push_back({part.rank,
                        StorageMemory::all,
                        part.array.data,
                        {},
                        part.array.data,
                        touched(part.array.data, part.array.shape, part.array.strides, element_bytes_).second});
    return memory;
  }
  std::byte* data(Side side, const Transfer& transfer) const override {
    return side == Side::source ? find_part(sources_, transfer.source)->array.data
                                : find_part(destinations_, transfer.destination)->array.data;
  }
  StoragePlace place(Side side, const Transfer& transfer) const override {
    return {side == Side::source ? transfer.source : transfer.destination, 0};
  }
  Index rank(Side side, const Transfer& transfer) const override { return place(side, transfer).rank; }
  std::string name(const Transfer& transfer) const override {
    return "rank " + std::to_string(transfer.source) + " -> rank " + std::to_string(transfer.destination) + ", " +
           std::to_string(transfer.bytes) + " bytes";
  }

  std::vector<CopyTask> copies(std::span<const Transfer* const> transfers, const SeenOf& seen, Direction direction,
                               Index task_bytes, int threads) override {
    std::vector<CopyTask> tasks;
    if (update_.is_reduction()) {
      for (const Transfer* transfer : transfers) {
        const auto [source, destination] = seen(*transfer);
        Batches parts(task_bytes);
        parts.add(stretch(reducing(*transfer), source, destination, transfer->number));
        for (auto& task : parts.take()) {
          if (transfer->peer != me_) task.peers.push_back(transfer->peer);
          tasks.push_back(std::move(task));
        }
      }
      return tasks;
    }
    std::vector<VisibleMotion> motions;
    motions.reserve(transfers.size());
    for (const Transfer* transfer : transfers) {
      const auto [source, destination] = seen(*transfer);
      motions.push_back({&(*motions_)[transfer->number], source, destination, transfer->number});
    }
    tasks = copy_tasks(plan_, motions, direction, {update_.combine(), task_bytes});
    // Those that are joint have their lines to themselves.
    const auto single = [](const auto& task) { return std::holds_alternative<CopyTask::Single>(task.work); };
    if (threads > 1 && joint_direction(plan_) == direction && std::all_of(tasks.begin(), tasks.end(), single))
      spread_out(tasks, threads);
    if (!holders_.here.empty()) return tasks;
    for (auto& task : tasks) {
      for (const auto number : task.motions(0))
        for (const Index rank : {(*motions_)[number].source, (*motions_)[number].destination})
          if (const int process = holders_.of(rank); process != me_) task.peers.push_back(process);
      std::sort(task.peers.begin(), task.peers.end());
      task.peers.erase(std::unique(task.peers.begin(), task.peers.end()), task.peers.end());
    }
    return tasks;
  }

  std::vector<std::unique_ptr<Message>> messages(std::span<const Transfer> transfers, MessageEnd end,
                                                 const MessageCut& cut) override {
    std::vector<std::unique_ptr<Message>> messages;
    for (const auto& transfer : transfers) {
      std::byte* const array = data(end == MessageEnd::assembly ? Side::source : Side::destination, transfer);
      if (update_.is_reduction() && end != MessageEnd::arrival) {
        const bool sends = end == MessageEnd::assembly;
        const auto half = sends ? AddressRelation(relation(transfer)).assembly() : reducing(transfer).disassembly();
        messages.push_back(stretch_message({stretch(half, array, array)}, sends, cut.capacity));
        continue;
      }
      if (auto joint = joint_with_local(transfer, cut)) {
        if (end == MessageEnd::assembly)
          messages.push_back(joint_message(std::move(joint->cut), array));
        else
          messages.push_back(joint_message(std::move(joint->cut), plan_.relation_by_dimension(joint->local),
                                           find_part(sources_, joint->local.source)->array.data, array,
                                           unpacking(transfer)));
        continue;
      }
      using Halves = PacketedMessage::Halves;
      if (end == MessageEnd::disassembly)
        messages.push_back(nest_message(relation(transfer), cut, Halves::disassembly, unpacking(transfer), array));
      else
        messages.push_back(nest_message(end == MessageEnd::arrival ? relation(transfer).inverse() : relation(transfer),
                                        cut, Halves::assembly, {}, array));
    }
    return messages;
  }
  Index line_phase() const override {
    return destinations_.empty() ? 0 : reinterpret_cast<Index>(destinations_.front().array.data) % line_bytes;
  }
  Index longest_packet() const override { return lines_go_to_several(plan_) ? Index{64} << 10 : INT64_MAX; }
  bool in_step() const override { return joint_direction(plan_).has_value(); }
  std::vector<std::uint32_t> brought_along(std::span<const Transfer> incoming, const MessageCut& cut) const override {
    std::vector<std::uint32_t> numbers;
    for (const auto& transfer : incoming)
      if (const auto joint = joint_with_local(transfer, cut))
        for (const auto& local : transfers().local)
          if (local.source == joint->local.source && local.destination == joint->local.destination)
            numbers.push_back(local.number);
    return numbers;
  }

 private:
  struct JointWithLocal {
    JointCut cut;
    Motion local;
  };
  /// Where cache lines of a destination beyond the cache hold elements of this transfer and of what its receiver keeps,
  /// and of nobody else. Both ends find the same.
  std::optional<JointWithLocal> joint_with_local(const Transfer& transfer, const MessageCut& cut) const {
    if (!cut.ring || !cut.capacity || update_.is_reduction() || !update_.combine().is_copy() ||
        joint_direction(plan_) != Direction::pull || !is_far(transfer))
      return std::nullopt;
    const std::size_t along = interleaved_dimension(plan_)->dimension, from = plan_.axes()[along];
    if (plan_.source().dimensions()[from].coordinates() != 2) return std::nullopt;
    const Motion& motion = (*motions_)[transfer.number];
    auto coordinates = motion.source_coordinates;
    coordinates[from] = 1 - coordinates[from];
    std::optional<Motion> local;
    plan_.for_each_receive(motion.destination, [&](const Motion& other) {
      if (other.source_coordinates == coordinates && holders_.of(other.source) == holders_.of(other.destination))
        local = other;
    });
    if (!local) return std::nullopt;
    const bool last_is_innermost = plan_.destination().order() == Order::C;
    JointCut joint(plan_.relation_by_dimension(motion), last_is_innermost ? along : plan_.axes().size() - 1 - along,
                   *cut.capacity);
    if (!joint.possible()) return std::nullopt;
    return JointWithLocal{std::move(joint), *local};
  }

  std::uint64_t plan_digest() const override { return plan_.digest(); }
  LoopNest relation(const Transfer& transfer) const { return plan_.relation((*motions_)[transfer.number]); }
  AddressRelation reducing(const Transfer& transfer) const {
    return AddressRelation(relation(transfer), update_.reduction());
  }
  static Stretch stretch(const AddressRelation& relation, std::byte* source, std::byte* destination,
                         std::uint32_t number = 0) {
    auto program = std::make_shared<const RelationProgram>(relation);
    const Index n = program->elements();
    return {std::move(program), 0, n, destination, source, false, number};
  }
  bool is_far(const Transfer& transfer) const {
    return plan_.destination().local_size(transfer.destination) * element_bytes_ >= far_bytes;
  }
  CopyProgram::Options unpacking(const Transfer& transfer) const {
    return {is_far(transfer) ? stores_of_far_parts(plan_) : Stores::cached, nullptr, update_.combine()};
  }

  /// Whether arrays of the same ranks are here for the same plan.
  bool alike(const LayoutShare& other) const {
    auto same_ranks = [](const std::vector<Part>& a, const std::vector<Part>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const Part& one, const Part& two) { return one.rank == two.rank; });
    };
    return &plan_ == &other.plan_ && other.transfers_ && same_ranks(sources_, other.sources_) &&
           same_ranks(destinations_, other.destinations_);
  }
  /// Checks one side: exactly the parts that this process should hold, each as its layout says. Sorts them by rank.
  void check_side(std::vector<Part>& parts, const Layout& layout, const char* what) const {
    const auto before = [](const Part& a, const Part& b) { return a.rank < b.rank; };
    if (!std::is_sorted(parts.begin(), parts.end(), before)) std::sort(parts.begin(), parts.end(), before);
    Index last = -1;
    std::erase_if(parts, [&](const Part& part) {
      auto name = [&] { return std::string(what) + " part of layout rank " + std::to_string(part.rank); };
      if (part.rank < 0) throw Error(ErrorKind::argument, name() + ": ranks are not negative");
      if (last == part.rank) throw Error(ErrorKind::argument, "two arrays for the " + name());
      const bool takes_part = layout.process_of(part.rank).has_value();
      if (holders_.of(part.rank) != me_ && takes_part)
        throw Error(ErrorKind::argument, "the " + name() + " belongs in process " +
                                             std::to_string(holders_.of(part.rank)) + ", not in process " +
                                             std::to_string(me_));
      if (!takes_part) {
        check_no_array(part.array, layout, part.rank, what);
        return true;
      }
      check_local_array(part.array, layout, part.rank, element_bytes_, what);
      last = part.rank;
      return false;
    });

    const Index step = holders_.wrap ? holders_.processes : layout.world_size();
    for (Index rank = me_; rank < layout.world_size(); rank += step)
      if (layout.process_of(rank) && !find_part(parts, rank) && layout.local_size(rank) > 0)
        throw Error(ErrorKind::argument, "no " + std::string(what) + " array for layout rank " + std::to_string(rank) +
                                             ", which owns " + std::to_string(layout.local_size(rank)) + " elements");
  }

  const MotionPlan& plan_;
  std::vector<Part> sources_, destinations_;  ///< by ranks
  std::shared_ptr<const std::vector<Motion>> motions_;
};

}  // namespace

Field::Field(const MotionPlan& plan, std::vector<Part> sources, std::vector<Part> destinations, Update update,
             std::string element)
    : share_(std::make_shared<LayoutShare>(plan, std::move(sources), std::move(destinations), std::move(update),
                                           std::move(element))) {}

}  // namespace longshore
