#include "apps/mg/mg.hpp"

#include <numeric>

#include "apps/mg/communication.hpp"
#include "apps/mg/windows.hpp"
#include "lab/twins/mg.hpp"
#include "longshore/regions/partition.hpp"

namespace longshore::apps::mg {

std::vector<FloorPlan> levels_of(Index points, Index ranks) {
  if (ranks != 1 && ranks != 2 && ranks != 4 && ranks != 8)
    throw Error(ErrorKind::argument, "NAS-MG runs on 1, 2, 4 or 8 ranks, not on " + std::to_string(ranks) +
                                         ": its coarsest level has 2x2x2 points");
  Map owners(std::size_t(ranks), 0);
  std::iota(owners.begin(), owners.end(), Index(0));
  const Point halves{ranks > 1 ? 2 : 1, ranks > 2 ? 2 : 1, ranks > 4 ? 2 : 1};
  std::vector<FloorPlan> levels;
  for (Index extent = 2; extent <= points; extent *= 2)
    levels.emplace_back(split_evenly(Region::of_shape(Point(3, extent)), halves), owners);
  return levels;
}

void place_charges(MPI_Comm comm, const Mesh& v, const Region& part, Index points) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  const std::vector<Candidate> here = extremes(part, points);
  std::vector<Candidate> all(here.size() * std::size_t(ranks));
  const int bytes = int(here.size() * sizeof(Candidate));
  MPI_Allgather(here.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, comm);
  keep_extremes(all);
  place_charges(v, all, part, points);
}

namespace {

template <class Communication, class... Options>
Result run_with(MPI_Comm comm, const Problem& problem, Options... options) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  const std::vector<FloorPlan> levels = levels_of(problem.points, ranks);
  Communication communication(comm, levels, options...);
  const Result result = Solver<Communication>(comm, problem, levels, communication).run();
  if constexpr (requires { communication.close(); }) communication.close();
  return result;
}

}  // namespace

Result run(MPI_Comm comm, char problem_class, Variant variant, Index parts) {
  const Problem problem = problem_of(problem_class);
  if (variant == Variant::twin) return run_with<twins::Mg>(comm, problem);
  if (variant == Variant::windows) return run_with<Windows>(comm, problem, parts);
  return run_with<Communication>(comm, problem, variant == Variant::overlapped);
}

}  // namespace longshore::apps::mg
