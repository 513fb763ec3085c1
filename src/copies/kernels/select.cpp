// Which table: the widest registers this CPU has, unless the environment asks for another.
#include <cstdlib>
#include <string_view>

#include "tables.hpp"

namespace longshore {
namespace {

const KernelTable& choose() {
  const std::vector<const KernelTable*> tables = available_kernels();
  if (const char* wanted = std::getenv("LONGSHORE_KERNELS"))
    for (const KernelTable* table : tables)
      if (std::string_view(table->name) == wanted) return *table;
  return *tables.back();
}

}  // namespace

std::vector<const KernelTable*> available_kernels() {
#if LONGSHORE_KERNELS_NEON
  std::vector<const KernelTable*> tables{&plain_kernels(), &neon_kernel_table};
#else
  std::vector<const KernelTable*> tables{&plain_kernels(), &baseline_kernel_table};
#endif
#if LONGSHORE_KERNELS_X86
  // These ask the operating system too: registers it does not save are not reported.
  if (__builtin_cpu_supports("avx2")) tables.push_back(&avx2_kernel_table);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt"))
    tables.push_back(&avx512_kernel_table);
#endif
  return tables;
}

namespace {

const KernelTable& unprofiled() {
  static const KernelTable& table = choose();
  return table;
}

}  // namespace

const KernelTable& kernels(Stores stores) {
  if (stores != Stores::streaming) return unprofiled();
  static const KernelTable table = [] {
    KernelTable profiled = unprofiled();
    profiled.profile = kernel_choice().profile;
    return profiled;
  }();
  return table;
}

}  // namespace longshore
