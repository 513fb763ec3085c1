"""Which way within a node movers take where this machine was calibrated: what the model expects to be fastest."""

import contextlib
import copy
import os
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import longshore as ls
import numpy as np
from checks import ME, WORLD, P, check
from longshore import tune

ROWS, COLUMNS = (600 * P, 1024), (512, 1200 * P)  # of doubles: some 5 MB on each rank


def profile_with(fastest=None, coarse=False):
    """One on which exchanges in one way take next to nothing and in the others seconds."""
    facts = copy.deepcopy(tune.coarse_profile().facts)
    facts["coarse"] = coarse
    for one in facts["exchanges"]:
        for sample in one["samples"]:
            sample["seconds"] = 1e-9 if one["way"] == fastest else 10.0
    return tune.MachineProfile(facts)


@contextlib.contextmanager
def own_profile(content):
    """This rank's: a MachineProfile, text that is none, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.json"
        if isinstance(content, tune.MachineProfile):
            content.save(path)
        elif content is not None:
            path.write_text(content)
        with mock.patch.dict(os.environ, {"LONGSHORE_PROFILE": str(path)}):
            yield


def moved(texts, shape, content, shared=True, **options):
    """The path of a mover whose result has been looked at."""
    src, dst = (ls.Layout(f"{text} on {P}", shape) for text in texts)
    make = (lambda layout: ls.empty(layout, "f8", comm=WORLD)) if shared else None
    a, b = (make(layout) if make else np.empty(layout.local_shape(ME)) for layout in (src, dst))
    whole = np.arange(np.prod(shape), dtype="f8").reshape(shape)
    a[...], b[...] = whole[src.indices(ME)], -1
    with own_profile(content):
        mover = ls.plan(src, dst, "f8").bind(a, b, comm=WORLD, **options)
    mover()
    assert np.array_equal(b, whole[dst.indices(ME)])
    return mover.path


WORDS = ("straight", "rings", "MPI messages")
LONG, SHORT = ("(BLOCK, *)", "(CYCLIC(8), *)"), ("(*, BLOCK)", "(*, CYCLIC)")


@check
def each_way_where_it_is_expected_to_be_fastest():
    assert "straight" in moved(LONG, ROWS, None)
    for texts, shape in ((LONG, ROWS), (SHORT, COLUMNS)):
        for way, words in zip(("direct", "ring", "messages"), WORDS):
            path = moved(texts, shape, profile_with(way))
            assert [word in path for word in WORDS] == [word == words for word in WORDS], (way, path)


@check
def not_where_told_otherwise_or_nobody_can_tell():
    by_rule = moved(LONG, ROWS, None)
    assert moved(LONG, ROWS, profile_with("ring", coarse=True)) == by_rule
    assert moved(LONG, ROWS, profile_with("ring"), node="auto") != by_rule
    assert moved(LONG, ROWS, profile_with("ring"), node="direct") == by_rule
    assert "rings" in moved(LONG, ROWS, profile_with("direct"), shared=False)  # nobody can see these
    assert "straight" in moved(
        LONG, ROWS, profile_with("messages"), proxy=ME == 0
    )  # MPI might forbid a proxy's messages
    assert moved(LONG, (60 * P, 8), profile_with("ring")) == moved(LONG, (60 * P, 8), None)  # too small to ask


@check
def ranks_of_which_only_one_was_calibrated():
    """All take the same way, whoever says what."""
    for one in (0, P - 1):
        assert "rings" in moved(LONG, ROWS, profile_with("ring") if one == ME else None)
    for ways in (("ring", "direct", "messages"), ("messages", "ring", "ring")):
        path = moved(SHORT, COLUMNS, profile_with(ways[ME % 3]))
        assert len(set(WORLD.allgather(tuple(word in path for word in WORDS)))) == 1


@check
def a_profile_that_is_broken_is_a_warning():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        path = moved(LONG, ROWS, "{" if ME == 0 else None)
    assert "straight" in path and [str(one.message).count("machine.json") for one in told] == [1] * (ME == 0)
    assert all(one.filename == __file__ for one in told), "it is told of the line that binds"
