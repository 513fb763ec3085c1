/// Decode or recompute, counted in instructions: a word costs r_i/r of them. Where the rates are multiples of each
/// other, as iWarp's are, that is exact, and a break-even that is a whole number is not rounded up past itself.
#include "longshore/model/decode_or_recompute.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace longshore {

namespace {

void require(bool holds, const char* what, double value, const char* bound) {
  if (!holds)
    throw Error(ErrorKind::argument, std::string(what) + " is " + std::to_string(value) + "; it must be " + bound);
}

void check_rate(const char* what, double rate) {
  require(std::isfinite(rate) && rate > 0, what, rate, "positive and finite");
}

void check(const MachineRates& rates, const LoopCosts& costs) {
  check_rate("r_i, instructions_per_second,", rates.instructions_per_second);
  check_rate("r_rc, read_words_per_second,", rates.read_words_per_second);
  check_rate("r_rr, random_read_words_per_second,", rates.random_read_words_per_second);
  check_rate("r_wc, write_words_per_second,", rates.write_words_per_second);
  require(std::isfinite(costs.decode_instructions), "n_ac, decode_instructions,", costs.decode_instructions, "finite");
  require(std::isfinite(costs.recompute_instructions), "n_au, recompute_instructions,", costs.recompute_instructions,
          "finite");
  require(std::isfinite(costs.encode_instructions), "n_o, encode_instructions,", costs.encode_instructions, "finite");
}

void check_generate(double n_g) {
  require(std::isfinite(n_g) && n_g >= 0, "n_g, generate_instructions,", n_g, "finite and not negative");
}

double seconds(const MachineRates& rates, double instructions_per_word, Index words) {
  if (words < 0)
    throw Error(ErrorKind::argument, "n, words, is " + std::to_string(words) + "; it must not be negative");
  return double(words) * instructions_per_word / rates.instructions_per_second;
}

// Instructions for each word of the message, memory accesses
// counted as the instructions that could be issued meanwhile.

double read(const MachineRates& r) { return r.instructions_per_second / r.read_words_per_second; }
double random_read(const MachineRates& r) { return r.instructions_per_second / r.random_read_words_per_second; }
double write(const MachineRates& r) { return r.instructions_per_second / r.write_words_per_second; }

double encode(const MachineRates& r, const LoopCosts& c, double n_g) {
  return n_g + c.encode_instructions + 2 * write(r);
}
double assemble(const MachineRates& r, const LoopCosts& c) {
  return 2 * read(r) + random_read(r) + 2 * write(r) + c.decode_instructions;
}
double recompute(const MachineRates& r, const LoopCosts& c, double n_g) {
  return n_g + c.recompute_instructions + random_read(r) + 2 * write(r);
}

}  // namespace

double encode_seconds(const MachineRates& rates, const LoopCosts& costs, double generate_instructions, Index words) {
  check(rates, costs);
  check_generate(generate_instructions);
  return seconds(rates, encode(rates, costs, generate_instructions), words);
}

double assembly_seconds(const MachineRates& rates, const LoopCosts& costs, Index words) {
  check(rates, costs);
  return seconds(rates, assemble(rates, costs), words);
}

double decode_seconds(const MachineRates& rates, const LoopCosts& costs, double generate_instructions, Index words,
                      Index uses) {
  if (uses < 1) throw Error(ErrorKind::argument, "n_i, uses, is " + std::to_string(uses) + "; it must be at least 1");
  return encode_seconds(rates, costs, generate_instructions, words) / double(uses) +
         assembly_seconds(rates, costs, words);
}

double recompute_seconds(const MachineRates& rates, const LoopCosts& costs, double generate_instructions, Index words) {
  check(rates, costs);
  check_generate(generate_instructions);
  return seconds(rates, recompute(rates, costs, generate_instructions), words);
}

double threshold_instructions(const MachineRates& rates, const LoopCosts& costs) {
  check(rates, costs);
  return 2 * read(rates) + costs.decode_instructions - costs.recompute_instructions;
}

std::optional<Index> break_even_uses(const MachineRates& rates, const LoopCosts& costs, double generate_instructions) {
  check_generate(generate_instructions);
  const double gained = generate_instructions - threshold_instructions(rates, costs);
  if (gained <= 0) return std::nullopt;
  const double uses = std::ceil(encode(rates, costs, generate_instructions) / gained);
  if (uses >= 0x1p63)
    throw Error(ErrorKind::overflow, "the break-even of n_g = " + std::to_string(generate_instructions) +
                                         " does not fit in 64 bits: that is hardly above the threshold");
  return std::max<Index>(1, Index(uses));
}

double assembly_speedup(const MachineRates& rates, const LoopCosts& costs, double generate_instructions) {
  check(rates, costs);
  check_generate(generate_instructions);
  const double assembled = assemble(rates, costs);
  require(assembled > 0, "t_ac, in instructions a word,", assembled, "positive: n_ac is too small");
  return recompute(rates, costs, generate_instructions) / assembled;
}

}  // namespace longshore
