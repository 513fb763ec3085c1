#include <utility>

#include "exchange.hpp"
#include "longshore/plans/block_builders.hpp"

namespace longshore::bench {

namespace {

class LongshoreMover final : public HaloExchange {
 public:
  explicit LongshoreMover(std::unique_ptr<Mover> mover) : mover_(std::move(mover)) {}
  void run() override { mover_->move(); }
  std::string describe() const override { return mover_->describe(); }

 private:
  std::unique_ptr<Mover> mover_;
};

}  // namespace

std::unique_ptr<HaloExchange> longshore_mover(const Boxes& boxes, mpi::CommHandle comm, bool proxy,
                                              std::optional<bool> phases) {
  const auto plan = halo_exchange(boxes.array().blocks(), boxes.problem().halo(), boxes.rank());
  mpi::Options options;
  options.proxy = proxy;
  if (phases) options.phases = *phases ? Phases::always : Phases::never;
  return std::make_unique<LongshoreMover>(mpi::bind(plan, comm, boxes.array(), boxes.array(), options));
}

Boxes shared_boxes(const HaloProblem& problem, mpi::CommHandle comm) {
  return {problem, mpi::comm_facts(comm).rank, mpi::make_xarray(problem.blocks(), comm, problem.format())};
}

}  // namespace longshore::bench
