/// The applications by name, as programs and benchmarks run them.
#pragma once

#include <string>

#include "apps/app.hpp"

namespace longshore::apps {

/// An application and its problem; what an application has no use for does not matter.
struct Problem {
  std::string name;          ///< redblack3d, mg, ft or summa
  char problem_class = 'S';  ///< mg, ft: of the NAS benchmarks
  Index size = 128;          ///< redblack3d: points in each dimension; summa: rows
  Index panel = 128;         ///< summa: columns
  int iterations = 10;       ///< redblack3d
  Index parts = 1;           ///< mg from windows: the strips of what a rank gets from another
};

/// Why an application was left out of this build; empty where it is there.
std::string missing(const std::string& name);
/// Collective. Throws `Error(argument)` for other names, for what was left out, and what the application throws.
Result run(MPI_Comm comm, const Problem& problem, Variant variant);

}  // namespace longshore::apps
