"""`longshore bench assembly` at tiny sizes, its patterns against the library's relations, and its children."""

import dataclasses
import io
import json
import sys

import longshore_lab.run
import numpy as np
import pytest
from longshore._core import kernel_tables, kernels_name
from longshore_lab import BENCHES, BenchError, assembly
from longshore_lab.assembly import packers
from longshore_lab.assembly.contenders import (
    HAND,
    INDEXING,
    MEMCPY,
    NAIVE,
    SYMBOLS,
    VIEWS,
    Arena,
    Preparer,
    applies,
    ours,
)
from longshore_lab.assembly.patterns import DIRECTIONS, KINDS, Nest, make_pattern
from longshore_lab.protocol import WrongResult
from rich.console import Console

SECONDS = {"seconds_median", "seconds_min", "seconds_max"}
FIELDS = SECONDS | {"case", "contender", "repeats", "payload_bytes", "ranks", "threads"}
TINY = {key: 32 if key.startswith("R") else 6 for key in KINDS}


def run(width=160, **options):
    out = io.StringIO()
    result = BENCHES["assembly"].run(True, console=Console(file=out, width=width), **{"repeats": 2, **options})
    return result, out.getvalue()


def without_mpi(monkeypatch):
    missing = [{"contender": name, "why": "no MPI here", "cases": []} for name in packers.PACKERS]
    monkeypatch.setattr(packers, "start", lambda given: ({}, missing))


def check(result):
    for row in result["rows"]:
        assert FIELDS <= row.keys()
        assert 0 < row["seconds_min"] <= row["seconds_median"] <= row["seconds_max"]
        assert row["ranks"] == row["threads"] == 1
        if row["payload_bytes"]:
            assert (
                row["verified"]
                and row["hand_ratio"] > 0
                and row["case"] == f"{row['pattern']} {row['n']} {row['direction']}"
            )
    for m in result["missing"]:
        assert "WRONG" not in m["why"], m


def test_it_is_registered():
    assert BENCHES["assembly"].description


@pytest.mark.parametrize("key", KINDS)
def test_the_formulas_and_the_relation_say_the_same(key):
    pattern = make_pattern(key, TINY[key])
    pairs = pattern.relation().pairs()
    of_relation = pattern.relation().element_bytes
    for column, direction in enumerate(DIRECTIONS):
        assert np.array_equal(pairs[:, column], pattern.side(direction).indices(of_relation) * of_relation)
    assert len(np.unique(pairs[:, 1])) == len(pairs)


def test_the_paper_s_sizes():
    for key in ("R1", "R2", "R3", "R4"):
        assert len(make_pattern(key, 1024).relation()) == 65536


