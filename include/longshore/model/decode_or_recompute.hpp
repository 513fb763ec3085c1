/// model: what a way of moving data costs, from a few numbers about the machine and the
/// loops. Here: decode a stored address relation, or recompute it on the fly? (Dinda &
/// O'Hallaron, "Message assembly performance models", AAPAIR, put.)
#pragma once

#include <optional>

#include "longshore/core/checked.hpp"

namespace longshore {

/// How fast a machine issues integer instructions and reaches memory. A word is an address or a datum.
struct MachineRates {
  double instructions_per_second = 0;        ///< r_i
  double read_words_per_second = 0;          ///< r_rc: unit stride
  double random_read_words_per_second = 0;   ///< r_rr
  double write_words_per_second = 0;         ///< r_wc: unit stride
  double random_write_words_per_second = 0;  ///< r_wr: for disassembly; the equations of assembly do not ask for it
  bool operator==(const MachineRates&) const = default;
};

/// Instructions a loop spends on each tuple besides making the tuple and reaching memory. A fit to measured loops may
/// give negative ones where the machine does that work meanwhile.
struct LoopCosts {
  double decode_instructions = 0;     ///< n_ac
  double recompute_instructions = 0;  ///< n_au
  double encode_instructions = 0;     ///< n_o
  bool operator==(const LoopCosts&) const = default;
};

/// The paper's machines. Static costs are counted instructions, dynamic ones count the stalls of bypasses too.
inline constexpr MachineRates iwarp_rates{2e7, 1e7, 1e7, 1e7, 1e7};
inline constexpr LoopCosts iwarp_static_costs{2, 5, 6};
inline constexpr LoopCosts iwarp_dynamic_costs{3, 7, 8};
inline constexpr MachineRates paragon_rates{5e7, 9e6, 0.9e6, 8.2e6, 0.9e6};
inline constexpr LoopCosts paragon_static_costs{11, 6, 7};

// Below, `generate_instructions` is n_g, the instructions that make one tuple. Every function throws `Error(argument)`
// for a rate that is not positive, a cost that is not finite and a negative n_g, n or n_i.

/// t_g + t_o = n ((n_g + n_o)/r_i + 2/r_wc): making the relation of an n-word message and storing it.
double encode_seconds(const MachineRates& rates, const LoopCosts& costs, double generate_instructions, Index words);

/// t_ac = n (2/r_rc + 1/r_rr + 2/r_wc + n_ac/r_i): assembling from the stored relation.
double assembly_seconds(const MachineRates& rates, const LoopCosts& costs, Index words);

/// t_decode = (t_g + t_o)/n_i + t_ac: the same with its share of encoding once for n_i >= 1 uses (equation "cached").
double decode_seconds(const MachineRates& rates, const LoopCosts& costs, double generate_instructions, Index words,
                      Index uses);

/// t_recompute = t_g + t_au = n ((n_g + n_au)/r_i + 1/r_rr + 2/r_wc) (equation "uncached").
double recompute_seconds(const MachineRates& rates, const LoopCosts& costs, double generate_instructions, Index words);

/// 2 r_i/r_rc + n_ac - n_au: decoding wins where making a tuple
/// takes strictly more instructions (equation "necessary").
double threshold_instructions(const MachineRates& rates, const LoopCosts& costs);

/// The smallest whole n_i with t_decode <= t_recompute (equation "crossover"); none at the threshold and below. Throws
/// `Error(overflow)` where n_g is so little above it that n_i does not fit in 64 bits.
std::optional<Index> break_even_uses(const MachineRates& rates, const LoopCosts& costs, double generate_instructions);

/// (t_g + t_au)/t_ac: what decoding gains in the end. Linear in n_g; less than 1 below the threshold. (The closed form
/// that the paper prints has lost the term 2/r_rc of t_ac; its tables are computed with it.)
double assembly_speedup(const MachineRates& rates, const LoopCosts& costs, double generate_instructions);

}  // namespace longshore
