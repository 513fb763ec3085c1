"""MPI_Pack and MPI_Unpack for `longshore bench assembly`: one child process for each MPI, which packs when it is its turn.

A process has one MPI. So each runs in a process of its own, `python -m longshore.bench.packers`, under the interpreter of the
environment that it is installed in, and is commanded through pipes: one line of JSON a request, one an answer. It has its own
memory, rewrites it itself, checks its own results, and times MPI's functions in C.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .arena import Arena
from .harness import child_environment, last_words
from .patterns import Nest, Places, Side, make_pattern

FAMILIES = {"mpich": "MPI_Pack, MPICH", "openmpi": "MPI_Pack, Open MPI"}
PACKERS = tuple(FAMILIES.values())
_START_SECONDS = 60.0
_ANSWER_SECONDS = 120.0
_MODULE = "longshore.bench.packers"


class PackerError(Exception):
    """The child has ended, hangs, or cannot do what it was asked. The text says why."""


# --- this side -------------------------------------------------------------------------------------------------------


class Packer:
    """A child process with one MPI. `ask` sends a request and waits for its answer."""

    def __init__(self, python: str) -> None:
        # The other environment takes this very package: what packs there is checked by the same code.
        package = os.path.dirname(os.path.abspath(sys.modules[__package__.split(".")[0]].__path__[0]))
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._folder = tempfile.TemporaryDirectory(prefix="longshore-bench-")
        self._output = Path(self._folder.name) / "output"
        self._process = subprocess.Popen(
            [python, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output.open("wb"),
            env=child_environment({"PYTHONPATH": path}),
            start_new_session=True,
        )
        self._buffer = b""
        self._trouble = ""  # why there will be no more answers
        try:
            told = self.ask({"do": "hello"}, _START_SECONDS)
        except PackerError:
            self.close()
            raise
        self.family: str = told["family"]
        self.library: str = told["library"]

    @property
    def name(self) -> str:
        return FAMILIES[self.family]

    def ask(self, request: dict[str, Any], patience: float = _ANSWER_SECONDS) -> dict[str, Any]:
        assert self._process.stdin is not None
        if self._trouble:
            raise PackerError(self._trouble)
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            self._process.stdin.flush()
            answer = json.loads(self._line(patience))
        except (OSError, ValueError):
            raise PackerError(self._end()) from None
        if "why" in answer:
            raise PackerError(answer["why"])
        return answer

    def _line(self, patience: float) -> bytes:
        assert self._process.stdout is not None
        descriptor, deadline = self._process.stdout.fileno(), time.monotonic() + patience
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                self._process.kill()
                self.close()
                self._trouble = f"its process did not answer within {patience:.0f} s and was ended"
                raise PackerError(self._trouble)
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                raise OSError("ended")
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _end(self) -> str:
        words = last_words(self._output)
        self.close()
        self._trouble = f"its process ended with code {self._process.returncode}: {words}"
        return self._trouble

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def interpreters(given: Iterable[str] = ()) -> list[str]:
    """This interpreter and those that were named, else those of
    the environments beside this one (.venv, .venv-openmpi)."""
    found = [sys.executable, *given]
    if len(found) == 1:
        home = Path(sys.prefix)
        stem = home.name.split("-")[0]
        for other in sorted(home.parent.glob(stem + "*")):
            python = other / "bin" / "python"
            if (
                (other == home.parent / stem or other.name.startswith(stem + "-"))
                and other != home
                and os.access(python, os.X_OK)
            ):
                found.append(str(python))
    return found


def start(given: Iterable[str] = ()) -> tuple[dict[str, Packer], list[dict[str, Any]]]:
    """The children by contender, and the contenders that are missing with the reason."""
    packers: dict[str, Packer] = {}
    reasons = []
    for python in interpreters(given):
        try:
            packer = Packer(python)
        except (PackerError, OSError) as error:
            reasons.append(str(error))
            continue
        if packer.name in packers:
            packer.close()
        else:
            packers[packer.name] = packer
    why = "no environment beside this one has it (--mpi-python names an interpreter)"
    if reasons:
        why += "; " + "; ".join(dict.fromkeys(reasons))
    return packers, [{"contender": name, "why": why, "cases": []} for name in PACKERS if name not in packers]


# --- the child's side ------------------------------------------------------------------------------------------------


class _Datatypes:
    """The datatypes of one side of a pattern, in each way that
    an expert would try. Keeps what it makes until `free`."""

    def __init__(self, side: Side, element: int) -> None:
        from mpi4py import MPI

        base = {4: MPI.FLOAT, 8: MPI.DOUBLE, 16: MPI.C_DOUBLE_COMPLEX}.get(element)
        # What is no number is a block of numbers.
        self._base = base if base is not None else MPI.DOUBLE if element % 8 == 0 else MPI.FLOAT
        self._size = self._base.Get_size()
        self._held: list[Any] = []
        self.options: list[tuple[str, Any]] = []
        if any(isinstance(piece, Places) for piece in side.pieces):
            ways = {"indexed_block": self._indexed, "indexed_block of contiguous": self._indexed_blocks}
        else:
            ways = {"vectors": self._vectors, "hvectors of contiguous": self._hvectors}
        for words, build in ways.items():
            parts = [(getattr(piece, "start", 0), build(piece)) for piece in side.pieces]
            start, datatype = parts[0]
            if len(parts) > 1 or start != 0:
                starts, types = zip(*parts)
                datatype = self._keep(MPI.Datatype.Create_struct([1] * len(parts), list(starts), list(types)))
                words = f"struct of {words}"
            datatype.Commit()
            self.options.append((words, datatype))

    def free(self) -> None:
        for datatype in reversed(self._held):
            datatype.Free()

    def _keep(self, datatype: Any) -> Any:
        self._held.append(datatype)
        return datatype

    def _contiguous(self, block: int) -> Any:
        return self._keep(self._base.Create_contiguous(block // self._size))

    def _outer(self, built: Any, loops: Iterable[tuple[int, int]]) -> Any:
        for count, stride in reversed(list(loops)):
            built = self._keep(built.Create_hvector(count, 1, stride))
        return built

    def _vectors(self, nest: Nest) -> Any:
        if not nest.loops:
            return self._contiguous(nest.block)
        count, stride = nest.loops[-1]
        length = nest.block // self._size
        if stride % self._size == 0:
            inner = self._keep(self._base.Create_vector(count, length, stride // self._size))
        else:
            inner = self._keep(self._base.Create_hvector(count, length, stride))
        return self._outer(inner, nest.loops[:-1])

    def _hvectors(self, nest: Nest) -> Any:
        return self._outer(self._contiguous(nest.block), nest.loops)

    def _indexed(self, listed: Places) -> Any:
        length = listed.block // self._size
        return self._keep(self._base.Create_indexed_block(length, listed.places * length))

    def _indexed_blocks(self, listed: Places) -> Any:
        return self._keep(self._contiguous(listed.block).Create_indexed_block(1, listed.places))


class _Child:
    def __init__(self) -> None:
        import ctypes

        from mpi4py import MPI

        from .. import _bench
        from .contenders.scalapack import mapped_mpi_libraries

        self._bench = _bench
        libraries = mapped_mpi_libraries()
        if len(libraries) != 1:
            raise PackerError(f"{len(libraries)} MPI libraries in one process")
        library = ctypes.CDLL(libraries[0])
        self._functions = {
            "assembly": ctypes.cast(library.MPI_Pack, ctypes.c_void_p).value,
            "disassembly": ctypes.cast(library.MPI_Unpack, ctypes.c_void_p).value,
        }
        self._handle_bytes = MPI._sizeof(MPI.Datatype)
        self._arena: Arena | None = None
        self._carriers: dict[str, Any] = {}
        self._types: list[_Datatypes] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        return getattr(self, "_" + request.pop("do"))(**request)

    def _hello(self) -> dict[str, Any]:
        from mpi4py import MPI

        lines = [x.strip() for x in MPI.Get_library_version().replace("\x00", "").splitlines() if x.strip()]
        # Open MPI's line goes on with who built it, and where: no host's name belongs into a result.
        words = " ".join(lines[0].split(", package:")[0].replace("Version:", "").split())
        return {"family": "openmpi" if "open mpi" in MPI.get_vendor()[0].lower() else "mpich", "library": words}

    def _case(self, key: str, n: int) -> dict[str, Any]:
        self._arena, self._carriers = None, {}  # before the next one's memory is taken
        while self._types:
            self._types.pop().free()
        self._arena = Arena(make_pattern(key, n))
        return {}

    def _prepare(self, direction: str) -> dict[str, Any]:
        """The fastest of the datatypes, and whether its result is right."""
        arena = self._arena
        assert arena is not None
        self._types.append(_Datatypes(arena.pattern.side(direction), arena.pattern.element))
        options = [(words, self._carrier(datatype, direction)) for words, datatype in self._types[-1].options]
        to, from_ = arena.addresses(direction)
        ways = [lambda passes, c=carrier: c.seconds(to, from_, passes) for _, carrier in options]
        words, self._carriers[direction] = options[arena.fastest(ways, direction)]
        return {"detail": words}

    def _carrier(self, datatype: Any, direction: str) -> Any:
        from mpi4py import MPI

        assert self._arena is not None
        payload = self._arena.pattern.payload_bytes
        if payload >= 2**31:
            raise PackerError("the payload does not fit MPI_Pack's int")
        types = MPI._handleof(datatype), MPI._handleof(MPI.COMM_SELF)
        signed = [(bits + 2**63) % 2**64 - 2**63 for bits in types]
        packs = direction == "assembly"
        return self._bench.mpi_carrier(self._functions[direction], self._handle_bytes, *signed, payload, packs)

    def _time(self, direction: str, warm: bool, passes: int) -> dict[str, Any]:
        arena, carrier = self._arena, self._carriers[direction]
        assert arena is not None
        # A process that has waited for its turn finds its addresses
        # untranslated and its library cold: the others have not waited.
        arena.refresh(direction)
        carrier.seconds(*arena.addresses(direction), 1)
        arena.refresh(direction)
        if warm:
            carrier.seconds(*arena.addresses(direction), 1)
        return {"seconds": carrier.seconds(*arena.addresses(direction), passes)}

    def _check(self, direction: str) -> dict[str, Any]:
        arena = self._arena
        assert arena is not None
        arena.refresh(direction)
        self._carriers[direction].seconds(*arena.addresses(direction), 1)
        wrong = arena.wrong(direction)
        return {"why": wrong} if wrong else {}


def main() -> int:
    """Answers requests until the pipe is closed. What MPI prints does not get between the answers."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    child: _Child | None = None
    for line in sys.stdin:
        try:
            if child is None:
                child = _Child()
            answer = child.answer(json.loads(line))
        except Exception as error:
            answer = {"why": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
