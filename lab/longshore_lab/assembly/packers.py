"""MPI_Pack and MPI_Unpack for `longshore bench assembly`: one child process for each MPI, which packs when it is its
turn.

A process has one MPI, so each has a process of its own, under the interpreter of the environment that it is installed
in, commanded through a pipe. It has its own memory, rewrites and checks it itself, and times MPI's functions in C.
"""

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from functools import partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from .. import _loops
from ..launch import child_environment, last_words
from ..machine import describe_mpi
from ..protocol import Context, Missing, Ready, missing, quickest, words_of
from .contenders import Arena, Packing
from .patterns import make_pattern

FAMILIES = {"mpich": "MPI_Pack, MPICH", "openmpi": "MPI_Pack, Open MPI"}
PACKERS = tuple(FAMILIES.values())
_START_SECONDS, _ANSWER_SECONDS = 60.0, 120.0


class PackerError(Missing):
    """The child has ended, hangs, or cannot do what it was asked."""


class Packer:
    """A child process with one MPI. `ask` sends a request and waits for its answer."""

    def __init__(self, python):
        # The other environment takes these very packages: what packs there is checked by the same code.
        path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
        env = child_environment({"PYTHONPATH": path})
        self._output, self._trouble = tempfile.NamedTemporaryFile(prefix="longshore-bench-"), ""
        self._pipe, theirs = Pipe()
        with theirs:
            words, pass_fds = [python, "-m", __spec__.name, str(theirs.fileno())], [theirs.fileno()]
            streams = {"stdin": subprocess.DEVNULL, "stdout": self._output, "stderr": subprocess.STDOUT}
            self._process = subprocess.Popen(words, **streams, pass_fds=pass_fds, env=env, start_new_session=True)
        told = self.ask("hello", _START_SECONDS)
        self.name, self.library = FAMILIES[told["family"]], told["library"]

    def ask(self, what, patience=_ANSWER_SECONDS, **request):
        if self._trouble:
            raise PackerError(self._trouble)
        try:
            self._pipe.send((what, request))
            if not self._pipe.poll(patience):
                self._process.kill()
                self._trouble = f"its process did not answer within {patience:.0f} s and was ended"
            answer = self._pipe.recv()
        except (OSError, EOFError):
            self.close()
            words = last_words(Path(self._output.name))
            self._trouble = self._trouble or f"its process ended with code {self._process.returncode}: {words}"
            raise PackerError(self._trouble) from None
        if "why" in answer:
            raise PackerError(answer["why"])
        return answer

    def close(self):
        self._pipe.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Asking(Ready):
    """A child that packs a pattern it knows already, on arrays of its own."""

    def __init__(self, packer, arena, direction):
        self._ask, self._warm, self.passes = partial(packer.ask, direction=direction), arena.passes > 1, 1
        self.detail = self._ask("prepare")["detail"]
        self.passes = arena.passes_of(self.sample())

    def sample(self, context=None):
        return self._ask("time", warm=self._warm, passes=self.passes)["seconds"]

    def check(self):
        self._ask("check")


def interpreters(given=()):
    """This interpreter and those named, else those of environments beside this one (.venv, .venv-openmpi)."""
    found, home = [sys.executable, *given], Path(sys.prefix)
    stem = home.name.split("-")[0]
    for other in [] if given else sorted(home.parent.glob(stem + "*")):
        python = other / "bin" / "python"
        if other != home and (other.name + "-").startswith(stem + "-") and os.access(python, os.X_OK):
            found.append(str(python))
    return found


def start(given=()):
    """The children by contender, and the contenders that are missing."""
    packers, why = {}, ["no environment beside this one has it (--mpi-python names an interpreter)"]
    for python in interpreters(given):
        try:
            packer = Packer(python)
        except (PackerError, OSError) as error:
            why.append(str(error))
            continue
        if packers.setdefault(packer.name, packer) is not packer:
            packer.close()
    return packers, [missing(name, "; ".join(dict.fromkeys(why))) for name in PACKERS if name not in packers]


