"""XArrays of several ranks saved to files and loaded from them, against NumPy; errors of one rank told on all.

mpiexec -n P python run_checks.py "block_files.there_and_back(20)" block_files
"""

import contextlib
import os

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, new_folder, raises_everywhere
from longshore import FloorPlan, Region, regions, stores
from longshore.stores import blocks as moves
from longshore.stores import ends

try:
    import h5py
except ImportError:
    h5py = None

KINDS = ("npy", "raw", "h5") if h5py else ("npy", "raw")


def random_blocks(random, domain):
    if random.integers(3) == 0:
        return FloorPlan.even(domain, int(random.integers(1, P + 1)))
    pieces = regions.split_to_size(domain, int(random.integers(2, 7)))
    return FloorPlan(pieces, random.integers(0, P, len(pieces)).tolist())


def filled(blocks, whole, domain, ghost=0, order="C"):
    u = ls.XArray(blocks, whole.dtype, ghost, order=order, comm=WORLD)
    for k, grid in u.items():
        grid[...] = -1
        grid.interior[...] = whole[blocks[k].slices(domain)]
    return u


def alone():
    """What lies in the folder, when nobody changes it."""
    WORLD.Barrier()
    names = os.listdir(".")
    WORLD.Barrier()
    return names


def checked(work):
    """Runs something on rank 0 between barriers; what goes wrong there ends all."""
    WORLD.Barrier()
    if ME == 0:
        work()
    WORLD.Barrier()


def contents(name, kind, shape, order):
    if kind == "npy":
        return np.load(name)
    if kind == "raw":
        return np.fromfile(name, float, offset=9).reshape(shape, order=order)
    with h5py.File(name) as file:
        return file["u"][...]


@contextlib.contextmanager
def files(piece_bytes=256):
    """In a new folder, with another size of what is read or written at a time."""
    usual = moves._PIECE_BYTES
    moves._PIECE_BYTES = piece_bytes
    with new_folder():
        yield
    moves._PIECE_BYTES = usual


@check
def there_and_back(trials):
    random = np.random.default_rng(11)  # the same on all ranks
    with files():
        for trial in range(trials):
            one_trial(random, trial)


def one_trial(random, trial):
    dims = int(random.integers(1, 4))
    domain = Region(random.integers(-3, 3, dims).tolist(), random.integers(4, 14, dims).tolist())
    whole = random.random(domain.shape)
    kind = KINDS[random.integers(len(KINDS))]
    order = "C" if kind == "h5" else "CF"[random.integers(2)]
    name, ghost, proxy = f"field.{kind}", int(random.integers(0, 3)), bool(random.integers(2))
    moves._PIECE_BYTES = whole.nbytes // int(random.choice([1, 2 * P, 12]))
    how = {"npy": {}, "raw": {"offset": 9, "order": order}, "h5": {"dataset": "u"}}[kind]
    u = filled(random_blocks(random, domain), whole, domain, ghost, "CF"[random.integers(2)])
    put = stores.bind(u, name, comm=WORLD, proxy=proxy, force=True, **{**how, "order": order})
    v = ls.XArray(random_blocks(random, domain), float, ghost, order="CF"[random.integers(2)], comm=WORLD)
    into_ghosts, get = bool(random.integers(2)), None
    for step in range(2):
        for k, grid in u.items():
            grid.interior[...] = step + whole[u.blocks[k].slices(domain)]
        for grid in v:
            grid[...] = -1
        WORLD.Barrier()
        put.start()
        while step and not put.test():
            pass
        put.wait()
        checked(
            lambda: np.testing.assert_array_equal(
                contents(name, kind, domain.shape, order), step + whole, f"trial {trial}"
            )
        )
        assert alone() == [name]
        get = get or stores.bind(name, v, comm=WORLD, proxy=proxy, ghost=into_ghosts, **how)
        get.start()
        while ME % 2 and step and not get.test():
            pass
        get.wait()
        for k, grid in v.items():
            want = np.full(grid.shape, -1.0)
            seen = (grid.region & domain) if into_ghosts else v.blocks[k]
            want[seen.slices(grid.region)] = step + whole[seen.slices(domain)]
            np.testing.assert_array_equal(np.asarray(grid), want, f"trial {trial}: block {k} from {name}")
    assert WORLD.allreduce(put.moved_bytes) == whole.nbytes
    checked(lambda: os.unlink(name))


