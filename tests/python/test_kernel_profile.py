"""How copy kernels go about it: measured, kept for a model of CPU, chosen when Longshore is imported, and told."""

import json
import os
import subprocess
import sys

import pytest
from longshore import _core, tune
from longshore.errors import ArgumentError
from longshore.tune import kernels

USED = """
import longshore, numpy as np
from longshore import _core
rows, columns = (longshore.Layout(t, (2048, 2048)) for t in ("(BLOCK, *) on 2", "(*, BLOCK) on 2"))
a = np.arange(2048.0 * 2048).reshape(2048, 2048)
out = longshore.redistribute([a[:1024], a[1024:]], rows, columns)
assert all((o == p).all() for o, p in zip(out, (a[:, :1024], a[:, 1024:])))
print(_core.kernel_choice())
"""


def used(folder, **env):
    """What a process that streams has for a profile, and its warnings."""
    base = {k: v for k, v in os.environ.items() if k != "LONGSHORE_PROFILE"}
    env = {**base, "XDG_CONFIG_HOME": str(folder), **{k: str(v) for k, v in env.items()}}
    ran = subprocess.run([sys.executable, "-c", USED], env=env, capture_output=True, text=True, check=True)
    return ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def measured():
    return kernels.measure(1, quick=True)


def kept_in(folder):
    path = folder / "longshore" / "kernels"
    path.mkdir(parents=True)
    return path / os.path.basename(tune.kept_path())


def test_a_profile_is_measured_and_kept_for_the_cpu(measured, tmp_path, monkeypatch):
    assert measured["cpu"] == _core.cpu_name() and measured["kernels"] == _core.kernels_name()
    profile = tune.MachineProfile({**tune.coarse_profile().facts, "kernel_profile": measured})
    monkeypatch.delenv("LONGSHORE_PROFILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profile.save()
    out, err = used(tmp_path)
    assert f"calibrated on {measured['measured']}" in out and err == ""
    assert tune.MachineProfile.load(tune.profile_path()) == profile
    # A file that is named has it, too.
    named = profile.save(tmp_path / "named.json")
    assert "calibrated on" in used(tmp_path / "nothing", LONGSHORE_PROFILE=named)[0]


def test_every_kept_number_is_used(measured, tmp_path):
    odd = {"rows": 1, "burst_bytes": 64, "stagger_bytes": 0, "paged_bytes": None, "string_bytes": 4096}
    odd |= {"merged_rows": 1, "expands": False}
    kept_in(tmp_path).write_text(json.dumps(measured | odd))
    out, err = used(tmp_path)
    assert str(odd) in out and err == ""


def test_what_was_measured_on_another_cpu_is_not_used(measured, tmp_path):
    for other in ({"cpu": "another"}, {"kernels": "another"}):
        folder = tmp_path / next(iter(other))
        kept_in(folder).write_text(json.dumps(measured | other))
        out, err = used(folder)
        assert "calibrated" not in out and err == ""


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"\xff", {"rows": 3}, {"rows": "4"}, {"burst_bytes": 2**70}, {"string_bytes": -1}],
)
def test_what_is_no_profile_is_told_and_not_used(measured, tmp_path, content):
    content = content if isinstance(content, bytes) else json.dumps(measured | content).encode()
    kept_in(tmp_path).write_bytes(content)
    out, err = used(tmp_path)
    assert "calibrated" not in out and "is not used" in err


def test_mistakes_say_what_is_wrong(measured):
    numbers = {name: measured[name] for name in kernels.NUMBERS}
    with pytest.raises(ArgumentError, match="rows is 3; it must be 1, 2 or 4"):
        _core.choose_kernel_profile(numbers | {"rows": 3}, "me")
    with pytest.raises(ArgumentError, match="rows is no 64-bit integer"):
        _core.choose_kernel_profile(numbers | {"rows": "4"}, "me")
    with pytest.raises(ArgumentError, match="has no rows"):
        _core.choose_kernel_profile({}, "me")
    with pytest.raises(ArgumentError, match="kernel_profile has no 'cpu'"):
        facts = {k: v for k, v in measured.items() if k != "cpu"}
        tune.MachineProfile({**tune.coarse_profile().facts, "kernel_profile": facts})


def test_it_is_shown_with_who_chose_it(measured):
    from longshore.tune.report import render

    assert _core.kernel_choice()[1] in render(tune.coarse_profile())
    shown = render(tune.MachineProfile({**tune.coarse_profile().facts, "kernel_profile": measured}))
    assert kernels.words(measured) in shown and "chosen" in shown and "long rows" in shown
