"""What a bench prints and writes."""

import io
import json
import socket

import pytest
from longshore_lab import BENCHES, BenchError, machine, report
from longshore_lab.machine import summary
from rich.console import Console


def _row(contender, seconds, case="transpose", n=64, **more):
    row = {"case": case, "n": n, "shape": [n, n], "dtype": "float64"}
    row |= {"from": "(BLOCK, *) on 2", "to": "(BLOCK, *) on 2", "axes": [1, 0], "contender": contender, "table": "avx2"}
    row |= {"seconds_median": seconds, "seconds_min": seconds * 0.9, "seconds_max": seconds * 1.2, "repeats": 3}
    row |= {"payload_bytes": 8 * n * n, "ranks": 2, "processes": 2}
    return row | {"threads": 1, "detail": "", "verified": True, "copy_ratio": seconds / 1e-3} | more


def _result():
    rows = [_row("copy, temporal", 1e-3), _row("longshore mpi (any array)", 1.1e-3), _row("<peer> [red]", 5e-3)]
    planned = {"payload_bytes": 0, "copy_ratio": None, "peak_bytes": 10**6}
    rows.append(_row("longshore plan", 2e-5, "planning giant", 1 << 20, **planned))
    return {
        "bench": "redistribute",
        "version": "1.2.3",
        "machine": machine("Some MPI 1.0"),
        "rows": rows,
        "missing": [{"contender": "COSTA", "why": "no <library>", "cases": ["transpose 64"]}],
        "notes": ["a note"],
    }


def test_the_registry_describes_its_benches():
    assert "redistribute" in BENCHES
    for bench in BENCHES.values():
        assert callable(bench.run) and bench.description and "\n" not in bench.description


def test_the_machine_is_described_without_naming_the_host():
    told = machine()
    assert told["cpu"] and told["python"] and told["numpy"] and told["cores"] >= 1
    assert not any(socket.gethostname() == str(v) for v in told.values())
    json.dumps(told)


@pytest.mark.parametrize(
    "seconds, words",
    [(0.0, "0 µs"), (1.5e-6, "1.5 µs"), (2.5e-4, "250 µs"), (0.0123, "12.3 ms"), (3.0, "3 s"), (1234.0, "1234 s")],
)
def test_durations_read_well(seconds, words):
    assert report.duration(seconds) == words


def test_summaries_hold_median_and_spread():
    told = summary([3.0, 1.0, 2.0, 10.0])
    assert told == {"seconds_median": 2.5, "seconds_min": 1.0, "seconds_max": 10.0, "repeats": 4}


@pytest.mark.parametrize("width", (60, 80, 119, 120, 160))
def test_the_table_names_everybody_and_the_missing(width):
    out = io.StringIO()
    result = _result()
    for row in result["rows"]:  # the longest that occur: no number may be lost for them
        row["detail"] = "words without end " * 20
        row["seconds_min"], row["seconds_max"] = 0.999e-3, 0.9994e-6
    report.show(Console(file=out, width=width), BENCHES["redistribute"](), result)
    text = out.getvalue()
    assert width < 80 or "999 µs … 0.999 µs" in text
    wanted = (
        "longshore mpi (any array)",
        "<peer> [red]",
        "1.10",
        "5.00",
        "COSTA",
        "no <library>",
        "giant",
        "1.0 MB",
        "a note",
    )
    for words in wanted:
        assert words in text


def test_json_comes_back(tmp_path):
    result = _result()
    report.write(BENCHES["redistribute"](), result, tmp_path / "r.json", None)
    assert json.loads((tmp_path / "r.json").read_text()) == result
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("suffix, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("html", b"<!DOCTYPE html>")])
def test_plots_are_written(tmp_path, suffix, start):
    pytest.importorskip("matplotlib")
    target = tmp_path / f"p.{suffix}"
    report.write(BENCHES["redistribute"](), _result(), None, target)
    content = target.read_bytes()
    assert content.startswith(start)
    if suffix == "html":
        text = content.decode()
        assert "<svg" in text and "&lt;peer&gt;" in text and "<peer>" not in text and "COSTA: no" not in text
        assert "COSTA (transpose 64): no &lt;library&gt;" in text


def test_a_plot_of_nothing_is_still_a_plot(tmp_path):
    pytest.importorskip("matplotlib")
    result = _result() | {"rows": []}
    report.write(BENCHES["redistribute"](), result, None, tmp_path / "p.svg")
    assert (tmp_path / "p.svg").stat().st_size > 0


def test_outputs_that_cannot_be_written_are_refused_first(tmp_path):
    with pytest.raises(BenchError, match="no such folder"):
        report.check_outputs(tmp_path / "nowhere" / "r.json", None)
    with pytest.raises(BenchError, match="is a folder"):
        report.check_outputs(tmp_path, None)
    with pytest.raises(BenchError, match="p.pdf"):
        report.check_outputs(None, tmp_path / "p.pdf")
    report.check_outputs(tmp_path / "r.json", None)
