"""Who packs and unpacks in `longshore bench assembly`, in this process: copies, plain loops, NumPy and Longshore's encodings."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arena import Arena
from .patterns import Nest, Pattern, Places, Side, dense_loops, message_starts

MEMCPY, HAND, NAIVE = "memcpy", "hand-written loop", "naive loop"
INDEXING, VIEWS = "NumPy fancy indexing", "NumPy view copy"
SYMBOLS = "longshore dmrlec, symbol by symbol"
_NUMPY_WORDS = {4: np.dtype(np.float32), 8: np.dtype(np.float64), 16: np.dtype(np.complex128)}


class Missing(Exception):
    """Raised while preparing: the contender cannot run here. The text says why."""


@dataclass
class Prepared:
    """A contender bound to an arena and a direction. `seconds`
    runs so many passes and gives the mean seconds of one."""

    seconds: Callable[[int], float]
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    words: int | None = None  # of the output, for a plain copy: there the owner formula does not hold


def loops_module() -> Any:
    from .. import _bench

    return _bench


def ours(kind: str) -> str:
    return f"longshore {kind}"


def applies(name: str, pattern: Pattern) -> bool:
    """The source order that loses is named where messages are transposed; NumPy has no views of lists."""
    if name == NAIVE:
        return pattern.key in ("R4", "fft")
    if name == VIEWS:
        return not any(isinstance(piece, Places) for piece in pattern.source.pieces)
    return True


class Preparer:
    """Makes the contenders of one arena. Encodings are kept, so that both directions share them."""

    def __init__(self, arena: Arena) -> None:
        self._arena, self._pattern = arena, arena.pattern
        self._relation: Any = None
        self._automatic = ""
        self._encodings: dict[str, tuple[Any, Any, dict[str, Any]]] = {}

    def prepare(self, name: str, direction: str) -> Prepared:
        if name == MEMCPY:
            return self._copy(direction)
        if name in (HAND, NAIVE):
            return self._loops(name, direction)
        if name == INDEXING:
            return self._fastest(direction, self._indexing(direction))
        if name == VIEWS:
            return self._fastest(direction, self._views(direction))
        if name == SYMBOLS:
            return self._symbols(direction)
        return self._compiled(name.removeprefix("longshore "), direction)

    # --- copies and plain loops --------------------------------------------------------------------------------------

    def _carried(self, direction: str, carrier: Any) -> Callable[[int], float]:
        to, from_ = self._arena.addresses(direction)
        return lambda passes: carrier.seconds(to, from_, passes)

    def _copy(self, direction: str) -> Prepared:
        payload = self._pattern.payload_bytes
        return Prepared(self._carried(direction, loops_module().copy_carrier(payload)), words=payload // 4)

    def _loops(self, name: str, direction: str) -> Prepared:
        bench, side = loops_module(), self._pattern.side(direction)
        options = []
        for level in bench.pack_loops():
            for order, nests in loop_orders(side, direction):
                if name == NAIVE and order:
                    continue
                if nests:
                    carrier = bench.nest_carrier(level, nests)
                else:
                    (piece,) = side.pieces
                    assert isinstance(piece, Places)
                    carrier = bench.list_carrier(level, piece.block, piece.places, direction == "assembly")
                options.append((", ".join((level, *order)), self._carried(direction, carrier)))
        return self._fastest(direction, options)

    def _fastest(self, direction: str, options: list[tuple[str, Callable[[int], float]]]) -> Prepared:
        detail, seconds = options[self._arena.fastest([seconds for _, seconds in options], direction)]
        return Prepared(seconds, detail)

    # --- NumPy -------------------------------------------------------------------------------------------------------

    def _indexing(self, direction: str) -> list[tuple[str, Callable[[int], float]]]:
        element = self._pattern.element
        array, message = (_as_elements(a, element) for a in (self._arena.array(direction), self._arena.message))
        indices = self._arena.indices(direction)
        if direction == "assembly":

            def get() -> None:
                message[:] = array[indices]

            def take() -> None:
                np.take(array, indices, axis=0, out=message, mode="clip")

            return [("message[:] = array[indices]", _python(get)), ("take", _python(take))]

        def put() -> None:
            array[indices] = message

        return [("array[indices] = message", _python(put))]

    def _views(self, direction: str) -> list[tuple[str, Callable[[int], float]]]:
        pieces = self._pattern.side(direction).pieces
        word = _NUMPY_WORDS[self._pattern.element]
        array, message = self._arena.array(direction).view(word), self._arena.message.view(word)
        pairs = []
        for piece, at in zip(pieces, message_starts(pieces)):
            assert isinstance(piece, Nest)
            shape = (*(count for count, _ in piece.loops), piece.block // word.itemsize)
            strides = (*(stride for _, stride in piece.loops), word.itemsize)
            view = np.lib.stride_tricks.as_strided(array[piece.start // word.itemsize :], shape, strides)
            dense = message[at // word.itemsize :][: piece.nbytes // word.itemsize].reshape(shape)
            pairs.append((dense, view) if direction == "assembly" else (view, dense))

        def copy() -> None:
            for to, from_ in pairs:
                np.copyto(to, from_)

        return [("copyto", _python(copy))]

    # --- Longshore ---------------------------------------------------------------------------------------------------

    def _encoded(self, kind: str) -> tuple[Any, Any, dict[str, Any]]:
        import longshore as ls

        if self._relation is None:
            self._relation = self._pattern.relation()
            self._automatic = ls.encode(self._relation).kind
        if kind not in self._encodings:
            start = time.perf_counter()
            try:
                encoding = ls.encode(self._relation, kind)
            except ls.ArgumentError as error:
                raise Missing(str(error)) from None
            encoded = time.perf_counter()
            relation = encoding.decode()
            decoded = time.perf_counter()
            facts = {
                "automatic": kind == self._automatic,  # what ls.encode takes where it is not told
                "encoded_bytes": encoding.encoded_bytes,
                "encode_seconds": encoded - start,
                "decode_seconds": decoded - encoded,
            }
            self._encodings[kind] = encoding, relation, facts
        return self._encodings[kind]

    def _compiled(self, kind: str, direction: str) -> Prepared:
        bench = loops_module()
        _, relation, facts = self._encoded(kind)
        start = time.perf_counter()
        program = relation.assembler() if direction == "assembly" else relation.disassembler()
        facts = {**facts, "compile_seconds": time.perf_counter() - start, "workspace_bytes": program.workspace_bytes}
        carrier = (bench.assembler_carrier if direction == "assembly" else bench.disassembler_carrier)(program)
        return Prepared(self._carried(direction, carrier), str(program), facts)

    def _symbols(self, direction: str) -> Prepared:
        encoding, _, facts = self._encoded("dmrlec")
        carrier = loops_module().encoding_carrier(encoding, direction == "assembly")
        return Prepared(
            self._carried(direction, carrier), f"{encoding.symbols} symbols", {**facts, "workspace_bytes": 0}
        )


def loop_orders(side: Side, direction: str) -> Iterator[tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
    """The nests of a side as the plain loops take them, in every
    order of their loops, the message's own order first."""
    pieces = side.pieces
    if any(isinstance(piece, Places) for piece in pieces):
        yield (), []
        return
    depth = max(len(piece.loops) for piece in pieces if isinstance(piece, Nest))
    for order in itertools.permutations(range(depth)):
        nests = []
        for piece, at in zip(pieces, message_starts(pieces)):
            assert isinstance(piece, Nest)
            loops = dense_loops(piece)
            if len(loops) == depth:
                loops = [loops[k] for k in order]
            if direction == "assembly":
                nests.append(
                    (at, piece.start, piece.block, [(count, message, array) for count, array, message in loops])
                )
            else:
                nests.append((piece.start, at, piece.block, loops))
        own = order == tuple(range(depth))
        yield () if own else ("loops in order " + " ".join(str(k + 1) for k in order),), nests


def _python(run: Callable[[], None]) -> Callable[[int], float]:
    def seconds(passes: int) -> float:
        start = time.perf_counter()
        for _ in range(passes):
            run()
        return (time.perf_counter() - start) / passes

    return seconds


def _as_elements(array: np.ndarray, element: int) -> np.ndarray:
    """As NumPy's own numbers where an element is one, else as rows of numbers."""
    if element in _NUMPY_WORDS:
        return array.view(_NUMPY_WORDS[element])
    word = _NUMPY_WORDS[8 if element % 8 == 0 else 4]
    return array.view(word).reshape(-1, element // word.itemsize)
