"""The fourteen communicators of `longshore bench communicators`: table 6.1 of the thesis, for a world of any size.

In a world of 200,000 ranks they have the sizes of the table, but for experiment 6: of 200,000 ranks, 40,000 are multiples of 5, and
the table says 40,001. In other worlds counts and lengths are in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WORLD = 200_000
LEAST_WORLD = 200
# Section 6.6: on 40 processes, each of which keeps a map of its own of each of 8 communicators.
PROCESSES, COMMUNICATORS = 40, 8
# What the thesis's hybrid strategy saved there, in MiB as it turns
# out: 18 bits instead of 32 of 100,000 permuted ranks are 53.4.
THESIS_SAVED_MIB = (
    121.295,
    2.118,
    7.159,
    113.207,
    72.518,
    39.966,
    26.015,
    4.756,
    55.300,
    5.328,
    10.668,
    53.393,
    5.328,
    53.393,
)


@dataclass(frozen=True)
class Experiment:
    """A communicator: its number in the table, the class of the thesis, and its members in their order."""

    number: int
    group: str
    words: str
    members: np.ndarray


def mesh_of(world: int) -> tuple[int, ...]:
    """Six extents, the first the slowest, whose face [0,*,*,0,*,*]
    has a twentieth of the ranks: 4 x 10 x 10 x 5 x 10 x 10."""
    side = 1
    while 20 * (side + 1) ** 4 <= world:
        side += 1
    return (4, side, side, 5, side, side)


def experiments(world: int = WORLD) -> list[Experiment]:
    """All fourteen; the same ones each time."""

    def part(count: int) -> int:
        return max(1, count * world // WORLD)

    def random(number: int) -> np.random.Generator:
        return np.random.default_rng([2011, number])

    def drawn(number: int, count: int) -> np.ndarray:
        return random(number).choice(world, part(count), replace=False)

    def permuted_ranges(number: int, length: int) -> np.ndarray:
        """Ten of them, a tenth of the world apart."""
        return np.concatenate([world // 10 * k + random(number * 10 + k).permutation(part(length)) for k in range(10)])

    mesh = mesh_of(world)
    face = np.arange(np.prod(mesh)).reshape(mesh)[0, :, :, 0]
    ranks, length = np.arange(world), part(100)
    table = (
        ("I", "even ranks", ranks[::2]),
        ("I", f"81 x + {part(11453)}, x > 0", ranks[part(11453) + 81 :: 81]),
        ("I", f"face [0,*,*,0,*,*] of a mesh of {' x '.join(map(str, mesh))}", face),
        ("I", f"every other range of {length}", ranks[ranks // length % 2 == 0]),
        ("II", "multiples of 3", ranks[::3]),
        ("II", "multiples of 5", ranks[::5]),
        ("II", "multiples of 7", ranks[::7]),
        ("III", f"{part(5000):,} at random, in order", np.sort(drawn(8, 5000))),
        ("III", f"{part(50000):,} at random, in order", np.sort(drawn(9, 50000))),
        ("IV", f"{part(10000):,} at random, permuted", drawn(10, 10000)),
        ("IV", f"{part(20000):,} at random, permuted", drawn(11, 20000)),
        ("IV", f"{part(100000):,} at random, permuted", drawn(12, 100000)),
        ("V", f"10 ranges of {part(1000):,}, each permuted", permuted_ranges(13, 1000)),
        ("V", f"10 ranges of {part(10000):,}, each permuted", permuted_ranges(14, 10000)),
    )
    return [
        Experiment(k + 1, group, words, np.ascontiguousarray(members.reshape(-1), dtype=np.int64))
        for k, (group, words, members) in enumerate(table)
    ]
