/// bind() of a plan between layouts.
#include "engines/finegrain/binding.hpp"
#include "movers/overlap_check.hpp"

namespace longshore::finegrain {

namespace {

class LayoutBinding final : public Binding<LayoutBinding, MotionPlan> {
 public:
  LayoutBinding(Index rank, const MotionPlan& plan, LocalArray source, LocalArray destination,
                const MoveOptions& options)
      : Binding("bind() of a plan between layouts", rank, plan, options.max_mem),
        source_(std::move(source)),
        destination_(std::move(destination)),
        options_(options) {}

  std::unique_ptr<Mover> mover(World& world) {
    return make_mover(
        arrive(world), rank_,
        {{source_.owner, "source array of rank", rank_}, {destination_.owner, "destination array of rank", rank_}});
  }

 private:
  friend Binding;

  Facts facts() const { return layout_facts(plan_, options_.update); }
  bool agrees(const LayoutBinding& other) const { return options_.update.same_kind(other.options_.update); }
  void check(const All& all) const {
    check_options(options_);
    options_.update.check(plan_.element_bytes());
    if (options_.update.is_reduction())
      throw Error(ErrorKind::argument, "layouts of the finegrain engine are copied or scaled, not reduced");
    if (plan_.world_size() > Index(all.size()))
      throw Error(ErrorKind::argument, "the plan needs " + std::to_string(plan_.world_size()) +
                                           " ranks, the world has " + std::to_string(all.size()));
    auto check = [&](const LocalArray& array, const Layout& layout, const char* what) {
      if (layout.process_of(rank_))
        check_local_array(array, layout, rank_, plan_.element_bytes(), what);
      else
        check_no_array(array, layout, rank_, what);
    };
    check(source_, plan_.source(), "source"), check(destination_, plan_.destination(), "destination");
  }
  static void check_together(const All& all) {
    OverlapCheck overlaps;
    for (const auto* one : all) {
      const Index element_bytes = one->plan_.element_bytes();
      overlaps.add(one->source_, one->plan_.source(), one->rank_, element_bytes, OverlapCheck::source);
      overlaps.add(one->destination_, one->plan_.destination(), one->rank_, element_bytes, OverlapCheck::destination);
    }
    overlaps.check();
  }

  static void compile(const All& all, Move& move) {
    for (const auto* one : all) {
      one->take_part(all, move);
      for (const auto* array : {&one->source_, &one->destination_})
        if (array->owner) move.memory.push_back(array->owner);
    }
  }
  void take_part(const All& all, Move& move) const {
    End& end = move.end(rank_);
    std::vector<VisiblePart> sources;
    plan_.for_each_receive(rank_, [&](const Motion& motion) {
      sources.push_back({motion.source, all[std::size_t(motion.source)]->source_.data});
      end.add_source(motion.source), move.end(motion.source).add_reader(rank_);
      ++end.motions;
    });
    end.tasks = copy_tasks(plan_, sources, {{rank_, destination_.data}}, Direction::pull, {options_.update.combine()});
  }

  LocalArray source_, destination_;
  const MoveOptions& options_;
};

}  // namespace

std::unique_ptr<Mover> bind(const MotionPlan& plan, Rank& me, LocalArray source, LocalArray destination,
                            const MoveOptions& options) {
  return LayoutBinding(me.rank_, plan, std::move(source), std::move(destination), options).mover(me.world_);
}

}  // namespace longshore::finegrain
