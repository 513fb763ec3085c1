/// engines/mpi: messages between blocks as one collective of MPI's, where the plan is one.
#pragma once

#include "engines/mpi/routes.hpp"

namespace longshore::mpi {

/// Collective: how the blocks' messages travel, by the options and by what the plans of all ranks look like: a total
/// exchange is recognised and becomes MPI_Ialltoallv. Throws on every rank what one of them throws.
MessageTraffic agree_on_exchange(const std::shared_ptr<Communicator>& communicator, Submission& mine,
                                 const Budget& budget, const Options& options, Routes& routes);

}  // namespace longshore::mpi
