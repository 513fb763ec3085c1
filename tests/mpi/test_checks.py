"""The checks of scripts/ under mpiexec, with every MPI that is there. Those on as many ranks of one MPI share a launch.

What draws at random has as many trials as its name says: some before every commit, all of them marked `slow`.
"""

from pathlib import Path

import pytest
from launch import RANKS, families, launch
from shared_jobs import ENDS, Jobs, checks_of

SCRIPTS = Path(__file__).parent / "scripts"

# Scripts in the order in which a launch runs them: behaviour ends with movers that are destroyed while they move. A
# check may have other numbers of ranks than its script.
RANKS_OF = {
    "launched": RANKS,
    "random_plans": RANKS,
    "blocks": RANKS,
    "block_kinds": (1, 2, 3, 4, 8),
    "fields": (1, 2, 3, 4),
    "phases": (1, 2, 3, 4, 7),
    "arrivals": (1, 2, 3),
    "block_files": (1, 2, 3, 4, 7),
    "stored_arrays": (1, 2, 3, 4),
    "moved_stores": (2, 3),
    "ghosts": (1, 2, 3, 7),
    "datatypes": (1,),
    "datatype_edges": (1, 2),
    "rank_groups": (8,),
    "moves": RANKS,
    "mistakes": (2, 3),
    "calibration": (1, 3),
    "choices": (2, 3),
    "rings": (2, 3, 4),
    "windows": (1, 2, 3, 4),
    "again": (1, 2, 3, 4),
    "memory": (1, 2, 3),
    "numpy_memory": (1, 2, 3),
    "behaviour": RANKS,
}
RANKS_OF_CHECK = {
    "moves.errors": (3,),
    "moves.one_process_fails_in_the_middle": (3,),
    "moves.asked_for_in_python": (3,),
    "moves.ranks_of_unlike_machines": (2,),
    "ghosts.memory_is_that_of_what_a_rank_needs": (8,),
    "memory.binds_leave_nothing_behind": (2,),
}

# Checks that take long: with which MPI and on how many ranks they are run before a commit. All else is a slow test. So
# are jobs that crowd a small machine: seven ranks are run with one MPI before a commit, eight with the other one.
BEFORE_A_COMMIT = {
    "behaviour.nothing_leaks": {("mpich", 1), ("mpich", 3), ("openmpi", 2), ("openmpi", 8)},
    "calibration.everybody_has_the_same_profile": {("mpich", 1), ("mpich", 3), ("openmpi", 3)},
    "ghosts.memory_is_that_of_what_a_rank_needs": {("openmpi", 8)},
    "memory.workspace_is_what_is_held": {("mpich", 2)},
    "mistakes.stopped_or_slow_is_not_dead": {("mpich", 3)},
}
SLOW_JOBS = {("mpich", 8), ("openmpi", 7)}

# The numbers that a check takes, for each number of ranks: before a commit, and all. Fewer where ranks outnumber the
# processors of a small machine.
TRIALS = {
    "random_plans.moved": {1: (40, 150), 2: (80, 250), 3: (50, 200), 4: (40, 150), 7: (20, 60), 8: (20, 60)},
    "blocks.halos_and_copies": {1: (20, 40), 2: (40, 120), 3: (20, 50), 4: (16, 40), 7: (6, 12), 8: (6, 12)},
    "block_kinds.every_kind": {1: (30, 30), 2: (50, 150), 3: (25, 60), 4: (15, 40), 8: (5, 15)},
    "fields.together": {1: (30, 60), 2: (80, 250), 3: (40, 120), 4: (25, 80)},
    "phases.same_as_at_once": {1: (20, 40), 2: (40, 120), 3: (20, 60), 4: (15, 40), 7: (5, 12)},
    "arrivals.of_fields": {1: (15, 60), 2: (30, 200), 3: (20, 100)},
    "arrivals.of_every_kind": {1: (15, 30), 2: (30, 150), 3: (20, 60)},
    "arrivals.of_phases": {1: (8, 40), 2: (15, 120), 3: (10, 60)},
    "memory.binds_leave_nothing_behind": {2: (300, 10_000)},
    "block_files.there_and_back": {1: (8, 20), 2: (12, 40), 3: (8, 25), 4: (8, 20), 7: (4, 8)},
    "windows.sections": {1: (10, 30), 2: (25, 80), 3: (15, 50), 4: (10, 40)},
    "windows.puts": {1: (2, 5), 2: (5, 15), 3: (3, 10), 4: (2, 10)},
}
SEEDS = {"mpich": (1, 2, 3), "openmpi": (1, 2)}

CHECKS = [check for script in RANKS_OF for check in checks_of(script)]


def cases():
    """(family, ranks, check) of every test, those together that share a launch."""
    for family in families():
        for ranks in RANKS:
            slow = pytest.mark.slow if (family, ranks) in SLOW_JOBS else ()
            for check in CHECKS:
                if ranks in RANKS_OF_CHECK.get(check, RANKS_OF[check.partition(".")[0]]):
                    for numbers, marks in numbers_of(check, family, ranks):
                        name = f"{check}{numbers}"
                        yield pytest.param(family, ranks, name, id=f"{family}-{ranks}-{name}", marks=slow or marks)
            yield pytest.param(family, ranks, ENDS, id=f"{family}-{ranks}-{ENDS}", marks=slow)


def one_before_a_commit():
    """The families, all but the first of them for slow tests."""
    return families()[:1] + [pytest.param(family, marks=pytest.mark.slow) for family in families()[1:]]


def numbers_of(check, family, ranks):
    """What is in brackets after the check's name, before every commit and in the slow tests."""
    if check == "datatypes.random_datatypes":
        for seed in SEEDS[family]:
            yield f"({seed}, 300)", ()
            yield f"({seed}, 1500)", pytest.mark.slow
    elif check in TRIALS:
        some, all_of_them = TRIALS[check][ranks]
        yield f"({some})", ()
        if some < all_of_them:
            yield f"({all_of_them})", pytest.mark.slow
    else:
        yield "", () if (family, ranks) in BEFORE_A_COMMIT.get(check, {(family, ranks)}) else pytest.mark.slow


@pytest.fixture(scope="session")
def jobs(request, tmp_path_factory):
    planned = {}
    for item in request.session.items:
        if item.originalname == "test_check":
            family, ranks, check = (item.callspec.params[name] for name in ("family", "ranks", "check"))
            planned.setdefault((family, ranks), []).append(check)
    jobs = Jobs(planned, tmp_path_factory.mktemp("jobs"))
    yield jobs
    jobs.close()


@pytest.mark.parametrize("family, ranks, check", list(cases()))
def test_check(jobs, family, ranks, check):
    jobs.expect(family, ranks, check)


@pytest.mark.parametrize("family", families())
def test_the_module_of_another_family_is_refused(family):
    done = launch(family, 2, SCRIPTS / "wrong_family.py")
    assert done.returncode == 0 and "refused" in done.stdout, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("family", families())
def test_windows_that_nobody_closes(family):
    for _ in range(12):  # MPI was finalised with a thread in it, now and then
        done = launch(family, 2, SCRIPTS / "unclosed_windows.py")
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"


@pytest.mark.parametrize("family", one_before_a_commit())
def test_ranks_that_are_killed(family, tmp_path):
    done = launch(family, 16, SCRIPTS / "dying.py", tmp_path, timeout=150)  # the launcher says that it has failed
    told = [file.name for file in tmp_path.glob("*-[01]") if "rank 2 (process" in file.read_text()]
    assert len(told) == 28, f"{told}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
