"""The halo bench from end to end at tiny sizes, and everybody who takes part in it at many shapes."""

import io
import json
import subprocess
import sys

import longshore_lab.run
import pytest
from longshore._core import kernel_tables, kernels_name
from longshore_lab import BENCHES, BenchError, launch
from longshore_lab.halo import AT_ONCE, COPY, MEMCPY, NAMES, PHASES, HaloCase, every_case, petsc
from longshore_lab.halo.petsc import PETSC
from rich.console import Console

FIELDS = {
    "case",
    "contender",
    "seconds_median",
    "seconds_min",
    "seconds_max",
    "repeats",
    "payload_bytes",
    "ranks",
    "threads",
}


def _loops_are_there():
    """Whether this environment has MPI and the bench's loops for
    it. Asked of another process: here MPI must not be loaded."""
    program = (
        "from longshore_lab.halo import loops\nfrom longshore_lab.launch import find_launcher\nfind_launcher(), loops()"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


needs_loops = pytest.mark.skipif(not _loops_are_there(), reason="no MPI in this environment, or no loops built for it")


@pytest.fixture
def no_petsc(monkeypatch):
    monkeypatch.setattr(petsc, "_interpreters", lambda: iter(()))


@pytest.fixture
def no_mpi(monkeypatch):
    monkeypatch.setattr(launch, "find_mpi", lambda mpiexec: (None, {}, "no MPI here"))


def run(width=130, **options):
    out = io.StringIO()
    result = BENCHES["halo"].run(
        True, console=Console(file=out, width=width), **{"sizes": [12], "repeats": 2, **options}
    )
    return result, out.getvalue()


def test_it_is_registered():
    assert BENCHES["halo"].description


def test_cases_are_those_of_the_aims():
    cases = every_case(256, 2)
    assert len({case.key for case in cases}) == len(cases) == 16
    assert {(c.points, c.width, c.boxes**3, c.axis) for c in cases} == {
        (points, width, boxes, axis) for points in (7, 27) for width in (1, 3) for boxes in (1, 64) for axis in "xz"
    }


def test_without_mpi_planning_remains_and_the_reason_is_told(no_mpi, no_petsc, tmp_path):
    result, text = run(json=tmp_path / "h.json")
    assert json.loads((tmp_path / "h.json").read_text()) == result
    assert result["bench"] == "halo" and result["version"] and result["machine"]["mpi"] is None
    assert {m["contender"] for m in result["missing"]} == set(NAMES)
    assert {m["why"] for m in result["missing"]} == {
        "no MPI here",
        "petsc4py is not installed (Debian: python3-petsc4py)",
    }
    assert "no MPI here" in text and "plan 4096 boxes" in text
    (plan,) = result["rows"]
    assert FIELDS <= plan.keys() and plan["contender"] == "longshore plan" and 0 < plan["plan_bytes"] < 1 << 20


@needs_loops
@pytest.mark.parametrize("ranks", (1, 2))
def test_everybody_is_verified_and_timed(ranks, no_petsc):
    result, text = run(ranks=ranks)
    mine = [name for name in NAMES if name not in PETSC]
    assert {m["contender"] for m in result["missing"]} == set(PETSC), result["missing"]
    for case in every_case(12, ranks):
        rows = [row for row in result["rows"] if row["case"] == case.key]
        assert [row["contender"] for row in rows] == [
            name for name in mine if case.points == 27 or name not in (PHASES, AT_ONCE)
        ]
        for row in rows:
            assert FIELDS <= row.keys() and row["verified"] and row["ranks"] == ranks and row["repeats"] == 2
            assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
            assert row["payload_bytes"] == case.payload_bytes
            assert row["copy_ratio"] == pytest.approx(row["seconds_median"] / rows[0]["seconds_median"])
    assert [row["case"] for row in result["rows"] if row["contender"] == "longshore bind"] == [
        "plan and bind 1 boxes a rank",
        "plan and bind 64 boxes a rank",
    ]
    assert result["mpi"]["library"] and "one box of 12³ a rank" in text and "64 boxes of 3³ a rank" in text


@needs_loops
def test_every_table_of_kernels_is_measured_where_asked(no_petsc):
    contenders = ["longshore mpi", "hand-packed"]
    result, text = run(cases=["7-point-1-1-x"], contenders=contenders, repeats=1, tables=True)
    timed = {(r["table"], r["contender"]) for r in result["rows"] if r["payload_bytes"]}
    for table in kernel_tables():
        assert {(table, who) for who in (COPY, MEMCPY, "longshore mpi")} <= timed and f"{table} kernels" in text
    assert [table for table, who in timed if who == "hand-packed"] == [kernels_name()]


@needs_loops
@pytest.mark.parametrize("suffix", ("png", "svg", "html"))
def test_the_plot_appears(suffix, no_petsc, tmp_path):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"h.{suffix}"
    result, _ = run(cases=["7-point-1-1-z"], contenders=["hand-packed"], plot=target, width=60)
    moved = [row for row in result["rows"] if row["payload_bytes"]]
    assert [row["contender"] for row in moved] == [COPY, MEMCPY, "hand-packed"]
    content = target.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!DOCTYPE html>"}[suffix])
    if suffix == "html":
        assert b"<svg" in content and b"every row" in content


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cases": ["5-point"]}, "no case '5-point'"),
        ({"contenders": ["teleport"]}, "no contender 'teleport'"),
        ({"sizes": [13]}, "multiples of 4"),
        ({"sizes": [8]}, "at least 12"),
        ({"sizes": [1028]}, "at most 2048"),
        ({"repeats": 0}, "repeats"),
        ({"ranks": 0}, "ranks"),
        ({"mpiexec": "no-such-mpiexec"}, "mpiexec"),
        ({"plot": "p.pdf"}, "p.pdf"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(BenchError, match=words):
        run(**options)


def test_sizes_beyond_memory_are_named_not_tried(no_mpi, no_petsc, monkeypatch):
    monkeypatch.setattr(longshore_lab.run, "available_memory", lambda: 10**5)
    result, _ = run()
    (missing,) = [m for m in result["missing"] if m["contender"] == "all"]
    assert len(missing["cases"]) == 16 and "memory" in missing["why"]


def test_a_contender_that_takes_the_run_down_is_named_and_the_others_go_on():
    calls = []

    def start(left, names):
        calls.append((list(left), list(names)))
        if "bad" in names:
            return launch.ChildEnd(
                {"done": ["one 8"], "rows": [{"case": "one"}]}, "two 8/bad/in turn", "ended with code -11"
            )
        return launch.ChildEnd({"done": left, "rows": [{"case": "two"}], "finished": True}, "", None)

    rows, missing = launch.run_until_done(start, ["one 8", "two 8"], ["bad", "good"])
    assert calls == [(["one 8", "two 8"], ["bad", "good"]), (["two 8"], ["good"])]
    assert rows == [{"case": "one"}, {"case": "two"}]
    assert missing == [{"contender": "bad", "why": "the run ended with code -11", "cases": ["two 8"]}]


# --- those who take part ---------------------------------------------------------------------------------------------

_EVERYBODY = """
import itertools
from mpi4py import MPI
from longshore_lab.halo import loops

comm = MPI.COMM_WORLD
world = comm.handle
module, tried = loops(), 0
for axis, boxes, width, corners in itertools.product(range(3), (1, 2, 3), (1, 2, 3, 4), (True, False)):
    if width > 12 // boxes:
        continue
    problem = module.Problem.of(comm.size, axis, 12, boxes, width, corners)
    ordinary, shared = module.Boxes(problem, comm.rank), module.Boxes.shared(problem, world)
    ways = [module.Way(*way) for way in itertools.product((False, True), repeat=2)]
    persistent = (False, True) if module.has_persistent_collectives() else (False,)
    exchanges = [(ordinary, module.hand_packed(ordinary, world, way)) for way in ways]
    exchanges += [(ordinary, module.neighbor_alltoallw(ordinary, world, way, p)) for way in ways for p in persistent]
    exchanges += [(b, module.longshore_mover(b, world, proxy)) for b in (ordinary, shared) for proxy in (False, True)]
    for cells, exchange in exchanges:
        cells.spoil()
        for _ in range(2):
            cells.fill()
            assert cells.check()  # the ghost cells are nothing, then stale
            comm.Barrier()
            exchange.run()
            assert not cells.check(), (axis, boxes, width, corners, cells.check())
        tried += 1
    del exchanges, exchange
print("tried", tried)
"""

_CHECKS = """
import pytest
from mpi4py import MPI
import longshore as ls
from longshore_lab.halo import loops

world, module = MPI.COMM_WORLD.handle, loops()
for wrong, words in [((0, 0, 8, 1, 1), "at least 1"), ((1, 3, 8, 1, 1), "dimension 0, 1 or 2"),
                     ((1, 0, 8, 3, 1), "divide"), ((1, 0, 8, 4, 3), "narrower"), ((2, 0, 1028, 1, 1), "2048")]:
    with pytest.raises(ls.ArgumentError, match=words):
        module.Problem.of(*wrong, True)

faces, whole = (module.Boxes(module.Problem.of(1, 0, 8, 1, 1, corners), 0) for corners in (False, True))
assert (whole.ghost_bytes, faces.ghost_bytes) == (8 * (10**3 - 8**3), 8 * 6 * 8**2)
way = module.Way(False, False)
for boxes in (faces, whole):
    exchange = module.hand_packed(boxes, world, way)
    boxes.spoil(), boxes.fill(), exchange.run()
    assert boxes.check() == ""
    boxes.spoil()
    assert "(-1, -1, -1): nan" in boxes.check() if boxes is whole else "(0, 0, -1): nan" in boxes.check()
    exchange.run()
    boxes.fill()
    assert "where" in boxes.check()
print("checked")
"""


def _launch(tmp_path, program, ranks):
    launcher = launch.find_launcher()
    script = tmp_path / "program.py"
    script.write_text(program)
    words = [*launcher.arguments(ranks), sys.executable, script]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=240, env=launch.child_environment(), check=False
    )


@needs_loops
@pytest.mark.parametrize("ranks", (1, 3))
def test_everybody_fills_the_ghost_cells_of_every_shape(tmp_path, ranks):
    done = _launch(tmp_path, _EVERYBODY, ranks)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tried") == ranks


@needs_loops
def test_what_is_wrong_is_seen(tmp_path):
    done = _launch(tmp_path, _CHECKS, 1)
    assert done.returncode == 0 and "checked" in done.stdout, done.stderr


# --- PETSc -----------------------------------------------------------------------------------------------------------


def _petsc(cases, names=PETSC):
    return petsc.measure(cases, names, 2, 60.0, lambda step: None)


def test_petsc_is_verified_in_a_run_of_its_own():
    if isinstance(why := petsc._find(2), str):
        pytest.skip(why)
    cases = [HaloCase(points, width, 1, axis, 12) for points in (7, 27) for width in (1, 3) for axis in "xz"]
    rows, missing = _petsc([*cases, HaloCase(27, 1, 4, "x", 12)])
    assert not missing
    assert [(row["case"], row["contender"]) for row in rows] == [(case.key, name) for case in cases for name in PETSC]
    for row in rows:
        assert FIELDS <= row.keys() and row["verified"] and row["own_run"] and "PETSc" in row["detail"]


def test_petsc_is_missing_where_nobody_has_it(no_petsc):
    rows, missing = _petsc([HaloCase(7, 1, 1, "x", 12)])
    assert rows == [] and [m["contender"] for m in missing] == list(PETSC) and "not installed" in missing[0]["why"]
    assert _petsc([HaloCase(7, 1, 1, "x", 12)], ["hand-packed"]) == ([], []) == _petsc([HaloCase(7, 1, 4, "x", 12)])


def test_an_interpreter_whose_petsc_does_not_run_is_told(monkeypatch):
    monkeypatch.setattr(petsc, "_interpreters", lambda: iter([(sys.executable, {})]))
    monkeypatch.setattr(petsc, "_launchers", lambda python: ["sh"])
    monkeypatch.setattr(petsc, "find_launcher", lambda mpiexec: launch.Launcher(("sh", "-c", "exit 3"), "unknown"))
    why = petsc._find(2)
    assert isinstance(why, str) and "ended with code 3" in why
