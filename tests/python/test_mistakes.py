"""Wrong input gets a clear error, and nothing is written."""

import random
import subprocess
import sys
import threading

import longshore as ls
import numpy as np
import pytest

SOURCE = ls.Layout("(BLOCK, *) on 2", (6, 4))
DESTINATION = ls.Layout("(*, BLOCK) on 2", (6, 4))


def bind(parts=None, out=None, dtype="f8", **options):
    parts = ls.scatter(np.arange(24.0).reshape(6, 4), SOURCE) if parts is None else parts
    out = ls.empty(DESTINATION, "f8") if out is None else out
    return ls.plan(SOURCE, DESTINATION, dtype).bind(parts, out, **options)


@pytest.mark.parametrize(
    "text, shape, words",
    [
        ("(BLOK, *) on 4", (4, 4), ["expected *, BLOCK", "\n   ^"]),
        ("(BLOCK, * on 4", (4, 4), ["','", "^"]),
        ("(BLOCK, *) on 2x2", (4, 4), ["1 distributed dimension", "2 grid extents"]),
        ("(BLOCK, *) on 0", (4, 4), ["at least 1"]),
        ("(BLOCK(1), *) on 2", (4, 4), ["dimension 0", "holds 2 of 4"]),
        ("(GEN_BLOCK(1, 2), *) on 2", (4, 4), ["dimension 0", "add up to 3", "4"]),
        ("(CYCLIC(99999999999999999999), *) on 2", (4, 4), ["64 bits"]),
        ("(BLOCK, *) on 2, order=X", (4, 4), ["C or F"]),
        ("(BLOCK, *) on 2, ranks=[0,0]", (4, 4), ["rank 0 comes twice"]),
        ("(BLOCK, *) on 2, source=2", (4, 4), ["source offset 2", "[0, 2)"]),
        ("(BLOCK, *) on 2, ld=1", (4, 4), ["ld 1", "dimension 1"]),
        ("", (4,), ["begins with"]),
    ],
)
def test_layout_errors_point_at_the_place(text, shape, words):
    with pytest.raises(ls.LayoutError) as caught:
        ls.Layout(text, shape)
    for word in words:
        assert word in str(caught.value)


def test_dimensions_and_shape():
    with pytest.raises(ls.ShapeError, match="2 dimensions, the shape has 1"):
        ls.Layout("(BLOCK, *) on 2", 4)
    with pytest.raises(ls.ShapeError, match="extent -1 of dimension 1"):
        ls.Layout("(BLOCK, *) on 2", (4, -1))
    with pytest.raises(ls.ShapeError, match="destination dimension 1 has extent 5, source dimension 1 has 4"):
        ls.plan(SOURCE, ls.Layout("(*, BLOCK) on 2", (6, 5)), "f8")
    with pytest.raises(ls.SizeOverflowError):
        ls.Layout("(BLOCK, *) on 2", (2**40, 2**40))
    with pytest.raises(ls.ArgumentError, match="axes entry 1"):
        ls.plan(SOURCE, DESTINATION, "f8", axes=(0, 0))
    for axes in ((), (0,), (0, 1, 0)):
        with pytest.raises(ls.ArgumentError, match=f"axes has {len(axes)} entries, there are 2 dimensions"):
            ls.plan(SOURCE, DESTINATION, "f8", axes=axes)
    with pytest.raises(ls.ArgumentError, match=r"axes entry 1 is -3, outside \[-2, 2\)"):
        ls.plan(SOURCE, DESTINATION, "f8", axes=(0, -3))


def test_indices():
    with pytest.raises(ls.ArgumentError, match=r"index 6 in dimension 0 is outside \[0, 6\)"):
        SOURCE.owner((6, 0))
    with pytest.raises(ls.ArgumentError, match="rank 7 is not among the 2 ranks"):
        SOURCE.local_to_global(7, (0, 0))
    with pytest.raises(ls.ArgumentError, match=r"rank 1: local index 3 in dimension 0 is outside \[0, 3\)"):
        SOURCE.local_to_global(1, (3, 0))


def test_shape_of_a_local_array():
    parts = [np.zeros((3, 4)), np.zeros((2, 4))]
    with pytest.raises(ls.ShapeError, match=r"rank 1: the source array .*dimension 0 has 2 instead of 3"):
        bind(parts)
    with pytest.raises(ls.ArgumentError, match="1 source arrays for a layout of 2 ranks"):
        bind([np.zeros((3, 4))])
    with pytest.raises(ls.ArgumentError, match="no source array for rank 1"):
        bind({0: np.zeros((3, 4))})
    with pytest.raises(ls.ArgumentError, match="source array for rank 2"):
        bind({0: np.zeros((3, 4)), 1: np.zeros((3, 4)), 2: np.zeros((3, 4))})