def rows_of_ranks():
    """Eight rows a rank: what the array holds, its blocks, and an XArray of it."""
    domain = Region.of_shape((8 * P, 6))
    whole, blocks = np.arange(domain.size * 1.0).reshape(domain.shape), FloorPlan.even(domain, P)
    return whole, blocks, filled(blocks, whole, domain, 1)


def refused(kind, words, work):
    """All ranks see the same error, and nothing is left of what was begun."""
    before = sorted(alone())
    raises_everywhere(kind, work, words)
    assert sorted(alone()) == before


@check
def refusals():
    last = P - 1
    _, blocks, u = rows_of_ranks()
    with files():
        stores.save(u, "a.npy", comm=WORLD)
        refused(ls.StoreError, "exists already", lambda: stores.save(u, "a.npy", comm=WORLD))
        refused(ls.StoreError, "is missing", lambda: stores.load("none.npy", u, comm=WORLD))
        refused(ls.StoreError, "does not exist; make it first", lambda: stores.save(u, "none/a.npy", comm=WORLD))
        whole_blocks = ls.XArray(blocks, float)
        refused(ls.ArgumentError, "make it with comm=", lambda: stores.load("a.npy", whole_blocks, comm=WORLD))
        refused(ls.ArgumentError, "threads= is for", lambda: stores.load("a.npy", u, threads=2, comm=WORLD))
        refused(ls.MemoryLimitError, "max_mem allows 64", lambda: stores.load("a.npy", u, max_mem=64, comm=WORLD))
        if P == 1:
            return
        overlapping = FloorPlan([*blocks, Region((0, 0), (1, 1))], [*blocks.owners.tolist(), last])
        refused(
            ls.ArgumentError,
            f"blocks 0 and {P} both have",
            lambda: stores.save(ls.XArray(overlapping, float, comm=WORLD), "b.npy", comm=WORLD),
        )
        refused(
            ls.DisagreementError,
            f"rank {last} is saving to",
            lambda: stores.save(u, "b.npy" if ME < last else "c.npy", comm=WORLD),
        )
        refused(
            ls.DTypeError,
            "has float32",
            lambda: stores.load("a.npy", ls.XArray(blocks, "f4" if ME == last else float, comm=WORLD), comm=WORLD),
        )


@check
def one_rank_fails_in_the_middle():
    """It fails on all; the file that was there stays, and the mover goes on."""
    whole, blocks, u = rows_of_ranks()
    domain = blocks.bounding
    plain = ends.ElementsFile.transfer

    def failing(self, start, part):
        if start[0] >= 8 * (P - 1):
            raise ls.StoreError(28, "No space left on device")
        plain(self, start, part)

    w = filled(blocks, whole, domain, 1)
    halo = ls.BlockPlan.halo(blocks, 1).bind(w, comm=WORLD)
    with files():
        stores.save(u, "a.npy", comm=WORLD)
        for proxy in (False, True):
            put = stores.bind(filled(blocks, 2 * whole, domain), "a.npy", comm=WORLD, force=True, proxy=proxy)
            get = stores.bind("a.npy", u, comm=WORLD, proxy=proxy)
            ends.ElementsFile.transfer = failing
            refused(ls.StoreError, "No space left on device", put)
            refused(ls.StoreError, "No space left on device", get)
            ends.ElementsFile.transfer = plain
            checked(lambda: np.testing.assert_array_equal(np.load("a.npy"), whole))
            put.start()
            for _ in range(3):  # other movers go on meanwhile
                halo()
            del put  # given up
            assert alone() == ["a.npy"]
            get()
            for k, grid in u.items():
                np.testing.assert_array_equal(grid.interior, whole[blocks[k].slices(domain)])
                seen = grid.region & domain
                np.testing.assert_array_equal(w[k].on(seen), whole[seen.slices(domain)])
