// What repeats among the steps, and how small a grammar of them may be.
#include <algorithm>
#include <cmath>

#include "ranks/analysis.hpp"

namespace longshore::ranks {

bool is_repetitive(const Members& members) {
  constexpr Index places = 8, stretch = 512, window = 24;
  if (members.size() < 64) return false;
  const bool short_map = members.size() < 2 * places * stretch;  // looked at as one stretch from its beginning
  const Index n = short_map ? std::min(places * stretch, members.size()) : stretch;
  std::vector<Index> values(std::size_t(n), 0);
  // Hashes share a bit now and then: a table of sixteen bits for each keeps that rare.
  constexpr int table_bits = 16;
  std::vector<bool> seen(std::size_t{1} << table_bits);
  Index looked = 0, distinct = 0;
  for (Index place = 0; place < places; ++place) {
    const Index first = short_map ? 0 : (members.size() - n) / (places - 1) * place;
    members.read(first, n, values.data());
    // The sum over a window of each step's hash times a power of its place, which rolls on from one window to the next.
    constexpr std::uint64_t power = 0xD6E8FEB86659FD93u;
    std::uint64_t sum = 0, oldest = 1;
    for (Index k = 0; k < window; ++k) oldest *= power;
    auto step_hash = [&](Index k) {
      const auto mixed =
          (std::uint64_t(values[std::size_t(k)]) - std::uint64_t(values[std::size_t(k - 1)])) * 0x9E3779B97F4A7C15u;
      return mixed ^ mixed >> 29;
    };
    for (Index k = 1; k < n; ++k) {
      sum = sum * power + step_hash(k);
      if (k > window) sum -= oldest * step_hash(k - window);
      if (k < window) continue;
      const auto slot = std::size_t((sum ^ sum >> 31) * 0x9E3779B97F4A7C15u >> (64 - table_bits));
      distinct += !seen[slot];
      seen[slot] = true;
      ++looked;
    }
    if (short_map) break;
  }
  return distinct * 2 < looked;
}

// The number of distinct stretches of k symbols, over k, at its largest (the substring complexity of Raskhodnikova and
// others, and of Kociumaka, Navarro and Prezza) is what any grammar needs at least, and what good ones exceed by a
// logarithm. Of a long text, stretches from the beginning, the middle and the end are looked at.
void estimate_grammar(Analysis& out) {
  constexpr std::size_t most_runs = std::size_t{1} << 14;
  std::vector<std::uint64_t> text;
  auto mix = [](std::uint64_t a, std::uint64_t b) {
    a = (a ^ b * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
    return a ^ a >> 29;
  };
  const auto& runs = out.runs;
  const std::size_t looked = std::min(runs.size(), most_runs), places = looked < runs.size() ? 4 : 1;
  for (std::size_t k = 0; k < looked; ++k) {
    const std::size_t stretch = looked / places, place = std::min(k / stretch, places - 1);
    const std::size_t j = k + (places > 1 ? (runs.size() - looked) / (places - 1) * place : 0);
    if (j > 0) text.push_back(mix(std::uint64_t(runs[j].first - runs[j - 1].last()), 1));
    if (runs[j].count > 1) text.push_back(mix(std::uint64_t(runs[j].step), std::uint64_t(runs[j].count)));
  }
  const double times = double(runs.size()) / double(looked);
  double complexity = 1, terminals = 1;
  std::vector<std::uint64_t> hashes = text;  // of the stretches of `length` that begin at each place
  std::vector<bool> seen;
  int table_bits = 4;
  while ((std::size_t{1} << table_bits) < 8 * text.size()) ++table_bits;
  for (std::size_t length = 1; length <= text.size(); length *= 2) {
    seen.assign(std::size_t{1} << table_bits, false);
    Index distinct = 0;
    for (const auto hash : hashes) {
      const auto slot = std::size_t(mix(hash, length) >> (64 - table_bits));
      distinct += !seen[slot];
      seen[slot] = true;
    }
    if (length == 1) terminals = double(distinct);
    complexity = std::max(complexity, double(distinct) / double(length));
    if (2 * length > text.size()) break;
    for (std::size_t k = 0; k + 2 * length <= text.size(); ++k) hashes[k] = mix(hashes[k], hashes[k + length]);
    hashes.resize(text.size() - 2 * length + 1);
  }
  // What does not repeat in the beginning is taken to go on so.
  const double size = double(text.size()), growth = complexity > size / 16 ? times : 1;
  const double logarithm = std::log2(std::max(size * times / (complexity * growth), 2.0));
  const double symbols = complexity * growth * std::max(0.75 * logarithm, 2.0);
  out.grammar_rules = Index(terminals * growth + symbols / 3) + 1,
  out.grammar_top = Index(std::min(symbols, size * times)) + 1;
}

}  // namespace longshore::ranks
