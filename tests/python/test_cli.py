"""The command line: words in, words out, exit codes; no traceback ever."""

import json
import os
import signal
import subprocess
import sys

import longshore
import numpy as np
import pytest
from longshore.cli import run

BLOCKS, CYCLIC = "(BLOCK, *) on 4", "(CYCLIC(64), CYCLIC(64)) on 2x2"


@pytest.fixture
def call(capfd, monkeypatch, tmp_path):
    """Runs the command in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("PMI_", "PMIX_", "OMPI_")):
            monkeypatch.delenv(name)

    def call(*words):
        code = run([str(word) for word in words])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return call


def test_version_and_help(call):
    assert call("--version") == (0, f"longshore {longshore.__version__}\n", "")
    for words in (["--help"], ["explain", "--help"], ["move", "-h"], ["bench", "--help"]):
        code, out, _ = call(*words)
        assert code == 0 and "Exit codes:" in out and "memory ceiling" in out
    assert call()[0] == 2
    code, _, err = call("mvoe")
    assert code == 2 and "mvoe" in err and "--help" in err


def test_as_a_program():
    done = subprocess.run([sys.executable, "-m", "longshore.cli", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == f"longshore {longshore.__version__}\n"


def test_reader_goes_away():
    command = (
        f"{sys.executable} -m longshore.cli explain --shape 8192x8192 --from '{BLOCKS}' --to '{CYCLIC}' | true; "
        "exit ${PIPESTATUS[0]}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing_else(tmp_path, closed):
    array = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "a.npy", array)
    for words, code, said in [
        (f"explain --shape 64x64 --from '{BLOCKS}' --to '{CYCLIC}'", 0, ""),
        ("move a.npy b.npy --json", 0, ""),
        ("--help", 0, ""),
        ("move a.npy a.npy", 2, "source itself"),
    ]:
        command = f"{sys.executable} -m longshore.cli {words} {closed}"
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code and "internal" not in done.stdout + done.stderr, (words, done)
        assert (done.stdout == "") == (code != 0 or ">&-" in closed.split())
        assert done.stderr == "" if code == 0 or "2>&-" in closed else said in done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), array)


@pytest.mark.parametrize("module", ["click", "longshore.stores", "longshore.cli.explain", "longshore.cli.ranks"])
def test_an_interrupt_while_it_is_imported_ends_it_quietly(module):
    program = f"""
import importlib.abc, sys, longshore

