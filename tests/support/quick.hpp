/// LONGSHORE_TEST_QUICK=1 asks for fewer cases: under sanitizers, or between two edits.
#pragma once

#include <cstdlib>
#include <string_view>

namespace longshore::test {

inline bool quick() {
  const char* value = std::getenv("LONGSHORE_TEST_QUICK");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace longshore::test
