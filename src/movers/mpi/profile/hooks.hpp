/// movers/mpi/profile: what the intercepted calls have in common.
#pragma once

#include "movers/mpi/profile/profile.hpp"

// Declared by mpi.h without a visibility of their own, and to be found before those of the library.
#define LONGSHORE_INTERCEPT extern "C" __attribute__((visibility("default")))
