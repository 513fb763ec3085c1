#include "apps/summa/summa.hpp"

#include "apps/summa/communication.hpp"
#include "apps/summa/solver.hpp"
#include "lab/twins/summa.hpp"

namespace longshore::apps::summa {

Result run(MPI_Comm comm, Index n, Index panel, Variant variant) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  const Problem problem(n, panel, ranks);
  if (variant == Variant::twin) {
    twins::Summa broadcast(comm, problem);
    return solve(problem, broadcast, comm);
  }
  Communication broadcast(comm, problem, variant == Variant::overlapped);
  return solve(problem, broadcast, comm);
}

}  // namespace longshore::apps::summa
