"""The ghost planes that NAS-MG's levels exchange, got whole or in strips from windows: table 3 of the paper on strip
mining."""

import math

import longshore as ls
import numpy as np
from longshore import model

from .protocol import Missing, Ready, WrongResult
from .strip_loops import SEARCH_LOOPS, lay_open, private_profile, settled

_EXCHANGES = 3  # of a level in a V-cycle: after restricting or interpolating, after the residual, after smoothing


class Level:
    """A mesh of m³ cells, cut along its fastest dimension, of which each rank has a piece with its ghost cells. The
    planes that it needs lie apart: getting one takes packing, and putting it into place."""

    def __init__(self, context, m, network):
        ranks = context.ranks
        shape = (m + 2, m + 2, m // ranks + 2)
        self._values = (np.arange(float(math.prod(shape))) % 1000).reshape(shape)
        self.mesh, self.window = lay_open(context, network, shape)
        self._rank, self._salt = context.rank, 0
        sides = (((context.rank + 1) % ranks, 1, -1), ((context.rank - 1) % ranks, -2, 0))
        inner = (slice(1, -1), slice(1, -1))
        self.planes = [(self.window[who][(*inner, theirs)], self.mesh[(*inner, mine)]) for who, theirs, mine in sides]
        self._right = [(who, self._values[(*inner, theirs)]) for who, theirs, _ in sides]

    def rewrite(self):
        self._salt = (self._salt + 1) % 1000
        np.add(self._values, self._salt + 7 * self._rank, out=self.mesh)
        self.window.fence()

    def spoil(self):
        for _, ghosts in self.planes:
            ghosts.fill(np.nan)

    def check(self):
        for (who, values), (_, ghosts) in zip(self._right, self.planes):
            if not np.array_equal(ghosts, values + (self._salt + 7 * who)):
                raise WrongResult(f"a plane of rank {who} is not what was there")


class Planes(Ready):
    """The exchanges of one V-cycle, without what is computed between them: each plane with a schedule of its rows."""

    def __init__(self, context, case, parts):
        self.case = case
        private_profile(context)

        def make():
            extents = [m for k in range(case.n.bit_length()) if (m := case.n >> k) >= 2 * context.ranks]
            if not extents:
                raise Missing(f"a mesh of {case.n}³ is too small for {context.ranks} ranks")
            return [Level(context, m, case.network) for m in extents]

        self._levels = context.once("levels", make)
        self._schedules = [self._schedule(parts, len(level.planes[0][0])) for level in self._levels]
        for _ in range(SEARCH_LOOPS if parts == "auto" else 0):
            if not context.agree("" if all(map(self._settled, self._levels)) else "searching"):
                break
            self.sample(context)
        self.facts = {"payload_bytes": sum(_EXCHANGES * 2 * 8 * level.planes[0][0].size for level in self._levels)}

    @staticmethod
    def _schedule(parts, rows):
        if parts == "auto":
            return parts
        strips = parts and rows >= 4 * parts
        return model.StripSchedule(f"fixed({rows // parts}, 1)" if strips else "vectorized")

    def _pattern(self, section):
        return f"bench {self.case.name} {len(section)}"

    def _settled(self, level):
        return all(settled(section, self._pattern(section)) for section, _ in level.planes)

    def refresh(self):
        for level in self._levels:
            level.rewrite()

    def spoil(self):
        for level in self._levels:
            level.spoil()

    def run(self):
        for level, schedule in zip(self._levels, self._schedules):
            for _ in range(_EXCHANGES):
                for section, ghosts in level.planes:
                    for strip in ls.strips(section, schedule, pattern=self._pattern(section)):
                        ghosts[strip.first : strip.last] = strip.data

    def check(self):
        for level in self._levels:
            level.check()

    def sample(self, context):
        seconds = super().sample(context)
        context.comm.Barrier()  # nobody writes its planes anew before all have got them
        return seconds
