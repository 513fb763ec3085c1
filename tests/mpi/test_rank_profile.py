"""The profile of communicators under programs that know nothing of it: Python's, Fortran's, and ScaLAPACK's tests."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launch import families, interpreters, run
from longshore import RankMap, cli, rank_profile

SCRIPTS = Path(__file__).parent / "scripts"
# Debian's own MPIs beside those of the environments: how they are launched, C's library, what Fortran programs are
# linked with, and what they know as MPI_COMM_WORLD and MPI_ERRORS_RETURN.
DEBIAN = {
    "mpich": ("mpirun.mpich", "libmpich.so.12", ["libmpichfort.so.12"], 0x44000000, 0x54000001),
    "openmpi": ("mpirun.openmpi", "libmpi.so.40", ["libmpi_mpifh.so.40", "libmpi_usempif08.so.40"], 0, 2),
}
LIBRARY_PATHS = [Path("/usr/lib"), *Path("/usr/lib").glob("*-linux-gnu")]

needs_mpi = pytest.mark.skipif(not families(), reason="no MPI in this environment")


def profiled(family, command, file=None, *, named=True):
    """What a command prints under the profile, and its JSON; the launcher may be asked for its family."""
    options = [*(["--family", family] if named else []), *(["--json", file] if file else [])]
    here = [interpreters()[family], "-m", "longshore.cli", "ranks", "profile", *options, "--"]
    return run([*here, *command], family, timeout=150)


def mpiexec(family, ranks, *words):
    python = interpreters()[family]
    return [python.parent / "mpiexec", "-n", ranks, python, *words]


def members(told):
    """A list of members as the profile tells it; both groups of an intercommunicator, one after the other."""
    maps = [
        RankMap.from_bytes(bytes.fromhex(told[name]["stored"]))
        for name in ("members", "remote_members")
        if name in told
    ]
    assert [len(each) for each in maps] == [
        told[name]["size"] for name in ("members", "remote_members") if name in told
    ]
    return tuple(rank for each in maps for rank in each)


def by_call(profile):
    """All lists of members that a call has made something of."""
    found = {}
    for told in profile["members"]:
        for call in told["calls"]:
            found.setdefault(call, set()).add(members(told))
    return found


def check_sums(profile):
    """Bytes follow from the lists, and totals from the bytes."""
    for told in profile["members"]:
        both = [told[name] for name in ("members", "remote_members") if name in told]
        assert told["list_bytes"] == 8 * sum(each["size"] for each in both) * told["lists"]
        assert told["map_bytes"] == sum(each["bytes"] for each in both) * told["lists"]
        assert sum(told["calls"].values()) == told["communicators"] + told["groups"]
    for name in ("communicators", "groups", "list_bytes", "map_bytes"):
        assert profile["total"][name] == sum(told[name] for told in profile["members"])
    assert 0 <= profile["profile_s"] <= profile["profile_all_processes_s"]
    assert profile["reports"] == profile["world"] and profile["unread_reports"] == 0


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 4, 7])
@pytest.mark.parametrize("family", families())
def test_members(family, ranks, tmp_path):
    command = mpiexec(family, ranks, SCRIPTS / "rank_profile.py", tmp_path / "expected.json")
    done = profiled(family, command, tmp_path / "profile.json", named=ranks > 1)
    assert done.returncode == 0, done.stderr
    assert "longshore rank profile" in done.stderr
    assert len(done.stdout.splitlines()) == 1, "a copy function was called, or the program printed something else"
    if ranks == 4:
        plain = run(command, family)
        assert plain.returncode == 0 and plain.stdout == done.stdout, "the program's own output is another"
        assert "longshore" not in plain.stderr

    profile = json.loads((tmp_path / "profile.json").read_text())
    assert (profile["family"], profile["world"], profile["not_followed"]) == (family, ranks, {})
    check_sums(profile)
    found = by_call(profile)
    for call, lists in json.loads((tmp_path / "expected.json").read_text()).items():
        assert found.get(call, set()) == {tuple(each) for each in lists if each}, call  # groups of nobody are not told
    if ranks == 1:
        return  # halves have the members of other communicators, too
    world = next(told for told in profile["members"] if "MPI_Init" in told["calls"])
    assert members(world) == tuple(range(ranks))
    once = (
        "MPI_Init",
        "MPI_Comm_idup",
        "MPI_Comm_dup_with_info",
        "MPI_Cart_create",
        "MPI_Graph_create",
        "MPI_Dist_graph_create",
        "MPI_Dist_graph_create_adjacent",
        "MPI_Comm_split_type",
    )
    assert world["calls"] == {**dict.fromkeys(once, 1), "MPI_Comm_dup": 3, "MPI_Comm_group": ranks}
    assert world["communicators"] == 11
    assert world["most_communicators_alive"] in (6, 7)  # Open MPI makes a duplicate for itself meanwhile
    assert (world["groups"], world["most_groups_alive"]) == (ranks, 1)
    assert world["lists"] == 6 * ranks  # its own and those of the topologies and of the node; duplicates share
    halves = [
        told for told in profile["members"] if told["calls"].get("MPI_Comm_split") and told["members"]["size"] > 1
    ]
    assert halves and all(
        half["calls"]["MPI_Comm_split"] == 3 and half["most_communicators_alive"] == 2 for half in halves
    )


@needs_mpi
@pytest.mark.parametrize("family", families())
def test_threads_at_once(family, tmp_path):
    threads, turns, ranks = 3, 10, 2
    program = f"""
