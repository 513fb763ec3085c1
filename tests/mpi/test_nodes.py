"""What leaves a node: checks of scripts/ with every MPI that is there, on nodes that are namespaces of this machine
(lab/longshore_lab/nodes.py); and with MPICH alone, which where told so takes its ranks for those of several nodes.
"""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import launch
import pytest
from launch import families, interpreters
from shared_jobs import ENDS, Jobs

# In the laboratory for its benches, though it needs nothing but the library.
PATH = Path(__file__).parents[2] / "lab" / "longshore_lab" / "nodes.py"
_spec = importlib.util.spec_from_file_location("longshore_lab_nodes", PATH)
lab = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(lab)

RATE = "1gbit"
UNEVEN = "3+1", "1+2+1+1"  # ranks on each node
CLIQUES = "3+2 in cliques"

ALWAYS = [
    "several_nodes.as_asked",
    "several_nodes.shared_arrays_stay_within_their_nodes",
    "several_nodes.ranks_of_different_nodes_disagree",
    "random_plans.moved(25)",  # every kind of layout, any numbers of ranks, `max_mem=`, shared arrays and others
]
PAYLOAD = [
    "several_nodes.payload_is_what_the_links_carry",
    "several_nodes.payload_of_blocks",
]
# Each half is run on two nodes with one MPI and on four with the other.
HALVES = [
    [
        "blocks.halos_and_copies(10)",
        "fields.together(12)",  # `exchange=`, packets
        "phases.some_ranks_have_a_bound",
        "ghosts.wanted_boxes",  # plans of which each rank has its own part
        "ghosts.mistakes_of_one_rank",
        "rank_groups.messages",
        "mistakes.virtual_communicators",
        "behaviour.movers_in_flight",
        "arrivals.of_fields(12)",
        "arrivals.before_others_have_started",
        "several_nodes.a_move_that_fails_on_one_rank",
    ],
    [
        "blocks.two_in_flight_and_reductions",
        "block_kinds.every_kind(6)",
        "phases.same_as_at_once(6)",
        "ghosts.ranges_of_vertices",
        "rank_groups.splits",
        "moves.one_process_fails_in_the_middle",
        "mistakes.binding_blocks_otherwise",
        "behaviour.disagreements",
        "behaviour.memory_limits",
        "arrivals.of_every_kind(12)",
        "arrivals.at_the_end",
    ],
]
WINDOWS = [
    "several_nodes.strips_take_the_link",
    "windows.sections(6)",
    "windows.puts(2)",
    "windows.global_indices",
    "windows.strips_of_all_kinds",
    "windows.strips_that_ranks_find_together",
    "windows.mistakes_of_one_rank",
    "windows.handles_that_are_dropped",
    "windows.owners_need_not_take_part",
]


