#include "apps/ft/ft.hpp"

#include "apps/ft/communication.hpp"
#include "apps/ft/solver.hpp"
#include "lab/twins/ft.hpp"

namespace longshore::apps::ft {

Result run(MPI_Comm comm, char problem_class, Variant variant) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  const Problem problem = ft::problem(problem_class);
  const Slabs slabs = ft::slabs(problem, ranks);
  if (variant == Variant::twin) {
    twins::Ft transpose(comm, slabs);
    return solve(problem, slabs, transpose, comm);
  }
  Communication transpose(comm, slabs, variant == Variant::overlapped);
  return solve(problem, slabs, transpose, comm);
}

}  // namespace longshore::apps::ft
