"""Boxes with ghost cells in a periodic domain, as XArrays whose elements say where they lie."""

import longshore as ls
import numpy as np

from .protocol import WrongResult


def halo_of(context, across, extent):
    """This rank's plan of a halo with corners, one cell wide, and its blocks: so many along each dimension, cubes of
    that extent."""
    domain = ls.Region.of_shape([n * extent for n in across])
    blocks = ls.FloorPlan.balanced(ls.regions.split_evenly(domain, across), context.ranks)
    return halo_plan(blocks, domain, context.rank)


def halo_plan(blocks, domain, rank):
    return ls.BlockPlan.halo(blocks, 1, domain=domain, periodic=True, rank=rank)


class HaloField:
    """An XArray of a halo's blocks, in memory that a node's ranks share. Its elements are their places in the domain,
    in order, and the salt by which their owner has changed them."""

    def __init__(self, context, plan, salt=0.0):
        self.plan, self.salt = plan, salt
        self.array = ls.XArray(plan.source, float, ghost=1, comm=context.comm)
        self.spec = plan, self.array
        self._extents = plan.source.bounding.shape
        self._grids = [(grid.region, grid.block, np.asarray(grid), grid.interior) for _, grid in self.array.items()]
        self.spoil()

    def refresh(self):
        self.salt += 1.0
        for *_, interior in self._grids:
            np.add(interior, 1.0, out=interior)

    def spoil(self):
        for _, block, whole, interior in self._grids:
            whole.fill(np.nan)
            interior[...] = self._values(block)

    def check(self):
        for region, _, whole, _ in self._grids:
            expected = self._values(region)
            if not np.array_equal(whole, expected):
                at = tuple(map(int, np.argwhere(whole != expected)[0]))
                where = f"the grid over {region}, local element {at}"
                raise WrongResult(f"{where}: {whole[at]!r} where {expected[at]!r} belongs")

    def _values(self, region):
        """By the formula of the domain: beyond its end it begins again."""
        values = np.full((1,) * len(self._extents), 0.0)
        for d, (lower, upper, extent) in enumerate(zip(region.lower, region.upper, self._extents)):
            places = np.arange(lower, upper) % extent
            values = values * extent + places.reshape([-1 if k == d else 1 for k in range(len(self._extents))])
        return values + self.salt