class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from longshore.cli import main
main(["--version"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 130 and done.stdout == "" and "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["longshore", "numpy", "longshore._core", "click", "longshore.cli.explain"])
def test_an_interrupt_while_the_command_is_imported_ends_it_as_any_program(module):
    program = f"""
import importlib.abc, importlib.metadata, os, signal, sys

class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
sys.argv = ["longshore", "--version"]
(script,) = importlib.metadata.entry_points(group="console_scripts", name="longshore")
script.load()()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_an_interrupt_just_before_the_command_heeds_it_ends_it_as_any_program():
    program = """
import os, signal, sys
import longshore_command
from longshore import cli

cli._open_closed_streams = lambda: os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["longshore", "--version"]
longshore_command.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_warnings_are_lines_of_the_commands_own(tmp_path, monkeypatch):
    monkeypatch.delenv("LONGSHORE_PROFILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    kept = longshore.tune.kept_path()
    os.makedirs(os.path.dirname(kept))
    with open(kept, "w") as file:
        file.write("{")
    program = """
import sys, warnings, longshore_command

class Warns:
    def find_spec(self, name, path, target=None):
        if name == "longshore.cli.explain":
            warnings.warn("two\\nlines and \\x1b[31mred")

sys.meta_path.insert(0, Warns())
sys.argv = ["longshore", "--version"]
longshore_command.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == f"longshore {longshore.__version__}\n"
    first, second = done.stderr.splitlines()
    assert first.startswith(f"longshore: warning: {kept} is not used: ")
    assert second == "longshore: warning: two lines and \\x1b[31mred"
    quiet = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert quiet.returncode == 0 and quiet.stderr == ""


def test_who_ignores_interrupts_goes_on_doing_so():
    program = """
import os, signal, sys
import longshore_command
from longshore import cli

signal.signal(signal.SIGINT, signal.SIG_IGN)
real = cli.run
cli.run = lambda words: os.kill(os.getpid(), signal.SIGINT) or real(words)
sys.argv = ["longshore", "--version"]
longshore_command.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_laboratory_it_is_said_what_to_install(call, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "longshore_lab"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "longshore_lab", None)  # as if it were not installed
    for words in ([], ["redistribute"], ["halo", "--quick"], ["nothing"]):
        code, out, err = call("bench", *words)
        assert code == 5 and out == "" and "pip install longshore-lab" in err and "make lab" in err
    code, out, _ = call("bench", "--help")
    assert code == 0 and "pip install longshore-lab" in out and "not installed" in out


def test_explain(call):
    code, out, err = call("explain", "--shape", "8192x8192", "--dtype", "float64", "--from", BLOCKS, "--to", CYCLIC)
    assert code == 0 and err == ""
    for words in (
        "8,192 x 8,192 of float64, 512 MiB",
        BLOCKS,
        CYCLIC,
        "[32]",
        "12, 384 MiB in all",
        "128 MiB of 512 MiB (25 %)",
        "32 MiB, rank 0 to rank 1",
        "extra memory",
        "runs of 512 B",
        "contiguous",
    ):
        assert words in out, words
    assert "\x1b" not in out


def test_explain_json(call):
    code, out, _ = call(
        "explain",
        "--shape",
        "100x90",
        "--dtype",
        "<f4",
        "--from",
        "(BLOCK, *) on 2",
        "--to",
        "(*, BLOCK) on 3",
        "--axes",
        "1,0",
        "--json",
    )
    told = json.loads(out)
    assert code == 0 and told["view"] == "all" and told["axes"] == [1, 0] and told["dtype"] == "float32"
    assert np.sum(told["matrix"]["bytes"]) == told["array_bytes"] == 36000


@pytest.mark.parametrize("size", [2**20, 2**40])
def test_explain_a_million_ranks(call, size):
    for source, destination in [
        ("(CYCLIC(64), CYCLIC(64)) on 1024x1024", "(BLOCK, BLOCK) on 1024x1024"),
        ("(BLOCK, *) on 1048576", "(*, BLOCK) on 1048576"),
    ]:
        itemsize = "float64" if size == 2**20 else "int8"
        if size == 2**40 and "CYCLIC" in source:
            continue
        extents = f"{size}x{size}" if size == 2**20 else f"{size}x4194304"
        code, out, _ = call("explain", "--shape", extents, "--dtype", itemsize, "--from", source, "--to", destination)
        assert code == 0 and "rank 0" in out and "1,048,576 to 1,048,576 ranks" in out


BAD_USAGE = [
    (["explain", "--shape", "8192x", "--from", BLOCKS, "--to", CYCLIC], "8192x8192"),
    (["explain", "--shape", "-5", "--from", BLOCKS, "--to", CYCLIC], "shape"),
    (["explain", "--shape", "9" * 20, "--from", "(BLOCK) on 2", "--to", "(*) on 1"], "63 bits"),
    (["explain", "--shape", "64x64", "--from", BLOCKS], "--to"),
    (["explain", "--shape", "64x64", "--from", BLOCKS, "--to", CYCLIC, "--dtype", "object"], "fixed size"),
    (["explain", "--shape", "64x64", "--from", BLOCKS, "--to", CYCLIC, "--dtype", "flaot"], "NumPy"),
    (["explain", "--shape", "64x64", "--from", BLOCKS, "--to", CYCLIC, "--dtype", "[1"], "NumPy"),
    (["explain", "--shape", "64x64", "--from", BLOCKS, "--to", CYCLIC, "--axes", "0,0"], "permutation"),
    (["explain", "--shape", "64x64", "--from", BLOCKS, "--to", CYCLIC, "--axes", "0,1,2"], "--axes"),
    (["explain", "--shape", "64x64", "--from", BLOCKS, "--to", CYCLIC, "--axes", "a"], "1,0"),
    (["explain", "--shape", "64x64", "--from", BLOCKS, "--to", CYCLIC, "--rank", "99"], "rank 99"),
    (["explain", "--shape", "64", "--from", BLOCKS, "--to", CYCLIC], "dimension"),
    (["move", "a.npy"], "DST"),
    (["move", "a.npy", "b.npy", "--max-mem", "lots"], "256MiB"),
    (["move", "a.npy", "b.npy", "--max-mem", "0"], "usable"),
    (["move", "a.npy", "b.npy", "--threads", "0"], "threads"),
    (["move", "missing.npy", "b.npy"], "does not exist"),
    (["move", "a.npy", "x"], "--to"),
    (["move", "a.npy", "x", "--to", "(BLOCK) on 2"], "dimension"),
    (["move", "a.npy", "x", "--to", "(BLOCK, *) on 2, ld=100"], "ld="),
    (["move", "a.npy", "b.npy", "--to", "(BLOCK, *) on 2"], "one rank"),
    (["move", "a.npy", "b.npy", "--axes", "2,1,0"], "permutation"),
    (["move", "a.npy", "a.npy"], "source itself"),
    (["move", "a.npy", "a.npy", "--force"], "source itself"),
    (["move", "a.npy", "folder/b.npy"], "make it first"),
    (["move", ".", "b.npy"], "inside the source"),
    (["move", "empty", "b.npy"], "layout.json"),
    (["move", "pickle.npy", "b.npy"], "Python objects"),
    (["move", "scalar.npy", "b.npy"], "single element"),
]


@pytest.mark.parametrize("words, said", BAD_USAGE, ids=[" ".join(words) for words, _ in BAD_USAGE])
def test_wrong_usage(call, words, said):
    np.save("a.npy", np.zeros((8, 3)))
    np.save("scalar.npy", np.float64(3))
    os.mkdir("empty")
    np.save("pickle.npy", np.array([None, {}], dtype=object), allow_pickle=True)
    before = sorted(os.listdir("."))
    code, out, err = call(*words)
    assert code == 2 and out == "" and said in err
    assert sorted(os.listdir(".")) == before


def test_layout_errors_have_a_caret(call):
    code, _, err = call("explain", "--shape", "64x64", "--from", "(BLOCK, CYLIC) on 4", "--to", CYCLIC)
    lines = err.splitlines()
    place = next(i for i, line in enumerate(lines) if "(BLOCK, CYLIC) on 4" in line)
    assert code == 2 and lines[place + 1].index("^") == lines[place].index("CYLIC")


def test_debug_shows_the_traceback(capfd):
    assert run(["--debug", "move", "missing.npy", "b.npy"]) == 2
    assert "Traceback" in capfd.readouterr().err


def test_there_and_back(call):
    array = np.arange(40 * 50, dtype="<i4").reshape(40, 50)
    np.save("a.npy", array)
    code, out, err = call("move", "a.npy", "shards/", "--to", BLOCKS)
    assert code == 0 and err == "" and "predicted  8,000 bytes" in out and "moved      8,000 bytes" in out
    assert sorted(os.listdir("shards")) == ["layout.json"] + [f"rank-0000{r}.npy" for r in range(4)]
    np.testing.assert_array_equal(np.load("shards/rank-00001.npy"), array[10:20])
    code, out, _ = call("move", "shards", "reported.npy", "--report")
    assert code == 0 and "  copies     " in out and "  files      reading " in out and "not predicted" in out
    code, out, _ = call("move", "shards", "other", "--to", "(CYCLIC(3), CYCLIC(4)) on 2x2", "--verify", "--json")
    told = json.loads(out)
    assert code == 0 and told["moved_bytes"] == told["predicted_bytes"] == 8000 and told["verified"]
    assert call("move", "other", "back.npy", "--quiet") == (0, "", "")
    assert np.array_equal(np.load("back.npy"), array)
    code, _, err = call("move", "a.npy", "shards", "--to", BLOCKS)
    assert code == 2 and "--force" in err
    assert call("move", "a.npy", "shards", "--to", "(BLOCK, *) on 2", "--force", "-q")[0] == 0
    assert sorted(os.listdir("shards")) == ["layout.json", "rank-00000.npy", "rank-00001.npy"]
    assert call("move", "a.npy", "t.npy", "--axes", "1,0", "-q")[0] == 0
    assert np.array_equal(np.load("t.npy"), array.T)


def test_impossible_ceiling(call):
    np.save("a.npy", np.zeros((800, 3)))
    code, _, err = call("move", "a.npy", "x", "--to", BLOCKS, "--max-mem", "100KiB")
    assert code == 3 and "at least" in err and os.listdir(".") == ["a.npy"]
    least = err.split("--max-mem ")[-1].strip()
    assert call("move", "a.npy", "x", "--to", BLOCKS, "--max-mem", least)[0] == 0


def test_names_that_the_terminal_cannot_show(tmp_path):
    np.save(tmp_path / "é.npy", np.arange(4))
    done = subprocess.run(
        [sys.executable, "-m", "longshore.cli", "move", "é.npy", "éd", "--to", "(BLOCK) on 2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert (done.returncode, sorted(os.listdir(tmp_path))) == (0, ["é.npy", "éd"]), done.stderr


def test_words_of_other_programs_are_theirs(call):
    code, _, err = call("move", "--", "--debug", "b.npy")
    assert code != 0 and "--debug" in err


def test_files_of_ranks_that_are_none(call):
    np.save("objects.npy", np.array([1, None], dtype=object), allow_pickle=True)
    with open("short.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00")
    for name in ("objects.npy", "short.npy"):
        code, _, err = call("ranks", "explain", name)
        assert code == 2 and f"{name} cannot be read" in err and "internal" not in err


def test_model(call, tmp_path):
    packed = "64C1 o (1S0 || Nd || 0D1) o 1C64"
    code, out, err = call("model", packed, "--machine", "cray-t3d")
    assert (code, err) == (0, "")
    assert "64C1 ∘ (1S0 ‖ Nd ‖ 0D1) ∘ 1C64 on Cray T3D: 16.9 MB/s" in out and "bottleneck: 64C1" in out
    assert "  Nd        69.0          24%  Nd@2\n" in out
    (tmp_path / "mine.json").write_text(longshore.model.intel_paragon.to_json())
    code, out, _ = call("model", "wS0 || Nadp || 0Rw", "--machine", "mine.json", "--json")
    told = json.loads(out)
    assert code == 0 and told["megabytes_per_second"] == 36 and told["bottleneck"] == "ωS0"
    assert [part["share_of_time"] for part in told["parts"]] == [1, 0, 0]

    (tmp_path / "binary").write_bytes(bytes(range(256)))
    for words, machine in [
        ("at character 5", "cray-t3d"),
        ("no file", "cray-2"),
        ("not a table of throughputs", "binary"),
    ]:
        code, out, err = call("model", "1C1 1C1", "--machine", machine)
        assert code == 2 and out == "" and words in err
    code, _, err = call("model", "0R1", "--machine", "cray-t3d")
    assert code == 2 and "of R its table has none" in err


def test_explain_with_work_beside_it(call):
    given = ["explain", "--shape", "512x512", "--from", "(BLOCK, *) on 4", "--to", "(*, BLOCK) on 4", "--json"]
    plain, loop, apart = (
        json.loads(call(*given, *more)[1])["costs"]
        for more in ([], ["--work", "0.5"], ["--work", "0.5", "--ranks-per-node", "2"])
    )
    assert "gets" not in {cost["way"] for cost in plain["ways"]} and plain["work_seconds_per_byte"] is None
    assert loop["work_seconds_per_byte"] == 0.5e-9 and apart["ranks_per_node"] == 2
    seconds = {cost["way"]: cost["seconds"] for cost in loop["ways"]}
    for cost in plain["ways"]:
        if cost["way"] != "threads":
            assert seconds[cost["way"]] == pytest.approx(cost["seconds"] + 512 * 512 * 8 / 4 * 0.5e-9)
    assert seconds["gets"] > 0
    assert "threads" not in {cost["way"] for cost in apart["ways"]}
    for none in ("-1", "nan", "inf", "1e400", "-inf"):
        for asked in (given, given[:-1]):
            code, out, err = call(*asked, "--work", none)
            assert code == 2 and out == "" and "--work" in err and "Usage" in err
    given[2] = "1048576x1048576"
    code, out, err = call(*given, "--work", "1e308")  # all of it takes more seconds than a number can say
    assert code == 2 and out == "" and "JSON cannot hold" in err
    assert call(*given, "--work", "1e290")[0] == 0
    code, out, _ = call(*given[:-1], "--work", "0.5")
    assert code == 0 and "with work of 0.5 ns a byte" in out and "one access to a window" in out


def test_names_in_files_do_not_reach_the_terminal_as_they_are(call, tmp_path, monkeypatch):
    numpy_files = pytest.importorskip("safetensors.numpy")
    monkeypatch.chdir(tmp_path)
    numpy_files.save_file({"a\x1b[31m/b": np.ones(3)}, "odd.safetensors")
    code, out, _ = call("move", "odd.safetensors", "odd.zarr")
    assert code == 0 and "\x1b" not in out and r"a\x1b[31m/b" in out
    code, _, err = call("info", "no\x1b[31m")
    assert code == 2 and "\x1b" not in err and r"no\x1b[31m does not exist" in err


def test_a_move_of_one_element_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.float64(3))
    assert run(["move", "a.npy", "b.zarr/x"]) == 0
    assert capsys.readouterr().out.startswith("moved one element of float64 (8 B) from a.npy (.npy) to b.zarr/x")


def test_a_dry_run_says_nothing_of_phases_that_take_no_time(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.zeros((0, 4)))
    assert run(["move", "a.npy", "b.zarr/x", "--dry-run"]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if line.split() == ["threads"]]


@pytest.mark.parametrize("words", [["", "b.npy"], ["a.npy", ""], ["", "b.zarr"]])
def test_an_empty_path_is_named(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(3))
    assert run(["move", *words]) == 2
    assert capsys.readouterr().err == "longshore: the path is empty\n"


def test_what_zarr_cannot_hold_of_an_array_without_a_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.zeros(3, "g"))
    assert run(["move", "a.npy", "b.zarr/x", "--zarr-format", "3"]) == 2
    assert "Zarr cannot hold the array, for" in capsys.readouterr().err
