#include "copies/kernel_probe.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <new>

namespace longshore {

namespace {

std::string present_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[40] = "";
  if (gmtime_r(&now, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
  return text;
}

std::string told(const KernelProbe& probe, const std::string& measured) {
  const std::string took = std::to_string(std::lround(probe.seconds * 1e3)) + " ms";
  if (probe.found.trials.empty())
    return "general: a probe at first use, of " + took +
           ", could not try anything three times; longshore calibrate measures this CPU";
  std::string text = "probed at first use on " + measured + " in " + took;
  for (std::size_t k = 0; k < probe.untried.size(); ++k)
    text += (k == 0 ? "; as in general, for want of time: " : ", ") + probe.untried[k];
  return text;
}

std::string numbers(const KernelProfile& p) {
  const auto from = [](Index bytes) { return bytes == KernelProfile::never ? "null" : std::to_string(bytes); };
  return "\"rows\": " + from(p.rows) + ", \"burst_bytes\": " + from(p.burst_bytes) +
         ", \"stagger_bytes\": " + from(p.stagger_bytes) + ", \"paged_bytes\": " + from(p.paged_bytes) +
         ", \"string_bytes\": " + from(p.string_bytes) + ", \"merged_rows\": " + from(p.merged_rows) +
         ", \"expands\": " + (p.expands ? "true" : "false") + ", \"ahead_bytes\": " + from(p.ahead_bytes) +
         ", \"tile_lines\": " + from(p.tile_lines) + ", \"tiled_from\": " + from(p.tiled_from) +
         ", \"merged_bytes\": " + from(p.merged_bytes) + ", \"cached_bytes\": " + from(p.cached_bytes);
}

std::string json_of(const KernelProbe& probe, const std::string& measured) {
  std::string text = "{\n " + numbers(probe.found.profile) + ",\n \"cpu\": \"" + cpu_name() + "\", \"kernels\": \"" +
                     kernels().name + "\", \"measured\": \"" + measured +
                     "\", \"chosen_by\": \"probe\",\n \"trials\": [";
  const char* between = "\n";
  for (const auto& t : probe.found.trials) {
    char seconds[120];
    std::snprintf(seconds, sizeof seconds, "\"seconds\": %.3e, \"seconds_low\": %.3e, \"seconds_high\": %.3e",
                  t.seconds, t.seconds_low, t.seconds_high);
    text += std::string(between) + "  {\"copies\": \"" + t.copies + "\", " + numbers(t.profile) + ", " + seconds +
            ", \"chosen\": " + (t.chosen ? "true}" : "false}");
    between = ",\n";
  }
  return text + "\n ]\n}\n";
}

}  // namespace

KernelChoice choice_of(const KernelKnowledge& knowledge,
                       const std::function<KernelProbe(const std::string& now)>& probe) {
  if (knowledge.probes()) {
    const std::string now = present_time();
    try {
      const KernelProbe found = probe(now);
      return {found.found.profile, told(found, now)};
    } catch (const std::bad_alloc&) {
      return {KernelProfile{}, "general: there is no memory for a probe; longshore calibrate measures this CPU"};
    }
  }
  if (knowledge.given) return *knowledge.given;
  if (knowledge.known)
    return {knowledge.known->profile, "built in for " + knowledge.known->family + ": " + knowledge.known->source};
  return {KernelProfile{}, "general: nothing is known of this CPU; longshore calibrate measures it"};
}

bool keep_probe(const std::string& path, const KernelProbe& probe, const std::string& measured) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path target(path), hidden = target.parent_path() / ("." + target.filename().string() + ".probe");
  fs::create_directories(target.parent_path(), error);
  // All processes that probe at the same moment, of all nodes, have one name for it: one of them writes.
  std::FILE* file = std::fopen(hidden.c_str(), "wx");
  if (file == nullptr) {
    const auto written = fs::last_write_time(hidden, error);  // by somebody who was ended before it was whole?
    if (!error && written < fs::file_time_type::clock::now() - std::chrono::minutes(1)) fs::remove(hidden, error);
    return false;
  }
  const std::string text = json_of(probe, measured);
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (whole && closed) fs::rename(hidden, target, error);
  if (whole && closed && !error) return true;
  fs::remove(hidden, error);
  return false;
}

}  // namespace longshore
