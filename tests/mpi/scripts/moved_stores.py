"""Moves between stores of other formats than .npy, shared by ranks, against NumPy and against the move of one process;
errors of one rank told on all; what was interrupted is gone on with.

mpiexec -n P python run_checks.py "moved_stores.as_by_one(20)" moved_stores
"""

import os
from importlib.util import find_spec

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, new_folder, raises_everywhere
from mpi4py import MPI

ZARR, HDF5 = find_spec("zarr") is not None, find_spec("h5py") is not None
SOURCES = ["s.npy"] + ["s.zarr"] * ZARR + ["s.h5::/a/u", "s.nc::u"] * HDF5
TARGETS = ["d.zarr", "d.zarr/deep/er"] * ZARR + ["d.h5::u", "d.nc::u"] * HDF5 + ["d.npy"] * ZARR


def made(place, whole, chunks):
    """By the first rank alone."""
    if ME == 0:
        np.save("whole.npy", whole)
        words = {} if place.endswith(".npy") else {"chunks": chunks}
        words |= {"zarr_format": 3} if ".zarr" in place else {}
        ls.move("whole.npy", place, comm=MPI.COMM_SELF, force=True, lossy=True, **words)
    WORLD.Barrier()


def read(place):
    with ls.open(place) as opened:
        return opened.read()


def stored(place):
    return {os.path.relpath(os.path.join(folder, name), place) for folder, _, names in os.walk(place) for name in names}


