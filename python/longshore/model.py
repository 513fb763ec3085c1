"""What a way of moving data costs, from a few numbers about the machine and the loops.

How fast is a transfer that consists of copies, sends and receives? The copy-transfer model is Stricker and Gross's: a
`TransferExpression` says which basic transfers follow each other and which take place at the same time, a
`ThroughputTable` has their measured rates, and `evaluate` says what comes out and what it hangs on. Rates are megabytes
(10^6 bytes) of data per second. The paper's tables of two machines are here, `cray_t3d` and `intel_paragon`; `longshore
model` is the same on the command line.

>>> from longshore import model
>>> model.evaluate("64C1 o (1S0 || Nd || 0D1) o 1C1", model.cray_t3d)  # pack, send, unpack
ThroughputEstimate(18.1 MB/s; 64C1 takes 54% of the time)
>>> model.evaluate("64S0 || Nadp || 0D1", model.cray_t3d)  # chained: straight from one array to the other
ThroughputEstimate(35.0 MB/s; 64S0 takes 100% of the time)

Decode a stored address relation, or recompute it on the fly? The model is Dinda and O'Hallaron's, for assembling a put
message of n data words through the AAPAIR encoding n_i times: `MachineRates` are the machine's r_i, r_rc, r_rr, r_wc
and r_wr, `LoopCosts` the loops' n_ac, n_au and n_o, and `generate_instructions` is n_g, the integer instructions that
make one tuple. Times are seconds, rates instructions or words per second. `longshore bench breakeven` measures it all
on this machine.

>>> [model.break_even_uses(model.iwarp_rates, model.iwarp_dynamic_costs, n_g) for n_g in (0, 1, 2, 3)]
[None, 13, 7, 5]

What does a loop over remote elements take that gets them in strips, each while the one before is worked on? The model
is Iancu, Husbands and Chen's: a `StripSchedule` says which strips, `LogGP` what messages take, `strip_cost` is their
recurrence. `simulate` carries such loops out event by event, and whole plans among a million ranks.

>>> net = model.LogGP(o_s=4e-6, o_r=2e-6, g=5e-6, G=6e-9)
>>> model.strip_cost("variable(128, 0.45)", 2**17, net, compute=4e-9)
StripCost(0.00591 s in 17 strips: issuing 0.000102, waiting 0.00162, computing 0.00419)
"""

from __future__ import annotations

import copyreg
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _core, _json
from ._core import (
    LogGP,
    LoopCosts,
    MachineRates,
    Prediction,
    RankSteps,
    ResourceConstraint,
    SimulatedRanks,
    Simulation,
    StripCost,
    StripSchedule,
    ThroughputEstimate,
    ThroughputPart,
    TimeShares,
    TransferExpression,
    WayCost,
    assembly_seconds,
    assembly_speedup,
    break_even_uses,
    decode_seconds,
    encode_seconds,
    evaluate,
    iwarp_dynamic_costs,
    iwarp_rates,
    iwarp_static_costs,
    paragon_rates,
    paragon_static_costs,
    recompute_seconds,
    smallest_strip,
    strip_cost,
    strip_steps,
    strip_waits,
    threshold_instructions,
)
from ._mistakes import check, count
from ._words import short
from .errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from .tune import MachineProfile

__all__ = [
    "LogGP",
    "LoopCosts",
    "MachineRates",
    "NodePrediction",
    "Prediction",
    "RankSteps",
    "ResourceConstraint",
    "SimulatedRanks",
    "Simulation",
    "StripCost",
    "StripSchedule",
    "ThroughputEstimate",
    "ThroughputPart",
    "ThroughputTable",
    "TimeShares",
    "TransferExpression",
    "WayCost",
    "assembly_seconds",
    "assembly_speedup",
    "break_even_uses",
    "cray_t3d",
    "decode_seconds",
    "encode_seconds",
    "evaluate",
    "intel_paragon",
    "iwarp_dynamic_costs",
    "iwarp_rates",
    "iwarp_static_costs",
    "loggp",
    "memory_load",
    "paragon_rates",
    "paragon_static_costs",
    "predict",
    "predict_node",
    "recompute_seconds",
    "simulate",
    "smallest_strip",
    "strip_cost",
    "strip_steps",
    "strip_waits",
    "threshold_instructions",
]


# What kinds its numbers must be is said where they are taken.
_check_table = _json.check_of(
    {
        "machine": object,
        "megabytes_per_second": object,
        "congestion": object,
        "constraints": [{"resource": object, "bytes_per_byte": object, "megabytes_per_second": object}],
    }
)


