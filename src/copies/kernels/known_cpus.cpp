// Which CPU this is, and what is known of its family.
#include <array>
#include <cstring>
#include <fstream>

#include "tables.hpp"

#if LONGSHORE_KERNELS_X86
#include <cpuid.h>
#endif

namespace longshore {
namespace {

/// The models of a family of x86 CPUs, from first to last.
struct Models {
  std::size_t known;  ///< in `known_cpus`
  std::string_view vendor;
  int family, first, last;
};
constexpr std::array models{
    Models{0, "AuthenticAMD", 25, 0x00, 0x0f}, Models{0, "AuthenticAMD", 25, 0x20, 0x5f},
    Models{1, "AuthenticAMD", 25, 0x10, 0x1f}, Models{1, "AuthenticAMD", 25, 0x60, 0x7f},
    Models{1, "AuthenticAMD", 25, 0xa0, 0xaf}, Models{2, "AuthenticAMD", 26, 0x00, 0x2f},
    Models{2, "AuthenticAMD", 26, 0x40, 0x4f}, Models{2, "AuthenticAMD", 26, 0x60, 0x7f},
    Models{3, "GenuineIntel", 6, 143, 143},    Models{3, "GenuineIntel", 6, 207, 207},
};

std::string x86_name(std::string_view vendor, int family, int model) {
  return std::string(vendor) + " family " + std::to_string(family) + " model " + std::to_string(model);
}

[[noreturn]] void refuse(const char* what, Index value, const char* wanted) {
  throw Error(ErrorKind::argument,
              std::string("a kernel profile's ") + what + " is " + std::to_string(value) + "; it must be " + wanted);
}

}  // namespace

std::string cpu_name() {
#if LONGSHORE_KERNELS_X86
  unsigned highest = 0, b = 0, c = 0, d = 0, a = 0;
  if (!__get_cpuid(0, &highest, &b, &c, &d)) return "unknown";
  char vendor[12];
  std::memcpy(vendor, &b, 4), std::memcpy(vendor + 4, &d, 4), std::memcpy(vendor + 8, &c, 4);
  if (!__get_cpuid(1, &a, &b, &c, &d)) return "unknown";
  const unsigned base = a >> 8 & 15, family = base == 15 ? base + (a >> 20 & 255) : base;
  const unsigned model = (a >> 4 & 15) | (base == 15 || base == 6 ? a >> 12 & 0xf0 : 0);
  return x86_name({vendor, 12}, static_cast<int>(family), static_cast<int>(model));
#else
  // The main identification register: bits 24 to 31 the implementer, 4 to 15 the part.
  std::string text;
  if (std::ifstream("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1") >> text) {
    const unsigned long long id = std::strtoull(text.c_str(), nullptr, 16);
    return "arm implementer " + std::to_string(id >> 24 & 255) + " part " + std::to_string(id >> 4 & 4095);
  }
  return "unknown";
#endif
}

const std::vector<KnownCpu>& known_cpus() {
  static const std::vector<KnownCpu> all = [] {
    KernelProfile one_stream;  // for which pages by turns are slower than one run
    one_stream.paged_bytes = KernelProfile::never;
    one_stream.tile_lines = 32;
    KernelProfile zen3 = one_stream;
    zen3.tiled_from = 1, zen3.merged_bytes = 512;
    KernelProfile zen4 = one_stream;
    zen4.cached_bytes = Index{8} << 20;
    KernelProfile zen5;
    zen5.rows = 1, zen5.stagger_bytes = 0;
    zen5.paged_bytes = KernelProfile::never, zen5.string_bytes = Index{1} << 20;
    zen5.merged_bytes = 512, zen5.tile_lines = 8;
    KernelProfile sapphire;
    sapphire.tile_lines = 32;
    return std::vector<KnownCpu>{
        {"AMD Zen 3", "prototypes and longshore bench on an EPYC, two cores, November 2026 (docs/performance.md)",
         zen3},
        {"AMD Zen 4", "longshore calibrate on an EPYC, two cores, November 2026 (docs/performance.md)", zen4},
        {"AMD Zen 5",
         "longshore calibrate and longshore bench on an EPYC, two cores, November 2026 (docs/performance.md)", zen5},
        {"Intel Sapphire or Emerald Rapids",
         "longshore bench on a Xeon, two cores, November 2026 (docs/performance.md)", sapphire},
    };
  }();
  return all;
}

std::optional<KnownCpu> known_cpu(std::string_view cpu) {
  for (const auto& m : models)
    for (int model = m.first; model <= m.last; ++model)
      if (cpu == x86_name(m.vendor, m.family, model)) return known_cpus()[m.known];
  return std::nullopt;
}

void check(const KernelProfile& p) {
  if (p.rows != 1 && p.rows != 2 && p.rows != 4) refuse("rows", p.rows, "1, 2 or 4");
  if (p.merged_rows != 1 && p.merged_rows != 4) refuse("merged_rows", p.merged_rows, "1 or 4");
  const auto lines = [](Index bytes) { return bytes % 64 == 0 && bytes <= 4096; };
  if (p.burst_bytes < 64 || !lines(p.burst_bytes)) refuse("burst_bytes", p.burst_bytes, "a multiple of 64, 64 to 4096");
  if (p.merged_bytes < 64 || !lines(p.merged_bytes))
    refuse("merged_bytes", p.merged_bytes, "a multiple of 64, 64 to 4096");
  if (p.stagger_bytes < 0 || !lines(p.stagger_bytes))
    refuse("stagger_bytes", p.stagger_bytes, "a multiple of 64, 0 to 4096");
  if (p.ahead_bytes < 0 || !lines(p.ahead_bytes)) refuse("ahead_bytes", p.ahead_bytes, "a multiple of 64, 0 to 4096");
  if (p.tile_lines < 1 || p.tile_lines > 256) refuse("tile_lines", p.tile_lines, "1 to 256");
  if (p.tiled_from < 1) refuse("tiled_from", p.tiled_from, "1 or more");
  if (p.paged_bytes < 16384) refuse("paged_bytes", p.paged_bytes, "16384 or more");
  if (p.string_bytes < 128) refuse("string_bytes", p.string_bytes, "128 or more");
  if (p.cached_bytes < 0) refuse("cached_bytes", p.cached_bytes, "0 or more");
}

}  // namespace longshore
