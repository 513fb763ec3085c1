"""Arrays over ranks saved to stores and loaded from them, by ranks together, against NumPy; errors of one rank told on
all.

mpiexec -n P python run_checks.py "stored_arrays.there_and_back(20)" stored_arrays
"""

import os
from importlib.util import find_spec

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check, new_folder, raises_everywhere
from longshore import FloorPlan, Region
from longshore.stores import chunk_windows

PLACES = ["a.npy", "shards"]
PLACES += ["a.zarr", "a.zarr/deep/er"] if find_spec("zarr") else []
PLACES += ["a.h5::/fields/u"] if find_spec("h5py") else []


def random_layout(random, shape):
    words = [random.choice(["*", "BLOCK", "CYCLIC", "CYCLIC(3)"]) for _ in shape]
    dealt = [d for d, word in enumerate(words) if word != "*"]
    for d in dealt[1:]:
        words[d] = "*"
    ranks = int(random.integers(1, P + 1)) if dealt else 1
    return ls.Layout(f"({', '.join(words)}) on {ranks}", shape, order=random.choice(["C", "F"]))


def words_for(random, place, shape):
    if ".npy" in place or place == "shards":
        return {}
    words = {"chunks": tuple(int(random.integers(1, n + 1)) for n in shape)}
    if ".zarr" in place and random.integers(2):
        words |= {"shards": tuple(2 * n for n in words["chunks"]), "zarr_format": 3}
    return words | ({"codecs": ["zstd:1"]} if ".zarr" in place else {"codecs": ["gzip:1"]})


def local(layout, parts):
    return dict(zip(layout.ranks, parts)).get(ME)


def same(part, wanted):
    assert (part is None) == (wanted is None)
    assert part is None or (part.shape == wanted.shape and part.dtype == wanted.dtype and (part == wanted).all())


@check
def there_and_back(rounds=8):
    random = np.random.default_rng(11)
    usual = chunk_windows._PIECE_BYTES
    for turn in range(rounds):
        place = PLACES[turn % len(PLACES)]
        shape = tuple(int(n) for n in random.integers(1, 12, int(random.integers(1, 4))))
        whole = random.integers(0, 1 << 30, shape).astype(random.choice(["f8", "i4", ">u4"]))
        source, target = random_layout(random, shape), random_layout(random, shape)
        words = words_for(random, place, shape)
        chunk_windows._PIECE_BYTES = int(random.choice([100, 500, 1 << 20]))
        try:
            with new_folder():
                mine = local(source, ls.scatter(whole, source))
                ls.save(mine, source, place, comm=WORLD, **words)
                if ME == 0:
                    with ls.open(place) as stored:
                        found = stored.read()
                    assert found.dtype == whole.dtype and (found == whole).all(), (place, words)
                    assert os.listdir(".") == [place.split("/")[0].split("::")[0]]
                same(ls.load(place, target, comm=WORLD), local(target, ls.scatter(whole, target)))
                same(ls.load(place, str(target), comm=WORLD, threads=2), local(target, ls.scatter(whole, target)))
        finally:
            chunk_windows._PIECE_BYTES = usual


@check
def blocks():
    domain = Region((3, 3), (15, 13))
    whole = np.arange(120.0).reshape(12, 10)
    for place in PLACES:
        if place == "shards":
            continue
        with new_folder():
            u = ls.XArray(FloorPlan.even(domain, P), "f8", ghost=1, comm=WORLD)
            for k, grid in u.items():
                grid.interior[...] = whole[u.blocks[k].slices(domain)]
            ls.save(u, place, comm=WORLD, **({} if ".npy" in place else {"chunks": (5, 4)}))
            v = ls.XArray(FloorPlan.even(Region.of_shape((12, 10)), P), "f8", comm=WORLD)
            ls.load(place, v, comm=WORLD)
            for k, grid in v.items():
                assert (grid.interior == whole[v.blocks[k].slices(Region.of_shape((12, 10)))]).all()


@check
def mistakes_of_one_rank():
    layout = ls.Layout(f"(BLOCK, *) on {P}", (6 * P, 4))
    mine = np.full((6, 4), float(ME))
    last = P - 1
    place = "a.zarr" if "a.zarr" in PLACES else "a.npy"
    with new_folder():
        wrong = mine[:3] if ME == last else mine
        raises_everywhere(ls.ShapeError, lambda: ls.save(wrong, layout, place, comm=WORLD))
        wrong = mine.astype("f4") if ME == last and P > 1 else mine
        if P > 1:
            raises_everywhere(ls.DTypeError, lambda: ls.save(wrong, layout, place, comm=WORLD))
            force = ME != last
            other = place if ME != last else "b" + place
            raises_everywhere(ls.DisagreementError, lambda: ls.save(mine, layout, other, comm=WORLD))
            raises_everywhere(
                ls.ArgumentError, lambda: ls.save(mine, layout, place, force=5 if not force else True, comm=WORLD)
            )
            if place == "a.zarr":
                for words in ({"zarr_format": 2}, {"names": ("t", "x")}, {"attributes": {"units": "K"}}):
                    given = words if ME == last else {"zarr_format": 3}
                    raises_everywhere(ls.DisagreementError, lambda: ls.save(mine, layout, place, comm=WORLD, **given))
            u = ls.XArray(FloorPlan.even(Region.of_shape((6 * P, 4)), P), "f8", comm=WORLD)
            raises_everywhere(
                ls.DisagreementError, lambda: ls.save(*((u,) if ME == last else (mine, layout)), "b.npy", comm=WORLD)
            )
            raises_everywhere(ls.DisagreementError, lambda: ls.load("b.npy", u if ME == last else layout, comm=WORLD))
            more = {"offset": 5} if ME == last else {}
            raises_everywhere(ls.ArgumentError, lambda: ls.save(mine, layout, place, comm=WORLD, **more))
        broken = [object()] if ME == last else mine
        raises_everywhere(Exception, lambda: ls.save(broken, layout, place, comm=WORLD))
        WORLD.Barrier()
        assert os.listdir(".") == []
        WORLD.Barrier()
        words = {"chunks": (3, 2), "codecs": ["zstd:1"], "zarr_format": 3} if place != "a.npy" else {}
        ls.save(mine, layout, place, comm=WORLD, **words)
        raises_everywhere(ls.StoreError, lambda: ls.save(mine, layout, place, comm=WORLD))
        raises_everywhere(
            ls.ArgumentError, lambda: ls.load(place, ls.Layout(f"(BLOCK, *) on {P + 1}", (6 * P, 4)), comm=WORLD)
        )
        if P > 1:
            rows = layout if ME != last else "(*, BLOCK) on 1"
            raises_everywhere(ls.DisagreementError, lambda: ls.load(place, rows, comm=WORLD))
        name = place if ME != last else "nothing.npy"
        raises_everywhere(ls.StoreError, lambda: ls.load(name, layout, comm=WORLD))
        if place == "a.zarr":  # a chunk that one rank alone reads
            WORLD.Barrier()
            if ME == 0:
                with open(f"a.zarr/c/{2 * P - 1}/1", "r+b") as file:
                    file.truncate(5)
            WORLD.Barrier()
            raises_everywhere(ls.StoreError, lambda: ls.load(place, layout, comm=WORLD))
        same(ls.load(place, layout, comm=WORLD) if place == "a.npy" else mine, mine)
