/// A mover that is carried out by a thread of its own (the Data Mover, section 2: the communication proxy).
#pragma once

#include <memory>

#include "longshore/movers/mover.hpp"

namespace longshore {

/// What `mover` does, from start() on, beside the caller's work. The mover must bear
/// being called from another thread. What it throws comes out of wait() or test().
std::unique_ptr<Mover> make_proxy_mover(std::unique_ptr<Mover> mover);

}  // namespace longshore
