// Stored plans and floor plans under libFuzzer, with the checksum put right, so that what lies behind it is reached:
//   clang++ -std=gnu++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc -Itests
//   tests/fuzz/stored_plan_fuzz.cpp \
//     src/plans/block_*.cpp src/layouts/*.cpp src/regions/*.cpp src/relations/*.cpp src/relations/*/*.cpp
//     src/sequences/*.cpp \ -ldl -o stored_plan_fuzz
#include "fuzz/stored_plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  longshore::test::Bytes bytes(first, first + size);
  longshore::test::seal(bytes);
  longshore::test::check_stored(bytes);
  return 0;
}
