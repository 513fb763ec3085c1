"""Several nodes on one machine: each has a network, a host name, processes and shared memory of its own, and a link of
a chosen rate to the others.

    with Nodes(2, rate="1gbit") as nodes:
        nodes.run([sys.executable, "program.py"], ranks=[3, 1])  # three ranks on node 0, one on node 1
        nodes.bytes_sent(0)  # through its link, until now
        run_child(spec, launcher=nodes.launcher([1, 1]), ranks=2)

    python -m longshore_lab.nodes --rate 1gbit 3,1 python program.py

A node is a process that holds Linux namespaces and reads its standard input, which is a pipe from whoever makes the
nodes. Its link leads to a bridge in one more network namespace, where mpiexec is started. Nothing of this has a name
on the machine. When the maker ends, however it ends, the pipes are closed, the holders end, and the kernel ends what
runs on the nodes and takes their links away. Root may make nodes, and users where the kernel lets them have namespaces.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from longshore.tune.launcher import Launcher, child_environment, end, find_launcher

__all__ = ["CannotMakeNodes", "Nodes", "ToolsMissing"]

_TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}  # Debian's packages
_PATH = {"PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])}  # users' paths lack them
_SUBNET = "10.77.0"
_LINK = "ls0"  # a node's end of its link

# Through the links, and by no other interface.
_ENV = {
    "hydra": {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": _LINK, "UCX_TLS": "tcp,self"},
    "openmpi": {
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self,sm",
        "OMPI_MCA_btl_tcp_if_include": _LINK,
        "PRTE_MCA_prte_if_include": f"{_SUBNET}.0/24",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",  # users are that in namespaces of theirs
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    },
}


class CannotMakeNodes(Exception):
    """What the machine does not let us do."""


class ToolsMissing(CannotMakeNodes):
    """The programs that are not installed."""


class Nodes:
    """A context: `count` nodes, each with a link of `rate` both ways, as tc writes rates ("1gbit"); without one, links
    are as fast as the machine. Entering raises CannotMakeNodes where that is not possible, and says why."""

    def __init__(self, count, rate=None):
        self.count, self._rate = count, rate
        self._pids = []

    def __enter__(self):
        lacking = {tool: package for tool, package in _TOOLS.items() if shutil.which(tool, path=_PATH["PATH"]) is None}
        if lacking:
            packages = " ".join(sorted(set(lacking.values())))
            raise ToolsMissing(f"not installed: {', '.join(lacking)} (Debian: {packages})")
        with contextlib.ExitStack() as closing:
            self._folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="longshore-nodes-")))
            self._make(closing)
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *_):
        self._closing.close()

    def _make(self, closing):
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        self._bridge = _hold(closing, ["unshare", *user, "--net"], "ip link add br0 type bridge")
        self._on_bridge("ip", "addr", "add", f"{_SUBNET}.254/24", "dev", "br0")
        self._on_bridge("ip", "link", "set", "br0", "up")
        for k in range(self.count):
            own = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--mount-proc"]
            setup = f"mount -t tmpfs none /dev/shm && hostname node{k} && ip link set lo up"
            pid = _hold(closing, [*_enter(self._bridge, "user"), *own], setup)
            self._pids.append(pid)
            port = f"port{k}"
            self._on_bridge("ip", "link", "add", port, "type", "veth", "peer", "name", _LINK, "netns", str(pid))
            self._on_bridge("ip", "link", "set", port, "master", "br0")
            for name, where in ((port, self._bridge), (_LINK, pid)):
                inside = _enter(where, "user", "net")
                if self._rate is not None:
                    queue = ["tbf", "rate", self._rate, "burst", "80kb", "latency", "50ms"]
                    _call(*inside, "tc", "qdisc", "add", "dev", name, "root", *queue)
                # Without an address of IPv6, which is not valid at first: libfabric would take another interface.
                _call(*inside, "ip", "link", "set", name, "addrgenmode", "none", "up")
            _call(*_enter(pid, "user", "net"), "ip", "addr", "add", f"{_address(k)}/24", "dev", _LINK)
        self._agent = self._folder / "on_node"
        # Launchers name folders by process numbers, which are the same on several nodes: each has its own for them.
        for k in range(self.count):
            (self._folder / f"node{k}").mkdir()
        cases = "\n".join(f"{_address(k)}) node={k} holder={pid} ;;" for k, pid in enumerate(self._pids))
        enter = " ".join(_enter("$holder", "net", "uts", "ipc", "mnt", "pid_for_children"))
        self._agent.write_text(
            "#!/bin/sh\n# HOST COMMAND...: in place of ssh\n"
            f'case $1 in\n{cases}\n*) echo "there is no node $1" >&2; exit 1 ;;\nesac\nshift\n'
            f"export TMPDIR='{self._folder}'/node$node\n"
            f"exec {enter} sh -c \"cd '$PWD' && $*\"\n"
        )
        self._agent.chmod(0o700)

    def _on_bridge(self, *words):
        _call(*_enter(self._bridge, "user", "net"), *words)

    def launcher(self, ranks, mpiexec=None):
        """A Launcher, found as find_launcher does, that starts ranks[k] ranks on node k, those of node 0 first. Ask its
        arguments() for the sum of them."""
        if len(ranks) != self.count:
            raise ValueError(f"{len(ranks)} numbers of ranks are given for {self.count} nodes")
        found = find_launcher(mpiexec)
        if found.family not in _ENV:
            raise CannotMakeNodes(f"{found.command[0]} is neither MPICH's nor Open MPI's mpiexec")
        hosts = ",".join(f"{_address(k)}:{n}" for k, n in enumerate(ranks) if n)
        if found.family == "hydra":
            how = ["-launcher", "rsh", "-launcher-exec", self._agent, "-iface", "br0", "-hosts", hosts]
        else:
            how = ["--prtemca", "plm_ssh_agent", self._agent, "--host", hosts, "--bind-to", "none", "--oversubscribe"]
        env = {"TMPDIR": self._folder, **_ENV[found.family]}
        words = [*_enter(self._bridge, "user", "net"), "env", *(f"{name}={value}" for name, value in env.items())]
        words += [*found.command, *how]
        return Launcher(tuple(map(str, words)), "unknown")  # whose arguments() add the number only

    def run(self, command, ranks, *, mpiexec=None, timeout=60, env=None):
        """Runs a command on ranks[k] ranks of each node k and returns a CompletedProcess with what it printed. Raises
        subprocess.TimeoutExpired where it takes longer than `timeout` seconds, and ends it."""
        words = [*self.launcher(ranks, mpiexec).arguments(sum(ranks)), *map(str, command)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(words, **pipes, env=child_environment(env), start_new_session=True)
        try:
            said = process.communicate(timeout=timeout)
        finally:
            end(process)
        return subprocess.CompletedProcess(words, process.returncode, *said)

    def bytes_sent(self, node):
        """What has left a node through its link since it was made, with the headers of all packets."""
        lines = Path(f"/proc/{self._pids[node]}/net/dev").read_text().splitlines()
        return next(int(line.split()[9]) for line in lines if line.split()[0] == f"{_LINK}:")


def _address(node):
    return f"{_SUBNET}.{node + 1}"


def _enter(holder, *kinds):
    """The beginning of a command that is carried out in these namespaces of a process; root is in no user's."""
    root = os.geteuid() == 0
    words = ["nsenter"] if root else ["nsenter", "--preserve-credentials"]
    names = {"mnt": "mount", "pid_for_children": "pid"}
    inside = [f"--{names.get(kind, kind)}=/proc/{holder}/ns/{kind}" for kind in kinds if not (root and kind == "user")]
    return [*words, *inside] if inside else []