import mpi4py
mpi4py.rc.thread_level = "multiple"
from mpi4py import MPI
import threading
world = MPI.COMM_WORLD
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
own = [world.Dup() for _ in range({threads})]
def work(comm):
    for turn in range({turns}):
        copy = comm.Dup()
        group = copy.Get_group()
        turned = group.Incl([1, 0])
        part = copy.Split(world.rank, 0)
        for made in (turned, group, part, copy):
            made.Free()
everybody = [threading.Thread(target=work, args=(comm,)) for comm in own]
for thread in everybody: thread.start()
for thread in everybody: thread.join()
"""
    done = profiled(family, mpiexec(family, ranks, "-c", program), tmp_path / "profile.json")
    assert done.returncode == 0, done.stderr
    profile = json.loads((tmp_path / "profile.json").read_text())
    check_sums(profile)
    of = {members(told): told for told in profile["members"]}
    groups = ranks * threads * turns
    assert of[0, 1]["calls"] == {"MPI_Init": 1, "MPI_Comm_dup": threads + threads * turns, "MPI_Comm_group": groups}
    assert of[1, 0]["calls"] == {"MPI_Group_incl": groups}
    assert 1 <= of[1, 0]["most_groups_alive"] <= threads
    assert of[0,]["calls"] == of[1,]["calls"] == {"MPI_Comm_split": threads * turns}


@needs_mpi
@pytest.mark.parametrize("family", families())
def test_processes_of_another_world(family, tmp_path):
    """Nobody hangs who meets them, and what they are members of is not taken for something of this world."""
    done = profiled(family, mpiexec(family, 2, SCRIPTS / "rank_profile_spawn.py"), tmp_path / "profile.json")
    assert done.returncode == 0, done.stderr
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert profile["world"] == 2, "the file is not that of the world that began"
    assert by_call(profile) == {"MPI_Init": {(0, 1)}}
    lost = {"MPI_Intercomm_merge": 4, "MPI_Intercomm_create": 4, "MPI_Comm_remote_group": 2, "MPI_Comm_split": 4}
    assert profile["not_followed"] == lost


@needs_mpi
@pytest.mark.parametrize("family", families())
def test_exit_code_and_no_report_without_finalize(family, tmp_path):
    program = "import os; from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); os._exit(3)"
    done = profiled(family, mpiexec(family, 1, "-c", program), tmp_path / "profile.json")
    assert done.returncode == 3
    assert list(tmp_path.iterdir()) == [] and "longshore rank profile" not in done.stderr


@needs_mpi
@pytest.mark.parametrize("family", families())
def test_another_familys_program_is_refused(family):
    other = "mpich" if family == "openmpi" else "openmpi"
    if other not in families():
        pytest.skip(f"{other} is not here")
    env = rank_profile.environment(other, None, {})
    done = run(mpiexec(family, 1, "-c", "from mpi4py import MPI; print('here')"), family, env=env)
    assert done.returncode != 0 and "here" not in done.stdout
    assert f"of the family {family}; preload the profile of that one" in done.stderr


@needs_mpi
@pytest.mark.parametrize("family", families())
def test_programs_without_mpi_are_left_alone(family):
    env = {**os.environ, **rank_profile.environment(family, None, {})}
    done = subprocess.run(["sh", "-c", "echo fine; exit 7"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (7, "fine\n", "")
    # No symbol of an MPI is asked for, and none but the calls are shown.
    import_table = subprocess.run(["nm", "-D", rank_profile.library(family)], capture_output=True, text=True)
    if import_table.returncode != 0:
        pytest.skip("nm is not here")
    undefined, shown = [], []
    for line in import_table.stdout.splitlines():
        kind, name = line.split()[-2:]
        (undefined if kind in "Uw" else shown).append(name)
    assert not [name for name in undefined if "mpi" in name.lower()]
    assert "MPI_Comm_split" in shown and all(name.lower().startswith("mpi_") for name in shown)


def test_mistakes_on_the_command_line(capsys):
    def told(*words):
        assert cli.run(["ranks", "profile", *words]) == cli.WRONG_INPUT
        return capsys.readouterr().err

    assert "no command to run" in told()
    assert "name it with --family" in told("--", "ls")
    assert "no command nothing-of-this-name" in told("--", "nothing-of-this-name")
    assert "no folder" in told("--family", "mpich", "--json", "nowhere/profile.json", "--", "ls")


@needs_mpi
@pytest.mark.parametrize("family", families())
def test_the_command_keeps_its_options(family, tmp_path):
    launcher, words = tmp_path / "mpirun", ["-n", "2", "./app", "--json", "own.json", "--", "--library"]
    launcher.write_text('#!/bin/sh\nexec printf "%s\\n" "$@"\n')
    launcher.chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "longshore.cli",
        "ranks",
        "profile",
        "--family",
        family,
        "--json",
        tmp_path / "its.json",
    ]
    done = subprocess.run([*command, launcher, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == rank_profile.command_line([launcher, *words], family, "its.json")[1:]
    assert done.stdout.split()[-len(words) :] == words


def test_open_mpis_launchers_are_told_what_to_hand_to_other_nodes():
    assert rank_profile.command_line(["mpirun", "./app"], "openmpi") == ["mpirun", "-x", "LD_PRELOAD", "./app"]
    told = ["-x", "LD_PRELOAD", "-x", "LONGSHORE_RANK_PROFILE"]
    assert rank_profile.command_line(["/opt/mpiexec.5", "./app"], "openmpi", "its.json") == [
        "/opt/mpiexec.5",
        *told,
        "./app",
    ]
    two = rank_profile.command_line(["mpirun", "-n", "1", "./app", ":", "-n", "2", "./other"], "openmpi")
    assert two == ["mpirun", "-x", "LD_PRELOAD", "-n", "1", "./app", ":", "-x", "LD_PRELOAD", "-n", "2", "./other"]
    for family, launcher in (("mpich", "mpirun"), ("abi", "mpiexec"), ("openmpi", "srun"), ("openmpi", "./app")):
        assert rank_profile.command_line([launcher, "-n", "2"], family, "its.json") == [launcher, "-n", "2"]


def debian(family):
    """How programs of Debian's MPI are launched, or a skip."""
    launcher = shutil.which(DEBIAN[family][0])
    if launcher is None or family not in families():
        pytest.skip(f"{DEBIAN[family][0]} (Debian: {'mpich' if family == 'mpich' else 'openmpi-bin'}) is not here")
    return launcher


