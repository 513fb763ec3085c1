// libFuzzer: clang++ -fsanitize=fuzzer,address,undefined; the
// checksum is put right, so that what is behind it is reached.
#include "fuzz/rank_map.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  longshore::test::Bytes bytes(first, first + size);
  longshore::test::seal(bytes);
  longshore::test::check_rank_map(bytes);
  return 0;
}
