/// What a stored value says of itself before its content.
#pragma once

#include <cstdint>

namespace longshore {

/// What kind of value it is: four letters, and the version of what is written after them.
struct StoredKind {
  char name[5];
  std::uint8_t version;
  const char* words;  ///< "floor plan", for errors
};

}  // namespace longshore
