"""`longshore calibrate` and `longshore profile show`: words, JSON, pictures and exit codes."""

import json
import os
import stat
import time

import pytest
from launch import families
from longshore import model, tune
from longshore.cli import run
from longshore.errors import ArgumentError
from longshore.tune.copies import CopyCase


@pytest.fixture
def call(capfd, monkeypatch, tmp_path):
    """Runs the command in an empty folder, where profiles are kept, too: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSHORE_PROFILE", str(tmp_path / "kept" / "machine.json"))
    for name in list(os.environ):
        if name.startswith(("PMI_", "PMIX_", "OMPI_")):
            monkeypatch.delenv(name)

    def call(*words):
        code = run([str(word) for word in words])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return call


@pytest.fixture
def few_copies(monkeypatch):
    cases = [CopyCase(*sides) for sides in (("1", "1"), ("64", "1"), ("1", "64"))]
    monkeypatch.setattr("longshore.tune.copies.cases", lambda quick: cases)


def test_calibrate_measures_this_machine(call, tmp_path):
    code, out, err = call("calibrate", "--quick", "--no-mpi")
    assert (code, err) == (0, "")
    path = tmp_path / "kept" / "machine.json"
    for said in (
        "copies: ",
        "noisy",
        f"written to {path}",
        "next: longshore profile show\n",
        "processes: none; longshore",
    ):
        assert said in out
    profile = tune.profile()
    assert not profile.coarse and profile == tune.MachineProfile.load(path)
    for one in profile.facts["copies"]:
        low, middle, high = (one[f"megabytes_per_second{end}"] for end in ("_low", "", "_high"))
        assert 0 < low <= middle <= high
    assert profile.facts["exchanges"] == [] and 0 < profile.facts["seconds"] < 120
    code, out, err = call("profile", "show")
    assert (code, err) == (0, "") and "strided loads" in out and "strided stores" in out and "coarse" not in out


def test_calibrate_as_json_and_elsewhere(call, few_copies, tmp_path):
    code, out, err = call("calibrate", "--quick", "--no-mpi", "-o", "mine.json", "--json")
    assert (code, err) == (0, "")
    told, profile = json.loads(out), tune.MachineProfile.load("mine.json")
    assert told["file"] == "mine.json" and told["machine"] == profile.machine and told["ways"] == []
    assert told["copies"] == len(profile.facts["copies"]) and told["exchanges"] == 0
    assert told["why_no_exchanges"] == "--no-mpi was given"
    assert told["noisy"] == sum(one["noisy"] for one in profile.facts["copies"])
    assert [file.name for file in tmp_path.iterdir()] == ["mine.json"]


@pytest.mark.skipif(not families(), reason="no mpiexec beside this Python")
def test_calibrate_starts_two_processes(call, few_copies):
    code, out, err = call("calibrate", "--quick")
    assert (code, err) == (0, "") and "two processes were started" in out and "exchanges with other nodes: none" in out
    facts = tune.profile().facts
    assert [one["way"] for one in facts["exchanges"]] == ["direct", "ring", "messages", "collective", "gets"]
    assert len(facts["loggp"]) == 1 and facts["mpi"] and len(facts["copies"]) > 3


@pytest.fixture
def calibrate_with(call, monkeypatch, tmp_path):
    """Calibrates where mpiexec is what a shell script does, or is not there: why there are no exchanges."""
    pytest.importorskip("mpi4py")
    alone = tune.MachineProfile(tune.coarse_profile().facts | {"exchanges": [], "seconds": 1.0})
    monkeypatch.setattr(tune, "calibrate", lambda *_, **__: alone)
    folders = {name: tmp_path / name for name in ("beside", "path")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setattr("sys.executable", str(folders["beside"] / "python"))
    monkeypatch.setenv("PATH", f"{folders['path']}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr("longshore.tune.launched.LIMIT_S", 1)

    def calibrate_with(does, where="beside"):
        mpiexec = folders[where] / "mpiexec"
        if does is not None:
            mpiexec.write_text(f"#!/bin/sh\n[ $1 = --version ] || {{ {does}; }}\n")
            mpiexec.chmod(0o755)
        code, out, err = call("calibrate", "--quick", "--json")
        assert (code, err) == (0, "") and tune.profile().facts["exchanges"] == []
        return json.loads(out)["why_no_exchanges"]

    return calibrate_with


@pytest.mark.parametrize("where", ["beside", "path"])
def test_a_launcher_that_fails_or_hangs_is_told(calibrate_with, where, tmp_path):
    mpiexec = tmp_path / where / "mpiexec"
    assert f"{mpiexec} -n 2 ended with code 1: error: no slots" == calibrate_with(
        "echo error: no slots; echo more; exit 1", where
    )
    assert f"{mpiexec} -n 2 ended with code 0" in calibrate_with("true", where)  # and has written nothing
    begin = time.monotonic()
    assert f"{mpiexec} took more than 1 s and was ended" == calibrate_with("sleep 97 & wait", where)
    assert time.monotonic() - begin < 30


def test_without_a_launcher_or_within_a_job_nothing_is_started(calibrate_with, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no mpiexec in this environment" in calibrate_with(None)
    monkeypatch.setenv("PMI_SIZE", "1")  # alone, but under a launcher
    monkeypatch.setenv("PMI_RANK", "0")
    assert "one of an MPI job" in calibrate_with(f"touch {tmp_path / 'started'}")
    assert not (tmp_path / "started").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delenv("PMI_SIZE")
    monkeypatch.delenv("PMI_RANK")
    assert "mpi4py is not installed" in calibrate_with(f"touch {tmp_path / 'started'}")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("words, code", [(["-o", "."], 2), (["-o", "file/x.json"], 4), (["--no-such"], 2), (["x"], 2)])
def test_calibrate_finds_out_first_whether_it_can_write(call, monkeypatch, tmp_path, words, code):
    monkeypatch.setattr(tune, "calibrate", lambda *_, **__: pytest.fail("it was measured"))
    (tmp_path / "file").write_text("")
    found, out, err = call("calibrate", *words)
    assert (found, out) == (code, "") and "longshore: " in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_calibrate_into_a_folder_that_nobody_may_write(call, monkeypatch, tmp_path):
    monkeypatch.setattr(tune, "calibrate", lambda *_, **__: pytest.fail("it was measured"))
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert call("calibrate", "-o", "x.json")[0] == 4


def test_show_in_words(call):
    code, out, err = call("profile", "show")
    assert (code, err) == (0, "")
    assert "coarse: nothing was measured; longshore calibrate measures this machine" in out
    loads, stores = (out.split(f"strided {side}")[1].split("\n\n")[0].splitlines() for side in ("loads", "stores"))
    assert loads[1].split()[:3] == ["touched", "1", "2"] and loads[1].split()[-1] == "listed"
    assert len(loads) == len(stores) and any(line.split()[0] == "memory" for line in loads)
    for way in ("direct", "ring", "messages", "collective"):
        assert f"\n  {way} " in out
    assert "same node" in out and "other node" in out


def test_show_as_json_is_the_profile(call, tmp_path):
    tune.coarse_profile().save(tmp_path / "mine.json")
    code, out, err = call("profile", "show", "mine.json", "--json")
    assert (code, err) == (0, "") and tune.MachineProfile.from_json(out) == tune.coarse_profile()


def test_show_draws(call, tmp_path):
    pytest.importorskip("matplotlib")
    drawn = {}
    for name, begins in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.HTML", b"<!DOCTYPE html>")):
        code, out, err = call("profile", "show", "--plot", name)
        assert (code, err) == (0, "") and "strided loads" in out
        drawn[name] = (tmp_path / name).read_bytes()
        assert drawn[name].startswith(begins) and {file.name for file in tmp_path.iterdir()} == set(drawn)
    svg = drawn["a.svg"]
    assert svg[svg.index(b"<svg") :] in drawn["a.HTML"]  # one profile, one drawing


def test_show_draws_what_there_is(call, tmp_path):
    pytest.importorskip("matplotlib")
    facts = tune.coarse_profile().facts
    facts |= {"coarse": False, "machine": "a $ & <b>", "exchanges": [], "loggp": []}
    few = [one for one in facts["copies"] if one["transfer"] in ("1C1", "64C1", "1C64")]
    for copies in (few, [one for one in few if one["transfer"] == "1C1"]):
        tune.MachineProfile(facts | {"copies": copies}).save("few.json")
        assert call("profile", "show", "few.json", "--plot", "few.html")[0] == 0
        assert "a $ &amp; &lt;b&gt;" in (tmp_path / "few.html").read_text()


def test_show_of_what_is_not_there(call, monkeypatch, tmp_path):
    (tmp_path / "text").write_text("hello")
    for words, code, said in (
        (["none.json"], 4, "none.json: No such file"),
        (["text"], 2, "text: this is no profile"),
        ([".", "--json"], 2, "is a directory"),
        (["--plot", "a.pdf"], 2, "a plot is written as .png, .svg, .html, not 'a.pdf'"),
        (["--plot", "none/a.svg"], 4, "none"),
    ):
        found, out, err = call("profile", "show", *words)
        assert (found, out) == (code, "") and said in err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = call("profile", "show", "--plot", "a.svg")
    assert code == 5 and "pip install matplotlib" in err
    code, out, _ = call("profile", "--help")
    assert code == 0 and "show" in out


def test_predictions_use_it(call, tmp_path):
    facts = tune.coarse_profile().facts
    facts["machine"], facts["coarse"] = "mine", False
    tune.MachineProfile(facts).save()
    import longshore as ls

    plan = ls.plan(ls.Layout("(BLOCK) on 2", (99,)), ls.Layout("(CYCLIC) on 2", (99,)), "float64")
    assert not model.predict(plan).coarse and model.predict(plan, tune.coarse_profile()).coarse


def test_calibrate_overwrites_profiles_only(call, few_copies, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("not to be lost")
    code, _, err = call("calibrate", "--quick", "--no-mpi", "-o", mine)
    assert code == 2 and "mine.txt is no machine profile, and is not overwritten" in err
    assert mine.read_text() == "not to be lost"
    mine.write_text(json.dumps(tune.coarse_profile().facts | {"version": 0}))  # of another version it is ours, too
    code, out, _ = call("calibrate", "--quick", "--no-mpi", "-o", mine)
    assert code == 0 and f"next: longshore profile show {mine}" in out
    assert not tune.MachineProfile.load(mine).coarse


def test_explain_says_what_cannot_be_predicted(call, tmp_path):
    plan = ("explain", "--shape", "64x64", "--from", "(BLOCK, *) on 4", "--to", "(*, BLOCK) on 4")
    path = tmp_path / "kept" / "machine.json"
    tune.MachineProfile(tune.coarse_profile().facts | {"exchanges": []}).save(path)
    code, out, _ = call(*plan)  # as of a machine that was calibrated without mpiexec
    assert code == 0 and "not predicted    the profile of" in out and "calibrate on a machine with MPI" in out
    assert "in one process, on its threads" in out
    path.write_text("{}")
    code, out, _ = call(*plan)
    assert code == 0 and f"not predicted    {path}: this is no longshore machine profile" in out
    told = json.loads(call(*plan, "--json")[1])["costs"]
    assert told["ways"] == [] and len(told["missing"]) == 1 and told["machine"] is None
    path.unlink()
    assert json.loads(call(*plan, "--json")[1])["costs"]["missing"] == []


def test_more_processes_than_a_machine_can_stand_are_not_started():
    from longshore.tune.launcher import Launcher

    launcher = Launcher(("mpiexec",), "hydra")
    assert launcher.arguments(64)[:3] == ["mpiexec", "-n", "64"]
    with pytest.raises(ArgumentError, match=r"1000000 processes on \d+ processors; at most \d+ run here"):
        launcher.arguments(1_000_000)


@pytest.mark.parametrize("file", ["nowhere/mine.json", "/proc/mine.json"])
def test_a_place_where_nothing_can_be_written_is_told_before_anything_is_measured(call, monkeypatch, tmp_path, file):
    monkeypatch.setattr(tune, "calibrate", lambda *_, **__: pytest.fail("it was measured"))
    code, out, err = call("calibrate", "--quick", "--no-mpi", "-o", file)
    assert code == 4 and out == "" and os.path.dirname(file) in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(20)  # and not waiting for who writes into a pipe, or for the end of zeros
@pytest.mark.parametrize("place", ["pipe", "folder", "/dev/null", "/dev/zero"])
def test_a_kept_profile_that_is_no_file_is_told(call, monkeypatch, tmp_path, place):
    monkeypatch.setattr(tune, "calibrate", lambda *_, **__: pytest.fail("it was measured"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    path = tmp_path / place
    monkeypatch.setenv("LONGSHORE_PROFILE", str(path))
    said = f"{path} is not a plain file, and cannot be this machine's profile; have LONGSHORE_PROFILE name one"
    for words in (["profile", "show"], ["calibrate"]):
        assert call(*words) == (2, "", f"longshore: {said}\n")
    code, out, _ = call("explain", "--shape", "64x64", "--from", "(BLOCK, *) on 4", "--to", "(*, BLOCK) on 4")
    assert code == 0 and f"not predicted    {said}" in out
    for ask in (tune.measured_profile, tune.coarse_profile().save):
        with pytest.raises(ArgumentError, match="is not a plain file"):
            ask()
