// Stored encodings under libFuzzer, with the checksum put right, so that what lies behind it is reached:
//   clang++ -std=gnu++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc -Itests
//   tests/fuzz/encoding_fuzz.cpp \
//     src/relations/*.cpp src/relations/*/*.cpp src/sequences/*.cpp -ldl -o encoding_fuzz
#include "fuzz/encoding.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  longshore::test::Bytes bytes(first, first + size);
  longshore::test::seal(bytes);
  longshore::test::check_encoding(bytes);
  return 0;
}
