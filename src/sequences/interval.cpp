#include "longshore/sequences/interval.hpp"

namespace longshore {

void refuse_position(Index position, Index size) {
  throw Error(ErrorKind::argument,
              "position " + std::to_string(position) + " is outside [0, " + std::to_string(size) + ")");
}

void refuse_positions(Interval positions, Index size) {
  throw Error(ErrorKind::argument, "positions [" + std::to_string(positions.first) + ", " +
                                       std::to_string(positions.last) + ") are not within [0, " + std::to_string(size) +
                                       ")");
}

}  // namespace longshore