def test_dtype():
    with pytest.raises(ls.DTypeError, match="rank 1: the source array has dtype float32, the plan moves float64"):
        bind([np.zeros((3, 4)), np.zeros((3, 4), "f4")])
    with pytest.raises(ls.DTypeError, match="Python objects"):
        ls.plan(SOURCE, DESTINATION, object)
    with pytest.raises(ls.DTypeError, match="alpha"):
        ls.plan(SOURCE, DESTINATION, "S8").bind([np.zeros((3, 4), "S8")] * 2, ls.empty(DESTINATION, "S8"), alpha=2)
    with pytest.raises(ls.DTypeError, match="does not fit"):
        bind(alpha=1 + 2j)


def test_order_and_strides():
    with pytest.raises(
        ls.LocalArrayError, match=r"rank 0: the source array has a stride of 8 bytes in dimension 0.*wants 32"
    ):
        bind([np.zeros((3, 4), order="F"), np.zeros((3, 4))])
    with pytest.raises(ls.LocalArrayError, match="stride"):
        bind([np.zeros((3, 8))[:, ::2], np.zeros((3, 4))])


def test_protection_and_overlap():
    out = ls.empty(DESTINATION, "f8")
    out[1].flags.writeable = False
    with pytest.raises(ls.LocalArrayError, match="rank 1: the destination array is read-only"):
        bind(out=out)
    memory = np.zeros(24)
    with pytest.raises(ls.LocalArrayError, match="share memory"):
        bind([memory[:12].reshape(3, 4), memory[12:].reshape(3, 4)], [memory[6:18].reshape(6, 2), np.zeros((6, 2))])
    with pytest.raises(ls.LocalArrayError, match="share memory"):
        bind(out=[memory[:12].reshape(6, 2), memory[6:18].reshape(6, 2)])


def test_memory_limit():
    with pytest.raises(ls.MemoryLimitError, match="max_mem allows 10"):
        bind(max_mem=10)
    with pytest.raises(ls.ArgumentError, match="not a size"):
        bind(max_mem="a lot")
    with pytest.raises(ls.ArgumentError, match="at least one byte"):
        bind(max_mem=0)
    bind(max_mem="1 MiB")()


def test_number_of_threads():
    for wrong, words in (
        (-1, "threads is -1; it must be at least 1, or None"),
        (0, "threads is 0; it must be at least 1, or None"),
        ("two", "threads is 'two'"),
    ):
        with pytest.raises(ls.LongshoreError, match=words):
            bind(threads=wrong)
    assert bind(threads=1).path.startswith("threads engine, 1 threads")


def test_nothing_is_written_on_error():
    out = [np.full((6, 2), -1.0), np.full((6, 2), -1.0)]
    with pytest.raises(ls.DTypeError):
        bind([np.zeros((3, 4)), np.zeros((3, 4), "f4")], out)
    assert all((part == -1).all() for part in out)


def test_start_twice():
    mover = bind()
    mover.start()
    with pytest.raises(ls.ArgumentError, match="started already"):
        mover.start()
    mover.wait()
    with pytest.raises(ls.ArgumentError, match=r"wait\(\) without start"):
        mover.wait()
    with pytest.raises(ls.ArgumentError, match=r"test\(\) without start"):
        bind().test()


