"""`longshore bench chained` from end to end at tiny sizes, and what its contenders are made of."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from launch import families
from launch import launch as start
from longshore import tune
from longshore_lab import BENCHES, BenchError, chained, launch
from longshore_lab.chained.contenders import CHAINED, CONTENDERS, PACKED, RING, Exchange, _copier, staged
from longshore_lab.chained.steps import PATTERNS, Places, Sides, Step, _kernel
from longshore_lab.protocol import Context, Missing, WrongResult
from rich.console import Console

TINY = {"transpose": 37, "fem": 300, "sor": 20} | dict.fromkeys(PATTERNS, 50)


def run(**options):
    out = io.StringIO()
    options = {"repeats": 2, **options}
    result = BENCHES["chained"].run(True, console=Console(file=out, width=160), **options)
    return result, out.getvalue()


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(chained, "QUICK_SIZES", TINY)


def _has_mpi():
    try:
        launch.find_launcher()
    except BenchError:
        return False
    return True


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI in this environment")


def test_without_mpi_everybody_is_missing(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))
    result, text = run()
    assert result["rows"] == [] and "no MPI here" in text
    assert {m["contender"] for m in result["missing"]} == {contender.name for contender in CONTENDERS}


@needs_mpi
@pytest.mark.parametrize("ranks", (2, 3, 4))
def test_everybody_is_verified_and_timed(ranks, tiny, tmp_path):
    pytest.importorskip("scipy")
    pytest.importorskip("pymetis")
    result, text = run(ranks=ranks, json=tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == result
    assert result["missing"] == []
    rows = {(row["case"], row["contender"]): row for row in result["rows"]}
    assert rows.keys() == {(key, contender.name) for key in TINY for contender in CONTENDERS}
    sent = {"transpose": 16 * 37**2, "sor": 8 * 20 * 2 * (ranks - 1)} | dict.fromkeys(PATTERNS, 8 * 50 * ranks)
    for (key, contender), row in rows.items():
        assert row["verified"] and row["ranks"] == ranks and 0 < row["seconds_min"] <= row["seconds_median"]
        assert row["payload_bytes"] == sent.get(key, rows["fem", CHAINED]["payload_bytes"]) > 0
        assert row["rate"] == pytest.approx(row["payload_bytes"] / ranks / row["seconds_median"] / 1e6)
        if contender == CHAINED:
            assert "straight" in row["detail"] and row["chained_ratio"] == 1 and not staged(row["detail"], 0)
        if contender == RING:
            assert "rings" in row["detail"] and staged(row["detail"], 0)
    assert "access patterns, MB/s" in text and "kernels, MB/s" in text and "model" not in text
    cores = len(launch.os.sched_getaffinity(0))
    assert (f"{ranks} ranks on {cores} cores" in text) == (ranks > cores)


@needs_mpi
@pytest.mark.parametrize("suffix", ("png", "html"))
def test_the_plot_appears(suffix, tiny, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"c.{suffix}"
    run(cases=["1Q16", "sor"], contenders=[CHAINED, PACKED[1]], plot=target)
    assert target.read_bytes().startswith({"png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[suffix])


@needs_mpi
def test_calibrated_machines_have_predictions(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("LONGSHORE_PROFILE", str(tmp_path / "none"))
    assert not any("seconds_predicted" in row for row in run(cases=["1Q16"], contenders=[CHAINED])[0]["rows"])
    path = tune.MachineProfile(tune.coarse_profile().facts | {"coarse": False}).save(tmp_path / "profile.json")
    monkeypatch.setenv("LONGSHORE_PROFILE", str(path))
    result, text = run(cases=["1Q16", "sor", "transpose"])
    for row in result["rows"]:
        assert (row.get("seconds_predicted", 0) > 0) == row["contender"].startswith("longshore"), row
    assert "model" in text


@needs_mpi
def test_predictions_are_shown_where_they_are(tiny):
    pytest.importorskip("matplotlib")
    result, _ = run(cases=["16Q64"])
    for row in result["rows"]:
        row["seconds_predicted"] = row["payload_bytes"] / row["ranks"] / 123e6
    bench = chained.Chained(True)
    bench.finish(result)
    table = next(iter(bench.tables(result)))
    assert list(table.headings).count("model") == 2 and table.lines[0].count("123") == 2
    assert sum(len(panel.lines) for panel in bench.figure(result).axes) == len(CONTENDERS)


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    monkeypatch.delitem(sys.modules, "longshore_lab.kernels.fem", raising=False)
    with pytest.raises(Missing, match=r"longshore-lab\[mesh\]"):
        _kernel("fem")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cases": ["3Q3"]}, "no case '3Q3'"),
        ({"contenders": ["teleport"]}, "no contender 'teleport'"),
        ({"ranks": 1}, "two ranks"),
        ({"repeats": 0}, "repeats"),
        ({"mpiexec": "no-such-mpiexec"}, "mpiexec"),
        ({"plot": "p.pdf"}, "p.pdf"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(BenchError, match=words):
        run(**options)


def test_what_is_staged_is_not_chained():
    straight = "64 bytes copied within the process\n64 bytes read straight from the arrays of processes on this node"
    assert staged(straight, 0) == ""
    assert "8 bytes of buffers" in staged(straight, 8)
    assert "rings" in staged(f"{straight}\n8 bytes sent through shared-memory rings", 0)
    assert "MPI messages" in staged("8 bytes received in MPI messages", 0)


_ORDINARY = """
import numpy as np
from longshore_lab.chained import ChainedCase, contenders, steps
from longshore_lab.protocol import Context
from mpi4py import MPI

