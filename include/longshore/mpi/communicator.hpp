/// mpi: a communicator of the caller's, and what all of its processes agree on.
#pragma once

#include <string>
#include <vector>

#include "longshore/core/error.hpp"
#include "longshore/mpi/handle.hpp"

namespace longshore::mpi {

using CommHandle = Handle<struct CommTag>;

/// Turns an error of one process into the same error on all, so that nobody goes on to wait for it. Collective. Null:
/// nothing went wrong here; returns if that is so everywhere.
void agree(CommHandle comm, const Error* failure);

/// Every process's text, in order of rank. Collective. For short texts, such as the name of an element type.
std::vector<std::string> gather_texts(CommHandle comm, const std::string& text);

/// The communicator as this library sees it, to compare with what the caller knows. Throws where it is not usable.
struct CommFacts {
  int rank = -1, size = 0;
};
CommFacts comm_facts(CommHandle comm);

}  // namespace longshore::mpi
