"""Random plans over MPI, checked against NumPy's own indexing. All ranks draw the same cases from the same seed.

mpiexec -n P python run_checks.py "random_plans.moved(250)"
"""

import random
import sys

import longshore as ls
import numpy as np
from checks import WORLD, P, check

DTYPES = ["u1", "i2", "f4", "f8", "c16", "S3", [("a", "i4"), ("b", "f8")], "S40"]
NODES = ["auto", "auto", "direct", "ring", "messages"]


class Side:
    """A random layout, and independently of Longshore who owns what in it."""

    def __init__(self, draw, shape, size, wrap):
        self.shape = shape
        most = size * 2 if wrap else size
        self.dists, extents, sources = [], [], []
        left = most
        replicas = draw.choice([1, 1, 1, 2]) if left >= 2 else 1
        left //= replicas
        for n in shape:
            kind = draw.choice(["*", "BLOCK", "CYCLIC", "CYCLIC(b)", "BLOCK(b)", "GEN_BLOCK"])
            p = 1 if kind == "*" else draw.randint(1, max(1, min(left, 4)))
            left //= p
            if kind == "*":
                self.dists.append(("*", np.zeros(n, int)))
                continue
            source = 0
            if kind == "BLOCK":
                text, b = "BLOCK", max(1, -(-n // p))
            elif kind == "CYCLIC":
                text, b = "CYCLIC", 1
            elif kind == "CYCLIC(b)":
                b = draw.randint(1, 5)
                text = f"CYCLIC({b})"
            elif kind == "BLOCK(b)":
                b = max(1, -(-n // p)) + draw.randint(0, 2)
                text = f"BLOCK({b})"
            else:
                cuts = sorted(draw.randint(0, n) for _ in range(p - 1))
                sizes = [hi - lo for lo, hi in zip([0, *cuts], [*cuts, n])]
                text, b = f"GEN_BLOCK({', '.join(map(str, sizes))})", 0
            if kind.startswith("CYCLIC"):
                source = draw.randrange(p)
            owner = np.repeat(np.arange(p), sizes) if kind == "GEN_BLOCK" else (np.arange(n) // b + source) % p
            self.dists.append((text, owner))
            extents.append(p)
            sources.append(source)
        self.grid = list(extents)
        self.distributed = [d for d, (text, _) in enumerate(self.dists) if text != "*"]
        self.replicated_at = None
        grid_text = [str(p) for p in extents]
        if replicas > 1 or not extents:
            at = draw.randint(0, len(extents))
            self.grid.insert(at, replicas)
            grid_text.insert(at, f"REPLICATED({replicas})" if replicas > 1 else "1")
            self.replicated_at = at
        count = int(np.prod(self.grid))
        self.order, self.rank_order = draw.choice("CCF"), draw.choice("CCF")
        world = list(range(most))
        self.ranks = sorted(draw.sample(world, count)) if draw.random() < 0.5 else list(range(count))
        if draw.random() < 0.3:
            draw.shuffle(self.ranks)
        text = f"({', '.join(t for t, _ in self.dists)}) on {'x'.join(grid_text)}"
        text += f", order={self.order}, rank_order={self.rank_order}"
        if any(sources):
            text += f", source={'x'.join(map(str, sources))}"
        text += f", ranks=[{', '.join(map(str, self.ranks))}]"
        self.layout = ls.Layout(text, shape)

    def parts(self):
        """(layout rank, global indices per dimension) of every process."""
        for process, coordinates in enumerate(
            np.ndindex(*self.grid) if self.rank_order == "C" else (c[::-1] for c in np.ndindex(*self.grid[::-1]))
        ):
            c = [x for g, x in enumerate(coordinates) if g != self.replicated_at]
            along = dict(zip(self.distributed, c))
            yield (
                self.ranks[process],
                [np.flatnonzero(owner == along.get(d, 0)) for d, (_, owner) in enumerate(self.dists)],
            )


def fill(draw, dtype, shape, stamp):
    raw = np.random.default_rng(stamp).integers(0, 100, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype.kind in "fc":
        return np.random.default_rng(stamp).integers(-50, 50, shape).astype(dtype)
    return raw.view(dtype).reshape(shape)


def one_case(draw, comm, number):
    size, me = comm.size, comm.rank
    ndim = draw.choice([1, 2, 2, 3, 4])
    most = {1: 200, 2: 40, 3: 12, 4: 6}[ndim]
    shape = tuple(
        draw.choice([0, 1, draw.randint(1, most), draw.randint(1, most), draw.randint(1, most), most])
        for _ in range(ndim)
    )
    if draw.random() < 0.1 and ndim < 4:
        shape = tuple(n * 5 for n in shape)
    axes = list(range(ndim))
    if draw.random() < 0.5:
        draw.shuffle(axes)
    dtype = np.dtype(draw.choice(DTYPES))
    wrap = draw.random() < 0.3
    source, target = Side(draw, shape, size, wrap), Side(draw, tuple(shape[a] for a in axes), size, wrap)
    node = draw.choice(NODES)
    max_mem = draw.choice([None, None, None, 2 * dtype.itemsize, 64 * dtype.itemsize, 5000])
    if max_mem == 2 * dtype.itemsize and int(np.prod(shape)) > 1000:
        max_mem = None  # a message for each element: not a few of them
    combined = dtype.kind in "fc" and draw.random() < 0.4
    alpha, beta = (draw.choice([None, 2, -1]), draw.choice([None, 0, 1, 3])) if combined else (None, None)
    conjugate = combined and dtype.kind == "c" and draw.random() < 0.5
    shared = draw.choice(["none", "all", "mixed"])
    mixed = random.Random(draw.random() + me)
    what = f"case {number}: {source.layout} -> {target.layout}, shape {shape} axes {axes} {dtype} {node=} {max_mem=}"
    what += f" {shared=} {wrap=} {alpha=} {beta=} {conjugate=}"

    def make(layout, rank):
        use = shared == "all" or (shared == "mixed" and mixed.random() < 0.5)
        if not use:
            return ls.empty(layout, dtype, rank=rank)
        if rank == me:
            return ls.empty(layout, dtype, comm=comm)
        from longshore import _arrays, _mpi

        n = layout.allocated_size(rank) * dtype.itemsize
        return _arrays.empty_local(layout, rank, dtype, _mpi.array_memory(n, comm) if n else None)

    try:
        inputs = {r: (ix, make(source.layout, r)) for r, ix in source.parts() if r % size == me}
        outputs = {r: (ix, make(target.layout, r)) for r, ix in target.parts() if r % size == me}
        give, take = {r: a for r, (_, a) in inputs.items()}, {r: a for r, (_, a) in outputs.items()}
        if not wrap and draw.random() < 0.5:  # the same, as most people write it
            give, take = give.get(me), take.get(me)
        mover = ls.plan(source.layout, target.layout, dtype, axes).bind(
            give,
            take,
            comm=comm,
            max_mem=max_mem,
            node=node,
            alpha=alpha,
            beta=beta,
            conjugate=conjugate,
            placement="wrap" if wrap else None,
        )
        if max_mem is not None:
            assert mover.staging_bytes <= max_mem, (mover.staging_bytes, max_mem, mover.path)
        total = 0
        for repeat in range(2):
            whole = fill(draw, dtype, shape, number * 10 + repeat)
            old = fill(draw, dtype, target.shape, number * 10 + 5)
            for ix, a in inputs.values():
                a[...] = whole[np.ix_(*ix)]
            for ix, a in outputs.values():
                a[...] = old[np.ix_(*ix)]
            result = whole.transpose(axes)
            if combined:
                result = (np.conj(result) if conjugate else result) * dtype.type(1 if alpha is None else alpha)
                if beta:
                    result = result + old * dtype.type(beta)
            if repeat and draw.random() < 0.5:
                mover.start()
                while number % 2 and not mover.test():
                    pass
                check_arrivals(mover, {r: a for r, (_, a) in outputs.items()}, result.astype(dtype))
                mover.wait()
            else:
                mover()
            for r, (ix, a) in outputs.items():
                expected = result[np.ix_(*ix)]
                assert a.tobytes() == expected.astype(dtype).tobytes() or np.array_equal(a, expected), (
                    f"layout rank {r}, repeat {repeat}, {mover.path}"
                )
                total += a.nbytes if repeat == 0 else 0
            for r, (ix, a) in inputs.items():
                assert a.tobytes() == whole[np.ix_(*ix)].tobytes(), f"source of layout rank {r} changed"
        assert mover.moved_bytes == total, (mover.moved_bytes, total)
    except ls.MemoryLimitError:
        # Only a bound too small for a packet each way may be refused.
        assert max_mem is not None and max_mem < 4 * dtype.itemsize, what
    except BaseException:
        print(f"rank {me}: {what}", file=sys.stderr)
        raise


def check_arrivals(mover, outputs, result):
    """Pieces are complete when they arrive, and are everything, each once."""
    seen = {r: np.zeros(a.shape, int) for r, a in outputs.items()}
    for arrival in mover.arrivals():
        a = outputs[arrival.destination_rank]
        expected = result[arrival.global_index]
        assert a[arrival.index].tobytes() == expected.tobytes() or np.array_equal(a[arrival.index], expected), arrival
        seen[arrival.destination_rank][arrival.index] += 1
    assert all((one == 1).all() for one in seen.values())


def communicators(comm):
    yield comm, False
    yield comm.Dup(), True
    yield comm.Split(0, -comm.rank), True  # reversed
    halves = comm.Split(comm.rank % 2, comm.rank)
    yield halves, True


@check
def moved(plans):
    first = 0
    share = [plans - 3 * (plans // 6), plans // 6, plans // 6, plans // 6]
    for (comm, ours), count in zip(communicators(WORLD), share):
        # The halves draw different plans.
        draw = random.Random(P * 1000 + first * 7 + comm.size)
        for number in range(first, first + count):
            one_case(draw, comm, number)
        first += count
        if ours:
            comm.Free()