class ThroughputTable(_core.ThroughputTable):
    """The measured rates of a machine's basic transfers, and what its resources have to give. A value.

    `megabytes_per_second` has them by name, such as {"1C1": 93, "64C1": 33.3, "Nd@2": 69}; networks run at `congestion`
    unless an expression says otherwise. What is not in the table is found from what is:

    - a stride beyond the largest is as fast as that one (section 4.2); one between two of the table, contiguous among
      them, has its time per byte interpolated linearly in the logarithm of the stride;
    - blocks take the figures of the longest in the table that are no longer, which is a lower bound: as the paper does
      for complex numbers;
    - networks have their time per byte interpolated linearly in the congestion; beyond the largest it is in proportion.

    Raises ArgumentError for a rate that is not positive and finite, and for a transfer that is there twice.

    >>> table = ThroughputTable("mine", {"1C1": 12_000, "64C1": 1_500})
    >>> ThroughputTable.from_json(table.to_json()) == table
    True
    """

    def to_json(self) -> str:
        """The table as JSON text: a format name, a version, the machine, its rates in MB/s and its constraints."""
        return json.dumps(
            {
                "format": "longshore-throughputs",
                "version": 1,
                "machine": self.machine,
                "congestion": self.congestion,
                "megabytes_per_second": self.megabytes_per_second,
                "constraints": [
                    {
                        "resource": constraint.resource,
                        "bytes_per_byte": constraint.bytes_per_byte,
                        "megabytes_per_second": constraint.megabytes_per_second,
                    }
                    for constraint in self.constraints
                ],
            },
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str) -> ThroughputTable:
        """The table that to_json() wrote. Raises ArgumentError for text that is not one."""
        data = _json.read(text, "a table of throughputs", "longshore-throughputs", _check_table, ArgumentError)
        constraints = [
            ResourceConstraint(
                each["resource"], each["bytes_per_byte"], megabytes_per_second=each["megabytes_per_second"]
            )
            for each in data["constraints"]
        ]
        return cls(
            data["machine"], data["megabytes_per_second"], congestion=data["congestion"], constraints=constraints
        )