@pytest.mark.parametrize("proxy", [False, True])
def test_a_mover_in_two_threads(proxy):
    """Whatever two threads do with one mover at once is refused by name or done whole."""
    rows = ls.FloorPlan([ls.Region.of_shape((400, 300))], [0])
    columns = ls.FloorPlan(ls.regions.split_evenly(ls.Region.of_shape((400, 300)), (1, 5)), [0] * 5)
    u, v = ls.XArray(rows, float), ls.XArray(columns, float)
    u[0][...] = np.arange(u[0].size).reshape(u[0].shape)
    mover = ls.BlockPlan.copy_between(rows, columns).bind(u, v, threads=2, proxy=proxy)
    other_errors, refused = [], []

    def use(seed):
        choose = random.Random(seed)
        for _ in range(300):
            try:
                choose.choice([mover.start, mover.test, mover.wait, mover])()
            except ls.ArgumentError as error:
                refused.append(str(error))
            except BaseException as error:
                other_errors.append(error)

    threads = [threading.Thread(target=use, args=[seed]) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not other_errors and refused
    try:
        mover.wait()
    except ls.ArgumentError as error:
        assert "without start()" in str(error)
    mover()
    for k, region in enumerate(columns):
        np.testing.assert_array_equal(v[k], u[0][region.slices(ls.Region.of_shape((400, 300)))])


@pytest.mark.parametrize("dtype", ["f8", "datetime64[s]"])  # NumPy lends no buffer of dates
def test_arrays_resized_after_binding(dtype):
    parts, out = [np.zeros((3, 4), dtype) for _ in range(2)], [np.zeros((6, 2), dtype) for _ in range(2)]
    mover = bind(parts, out, dtype)
    mover()
    out[1].resize((6000, 2), refcheck=False)
    with pytest.raises(
        ls.LocalArrayError, match=r"destination array of rank 1 was resized from \(6, 2\) to \(6000, 2\) since"
    ):
        mover.start()
    parts[0].resize((3000, 4), refcheck=False)
    with pytest.raises(ls.LocalArrayError, match=r"source array of rank 0 was resized"):
        mover()
    blocks = ls.FloorPlan.even(ls.Region.of_shape((6, 4)), 2)
    own = [np.zeros(region.grow(1).shape, dtype) for region in blocks]
    halo = ls.BlockPlan.halo(blocks, 1).bind(own, ghost=1)
    own[1].resize((5000, 6), refcheck=False)
    with pytest.raises(ls.LocalArrayError, match=r"array of block 1 was resized"):
        halo()


def test_descriptors():
    good = [1, 0, 100, 80, 16, 8, 0, 0, 52]
    layout = ls.Layout.from_descriptor(good, grid=(2, 2))
    assert layout.to_descriptor(0) == tuple(good)
    for entry, value, name in [(0, 2, "DTYPE_"), (2, -1, "M_"), (4, 0, "MB_"), (6, 2, "RSRC_"), (8, 0, "LLD_")]:
        bad = list(good)
        bad[entry] = value
        with pytest.raises(ls.LayoutError, match=name):
            ls.Layout.from_descriptor(bad, grid=(2, 2))
    with pytest.raises(ls.ArgumentTypeError, match=r"descriptor\[8\] is 52.5"):
        ls.Layout.from_descriptor([*good[:8], 52.5], grid=(2, 2))
    with pytest.raises(ls.LayoutError, match="order=F"):
        SOURCE.to_descriptor(0)


# As a user who may have one process; root may have any number.
FEW_THREADS = """
import os, resource
import numpy as np, longshore as ls
from longshore import _core

src, dst = ls.Layout("(BLOCK, *) on 2", (64, 64)), ls.Layout("(*, BLOCK) on 2", (64, 64))
plan, parts = ls.plan(src, dst, "float64"), ls.scatter(np.arange(4096.0).reshape(64, 64), src)
moved = [ls.empty(dst, "float64", rank=rank) for rank in dst.ranks]
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
for start in (lambda: plan.bind(parts, moved, proxy=True), lambda: _core.measure_kernels(2, 0.1)):
    try:
        start()
    except ls.TransportError as error:
        print(error)
plan.bind(parts, moved, threads=4)()  # by fewer
print((ls.gather(moved, dst) == np.arange(4096.0).reshape(64, 64)).all())
"""


def test_threads_that_cannot_be_started_are_named():
    done = subprocess.run([sys.executable, "-c", FEW_THREADS], capture_output=True, text=True)
    proxy, kernels, right = done.stdout.splitlines()
    assert "for the proxy of a mover: " in proxy and "ulimit -u" in proxy and "bind without proxy" in proxy
    assert "ulimit -u" in kernels and "ask for fewer threads" in kernels
    assert right == "True" and done.stderr == ""


MASKED = np.ma.masked_greater(np.arange(24.0).reshape(6, 4), 5.0)
PLAIN = [MASKED.data[:3], MASKED.data[3:]]


@pytest.mark.parametrize(
    "call",
    [
        lambda parts: ls.scatter(MASKED, SOURCE),
        lambda parts: ls.gather(parts, SOURCE),
        lambda parts: ls.gather(PLAIN, SOURCE, out=MASKED.copy()),
        lambda parts: ls.redistribute(parts, SOURCE, DESTINATION, out=ls.empty(DESTINATION, "f8")),
        lambda parts: bind(parts),
        lambda parts: bind(PLAIN, [np.ma.masked_less(np.zeros((6, 2)), 1.0) for _ in range(2)]),
        lambda parts: ls.save(parts, SOURCE, "a.npy"),
        lambda parts: ls.Window(parts),
        lambda parts: ls.scatter(MASKED, ls.XArray(ls.FloorPlan.even(ls.Region((0, 0), (6, 4)), 2), float)),
    ],
)
def test_a_mask_is_not_left_behind_in_silence(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A call with the same memory, without the mask, is remembered.
    ls.redistribute(PLAIN, SOURCE, DESTINATION, out=ls.empty(DESTINATION, "f8"))
    with pytest.raises(ls.ArgumentError, match=r"has a mask, which does not move with its elements; give its .filled"):
        call([MASKED[:3], MASKED[3:]])
    assert not any(tmp_path.iterdir())


def test_an_array_that_could_have_a_mask_and_has_none_moves():
    parts = ls.scatter(np.ma.array(MASKED.data), SOURCE)
    assert (np.concatenate(parts) == MASKED.data).all()
