#include "apps/apps.hpp"

#include "apps/mg/mg.hpp"
#include "apps/redblack3d/redblack3d.hpp"
#if LONGSHORE_WITH_FFTW
#include "apps/ft/ft.hpp"
#endif
#if LONGSHORE_WITH_BLAS
#include "apps/summa/summa.hpp"
#endif

namespace longshore::apps {

std::string missing(const std::string& name) {
#if !LONGSHORE_WITH_FFTW
  if (name == "ft") return "FFTW 3 was not found when this was built";
#endif
#if !LONGSHORE_WITH_BLAS
  if (name == "summa") return "no CBLAS was found when this was built";
#endif
  for (const char* known : {"redblack3d", "mg", "ft", "summa"})
    if (name == known) return {};
  return "there is no application \"" + name + "\", but redblack3d, mg, ft and summa";
}

Result run(MPI_Comm comm, const Problem& problem, Variant variant) {
  if (const auto why = missing(problem.name); !why.empty()) throw Error(ErrorKind::argument, problem.name + ": " + why);
  if (problem.parts < 1)
    throw Error(ErrorKind::argument, std::to_string(problem.parts) + " parts: it must be positive");
  if (problem.name == "mg") return mg::run(comm, problem.problem_class, variant, problem.parts);
  if (variant == Variant::windows) throw Error(ErrorKind::argument, problem.name + " has no variant windows; mg has");
#if LONGSHORE_WITH_FFTW
  if (problem.name == "ft") return ft::run(comm, problem.problem_class, variant);
#endif
#if LONGSHORE_WITH_BLAS
  if (problem.name == "summa") return summa::run(comm, problem.size, problem.panel, variant);
#endif
  return redblack3d::run(comm, problem.size, problem.iterations, variant);
}

}  // namespace longshore::apps