def cases():
    """(family, ranks, check). Before a commit there is one launch; all others are slow."""
    for family, halves in zip(families(), (HALVES, HALVES[::-1])):
        for ranks, half in zip(UNEVEN, halves):
            for check in (*ALWAYS, *PAYLOAD, *half, *WINDOWS, ENDS):
                first = (family, ranks) == (families()[0], UNEVEN[0]) and check in (*ALWAYS, ENDS)
                yield pytest.param(family, ranks, check, marks=() if first else pytest.mark.slow)
    for check in (*ALWAYS, *HALVES[0][:-1], ENDS) if "mpich" in families() else ():
        yield pytest.param("mpich", CLIQUES, check, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def nodes():
    """Two and four, by their number; or why there are none. In CI, root has to have what is needed installed."""
    with contextlib.ExitStack() as made:
        try:
            given = {count: made.enter_context(lab.Nodes(count, RATE)) for count in (2, 4)}
        except lab.CannotMakeNodes as error:
            if isinstance(error, lab.ToolsMissing) and os.geteuid() == 0 and os.environ.get("CI") == "true":
                raise
            given = f"no nodes can be made here: {error}"
        yield given


@pytest.fixture
def needs_nodes(nodes):
    if isinstance(nodes, str):
        pytest.skip(nodes)


@pytest.fixture(scope="module")
def mpiexec(nodes):
    """As launch.mpiexec, where "3+1" ranks are three on the first of two nodes and one on the other."""

    def on_nodes(family, ranks, program, *args):
        python, counts = interpreters()[family], [int(count) for count in ranks.split()[0].split("+")]
        if ranks == CLIQUES:
            # With UCX between cliques, MPICH 5.0.2 waits for ever for what a receive from any source could have.
            cliques = [
                f"MPIR_CVAR_NUM_CLIQUES={len(counts)}",
                "MPIR_CVAR_CLIQUES_BY_BLOCK=1",
                "MPIR_CVAR_CH4_NETMOD=ofi",
            ]
            return ["env", *cliques, *launch.mpiexec(family, sum(counts), program, *args)]
        words = nodes[len(counts)].launcher(counts, python.parent / "mpiexec").arguments(sum(counts))
        return [*words, python, program, *args]

    return on_nodes


@pytest.fixture(scope="module")
def jobs(request, mpiexec, tmp_path_factory):
    planned = {}
    for item in request.session.items:
        if item.originalname == "test_check_on_nodes":
            family, ranks, check = (item.callspec.params[name] for name in ("family", "ranks", "check"))
            planned.setdefault((family, ranks), []).append(check)
    # A rank that is alone on its node does not know that it shares the processors with those of the others.
    jobs = Jobs(planned, tmp_path_factory.mktemp("nodes"), limit_s=240, mpiexec=mpiexec)
    yield jobs
    jobs.close()


@pytest.mark.parametrize("family, ranks, check", list(cases()))
def test_check_on_nodes(request, jobs, family, ranks, check):
    if ranks in UNEVEN:
        request.getfixturevalue("needs_nodes")
    jobs.expect(family, ranks, check)


DIES = """
import os, signal, sys
import longshore as ls
from mpi4py import MPI
world = MPI.COMM_WORLD
rows, columns = (ls.Layout(f"({dims}) on {world.size}", (512, 512)) for dims in ("BLOCK, *", "*, BLOCK"))
a, b = (ls.empty(side, "f8", comm=world) for side in (rows, columns))
mover = ls.plan(rows, columns, "f8").bind(a, b, comm=world)
for move in range(1_000_000):
    if move == 20 and world.rank == int(sys.argv[1]):
        print("dies", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    mover()
"""


@pytest.mark.slow
@pytest.mark.parametrize("family, victim", [*zip(families(), (1, 3))])  # with others on its node, and alone
def test_a_rank_that_dies_ends_the_job(needs_nodes, mpiexec, family, victim, tmp_path):
    (tmp_path / "dies.py").write_text(DIES)
    done = launch.run(mpiexec(family, "3+1", tmp_path / "dies.py", victim), family, timeout=140)
    assert done.returncode != 0 and "dies" in done.stdout, done.stderr[-2000:]


@pytest.mark.skipif("openmpi" not in families(), reason="MPICH's launcher keeps no files")
def test_launchers_keep_their_files_apart(needs_nodes, mpiexec, tmp_path):
    """Whose names have process numbers in them, which are the same on each node: one would remove the other's."""
    (tmp_path / "place.py").write_text("import os; print(os.environ['PMIX_SERVER_TMPDIR'])")
    done = launch.run(mpiexec("openmpi", "1+2+1+1", tmp_path / "place.py"), "openmpi", timeout=140)
    places = [Path(place) for place in done.stdout.split()]
    assert len(places) == 5 and len({place.parent for place in places}) == 4, done.stdout + done.stderr[-2000:]


MAKES_NODES = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("nodes", {str(PATH)!r})
nodes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nodes)
with nodes.Nodes(2) as two:
    two.run([sys.executable, *sys.argv[1:]], [1, 1])
"""

WAITS = """
import pathlib, sys, time
from mpi4py import MPI
pathlib.Path(sys.argv[1], str(MPI.COMM_WORLD.rank)).touch()
time.sleep(600)
"""


def mentioning(words):
    """The processes whose commands have these words in them."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words.encode() in command.read_bytes():
                found.append(int(command.parent.name))
    return found


def waited_for(what, seconds=30):
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nodes_go_with_who_made_them(needs_nodes, number, tmp_path):
    (tmp_path / "waits.py").write_text(WAITS)
    command = [sys.executable, "-c", MAKES_NODES, tmp_path / "waits.py", tmp_path]
    maker = subprocess.Popen(command, start_new_session=True, env=os.environ | {"TMPDIR": str(tmp_path)})
    try:
        assert waited_for(lambda: {"0", "1"} <= {file.name for file in tmp_path.iterdir()})
        assert len(mentioning(str(tmp_path))) >= 4  # the maker, mpiexec, and the ranks
    finally:
        maker.send_signal(number)
        maker.wait()
    assert waited_for(lambda: not mentioning(str(tmp_path))), mentioning(str(tmp_path))


def test_what_cannot_be_had_is_told(monkeypatch):
    monkeypatch.setattr(lab.shutil, "which", lambda name, **_: None if name == "tc" else name)
    with pytest.raises(lab.ToolsMissing, match=r"not installed: tc \(Debian: iproute2\)"), lab.Nodes(2):
        pass


@pytest.mark.slow
def test_nothing_is_left_of_nodes_that_could_not_be_made(needs_nodes):
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text()
    with pytest.raises(lab.CannotMakeNodes, match="tbf"), lab.Nodes(2, rate="fast"):
        pass
    assert children.read_text() == before
