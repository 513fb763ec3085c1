"""Sections that several arrays have something of: of the array that a window's arrays are parts of, and of what plans
bring."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._sections import Handle, Section, dense_strides, keys_of, listed_indices
from .errors import ArgumentError

if TYPE_CHECKING:
    from ._window import Window

Parts = list[tuple[int, _core.AddressRelation]]
_Along = slice | np.ndarray  # indices in one dimension, ascending: evenly spaced, or any
# Number of an array, what of the whole it has in each dimension, its strides and where the first of that is, in bytes.
_Owned = tuple[int, list[_Along], Sequence[int], int]


class GlobalSection(Section):
    """Of elements of the array that layout or blocks are of."""

    def nbput(self, values: Any) -> Handle:
        layout = self.window._layout
        if layout is not None and layout.replicas > 1:
            raise ArgumentError(
                f"{layout} has {layout.replicas} copies of each element, and a put would change one: put to "
                f"window[rank] of each"
            )
        return super().nbput(values)


class WholeSection(GlobalSection):
    """Of as many owners as have something of it: in each dimension of the array one index, a range of them or a list.
    New dimensions are counted behind those of the array, and have the index 0. `places` says from which of all these
    each dimension of the section comes."""

    def __init__(self, window: Window, picked: Sequence[range | np.ndarray | int], places: Sequence[int]) -> None:
        super().__init__(window, [len(picked[d]) for d in places])  # type: ignore[arg-type]
        self._picked, self._places = picked, places

    def __getitem__(self, key: Any) -> Section:
        keys, listed, to_front = keys_of(key, len(self._places))
        picked: list[Any] = list(self._picked)
        places: list[int] = []
        left = iter(enumerate(self._places))
        for k, each in enumerate(keys):
            if each is None:
                places.append(len(picked))
                picked.append(range(1))
                continue
            dim, d = next(left)
            picked[d] = _picked(picked[d], each, dim)
            if k == listed and to_front:
                places.insert(0, d)
            elif not isinstance(each, int):
                places.append(d)
        return WholeSection(self.window, picked, places)

    def _parts(self) -> Parts:
        if self.size == 0:
            return []
        layout, blocks, itemsize = self.window._layout, self.window._blocks, self.dtype.itemsize
        picked = [range(each, each + 1) if isinstance(each, int) else each for each in self._picked]
        dense = [0] * len(picked)
        for d, stride in zip(self._places, dense_strides(self.shape, itemsize)):
            dense[d] = stride
        ndim = len(layout.shape) if layout is not None else blocks.blocks.ndim  # type: ignore[union-attr]
        lower = [int(min(each)) for each in picked[:ndim]]
        upper = [int(max(each)) + 1 for each in picked[:ndim]]
        without_gaps = [isinstance(each, range) and (each.step == 1 or len(each) == 1) for each in picked[:ndim]]
        if layout is not None and all(without_gaps) and all(len(each) == 1 for each in picked[ndim:]):
            return _core.parts_of_box(layout, lower, upper, itemsize)
        parts: Parts = []
        there = 0
        new = [(np.arange(len(each)), np.zeros(len(each), np.int64)) for each in picked[ndim:]]
        for number, owned, strides, offset in self._by_ranks(lower, upper) if layout else self._by_blocks(lower, upper):
            found = [_among(each, mine) for each, mine in zip(picked, owned)] + new
            if all(len(to) for to, _ in found):
                parts.append((number, _relation(found, [*strides, *[0] * len(new)], dense, offset, self.dtype)))
                there += parts[-1][1].elements
        if there != self.size:
            raise ArgumentError(
                f"the blocks have {there} elements in the box from {tuple(lower)} to {tuple(upper)}, of which "
                f"{self.size} are asked for: they leave gaps, or overlap"
            )
        return parts

    def _by_ranks(self, lower: list[int], upper: list[int]) -> Iterator[_Owned]:
        layout, itemsize = self.window._layout, self.dtype.itemsize
        assert layout is not None
        box = layout.window(lower, upper)
        for rank, _ in _core.parts_of_box(layout, lower, upper, itemsize):
            strides = layout.local_strides(rank, itemsize)
            offset = sum(map(operator.mul, layout.local_start(rank, lower), strides))
            owned = [
                slice(each.start + low, each.stop + low, each.step or 1) if isinstance(each, slice) else each + low
                for each, low in zip(box.indices(rank), lower)
            ]
            yield rank, [each if isinstance(each, slice) else each.ravel() for each in owned], strides, offset

    def _by_blocks(self, lower: list[int], upper: list[int]) -> Iterator[_Owned]:
        blocks = self.window._blocks
        assert blocks is not None
        bounds, corners = blocks.blocks.bounds, blocks.blocks.grow(blocks.ghost).bounds[:, 0]
        some = (np.maximum(bounds[:, 0], lower) < np.minimum(bounds[:, 1], upper)).all(axis=1)
        for k in np.flatnonzero(some).tolist():
            strides = self.window._window.piece(k)[2]
            yield (
                k,
                [slice(a, b, 1) for a, b in bounds[k].T.tolist()],
                strides,
                int((bounds[k, 0] - corners[k]) @ strides),
            )


def _picked(have: Any, key: Any, dim: int) -> Any:
    """Of the indices that a section has in a dimension, those that a slice, a list or an integer selects."""
    if isinstance(key, np.ndarray):
        return np.asarray(have, np.int64)[listed_indices(key, dim, len(have))]
    if isinstance(key, slice):
        try:
            return have[key]
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{error}, in dimension {dim} of a section") from None
    if not -len(have) <= key < len(have):
        raise ArgumentError(f"index {key} is outside dimension {dim}, which has {len(have)}")
    return int(have[key])


def _among(picked: range | np.ndarray, owned: _Along) -> tuple[np.ndarray, np.ndarray]:
    """Which of the picked indices an owner has, by their positions, and which of its own these are."""
    first, last = (owned.start, owned.stop) if isinstance(owned, slice) else (int(owned[0]), int(owned[-1]) + 1)
    begin = 0
    if isinstance(picked, range):  # only those between its first and its last, for there may be many owners
        if picked.step > 0:
            ends = (first - picked.start, last - picked.start)
        else:
            ends = (picked.start - last + 1, picked.start - first + 1)
        begin, end = (min(max(-(-each // abs(picked.step)), 0), len(picked)) for each in ends)
        picked = np.arange(picked.start + begin * picked.step, picked.start + end * picked.step, picked.step)
    if isinstance(owned, slice):
        there, mine = (first <= picked) & (picked < last), (picked - first) // owned.step
        there &= (picked - first) % owned.step == 0
    else:
        mine = np.minimum(np.searchsorted(owned, picked), len(owned) - 1)
        there = owned[mine] == picked
    return begin + np.flatnonzero(there), mine[there]


def _relation(
    found: list[tuple[np.ndarray, np.ndarray]],
    strides: Sequence[int],
    dense: Sequence[int],
    offset: int,
    dtype: np.dtype,
) -> _core.AddressRelation:
    """Elements at these positions of one array, by dimensions, -> those of the section."""
    if all(_evenly(each) for pair in found for each in pair):
        steps = [[int(each[1] - each[0]) if len(each) > 1 else 0 for each in side] for side in zip(*found)]
        to_strides, from_strides = (
            [step * stride for step, stride in zip(side, of)] for side, of in zip(steps, (dense, strides))
        )
        to = sum(int(each[0]) * stride for (each, _), stride in zip(found, dense))
        offset += sum(int(each[0]) * stride for (_, each), stride in zip(found, strides))
        shape = [len(each) for each, _ in found]
        return _core.AddressRelation.strided(shape, from_strides, to_strides, dtype, offset, to)
    run = 1  # elements that follow each other on both sides, wherever they begin
    places, to_places = np.full(1, offset, np.int64), np.zeros(1, np.int64)
    for (to_each, each), stride, to_stride in [*zip(found, strides, dense)][::-1]:
        along, to_along = each * stride, to_each * to_stride
        if len(places) == 1 and all((np.diff(side) == run * dtype.itemsize).all() for side in (along, to_along)):
            run, along, to_along = run * len(along), along[:1], to_along[:1]
        places, to_places = (along[:, None] + places).ravel(), (to_along[:, None] + to_places).ravel()
    if run == 1:
        return _core.AddressRelation.from_pairs(np.stack([places, to_places], axis=1), dtype)
    stretches = np.stack([places, to_places, np.full(len(places), run)], axis=1)
    return _core.AddressRelation.from_blocks(stretches, dtype)


def _evenly(values: np.ndarray) -> bool:
    return len(values) < 3 or bool((np.diff(values) == values[1] - values[0]).all())


class IncomingSection(GlobalSection):
    """What a plan between layouts brings to a rank."""

    def __init__(self, window: Window, plan: _core.MotionPlan, rank: int) -> None:
        shape = plan.destination.local_shape(rank)
        super().__init__(window, shape if plan.destination.order == "C" else shape[::-1])
        self._plan, self._rank = plan, rank

    def __getitem__(self, key: Any) -> Section:
        raise ArgumentError("what a plan brings has no parts of its own; take window.whole for those")

    def _parts(self) -> Parts:
        return _core.incoming_parts(self._plan, self._rank)


class IncomingBlocks(GlobalSection):
    """What a plan between blocks brings: motion after motion, or to one block, in its shape."""

    def __init__(self, window: Window, motions: Sequence[_core.BlockMotion], block: _core.Region | None) -> None:
        super().__init__(window, [sum(each.points for each in motions)] if block is None else block.shape)
        self._motions, self._block = motions, block

    def __getitem__(self, key: Any) -> Section:
        raise ArgumentError("what a plan brings has no parts of its own; take window.whole for those")

    def _parts(self) -> Parts:
        blocks = self.window._blocks
        assert blocks is not None
        if self._block is not None:
            _check_brought(self._motions, self._block)
        corners = blocks.blocks.grow(blocks.ghost).bounds[:, 0]

        def grid(number: int) -> tuple[_core.Region, Sequence[int]]:
            _, shape, strides, _ = self.window._window.piece(number)
            return _core.Region(corners[number], corners[number] + shape), strides

        return _core.incoming_blocks(self._motions, grid, self.dtype.itemsize, self._block)


def _check_brought(motions: Sequence[_core.BlockMotion], block: _core.Region) -> None:
    """That they bring every element of a block once, and nothing beside it."""
    brought = np.zeros(block.shape, np.uint8)
    for motion in motions:
        region, points = motion.destination_region, motion.destination_points
        if not (block & region) == region:
            raise ArgumentError(f"the plan brings {region}, which reaches beyond the block {block}; leave block= out")
        if points is None:
            here = brought[region.slices(block)]
            here += here < 2
        else:
            np.add.at(brought, tuple((points.reshape(len(points), -1) - block.lower).T), 1)
    if wrong := np.argwhere(brought != 1)[:1].tolist():
        point = tuple(int(x) + low for x, low in zip(wrong[0], block.lower))
        often = "not" if brought[tuple(wrong[0])] == 0 else "more than once"
        raise ArgumentError(f"the plan brings element {point} of the block {block} {often}; leave block= out")
