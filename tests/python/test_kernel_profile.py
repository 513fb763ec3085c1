"""How copy kernels go about it: measured, kept for a model of CPU, chosen when Longshore is imported, and told."""

import json
import os
import subprocess
import sys

import pytest
from longshore import _core, tune
from longshore.errors import ArgumentError
from longshore.tune import _facts, kernels

USED = """
import longshore, numpy as np
from longshore import _core
rows, columns = (longshore.Layout(t, (2048, 2048)) for t in ("(BLOCK, *) on 2", "(*, BLOCK) on 2"))
a = np.arange(2048.0 * 2048).reshape(2048, 2048)
out = longshore.redistribute([a[:1024], a[1024:]], rows, columns)
assert all((o == p).all() for o, p in zip(out, (a[:, :1024], a[:, 1024:])))
print(_core.kernel_choice())
"""
SMALL = """
import longshore, numpy as np
from longshore import _core
from longshore.tune import coarse_profile
from longshore.tune.report import render
assert _core.kernels_await_probe()
rows, columns = (longshore.Layout(t, (64, 64)) for t in ("(BLOCK, *) on 2", "(*, BLOCK) on 2"))
a = np.arange(64.0 * 64).reshape(64, 64)
longshore.redistribute([a[:32], a[32:]], rows, columns)
print(render(coarse_profile()))
assert _core.kernels_await_probe()
_core.kernel_choice()
assert not _core.kernels_await_probe()
"""


def used(folder, program=USED, **env):
    """What a process that streams has for a profile, and its warnings."""
    base = {k: v for k, v in os.environ.items() if k != "LONGSHORE_PROFILE"}
    env = {**base, "XDG_CONFIG_HOME": str(folder), **{k: str(v) for k, v in env.items()}}
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
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
    assert f"measured by longshore calibrate on {measured['measured']}" in out and err == ""
    assert tune.MachineProfile.load(tune.profile_path()) == profile
    # A file that is named has it, too.
    named = profile.save(tmp_path / "named.json")
    assert "measured by longshore calibrate on" in used(tmp_path / "nothing", LONGSHORE_PROFILE=named)[0]


def test_every_kept_number_is_used(measured, tmp_path):
    odd = {"rows": 1, "burst_bytes": 64, "stagger_bytes": 0, "paged_bytes": None, "string_bytes": 4096}
    odd |= {
        "merged_rows": 1,
        "expands": False,
        "ahead_bytes": 128,
        "tile_lines": 3,
        "tiled_from": 16,
        "merged_bytes": 192,
        "cached_bytes": 5 << 20,
    }
    kept_in(tmp_path).write_text(json.dumps(measured | odd))
    out, err = used(tmp_path)
    assert str(odd) in out and err == ""


def test_a_profile_of_before_there_were_all_numbers_has_the_usual_ones(measured, tmp_path):
    later = ("ahead_bytes", "tile_lines", "tiled_from", "merged_bytes", "cached_bytes")
    old = {name: of for name, of in measured.items() if name not in later} | {"rows": 2}
    old["trials"] = [{name: of for name, of in one.items() if name not in later} for one in measured["trials"]]
    kept_in(tmp_path).write_text(json.dumps(old))
    out, err = used(tmp_path)
    assert (
        "'rows': 2" in out
        and "'ahead_bytes': 1024, 'tile_lines': 64, 'tiled_from': None, 'merged_bytes': 64, 'cached_bytes': 0" in out
        and err == ""
    )
    from longshore.tune.report import render

    shown = render(tune.MachineProfile({**tune.coarse_profile().facts, "kernel_profile": old}))
    assert "long rows" in shown and kernels.words(old) in shown


def test_what_was_measured_on_another_cpu_is_not_used(measured, tmp_path):
    for other in ({"cpu": "another"}, {"kernels": "another"}):
        folder = tmp_path / next(iter(other))
        kept_in(folder).write_text(json.dumps(measured | other))
        out, err = used(folder)
        assert "measured by" not in out and err == ""


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"\xff", {"rows": 3}, {"rows": "4"}, {"burst_bytes": 2**70}, {"string_bytes": -1}],
)
def test_what_is_no_profile_is_told_and_not_used(measured, tmp_path, content):
    content = content if isinstance(content, bytes) else json.dumps(measured | content).encode()
    kept_in(tmp_path).write_bytes(content)
    out, err = used(tmp_path)
    assert "measured by" not in out and "is not used" in err


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


def test_a_probe_at_first_use_is_told_and_kept(tmp_path):
    out, err = used(tmp_path, LONGSHORE_KERNEL_PROBE="always")
    assert err == "" and ("probed at first use on" in out or "general: a probe at first use" in out)
    kept = tmp_path / "longshore" / "kernels" / os.path.basename(tune.kept_path())
    whole = "for want of time" not in out and "could not try" not in out  # else a process with more time is better
    assert kept.exists() == whole and (not kept.exists() or os.listdir(kept.parent) == [kept.name])
    if whole:
        facts = json.loads(kept.read_text())
        _facts.check(facts, "what a probe kept", kernels=True)
        assert str({name: facts[name] for name in kernels.NUMBERS}) in out and facts["chosen_by"] == "probe"
        assert f"probed at first use on {facts['measured']}" in used(tmp_path)[0]
        assert f"probed at first use on {facts['measured']}" in used(tmp_path, LONGSHORE_KERNEL_PROBE="never")[0]


def test_a_kept_probe_is_used_and_gives_way_to_calibrate(measured, tmp_path, monkeypatch):
    kept_in(tmp_path).write_text(json.dumps(measured | {"chosen_by": "probe"}))
    assert f"probed at first use on {measured['measured']}" in used(tmp_path)[0]
    monkeypatch.delenv("LONGSHORE_PROFILE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    tune.MachineProfile({**tune.coarse_profile().facts, "kernel_profile": measured}).save()
    assert f"measured by longshore calibrate on {measured['measured']}" in used(tmp_path)[0]


def test_the_file_of_a_kept_profile_is_named(measured, tmp_path):
    kept = kept_in(tmp_path)
    kept.write_text(json.dumps(measured | {"chosen_by": "probe"}))
    program = "from longshore.tune import coarse_profile, report; print(report.render(coarse_profile()))"
    told = used(tmp_path, program)[0]
    assert f"probed at first use on {measured['measured']}, kept in {kept}\n" in told
    assert "longshore calibrate measures them anew; where that file is deleted" in told
    assert "kept in" not in used(tmp_path / "nothing", program)[0]


def test_where_nothing_can_be_kept_nothing_is_said():
    out, err = used("/proc/no/such/folder", LONGSHORE_KERNEL_PROBE="always")
    assert "at first use" in out and err == ""


@pytest.mark.skipif(_core.kernels_name() == "plain", reason="plain kernels have no profile")
def test_neither_importing_nor_small_moves_probe(tmp_path):
    out, err = used(tmp_path, SMALL, LONGSHORE_KERNEL_PROBE="always")
    assert "not chosen yet" in out and "probed at first use, in at most 50 ms" in out and err == ""


def test_no_probe_is_made_unasked_where_something_is_known(measured, tmp_path):
    kept_in(tmp_path).write_text(json.dumps(measured))
    assert "measured by longshore calibrate on" in used(tmp_path)[0]
    by = used(tmp_path / "nothing", LONGSHORE_KERNEL_PROBE="never")[0]
    assert "built in for" in by or "general: nothing is known of this CPU" in by