@pytest.mark.parametrize("key", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_everybody_is_right_and_the_check_sees_who_is_not(key, direction):
    import longshore as ls

    pattern = make_pattern(key, TINY[key])
    arena = Arena(pattern)
    preparer = Preparer(arena)
    for name in (MEMCPY, HAND, NAIVE, INDEXING, VIEWS, SYMBOLS, *map(ours, ls.encoding_kinds())):
        if not applies(name, pattern):
            continue
        prepared = preparer.prepare(name, direction)
        arena.refresh(direction)
        with pytest.raises(WrongResult, match="^WRONG RESULT"):
            prepared.check()
        assert prepared.seconds(1) > 0
        assert arena.wrong(direction, prepared.words) == ""
    to, _ = arena.ends(direction)
    to[-1 if direction == "assembly" else 0] ^= 1
    assert "word" in arena.wrong(direction)


def test_nests_merge_to_the_same_bytes():
    nest = Nest(8, ((2, 640), (3, 64), (4, 16), (2, 8)), 24)
    merged = nest.merged()
    assert merged == Nest(192, ((2, 640),), 24)
    assert Nest(8, ((5, 80), (10, 8))).merged() == Nest(400)
    assert Nest(8, ((5, 160), (10, 16))).merged() == Nest(8, ((50, 16),))
    words = [np.add.outer(n.offsets(), np.arange(0, n.block, 8)).ravel() for n in (nest, merged)]
    assert np.array_equal(*words)


def test_json_tables_and_plot(monkeypatch, tmp_path):
    without_mpi(monkeypatch)
    result, text = run(sizes=[16], json=tmp_path / "a.json", plot=tmp_path / "a.png")
    check(result)
    assert json.loads((tmp_path / "a.json").read_text()) == result
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert result["bench"] == "assembly" and result["version"] and result["machine"]["mpi"] is None
    moved = [r for r in result["rows"] if r["payload_bytes"]]
    assert {(r["pattern"], r["direction"]) for r in moved} == {(key, d) for key in KINDS for d in DIRECTIONS}
    for row in moved:
        if row["contender"].startswith("longshore") and row["contender"] != SYMBOLS:
            assert (
                row["encoded_bytes"] > 0
                and row["compile_seconds"] > 0
                and row["workspace_bytes"] >= 0
                and row["detail"]
            )
    # Nobody is left out silently.
    assert {m["contender"] for m in result["missing"]} >= set(packers.PACKERS) and "no MPI here" in text
    assert {s["case"] for s in result["sizes"]} == {"R1", "R2", "R3", "R4"}
    assert {s["encoded_bytes"] for s in result["sizes"] if s["kind"] == "aapair"} == {16 * 65536}
    assert "Aims" in text and "encode R1 1024" in {r["case"] for r in result["rows"]}


def test_a_page_holds_every_row(monkeypatch, tmp_path):
    without_mpi(monkeypatch)
    result, _ = run(sizes=[16], cases=["R4"], plot=tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "<svg" in page and all(r["contender"] in page for r in result["rows"])


def test_every_table_of_kernels_is_measured_where_asked(monkeypatch):
    without_mpi(monkeypatch)
    result, text = run(sizes=[128], cases=["R4"], contenders=["longshore nest", INDEXING], tables=True)
    check(result)
    timed = {(r["table"], r["contender"]) for r in result["rows"] if r["payload_bytes"]}
    for table in kernel_tables():
        assert {(table, who) for who in ("longshore nest", MEMCPY, HAND)} <= timed and f"{table} kernels: GB/s" in text
    assert [table for table, who in timed if who == INDEXING] == [kernels_name()]
    others = [aim for aim in result["aims"] if "kernels:" in aim["aim"]]
    assert len({aim["aim"].split()[0] for aim in others}) == len({*kernel_tables()} - {kernels_name(), "plain"})
    assert all(aim["measured"] == 2 and "R4 128" in aim["where"] for aim in others)


def test_contenders_can_be_chosen(monkeypatch):
    monkeypatch.setattr(packers, "start", lambda given: pytest.fail("no child is wanted"))
    result, _ = run(sizes=[16], cases=["lu-y", "specfem-cm"], contenders=[INDEXING])
    assert {r["contender"] for r in result["rows"] if r["payload_bytes"]} == {MEMCPY, HAND, INDEXING}


@pytest.mark.parametrize(
    "options, words",
    [
        ({"cases": ["R5"]}, "no case 'R5'"),
        ({"contenders": ["teleport"]}, "no contender 'teleport'"),
        ({"sizes": [1]}, "sizes"),
        ({"sizes": [20], "cases": ["R1"]}, "multiples of 16"),
        ({"repeats": 0}, "repeats"),
        ({"plot": "a.pdf"}, "a.pdf"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(BenchError, match=words):
        run(**options)


def test_sizes_beyond_memory_are_named_not_tried(monkeypatch):
    without_mpi(monkeypatch)
    monkeypatch.setattr(longshore_lab.run, "available_memory", lambda: 10**5)
    result, _ = run(sizes=[16, 256], cases=["fft"])
    assert {r["n"] for r in result["rows"] if r["payload_bytes"]} == {16}
    assert [m for m in result["missing"] if m["contender"] == "all" and "memory" in m["why"]]


def test_aims_are_judged_by_the_worst_row():
    row = {"payload_bytes": 8, "pattern": "R4", "direction": "disassembly", "n": 2048, "contender": "longshore nest"}
    rows = [
        {**row, "case": "R4 2048 disassembly", "hand_ratio": r, "naive_ratio": 4.0, "mpi_ratio": None}
        for r in (2.0, 0.5)
    ]
    told = {aim["aim"].split(",")[0]: aim for aim in assembly.judge(rows)}
    assert told["R1 to R4 from 1024² on"]["met"] is False and told["R1 to R4 from 1024² on"]["reached"] == 0.5
    assert len(told["R1 to R4 from 1024² on"]["short"]) == 1
    assert told["R4 disassembly from 1024² on"]["met"] is True
    assert told["everything"]["met"] is None and told["encoding pairs"]["met"] is None


def test_tables_say_where_nothing_can_be_won(monkeypatch):
    without_mpi(monkeypatch)
    monkeypatch.setitem(KINDS, "fft", dataclasses.replace(KINDS["fft"], bound={"assembly": 16}))
    _, text = run(sizes=[8, 16], cases=["fft"], contenders=["longshore nest"])
    (line,) = [line.split() for line in text.splitlines() if "(nothing to win)" in line]
    assert line == ["(nothing", "to", "win)", "memory"]  # the larger assembly, and no disassembly


@pytest.mark.parametrize("copy, noise, memcpy", [(2.5, 0, 1), (3.5, 1, 0)])
def test_what_a_memory_copy_does_not_reach_is_told_apart(copy, noise, memcpy):
    row = {"payload_bytes": 8, "pattern": "fft", "direction": "assembly", "n": 64, "case": "fft 64 assembly"}
    rows = [{**row, "contender": "longshore nest", "mpi_ratio": 1.5}, {**row, "contender": "memcpy", "mpi_ratio": copy}]
    told = next(aim for aim in assembly.judge(rows) if aim["aim"].startswith("transposes"))
    assert (told["met"], told["beyond_noise"], told["beyond_memcpy"]) == (False, noise, memcpy)


# --- children --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packer():
    pytest.importorskip("mpi4py")
    try:
        child = packers.Packer(sys.executable)
    except packers.PackerError as error:
        pytest.skip(f"no MPI: {error}")
    yield child
    child.close()


@pytest.mark.parametrize("key", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_mpi_packs_what_the_relation_says(packer, key, direction):
    packer.ask("case", key=key, n=TINY[key])
    assert packer.ask("prepare", direction=direction)["detail"]
    packer.ask("check", direction=direction)  # raises where the result is wrong
    assert packer.ask("time", direction=direction, warm=True, passes=3)["seconds"] > 0


def test_a_child_says_why_it_cannot_and_goes_on(packer):
    with pytest.raises(packers.PackerError, match="no case 'R9'"):
        packer.ask("case", key="R9", n=16)
    assert packer.ask("hello")["library"] == packer.library


def test_mpi_takes_its_turn_among_the_others(packer):
    result, text = run(sizes=[16], cases=["R2", "lammps"], contenders=packers.PACKERS)
    check(result)
    assert packer.name in {r["contender"] for r in result["rows"]} and packer.name in text
    assert packer.library in result["machine"]["mpi"]
    ratios: dict[str, list[float]] = {}  # of the MPIs there are, in every case: the faster one is what the ratio is to
    for row in result["rows"]:
        if row["contender"] in packers.PACKERS:
            ratios.setdefault(row["case"], []).append(row["mpi_ratio"])
    assert ratios and all(pytest.approx(1.0) in some for some in ratios.values())


def test_an_interpreter_without_the_library_is_a_reason(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'Error: nothing here' >&2\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(packers.PackerError, match="code 3: Error: nothing here"):
        packers.Packer(str(python))
    monkeypatch.setattr(packers, "interpreters", lambda given: [str(python), str(tmp_path / "none")])
    found, missing = packers.start()
    assert found == {} and {m["contender"] for m in missing} == set(packers.PACKERS)
    assert "nothing here" in missing[0]["why"]


def test_environments_beside_this_one_are_found(tmp_path, monkeypatch):
    for name in (".venv", ".venv-openmpi", ".venvx", "other"):
        (tmp_path / name / "bin").mkdir(parents=True)
        python = tmp_path / name / "bin" / "python"
        python.write_text("")
        python.chmod(0o755)
    for mine, other in ((".venv", ".venv-openmpi"), (".venv-openmpi", ".venv")):
        monkeypatch.setattr(sys, "prefix", str(tmp_path / mine))
        assert packers.interpreters()[1:] == [str(tmp_path / other / "bin" / "python")]
    assert packers.interpreters(["/some/python"])[1:] == ["/some/python"]
