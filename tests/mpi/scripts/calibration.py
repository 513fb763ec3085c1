"""Calibrating under MPI: every rank has the same profile, or the same error. There are few copies, not the subject."""

import contextlib
import os
from unittest import mock

import longshore as ls
from checks import ME, WORLD, P, check, raises_everywhere
from longshore import model, tune
from longshore.tune.copies import CopyCase

FEW = [CopyCase("1", "1"), CopyCase("64", "1"), CopyCase("1", "64")]


@contextlib.contextmanager
def few_copies():
    with mock.patch("longshore.tune.copies.cases", lambda quick: FEW):
        yield


@check
def everybody_has_the_same_profile():
    """With ways between the first two ranks, however many there are; predictions rest on it."""
    cores, told = os.sched_getaffinity(0), []
    with few_copies():
        profile = tune.calibrate(WORLD, quick=True, threads=2, progress=lambda what, part: told.append(what))
    assert os.sched_getaffinity(0) == cores
    assert len(set(WORLD.allgather(profile.to_json()))) == 1
    assert set(told) == (set() if ME else {"copies", "exchanges, same node"} if P > 1 else {"copies"})
    ways = {one["way"] for one in profile.facts["exchanges"]}
    if P == 1:
        assert not ways and not profile.facts["loggp"]
        return
    assert ways == {"direct", "ring", "messages", "collective", "gets"} and profile.facts["mpi"]
    assert model.memory_load(profile) > 0
    for one in profile.facts["exchanges"]:
        assert one["pair"] == "same node" and all(sample["seconds"] > 0 for sample in one["samples"])
    (loggp,) = profile.facts["loggp"]
    assert loggp["o_s_seconds"] > 0 and loggp["o_r_seconds"] > 0 and loggp["g_seconds"] > 0
    rows, columns = (ls.Layout(f"({text}) on {P}", (96, 64)) for text in ("BLOCK, *", "*, BLOCK"))
    plan = ls.plan(rows, columns, "float64")
    predicted = model.predict(plan, profile)
    assert {way.way for way in predicted.ways} == ways - {"gets"} and not predicted.coarse
    assert {way.way for way in model.predict(plan, profile, work=0).ways} == ways  # of a loop


@check
def an_error_of_the_first_rank_is_everybodys():
    def fail(*_):
        raise ls.MemoryLimitError("no memory for copies")

    with mock.patch("longshore.tune.copies.measure", fail):
        raises_everywhere(ls.MemoryLimitError, lambda: tune.calibrate(WORLD, quick=True), "no memory for copies")
