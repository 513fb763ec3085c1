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

/// What processes say, in few words, such as the name of an element type; nothing where they know nothing. Collective.
/// The words alone where all say the same, else everybody's, in order of rank. Throws everywhere what has gone wrong
/// before on any process: `failure`, null where nothing has here.
std::vector<std::string> gather_words(CommHandle comm, const std::string& words, const Error* failure = nullptr);

/// The communicator as this library sees it, to compare with what the caller knows. Throws where it is not usable.
struct CommFacts {
  int rank = -1, size = 0;
};
CommFacts comm_facts(CommHandle comm);

}  // namespace longshore::mpi