comm, case = MPI.COMM_WORLD, ChainedCase("1Q16", 50)
context = Context(comm, comm.size, comm.rank)
step = steps.step_of(context, case)
assert not isinstance(contenders.CONTENDERS[0].enter(context, case), str)
step.arrays = tuple([np.zeros(block.shape)] for array in step.arrays for block in array)
print(contenders.CONTENDERS[0].enter(context, case))
"""


@needs_mpi
def test_arrays_that_are_not_shared_are_refused(tmp_path):
    program = tmp_path / "ordinary.py"
    program.write_text(_ORDINARY)
    done = start(families()[0], 2, program)
    assert done.returncode == 0 and "not chained: 400 bytes sent in MPI messages" in done.stdout, done


def test_places_are_those_of_a_view():
    array = np.arange(60.0).reshape(6, 10)
    view = array[1:5:2, ::3].T
    places = Places.of(view, array)
    assert (places.indices() == view.ravel()).all() and places.size == view.size
    assert (places.turned().indices() == view.T.ravel()).all()
    assert np.shares_memory(places.view(array.reshape(-1)), array) and (places.view(array.reshape(-1)) == view).all()
    assert (places.dense().indices() == np.arange(view.size)).all() and places.dense().extents == view.shape
    listed = Places(listed=np.array([7, 2, 9]))
    assert listed.view(array) is None and listed.turned() == listed and listed.dense() == Places(0, (3,), (1,))


@pytest.mark.parametrize("kernels, tile", [(True, 0), (False, 0), (False, 2)])
def test_messages_are_packed_and_unpacked(kernels, tile):
    source, listed = np.arange(60.0), np.random.default_rng(1).permutation(60)[:20]
    for places in (Places(3, (5, 4), (8, 2)), Places(0, (5, 4), (1, 10)), Places(listed=listed)):
        message, found, expected = np.zeros(20), np.zeros(60), np.zeros(60)
        _copier(places, source, places.dense(), message, tile, kernels)()
        assert (message == source[places.indices()]).all()
        _copier(places.dense(), message, places, found, tile, kernels)()
        expected[places.indices()] = message
        assert (found == expected).all()


def test_a_wrong_result_is_seen():
    source, destination = np.zeros(4), np.zeros(6)
    numbers = Sides(np.array([10.0, np.nan, 11, np.nan]), np.array([np.nan, 10, np.nan, 11, np.nan, np.nan]))
    of, to = Places(0, (2,), (2,)), Places(1, (2,), (2,))
    context = Context(SimpleNamespace(allreduce=lambda x: x, allgather=lambda x: [x], Barrier=lambda: None))
    context.shared["step"] = Step(None, (source, destination), of, numbers, {0: of}, {0: to})

    def why(run):
        return Exchange(context, chained.ChainedCase("1Q1", 2), run).verify(context)

    right = _copier(of, source, to, destination)
    assert why(right) == ""
    assert why(lambda: None) == "WRONG RESULT: element 1: nan where 12.0 belongs"
    assert why(lambda: destination.fill(12.0)) == "WRONG RESULT: element 0: 12.0 where nan belongs"
    exchange = Exchange(context, chained.ChainedCase("1Q1", 2), right)
    assert exchange.facts == {"payload_bytes": 16}
    exchange.spoil()
    right()
    exchange.check()
    exchange.refresh()
    with pytest.raises(WrongResult, match="element 1: 10.0 where 11.0 belongs"):
        exchange.check()
