#include "longshore/engines/finegrain.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_map>

#include "parts.hpp"
#include "points.hpp"

namespace longshore::python {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A plan with the arrays of all ranks, of which each rank of a world takes its own. Ranks look at no owners of memory,
/// which are Python's: whoever calls holds the arrays meanwhile.
class EverybodysField {
 public:
  EverybodysField(const MotionPlan& plan, Parts& sources, Parts& destinations, const Update& update,
                  std::string element)
      : layouts_(&plan), update_(update), element_(std::move(element)) {
    for (auto [given, parts] : {std::pair{&sources, &source_parts_}, {&destinations, &destination_parts_}})
      for (auto& part : given->parts) {
        owners_.push_back(std::exchange(part.array.owner, nullptr));
        parts->emplace(part.rank, std::move(part));
      }
  }
  EverybodysField(const BlockPlan& plan, std::vector<XArray> sources, std::vector<XArray> destinations,
                  const Update& update, std::string element, const std::optional<std::string>& visit)
      : blocks_(&plan), update_(update), element_(std::move(element)) {
    if (visit) visit_ = to_order(*visit);
    auto bare = [&](const XArray& array) {
      owners_.insert(owners_.end(), array.memory_owners().begin(), array.memory_owners().end());
      return array.memory() ? array : XArray::over(array.blocks(), array.rank(), array.format(), array.grids());
    };
    source_ = bare(sources.at(0));
    destination_ = sources[0].same_storage(destinations.at(0)) ? source_ : bare(destinations[0]);
  }

  Index world_size() const { return layouts_ ? layouts_->world_size() : blocks_->world_size(); }
  /// What a rank of a world of so many binds.
  Field of(Index rank, Index ranks) const {
    if (blocks_) return Field(*blocks_, source_, destination_, update_, visit_, element_);
    auto parts = [&](const PartsByRank& all, const Layout& layout) {
      std::vector<Part> mine;
      for (Index r = rank; r < layout.world_size(); r += ranks)
        if (const auto part = all.find(r); part != all.end()) mine.push_back(part->second);
      return mine;
    };
    return Field(*layouts_, parts(source_parts_, layouts_->source()),
                 parts(destination_parts_, layouts_->destination()), update_, element_);
  }

 private:
  using PartsByRank = std::unordered_map<Index, Part>;
  const MotionPlan* layouts_ = nullptr;
  const BlockPlan* blocks_ = nullptr;
  PartsByRank source_parts_, destination_parts_;
  XArray source_, destination_;
  std::vector<std::shared_ptr<const MemoryOwner>> owners_;
  Update update_;
  std::string element_;
  std::optional<Order> visit_;
};

}  // namespace

void bind_finegrain(nb::module_& module) {
  nb::class_<EverybodysField>(module, "EverybodysField", "A plan with the arrays of all ranks.")
      .def(nb::init<const MotionPlan&, Parts&, Parts&, const Update&, std::string>(), nb::arg("plan"),
           nb::arg("sources"), nb::arg("destinations"), nb::arg("update"), nb::arg("element"), nb::keep_alive<1, 2>())
      .def(nb::init<const BlockPlan&, std::vector<XArray>, std::vector<XArray>, const Update&, std::string,
                    const std::optional<std::string>&>(),
           nb::arg("plan"), nb::arg("sources"), nb::arg("destinations"), nb::arg("update"), nb::arg("element"),
           nb::arg("visit").none(), nb::keep_alive<1, 2>());

  module.def("finegrain_available", &finegrain::available, "Whether this build has the finegrain engine.");
  module.def(
      "finegrain_move",
      [](const std::vector<const EverybodysField*>& given, std::optional<Index> world, bool wrap, bool checked,
         std::uint64_t seed, Index rounds, Index stack_bytes, Index max_mem) {
        MoveOptions options;
        options.placement = wrap ? Placement::wrap : Placement::direct;
        options.checked = checked, options.max_mem = max_mem;
        Index ranks = 1;
        for (const auto* field : given) ranks = std::max(ranks, field->world_size());
        ranks = world.value_or(ranks);
        finegrain::Statistics statistics;
        Index bytes = 0;
        std::optional<double> bind_s, move_s;
        {
          nb::gil_scoped_release unlocked;
          auto start = std::chrono::steady_clock::now();
          statistics = finegrain::run(ranks,
                                      [&](finegrain::Rank& me) {
                                        std::vector<Field> fields;
                                        for (const auto* field : given) fields.push_back(field->of(me.rank(), ranks));
                                        const auto mover = finegrain::bind(std::exchange(fields, {}), me, options);
                                        bytes = checked_add(bytes, checked_mul(rounds, mover->moved_bytes()));
                                        me.barrier();
                                        // Whoever is the first to go on takes the time.
                                        if (!bind_s)
                                          bind_s = seconds_since(start), start = std::chrono::steady_clock::now();
                                        for (Index round = 0; round < rounds; ++round) mover->start(), mover->wait();
                                        me.barrier();
                                        if (!move_s) move_s = seconds_since(start);
                                      },
                                      {seed, stack_bytes});
        }
        nb::dict told;
        told["ranks"] = ranks, told["bytes"] = bytes;
        told["switches"] = statistics.switches, told["stacks"] = statistics.stacks;
        told["bind_s"] = bind_s.value_or(0), told["move_s"] = move_s.value_or(0);
        return told;
      },
      nb::arg("fields"), nb::arg("ranks").none(), nb::arg("wrap"), nb::arg("checked"), nb::arg("seed"),
      nb::arg("rounds"), nb::arg("stack_bytes"), nb::arg("max_mem"), "What longshore.finegrain.move does.");
}

}  // namespace longshore::python