@check
def as_by_one(rounds=8):
    random = np.random.default_rng(3)
    for turn in range(rounds if ZARR else 0):
        shape = tuple(int(n) for n in random.integers(1, 30, int(random.integers(1, 4))))
        chunks, to = ([int(random.integers(1, n + 1)) for n in shape] for _ in range(2))
        axes = tuple(int(a) for a in random.permutation(len(shape))) if turn % 3 == 0 else tuple(range(len(shape)))
        whole = random.integers(0, 3, shape).astype(random.choice(["f8", "i4", "u2"]))
        source, target = SOURCES[turn % len(SOURCES)], TARGETS[turn // 2 % len(TARGETS)]
        words = {"axes": axes, "lossy": True}
        if not target.endswith(".npy"):
            words["chunks"] = tuple(min(n, shape[a]) for n, a in zip(to, axes))
            words["codecs"] = [(), ("gzip:1",), ("shuffle", "gzip:4")][int(random.integers(3))]
        if ".zarr" in target and turn % 2:
            words |= {"shards": tuple(2 * n for n in words["chunks"]), "zarr_format": 3}
        with new_folder():
            made(source, whole, chunks)
            told = ls.move(source, target, comm=WORLD, max_mem="48MiB", verify=True, **words)
            if ME == 0:
                assert (read(target) == whole.transpose(axes)).all(), (source, target, words)
                alone = ls.move(source, "alone" + target[1:], comm=MPI.COMM_SELF, **words)
                assert (alone.digest, alone.chunks) == (told.digest, told.chunks)
                left = {"whole.npy", *(place.partition("::")[0].partition("/")[0] for place in (source, target))}
                assert set(os.listdir(".")) - {"alone" + target.partition("::")[0].partition("/")[0][1:]} == left


@check
def small_windows_and_missing_chunks():
    """Windows of one chunk; what is missing stays missing, and a group has all that was in it."""
    if not ZARR:
        return
    import zarr
    from longshore.stores import rechunk_plan

    whole = np.zeros((40, 30))
    whole[:7, 12:] = np.arange(126.0).reshape(7, 18)
    usual = rechunk_plan._BASE_BYTES
    with new_folder():
        if ME == 0:
            is_3 = hasattr(zarr, "create_array")
            group = zarr.open_group("s.zarr", mode="w", **({"zarr_format": 2} if is_3 else {}))
            make = group.create_array if is_3 else group.create_dataset
            group.attrs["title"] = "fields"
            make("u", shape=whole.shape, chunks=(5, 9), dtype="f8", fill_value=0.0)[:7] = whole[:7]
            make("scalar", shape=(), dtype="i4")[()] = 7
            make("none", shape=(0, 3), chunks=(1, 3), dtype="i4")
        WORLD.Barrier()
        rechunk_plan._BASE_BYTES = -rechunk_plan._THREAD_BYTES  # so that a ceiling of some kilobytes means something
        try:
            ls.move("s.zarr", "d.zarr", comm=WORLD, chunks={}, max_mem=(1 << 20) + 4096, threads=1)
            told = ls.move(
                "s.zarr/u", "u.zarr", comm=WORLD, chunks=(7, 4), max_mem=(1 << 20) + 4096, threads=1, verify=True
            )
        finally:
            rechunk_plan._BASE_BYTES = usual
        assert told.arrays[0].plan.way == "windows" or P == 1
        assert (read("u.zarr") == whole).all() and (read("d.zarr/u") == whole).all()
        if ME == 0:
            there = zarr.open_group("d.zarr", mode="r")
            assert there.attrs["title"] == "fields" and there["scalar"][()] == 7 and there["none"].shape == (0, 3)
            ls.move("s.zarr/u", "alone.zarr", chunks=(7, 4), comm=MPI.COMM_SELF)
            assert stored("u.zarr") == stored("alone.zarr") and len(stored("u.zarr")) < 20  # of 48 chunks


@check
def mistakes_of_one_rank():
    if not ZARR or P == 1:
        return
    last = P - 1
    whole = np.arange(40.0 * P).reshape(8 * P, 5)
    with new_folder():
        made("s.zarr", whole, (4, 5))

        def move(to="d.zarr", **words):
            return ls.move("s.zarr", to, comm=WORLD, **{"chunks": (8, 1), **words})

        one = ME == last
        raises_everywhere(ls.ArgumentError, lambda: move(threads=0 if one else 1))
        raises_everywhere(ls.ArgumentError, lambda: move(zarr_format=7 if one else 3))
        raises_everywhere(ls.DisagreementError, lambda: move(chunks=(8, 2) if one else (8, 1)))
        raises_everywhere(ls.DisagreementError, lambda: move(zarr_format=2 if one else 3))
        raises_everywhere(ls.DisagreementError, lambda: move(verify=one))
        raises_everywhere(ls.DisagreementError, lambda: move(dry_run=one))
        raises_everywhere(ls.DisagreementError, lambda: move(resume=one))
        raises_everywhere(ls.DisagreementError, lambda: move(to="e.zarr" if one else "d.zarr"))
        raises_everywhere(ls.DisagreementError, lambda: ls.move("whole.npy", "d.npy", comm=WORLD, lossy=one))
        raises_everywhere(ls.MemoryLimitError, lambda: move(max_mem=1000))
        WORLD.Barrier()
        assert sorted(os.listdir(".")) == ["s.zarr", "whole.npy"]
        WORLD.Barrier()
        if ME == 0:
            with open(f"s.zarr/c/{2 * P - 1}/0", "r+b") as file:  # a chunk that the last rank alone reads
                file.truncate(5)
        WORLD.Barrier()
        raises_everywhere(ls.StoreError, move)
        WORLD.Barrier()
        assert sorted(os.listdir(".")) == ["s.zarr", "whole.npy"]


@check
def encoded_by_all_and_written_by_the_first():
    if not (ZARR and HDF5) or P == 1:
        return
    from longshore.stores.hdf5_array_writers import ChunkWriter

    whole, encoded = np.random.default_rng(4).random((8 * P, 10)), []
    encode, write, last = ChunkWriter.encode, ChunkWriter.write, P - 1

    def noting(self, index, chunk, *, at_once=False):
        encoded.append(index)
        return encode(self, index, chunk)

    def failing(kept, rank):
        def fails(*words, **named):
            if ME == rank:
                raise ls.StoreError("it cannot be done")
            return kept(*words, **named)

        return fails

    def move(to="d.h5::u"):
        return ls.move("s.zarr", to, comm=WORLD, chunks=(3, 4), codecs=("shuffle", "gzip:4"), verify=True)

    with new_folder():
        made("s.zarr", whole, (4, 5))
        try:
            ChunkWriter.encode = noting
            told = move()
            shares = WORLD.allgather(encoded)
            every = [index for share in shares for index in share]
            assert all(shares) and len(every) == len(set(every)) == told.chunks
            assert (read("d.h5::u") == whole).all()
            ChunkWriter.encode = failing(encode, last)
            raises_everywhere(ls.StoreError, lambda: move("e.h5::u"))
            ChunkWriter.encode, ChunkWriter.write = encode, failing(write, 0)
            raises_everywhere(ls.StoreError, lambda: move("e.h5::u"))
        finally:
            ChunkWriter.encode, ChunkWriter.write = encode, write
        WORLD.Barrier()
        assert sorted(os.listdir(".")) == ["d.h5", "s.zarr", "whole.npy"]


@check
def resumed():
    """A rank cannot write any more in the middle; the next run does what is left."""
    if not ZARR or P == 1:
        return
    from longshore.stores.rechunk_plan import RechunkPlan
    from longshore.stores.rechunk_shared import SharedRechunk
    from longshore.stores.zarr_writer import ZarrArrayWriter

    whole = np.random.default_rng(1).random((24, 16))
    plain, carry, windows = ZarrArrayWriter.write, SharedRechunk._carry, []

    def failing(self, index, stored):
        if ME == 0 and len(windows) == 3:
            raise ls.StoreError("the disk went away")
        return plain(self, index, stored)

    def counted(self, *arguments):
        windows.append(arguments)
        carry(self, *arguments)

    def rows_of_chunks(plan):
        """Windows of one row of chunks each."""
        return [((n, 0), (n + 1, plan.target.counts[1])) for n in range(plan.target.counts[0])]

    with new_folder():
        made("s.zarr", whole, (5, 7))
        panels = RechunkPlan.panels
        ZarrArrayWriter.write, SharedRechunk._carry, RechunkPlan.panels = failing, counted, rows_of_chunks
        try:
            words = {"comm": WORLD, "chunks": (4, 4), "resume": True}
            raises_everywhere(ls.StoreError, lambda: ls.move("s.zarr", "d.zarr", **words), "went away")
            ZarrArrayWriter.write = plain
            assert not os.path.lexists("d.zarr")
            told = ls.move("s.zarr", "d.zarr", verify=True, **words)
        finally:
            ZarrArrayWriter.write, SharedRechunk._carry, RechunkPlan.panels = plain, carry, panels
        assert told.resumed_chunks == 8 and told.chunks == 16 and len(windows) == 3 + 4
        assert (read("d.zarr") == whole).all()
        WORLD.Barrier()
        assert sorted(os.listdir(".")) == ["d.zarr", "s.zarr", "whole.npy"]