def _hold(closing, words, setup):
    """Starts a process that holds what these words make, and does the setup in there. It ends when its input does."""
    script = f"{{ {setup}; }} && echo && exec cat"
    process = subprocess.Popen(
        [*words, "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | _PATH,
        start_new_session=True,  # out of reach of the keyboard's interrupt
    )
    closing.callback(_let_go, process)
    said = process.stdout.readline()
    if said != b"\n":
        raise CannotMakeNodes(f"`{' '.join(words)} sh -c '{setup}'`: {said.decode().strip()}")
    return process.pid


def _let_go(process):
    process.stdin.close()
    process.stdout.close()
    process.wait()


def _call(*words):
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | _PATH)
    if done.returncode:
        raise CannotMakeNodes(f"`{' '.join(words)}`: {done.stderr.strip()}")


def _main():
    parser = argparse.ArgumentParser(
        prog="python -m longshore_lab.nodes", description="Runs a program on several nodes."
    )
    parser.add_argument("--rate", help="of each link, as tc writes rates, such as 1gbit")
    parser.add_argument("--mpiexec", help="instead of this environment's own")
    parser.add_argument("ranks", help="of each node, such as 3,1", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    try:
        with Nodes(len(given.ranks), given.rate) as nodes:
            words = nodes.launcher(given.ranks, given.mpiexec).arguments(sum(given.ranks))
            code = subprocess.call([*words, *given.command], env=child_environment())
            for k in range(nodes.count):
                print(f"node {k} has sent {nodes.bytes_sent(k):,} bytes", file=sys.stderr)
            return code
    except CannotMakeNodes as error:
        return f"several nodes cannot be made here: {error}"


if __name__ == "__main__":
    sys.exit(_main())
