// The layout parser under libFuzzer:
//   clang++ -std=gnu++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Itests tests/fuzz/layout_parser_fuzz.cpp
//   \
//     src/layouts/*.cpp src/sequences/*.cpp -o layout_parser_fuzz
#include "fuzz/layout_parser.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  longshore::test::check_layout_input(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