class _Datatypes:
    """The datatypes of one side of a pattern, in each way that an expert would try; kept until `free`."""

    def __init__(self, side, element):
        from mpi4py import MPI

        # What is no number is a block of numbers.
        numbers = {4: MPI.FLOAT, 8: MPI.DOUBLE, 16: MPI.C_DOUBLE_COMPLEX}
        self._base = numbers.get(element) or (MPI.DOUBLE if element % 8 == 0 else MPI.FLOAT)
        self._size, self._held, self.options = self._base.Get_size(), [], []
        nests = {"vectors": self._vectors, "hvectors of contiguous": self._hvectors}
        lists = {"indexed_block": self._indexed, "indexed_block of contiguous": self._indexed_blocks}
        for words, build in (lists if side.listed else nests).items():
            starts, types = [piece.start for piece in side.pieces], [build(piece) for piece in side.pieces]
            datatype = types[0]
            if len(types) > 1 or starts[0] != 0:
                datatype = self._keep(MPI.Datatype.Create_struct([1] * len(types), starts, types))
                words = f"struct of {words}"
            datatype.Commit()
            self.options.append((words, datatype))

    def free(self):
        for datatype in reversed(self._held):
            datatype.Free()

    def _keep(self, datatype):
        self._held.append(datatype)
        return datatype

    def _contiguous(self, block):
        return self._keep(self._base.Create_contiguous(block // self._size))

    def _hvectors(self, nest, built=None):
        built = built or self._contiguous(nest.block)
        for count, stride in reversed(nest.loops):
            built = self._keep(built.Create_hvector(count, 1, stride))
        return built

    def _vectors(self, nest):
        if not nest.loops:
            return self._contiguous(nest.block)
        (*outer, (count, stride)), length = nest.loops, nest.block // self._size
        if stride % self._size == 0:
            inner = self._base.Create_vector(count, length, stride // self._size)
        else:
            inner = self._base.Create_hvector(count, length, stride)
        return self._hvectors(nest._replace(loops=tuple(outer)), self._keep(inner))

    def _indexed(self, listed):
        length = listed.block // self._size
        return self._keep(self._base.Create_indexed_block(length, listed.places * length))

    def _indexed_blocks(self, listed):
        return self._keep(self._contiguous(listed.block).Create_indexed_block(1, listed.places))


class _Child:
    """What requests may ask for, by the name of the method."""

    def __init__(self):
        described = describe_mpi()
        if len(described["mapped"]) != 1:
            raise PackerError(f"{len(described['mapped'])} MPI libraries in one process")
        library = ctypes.CDLL(described["mapped"][0])
        self._functions = {"assembly": library.MPI_Pack, "disassembly": library.MPI_Unpack}
        self._described, self._arena, self._packings, self._types = described, None, {}, []

    def hello(self):
        return {name: self._described[name] for name in ("family", "library")}

    def case(self, key, n):
        if self._arena is None or (self._arena.pattern.key, self._arena.pattern.n) != (key, n):
            self._arena, self._packings = None, {}  # before the next one's memory is taken
            while self._types:
                self._types.pop().free()
            self._arena = Arena(make_pattern(key, n))
        return {}

    def prepare(self, direction):
        """The fastest of the datatypes."""
        pattern = self._arena.pattern
        self._types.append(_Datatypes(pattern.side(direction), pattern.element))
        ways = [(words, self._packing(datatype, direction)) for words, datatype in self._types[-1].options]
        self._packings[direction] = quickest(Context(), ways, self._arena.trials)
        return {"detail": self._packings[direction].detail}

    def _packing(self, datatype, direction):
        from mpi4py import MPI

        payload = self._arena.pattern.payload_bytes
        if payload >= 2**31:
            raise PackerError("the payload does not fit MPI_Pack's int")
        function = ctypes.cast(self._functions[direction], ctypes.c_void_p).value
        handles = [ctypes.c_int64(thing.handle).value for thing in (datatype, MPI.COMM_SELF)]
        packs = direction == "assembly"
        carrier = _loops.mpi_carrier(function, MPI._sizeof(MPI.Datatype), *handles, payload, packs)
        return Packing(self._arena, direction, partial(carrier.seconds, *self._arena.addresses(direction)))

    def time(self, direction, warm, passes):
        packing = self._packings[direction]
        # Who has waited for its turn finds its addresses untranslated and its library cold: the others have not waited.
        self._arena.refresh(direction)
        packing.seconds(1)
        self._arena.refresh(direction)
        if warm:
            packing.seconds(1)
        return {"seconds": packing.seconds(passes)}

    def check(self, direction):
        self._arena.refresh(direction)
        self._packings[direction].seconds(1)
        self._packings[direction].check()
        return {}


def main(descriptor):
    """Answers requests until the pipe is closed."""
    pipe, child = Connection(int(descriptor)), None
    with contextlib.suppress(EOFError):
        while True:
            what, request = pipe.recv()
            try:
                child = child or _Child()
                pipe.send(getattr(child, what)(**request))
            except Exception as error:
                pipe.send({"why": words_of(error)})


if __name__ == "__main__":
    main(sys.argv[1])
