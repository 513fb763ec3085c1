"""What a way of moving data costs, from a few numbers about the machine and the loops.

Decode a stored address relation, or recompute it on the fly? The model is Dinda and O'Hallaron's, for assembling a put
message of n data words through the AAPAIR encoding n_i times: `MachineRates` are the machine's r_i, r_rc, r_rr, r_wc
and r_wr, `LoopCosts` the loops' n_ac, n_au and n_o, and `generate_instructions` is n_g, the integer instructions that
make one tuple. Times are seconds, rates instructions or words per second. `longshore bench breakeven` measures it all
on this machine.

>>> from longshore import model
>>> [model.break_even_uses(model.iwarp_rates, model.iwarp_dynamic_costs, n_g) for n_g in (0, 1, 2, 3)]
[None, 13, 7, 5]
"""

from ._core import (
    LoopCosts,
    MachineRates,
    assembly_seconds,
    assembly_speedup,
    break_even_uses,
    decode_seconds,
    encode_seconds,
    iwarp_dynamic_costs,
    iwarp_rates,
    iwarp_static_costs,
    paragon_rates,
    paragon_static_costs,
    recompute_seconds,
    threshold_instructions,
)

__all__ = [
    "LoopCosts",
    "MachineRates",
    "assembly_seconds",
    "assembly_speedup",
    "break_even_uses",
    "decode_seconds",
    "encode_seconds",
    "iwarp_dynamic_costs",
    "iwarp_rates",
    "iwarp_static_costs",
    "paragon_rates",
    "paragon_static_costs",
    "recompute_seconds",
    "threshold_instructions",
]
