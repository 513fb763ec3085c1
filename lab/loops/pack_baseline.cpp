/// The plain loops for any CPU, and which of their copies this one can run.
#include "pack_body.hpp"
#include "pack_tables.hpp"

namespace longshore::bench {

const PackLoops baseline_pack_loops = loops_called("baseline");

std::vector<const PackLoops*> pack_loops() {
  std::vector<const PackLoops*> all{&baseline_pack_loops};
#if defined(__x86_64__)
  // These ask the operating system too: registers that it does not save are not reported.
  if (__builtin_cpu_supports("avx2")) all.push_back(&avx2_pack_loops);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    all.push_back(&avx512_pack_loops);
#endif
  return all;
}

}  // namespace longshore::bench