def library_file(name):
    """A library of the system by its whole name, or a skip."""
    for folder in LIBRARY_PATHS:
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"{name} is not here")


@pytest.mark.parametrize("family", list(DEBIAN))
def test_fortran(family, tmp_path):
    """In a program, and in a library that Python loads for itself alone, after that of C."""
    launcher = debian(family)
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("gfortran is not here")
    _, of_c, libraries, world, errors_return = DEBIAN[family]
    source = ["-cpp", SCRIPTS / "rank_profile.f90", f"-DWORLD={world}", f"-DERRORS_RETURN={errors_return}"]
    build = [compiler, *source, *map(library_file, libraries), "-o"]
    program, library = tmp_path / "program", tmp_path / "library.so"
    subprocess.run([*build, program, "-DPROGRAM"], check=True)
    subprocess.run([*build, library, "-shared", "-fPIC"], check=True)
    alone = f"import ctypes; ctypes.CDLL({str(library_file(of_c))!r}); ctypes.CDLL({str(library)!r}).profiled_()"
    words = [launcher, "-n", 2, program, ":", "-n", 2, sys.executable, "-c", alone]
    done = profiled(family, words, tmp_path / "profile.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"done by rank {r}" for r in range(4)]
    profile = json.loads((tmp_path / "profile.json").read_text())
    check_sums(profile)
    assert by_call(profile) == {
        "MPI_Init": {(0, 1, 2, 3)},
        "MPI_Comm_group": {(0, 1, 2, 3)},
        "MPI_Cart_create": {(0, 1, 2, 3)},
        "MPI_Comm_split": {(2, 0), (3, 1)},
        "MPI_Comm_dup": {(2, 0), (3, 1)},
        "MPI_Cart_sub": {(0, 1), (2, 3)},
        "MPI_Group_range_incl": {(3, 1)},
        "MPI_Group_incl": {(2, 0)},
        "MPI_Comm_create": {(3, 1)},
    }
    # Once by the old names, and once by those of mpi_f08.
    for told in profile["members"]:
        for call, members_in_each in {
            "MPI_Comm_split": 1,
            "MPI_Comm_dup": 1,
            "MPI_Cart_create": 1,
            "MPI_Cart_sub": 1,
            "MPI_Comm_create": 1,
            "MPI_Comm_group": 4,
            "MPI_Group_incl": 4,
        }.items():
            assert told["calls"].get(call, 0) in (0, 2 * members_in_each), (call, told["calls"])
    halves = [told for told in profile["members"] if "MPI_Comm_dup" in told["calls"]]
    assert [told["most_communicators_alive"] for told in halves if told["calls"].get("MPI_Comm_create") is None] == [3]


def scalapack(family):
    """Debian's test programs of ScaLAPACK, or those that LONGSHORE_SCALAPACK_TESTS names, or a skip."""
    folders = [
        Path(os.environ.get("LONGSHORE_SCALAPACK_TESTS", "/nowhere")),
        *(path / "scalapack" for path in LIBRARY_PATHS),
    ]
    for folder in folders:
        if (folder / f"{family}-tests" / "xdlu").exists():
            return folder / f"{family}-tests"
    pytest.skip("ScaLAPACK's test programs (Debian: scalapack-mpi-test) are not here")


# Few and small matrices, on three process grids.
LU_DATA = """'ScaLAPACK LU factorization input file'
'few matrices'
'LU.out'    output file name (if any)
6           device out
1           number of problems sizes
13          values of M
13          values of N
1           number of NB's
3           values of NB
1           number of NRHS's
3           values of NRHS
1           number of NBRHS's
3           values of NBRHS
3           number of process grids (ordered pairs of P & Q)
2 1 4       values of P
2 4 1       values of Q
1.0         threshold
F           (T or F) Test Cond. Est. and Iter. Ref. Routines
"""


@pytest.mark.parametrize("family", list(DEBIAN))
def test_scalapack(family, tmp_path, monkeypatch):
    launcher = debian(family)
    (tmp_path / "LU.dat").write_text(LU_DATA)
    monkeypatch.chdir(tmp_path)
    done = profiled(family, [launcher, "-n", 4, scalapack(family) / "xdlu"], tmp_path / "profile.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 tests completed and passed residual checks" in done.stdout, done.stdout
    profile = json.loads((tmp_path / "profile.json").read_text())
    check_sums(profile)
    assert profile["not_followed"] == {}
    found = set().union(*by_call(profile).values())
    # The rows and columns of the grids 2 x 2, 1 x 4 and 4 x 1, which number processes by rows.
    assert found == {(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3), (0,), (1,), (2,), (3,)}