def _by_names(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    """How a value is made again that is told by the arguments of these names."""

    def reduced(value: Any) -> tuple[Any, ...]:
        kind: Callable[..., Any] = type(value)
        return partial(kind, **{name: getattr(value, name) for name in names}), ()

    return reduced


def _by_text(value: Any) -> tuple[Any, ...]:
    return type(value), (str(value),)


# So that values can be copied and pickled.
copyreg.pickle(LogGP, _by_names("L", "o_s", "o_r", "g", "G"))
copyreg.pickle(LoopCosts, _by_names("decode_instructions", "recompute_instructions", "encode_instructions"))
copyreg.pickle(
    MachineRates,
    _by_names(
        "instructions_per_second",
        "read_words_per_second",
        "random_read_words_per_second",
        "write_words_per_second",
        "random_write_words_per_second",
    ),
)
copyreg.pickle(ResourceConstraint, _by_names("resource", "bytes_per_byte", "megabytes_per_second"))
copyreg.pickle(ThroughputTable, _by_names("machine", "megabytes_per_second", "congestion", "constraints"))
copyreg.pickle(StripSchedule, _by_text)
copyreg.pickle(TransferExpression, _by_text)


def _shipped(table: _core.ThroughputTable) -> ThroughputTable:
    return ThroughputTable(
        table.machine, table.megabytes_per_second, congestion=table.congestion, constraints=table.constraints
    )


cray_t3d = _shipped(_core.cray_t3d)
intel_paragon = _shipped(_core.intel_paragon)


def predict(
    plan: _core.MotionPlan | _core.BlockPlan,
    profile: MachineProfile | None = None,
    *,
    threads: int | None = None,
    rank: int | None = None,
    ranks_per_node: int | None = None,
    dtype: Any = None,
    ghost: int | Sequence[int | tuple[int, int]] = 0,
    order: str = "C",
    work: float | None = None,
) -> Prediction:
    """What a plan will take, in each way in which it can be carried out, the fastest first. Moves and measures nothing;
    not collective.

    With `threads` all ranks' arrays are in one process and so many threads copy (0: as many as it may use). Else each
    rank is a process, and `ranks_per_node` consecutive ones share a node (all, unless told). Of `rank` alone, or of the
    slowest of all ranks, which takes as long as there are ranks. Plans between blocks are told what the arrays are
    like: `dtype`, and `ghost` and `order` as XArray takes them; what a plan touches is there in any case. The profile
    is this machine's, `tune.profile()`, unless told.

    `work`: seconds a byte that a loop computes with what arrives, where that lies in a cache. Then every way counts it
    and what loading a byte takes, `memory_load()` of the profile where it has that, and there are two more, for loops:
    "gets", one access to a `Window` for all, xF0 ‖ Nadp ‖ 0Dy, and from other nodes "strips", in the best
    schedule of strips beside the work (`ls.strips(window.incoming(plan))`), by LogGP.

    Times are a start, what each transfer takes, and bytes at the rates of the copy-transfer model (Stricker & Gross,
    section 3): straight copies xCy, rings xS0 ∘ 0Ry, messages xC1 ∘ (1S0 ‖ Nd ‖ 0D1) ∘ 1Cy without the copies where a
    side is contiguous. Raises ArgumentError where the profile lacks what is asked for, such as other nodes, and for
    work that is negative or not finite.

    >>> from longshore import Layout, plan, tune
    >>> rows, columns = Layout("(BLOCK, *) on 4", (1024, 1024)), Layout("(*, BLOCK) on 4", (1024, 1024))
    >>> told = predict(plan(rows, columns, "float64"), tune.coarse_profile())
    >>> told.best.way, str(told.best.expression), told.best.messages, told.best.bytes
    ('direct', '1024[256]C1', 3, 1572864)
    """
    from . import _arrays

    given = _given_or_own(profile)
    core = given.core
    job: dict[str, Any] = {
        "rank": None if rank is None else count(rank, "rank"),
        "threads": 0 if threads is None else count(threads, "threads") or len(os.sched_getaffinity(0)),
        "ranks_per_node": 0 if ranks_per_node is None else count(ranks_per_node, "ranks_per_node"),
    }
    check("work", work, "float | None")
    if work is not None:
        load = given.facts.get("memory_load_seconds_per_byte", 0.0)
        job |= {"work": work + load if work >= 0 else work}  # what is wrong with it is said of what was given
        if any(one["pair"] == "other node" for one in given.facts["loggp"]):
            job["loggp"] = loggp(given)
    if isinstance(plan, _core.MotionPlan):
        return _core.predict_motions(plan, core, **job)
    if not isinstance(plan, _core.BlockPlan):
        raise ArgumentTypeError(f"a plan must be a MotionPlan or a BlockPlan, not {type(plan).__name__}")
    if dtype is None:
        raise ArgumentError("a plan between blocks does not say what its elements are; give dtype=")
    return _core.predict_blocks(plan, core, _arrays.fixed_dtype(dtype).itemsize, ghost, order, **job)


@dataclass(frozen=True)
class NodePrediction:
    """What leaves and enters one node, as it will be counted, and what that takes at least."""

    node: int
    ranks: int  #: of the node
    bytes_out: int
    bytes_in: int
    messages_out: int  #: one for each of its ranks and each rank elsewhere that it sends to
    messages_in: int
    bandwidth_megabytes_per_second: float  #: of messages between two nodes, each way
    bound_seconds: float  #: of the bytes: max(out, in) / bandwidth
    startup_seconds: float  #: of the messages, which the node's ranks start at the same time, each its share
    coarse: bool  #: from a profile that was not measured


def predict_node(
    plan: _core.MotionPlan, node: int, ranks_per_node: int, profile: MachineProfile | None = None
) -> NodePrediction:
    """What leaves and enters the ranks [node * ranks_per_node, (node + 1) * ranks_per_node) of a plan between layouts,
    from and to all others. Takes as long as these ranks' own motions, of how many there may be. Moves and measures
    nothing; not collective.

    The bandwidth is the best of what two processes of different nodes reached; a node's link may carry more. The
    profile is this machine's, `tune.profile()`, unless told. Raises ArgumentError where there is no such node and where
    the profile does not say what messages to other nodes take.

    >>> from longshore import Layout, plan, tune
    >>> dealt, blocks = (Layout(f"({kind}, *) on 1000000", (10**7, 100)) for kind in ("CYCLIC(3)", "BLOCK"))
    >>> told = predict_node(plan(dealt, blocks, "float64"), 5, 64, tune.coarse_profile())
    >>> told.bytes_out, told.messages_out, told.bytes_in, told.messages_in
    (614400, 308, 512000, 256)
    """
    given = _given_or_own(profile)
    if not isinstance(plan, _core.MotionPlan):
        raise ArgumentTypeError(f"a plan must be a MotionPlan, not {type(plan).__name__}")
    first, each = count(node, "node"), count(ranks_per_node, "ranks_per_node")
    volume = _core.node_volume(plan, first, each)
    ranks = min(each, plan.world_size - first * each)
    samples = [sample for one in given.facts["exchanges"] if _between_nodes(one) for sample in one["samples"]]
    if not samples:
        raise ArgumentError(
            f"the profile of {given.machine} does not say what messages to other nodes take; calibrate on two nodes, "
            'or give it an entry of "exchanges" for the pair "other node"'
        )
    bandwidth = max(sample["bytes"] / sample["seconds"] for sample in samples if sample["seconds"])
    startup = samples[0]["seconds"] * -(-max(volume["messages_out"], volume["messages_in"]) // ranks)
    bound = max(volume["bytes_out"], volume["bytes_in"]) / bandwidth
    return NodePrediction(
        node=first,
        ranks=ranks,
        **volume,
        bandwidth_megabytes_per_second=bandwidth / 1e6,
        bound_seconds=bound,
        startup_seconds=startup,
        coarse=given.coarse,
    )


def loggp(profile: MachineProfile | None = None, pair: str = "other node") -> LogGP:
    """LogGP's parameters between two processes of the "same node" or of "other node"s, as the profile has them: this
    machine's, `tune.profile()`, unless told. They are MPI's, measured with messages of Python programs. Raises
    ArgumentError where they were not measured."""
    given = _given_or_own(profile)
    for one in given.facts["loggp"]:
        if one["pair"] == pair:
            times = {name: one[f"{name}_seconds"] for name in ("L", "o_s", "o_r", "g")}
            return LogGP(**times, G=one["G_seconds_per_byte"])
    raise ArgumentError(
        f"the profile of {given.machine} has no LogGP parameters of the pair {short(pair)}; "
        "calibrate on a machine with MPI"
    )


def memory_load(profile: MachineProfile | None = None) -> float:
    """Seconds a byte that a core takes to load what its caches do not hold, as the profile has it: this machine's,
    `tune.profile()`, unless told. It is the inverse memory bandwidth of Iancu, Husbands & Chen, "Message strip mining
    heuristics for high speed networks" (section 4), which they count as computation: `memory=` of `strip_cost`,
    `strip_waits` and `strip_steps`. Not collective. Raises ArgumentError where it was not measured."""
    given = _given_or_own(profile)
    if (load := given.facts.get("memory_load_seconds_per_byte")) is None:
        raise ArgumentError(
            f"the profile of {given.machine} does not say what loading from memory takes; longshore calibrate "
            "measures it"
        )
    return load


def simulate(
    what: RankSteps | _core.MotionPlan | _core.BlockPlan,
    loggp: LogGP,
    *,
    link: str = "shared",
    queue: int = 0,
    copy: float = 0.0,
    dtype: Any = None,
) -> Simulation:
    """What ranks take that each have a processor and a network interface, by LogGP, event by event, and where the time
    goes: what a plan's ranks do, or any steps. Moves and measures nothing; not collective. A halo of a million ranks
    takes some ten seconds and two gigabytes.

    A message takes the sender's processor o_s, and may begin g after the one before it. It occupies the network
    interfaces of both sides for G times its bytes, at least for g, one message after the other, and crosses the network
    in L; the receiver's processor takes o_r for it. What one rank gets of another is asked for, which takes L too, and
    costs the one that asks o_s + o_r and the other one's processor nothing. With an "independent" `link`, messages do
    not wait for each other at network interfaces. At most `queue` messages of a rank are under way, that have not left
    or that it has not got, or any number with 0. `copy` is what packing, unpacking and copying take, in seconds a byte.

    Of a plan, every rank starts one message to each other rank that it has something for, those after it first, copies
    what stays with it and receives. A plan between blocks is told the `dtype` of its arrays.

    Raises ArgumentError for negative parameters and for one rank's plan, DeadlockError that names a rank where one
    waits for what nobody sends.

    >>> from longshore import Layout, plan
    >>> rows, columns = (Layout(f"({kind}) on 100", (20000, 20000)) for kind in ("BLOCK, *", "*, BLOCK"))
    >>> told = simulate(plan(rows, columns, "float64"), LogGP(L=2e-6, o_s=1e-6, o_r=1e-6, g=1e-6, G=1e-9))
    >>> told.messages, told.classes
    (9900, [SimulatedRanks(100, 99 messages out and 99 in, 0.0317 s)])
    >>> told.critical_shares.bandwidth > 0.9 * told.seconds
    True
    """
    if isinstance(what, _core.BlockPlan):
        if dtype is None:
            raise ArgumentError("a plan between blocks does not say what its elements are; give dtype=")
        from . import _arrays

        steps = _core.exchange_steps(what, _arrays.fixed_dtype(dtype).itemsize)
    elif isinstance(what, _core.MotionPlan):
        steps = _core.exchange_steps(what)
    elif isinstance(what, RankSteps):
        steps = what
    else:
        raise ArgumentTypeError(
            f"what is simulated must be a MotionPlan, a BlockPlan or RankSteps, not {type(what).__name__}"
        )
    return _core.simulate_steps(steps, loggp, link, count(queue, "queue"), copy)


def _between_nodes(exchange: dict[str, Any]) -> bool:
    return exchange["way"] == "messages" and exchange["pair"] == "other node"


def _given_or_own(profile: Any) -> MachineProfile:
    """The profile that is given, or this machine's."""
    from . import tune

    if profile is None:
        return tune.profile()
    if not isinstance(profile, tune.MachineProfile):
        raise ArgumentTypeError(f"profile must be a tune.MachineProfile, not {type(profile).__name__}")
    return profile
