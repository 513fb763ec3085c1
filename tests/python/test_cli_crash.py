"""`longshore move` cut off at the worst moments: kill -9, signals, a full disk. What is published is whole; the source
is as it was."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from longshore.cli import move as move_module
from longshore.cli import run
from longshore.stores import moving

# A move that stops for ever in the middle, or just before its end, after telling so.
PROGRAM = """
import sys, time
from longshore.cli import main
from longshore.stores import boxes, moving, publish

def stop(*args, **kwargs):
    print("stopped", flush=True)
    time.sleep(600)

def after_a_few(real=boxes.Files.write, calls=[]):
    def write(self, work):
        calls.append(1)
        real(self, work)
        if len(calls) == 3:
            stop()
    return write

if sys.argv[1] == "middle":
    boxes.Files.write = after_a_few()
else:
    publish.Publication.publish = stop
main(sys.argv[2:])
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = np.arange(4 << 20, dtype="<i4").reshape(2048, 2048)
    np.save("a.npy", array)
    return array


def heed_signals():
    """What a shell starts in the background is told to ignore interrupts, and its children inherit that."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def start(moment, *words):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, moment, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )
    assert process.stdout.readline() == "stopped\n", process.communicate()
    return process


WORDS = {
    "d": ["move", "a.npy", "d", "--to", "(CYCLIC(10), *) on 3", "--max-mem", "10MiB"],
    "d.npy": ["move", "a.npy", "d.npy", "--axes", "1,0", "--max-mem", "10MiB"],
}


@pytest.mark.parametrize("target", WORDS)
@pytest.mark.parametrize("moment", ["middle", "end"])
def test_kill_9(source, capfd, moment, target):
    process = start(moment, *WORDS[target])
    assert not os.path.exists(target)
    assert run(["move", "a.npy", "other", "--to", "(BLOCK, *) on 2", "-q"]) == 0  # beside a living one
    process.kill()
    process.wait()
    hidden = [name for name in os.listdir(".") if "partial" in name]
    assert sorted(os.listdir(".")) == sorted(["a.npy", "other", *hidden]) and len(hidden) == 1
    if target == "d":  # and nobody can take the rest for a store
        assert moment == "end" or run(["move", hidden[0], "x.npy", "-q"]) == 2
    capfd.readouterr()
    assert run(WORDS[target]) == 0
    err = capfd.readouterr().err
    assert hidden[0] in err and "killed run" in err
    assert sorted(os.listdir(".")) == sorted(["a.npy", target, "other"])
    assert run(["move", target, "back.npy", *([] if target == "d" else ["--axes", "1,0"]), "-q"]) == 0
    np.testing.assert_array_equal(np.load("back.npy"), source)
    np.testing.assert_array_equal(np.load("a.npy"), source)


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_signals_clean_up(source, number, code):
    process = start("middle", *WORDS["d"])
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code and "Traceback" not in err
    assert os.listdir(".") == ["a.npy"]


def test_force_keeps_the_old_until_the_end(source):
    assert run(["move", "a.npy", "d", "--to", "(BLOCK, *) on 2", "-q"]) == 0
    process = start("end", *WORDS["d"], "--force")
    assert sorted(os.listdir("d")) == ["layout.json", "rank-00000.npy", "rank-00001.npy"]
    process.kill()
    process.wait()
    assert run(["move", "d", "back.npy", "-q"]) == 0
    np.testing.assert_array_equal(np.load("back.npy"), source)


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place, name", [(os, "posix_fallocate"), (os, "fsync"), (os, "pwrite")])
def test_full_disk(source, capfd, monkeypatch, place, name):
    with monkeypatch.context() as patch:
        patch.setattr(place, name, full)
        for words in WORDS.values():
            assert run(words) == 4
            err = capfd.readouterr().err
            assert "No space left" in err and "Traceback" not in err
    assert os.listdir(".") == ["a.npy"]


def test_full_disk_is_seen_before_writing(source, capfd, monkeypatch):
    real = os.statvfs(".")
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result([*real[:4], 3, *real[5:]]))
    monkeypatch.setattr(moving, "make_store", full)
    assert run(WORDS["d"]) == 4
    assert "are free" in capfd.readouterr().err and os.listdir(".") == ["a.npy"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_really_full_disk(source, capfd, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        target = str(small / "d")
        assert run(["move", "a.npy", target, "--to", "(BLOCK, *) on 3", "-q"]) == 0
        assert run(["move", "a.npy", target + "2", "--to", "(BLOCK, *) on 3"]) == 4
        assert "full" in capfd.readouterr().err and os.listdir(small) == ["d"]
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(source, capfd, tmp_path):
    place = tmp_path / "closed"
    place.mkdir(mode=0o555)
    assert run(["move", "a.npy", str(place / "d.npy")]) == 4
    assert "ermission" in capfd.readouterr().err


def test_internal_errors_are_words(source, capfd, monkeypatch):
    def broken(*_, **__):
        raise KeyError("surprise")

    monkeypatch.setattr(moving, "make_store", broken)
    assert run(WORDS["d"]) == 1
    err = capfd.readouterr().err
    assert "internal error" in err and "Traceback" not in err
    assert os.listdir(".") == ["a.npy"]


def test_threads_that_cannot_be_started_are_words(source, capfd, monkeypatch):
    def none_left(*_, **__):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(moving, "make_store", none_left)
        assert run(WORDS["d"]) == 1
    err = capfd.readouterr().err
    assert "no thread can be started" in err and "ulimit -u" in err and "internal" not in err
    assert os.listdir(".") == ["a.npy"]
    monkeypatch.setattr("threading.Thread.start", none_left)
    assert run(["move", "a.npy", "a.zarr", "--chunks", "512x512"]) == 0  # which needs none


def test_a_progress_bar_needs_no_thread(monkeypatch):
    def none_left(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", none_left)
    bar = move_module._Bar()
    bar.begin(None)
    bar.phase("moving", 10)
    bar.advance(5)
    bar.close()
