"""The rank maps of `longshore bench ranks`: the thesis's classes A to E, and maps that programs make. World 2^20."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

WORLD = 1 << 20
CLASSES = {
    "A": "random members",
    "B": "strides",
    "C": "ranges of random length, ascending",
    "D": "unions of faces of a binary cube",
    "E": "ranges in descending order",
}
# What the aims call nested loops, beside B.
NESTED = (
    "box of a mesh",
    "sub-mesh",
    "matrix row",
    "matrix column",
    "block-cyclic grid",
    "transpose",
    "node-local",
    "leaders in a stride",
)
# Nothing in these is to be found but chance; all other maps are structured, whether their structure is found or not.
_CHANCE = ("random 10k", "random 500k", "random graph", "random permutation", "leaders of shuffled nodes")


@dataclass(frozen=True)
class RankCase:
    """A class's map, or one with a name."""

    group: str
    name: str
    members: np.ndarray


def is_structured(group: str, name: str) -> bool:
    return group != "A" and name not in _CHANCE


def class_maps(letter: str, count: int, seed: int = 2011) -> Iterator[RankCase]:
    """Maps of one of the thesis's classes (section 5.2); the
    same ones for the same seed, however many are asked for."""
    make = {"A": _random, "B": _stride, "C": _ranges, "D": _faces, "E": _descending}[letter]
    for k in range(count):
        members = make(np.random.default_rng([seed, ord(letter), k]))
        yield RankCase(letter, f"{letter}{k}", np.ascontiguousarray(members, dtype=np.int64))


def _random(random: np.random.Generator) -> np.ndarray:
    return np.sort(random.choice(WORLD, int(random.integers(1, WORLD)), replace=False))


def _stride(random: np.random.Generator) -> np.ndarray:
    first, last = np.sort(random.choice(WORLD, 2, replace=False))
    return np.arange(first, last + 1, int(random.integers(1, max(2, (last - first) // 2))))


def _some_ranges(random: np.random.Generator, most: int) -> np.ndarray:
    """So many disjoint ranges at most, ascending: begin and end alternate."""
    cuts = np.sort(random.choice(WORLD + 1, 2 * int(random.integers(1, most)), replace=False))
    return cuts.reshape(-1, 2)


def _ranges(random: np.random.Generator) -> np.ndarray:
    return np.concatenate([np.arange(first, last) for first, last in _some_ranges(random, 10000)])


def _faces(random: np.random.Generator) -> np.ndarray:
    members = np.zeros(WORLD, dtype=bool)
    ranks = np.arange(WORLD)
    for _ in range(int(random.integers(1, 13))):
        fixed = random.choice(20, int(random.integers(2, 8)), replace=False)
        mask = int(sum(1 << int(bit) for bit in fixed))
        members |= (ranks & mask) == (int(random.integers(WORLD)) & mask)
    return np.flatnonzero(members)


def _descending(random: np.random.Generator) -> np.ndarray:
    return np.concatenate([np.arange(first, last) for first, last in _some_ranges(random, 200)[::-1]])


def named_maps() -> Iterator[RankCase]:
    """Groups that programs make of 2^20 processes."""
    random = np.random.default_rng(7)
    grid = np.arange(WORLD)
    matrix, mesh = grid.reshape(1024, 1024), grid.reshape(64, 128, 128)
    nodes = grid.reshape(-1, 64)
    cyclic = grid.reshape(64, 16, 64, 16)[1::4, :, 2::4, :].reshape(-1)
    everybody = random.permutation(WORLD)
    x, y = random.random((2, WORLD))
    near = np.sort(random.choice(WORLD, 5243, replace=False))
    near = near[np.argsort(np.hypot(x[near] - x[0], y[near] - y[0]))]
    for name, members in (
        ("matrix row", matrix[1022]),
        ("matrix column", matrix[:, 1]),
        ("sub-mesh", mesh[:, 0, :]),
        ("box of a mesh", mesh[5:55, 20:77, 10:100]),
        ("block-cyclic grid", cyclic),
        ("transpose", matrix[:1000].T),
        ("node-local", nodes[777]),
        ("leaders in a stride", nodes[:, 0]),
        ("leaders of shuffled nodes", random.permutation(nodes[:, 0])),
        ("shuffled nodes", random.permutation(nodes)),
        ("100 failed nodes", np.delete(nodes, random.choice(len(nodes), 100, replace=False), axis=0)),
        ("10 failed ranks", np.delete(grid, random.choice(WORLD, 10, replace=False))),
        ("random graph", near),
        ("Morton order", _curve(_morton)),
        ("Hilbert order", _curve(_hilbert)),
        ("random 10k", np.sort(random.choice(WORLD, 10_000, replace=False))),
        ("random 500k", np.sort(random.choice(WORLD, 500_000, replace=False))),
        ("random permutation", everybody),
    ):
        yield RankCase("named", name, np.ascontiguousarray(members.reshape(-1), dtype=np.int64))


def _curve(place: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    row, column = place(np.arange(WORLD))
    return row * 1024 + column


def _morton(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    row, column = np.zeros_like(index), np.zeros_like(index)
    for bit in range(10):
        column |= (index >> (2 * bit) & 1) << bit
        row |= (index >> (2 * bit + 1) & 1) << bit
    return row, column


def _hilbert(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rest, row, column, side = index.copy(), np.zeros_like(index), np.zeros_like(index), 1
    while side < 1024:
        down = (rest >> 1) & 1
        right = (rest ^ down) & 1
        turned = right == 0
        flipped = turned & (down == 1)
        row, column = np.where(flipped, side - 1 - row, row), np.where(flipped, side - 1 - column, column)
        row, column = np.where(turned, column, row), np.where(turned, row, column)
        row, column = row + side * down, column + side * right
        rest, side = rest >> 2, side * 2
    return row, column
