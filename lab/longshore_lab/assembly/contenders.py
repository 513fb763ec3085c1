"""Who packs and unpacks in `longshore bench assembly`, in this process: copies, plain loops, NumPy and Longshore's
encodings.

Their memory is an arena, in which no contender can be right by accident. All arrays begin on a cache line, at different
places of a page: what it costs where lines are cut in two would else be luck.
"""

import itertools
import time
from functools import cached_property, lru_cache, partial

import longshore as ls
import numpy as np

from .. import _loops
from ..machine import clocked
from ..protocol import Context, Missing, Ready, WrongResult, quickest

MEMCPY, HAND, NAIVE = "memcpy", "hand-written loop", "naive loop"
INDEXING, VIEWS = "NumPy fancy indexing", "NumPy view copy"
SYMBOLS = "longshore dmrlec, symbol by symbol"
_NUMPY_WORDS = {4: np.dtype(np.float32), 8: np.dtype(np.float64), 16: np.dtype(np.complex128)}

_WORD = np.dtype(np.uint32)
_UNTOUCHED = 0xA5A5A5A5
_CACHED_BYTES = 8 << 20  # arrays up to here are timed in several passes, larger ones once after each rewriting
_BYTES_A_SAMPLE = 2 << 20
# A sample of several passes is over by then: what else runs on the machine cuts few of them in two.
_SLOW_SECONDS = 5e-4
_LINE_BYTES, _PAGE_BYTES = 64, 4096
_NAP_SECONDS = 1e-4


def _words(nbytes, line):
    """Numbered words from that cache line of a page on."""
    memory = np.empty(nbytes + 2 * _PAGE_BYTES, np.uint8)
    start = -memory.ctypes.data % _PAGE_BYTES + line * _LINE_BYTES
    words = memory[start : start + nbytes].view(_WORD)
    words[:] = np.arange(len(words), dtype=_WORD)
    return words


class Arena:
    """One pattern's arrays. Every 32-bit word of an input is another one, also after each `refresh`."""

    def __init__(self, pattern):
        self.pattern = pattern
        self.source = _words(pattern.source.array_bytes, 0)
        self.message = _words(pattern.payload_bytes, 5)
        self.destination = _words(pattern.destination.array_bytes, 11)
        # How often a sample runs: so often that the clock does not count, once where arrays are beyond the cache.
        cached = pattern.array_bytes <= _CACHED_BYTES
        self.passes = max(1, _BYTES_A_SAMPLE // pattern.payload_bytes) if cached else 1
        self.trials = 3 if self.passes == 1 else 9  # of each way of doing the same
        self.indices = lru_cache(self.indices)

    @staticmethod
    def needed_bytes(pattern):
        """The arrays, the index lists, and what a check holds for a moment."""
        arrays = pattern.source.array_bytes + 2 * pattern.destination.array_bytes + 3 * pattern.payload_bytes
        return arrays + 4 * 8 * (pattern.payload_bytes // pattern.element)

    def array(self, direction):
        """The array that is not the message."""
        return self.source if direction == "assembly" else self.destination

    def ends(self, direction):
        return (self.message, self.source) if direction == "assembly" else (self.destination, self.message)

    def addresses(self, direction):
        return tuple(array.ctypes.data for array in self.ends(direction))

    def indices(self, direction):
        """The element of the array that each element of the message is."""
        return self.pattern.side(direction).indices(self.pattern.element)

    def passes_of(self, seconds):
        """How often who takes so long runs in a sample."""
        return max(1, min(self.passes, int(_SLOW_SECONDS / max(seconds, 1e-9))))

    def refresh(self, direction):
        """The owner writes every word of the input anew and touches every word of the output."""
        to, from_ = self.ends(direction)
        np.add(from_, 1, out=from_)
        to.fill(_UNTOUCHED)
        time.sleep(_NAP_SECONDS)  # who has just woken is let run by a busy machine, who has written for long is not

    def wrong(self, direction, words=None):
        """Empty if the output is right after `refresh` and a run, else what is not. `words`: of it, for a copy."""
        to, from_ = self.ends(direction)
        if words is not None:
            expected, to = from_[:words], to[:words]
        elif direction == "assembly":
            expected = self._elements(from_)[self.indices(direction)].ravel()
        else:
            expected = np.full_like(to, _UNTOUCHED)
            self._elements(expected)[self.indices(direction)] = self._elements(from_)
        if np.array_equal(to, expected):
            return ""
        bad = int(np.flatnonzero(to != expected)[0])
        return f"word {bad} is {int(to[bad]):#x} where {int(expected[bad]):#x} belongs"

    def _elements(self, array):
        return array.reshape(-1, self.pattern.element // _WORD.itemsize)


class Packing(Ready):
    """Bound to an arena and a direction. `seconds` runs so many passes and gives the mean seconds of one.

    `words`: of the output, for a plain copy: there the owner formula does not hold.
    """

    def __init__(self, arena, direction, seconds, detail="", facts=None, words=None):
        self.arena, self.direction, self.seconds, self.words = arena, direction, seconds, words
        self.detail, self.facts, self.passes = detail, facts or {}, max(1, arena.passes // 4)

    def settle(self):
        """Finds out how often it runs in a sample."""
        self.arena.refresh(self.direction)
        self.seconds(1)
        self.passes = self.arena.passes_of(self.seconds(1))
        return self

    def sample(self, context=None):
        self.arena.refresh(self.direction)
        if self.arena.passes > 1:
            self.seconds(1)  # in the cache and awake, as all the passes but one are
        return self.seconds(self.passes)

    def check(self):
        if wrong := self.arena.wrong(self.direction, self.words):
            raise WrongResult(wrong)


def ours(kind):
    return f"longshore {kind}"


def applies(name, pattern):
    """The source order that loses is named where messages are transposed; NumPy has no views of lists."""
    return pattern.key in ("R4", "fft") if name == NAIVE else name != VIEWS or not pattern.source.listed


class Preparer:
    """Makes the contenders of one arena. Encodings are kept, so that both directions share them."""

    def __init__(self, arena):
        self.arena, self._pattern, self._encodings = arena, arena.pattern, {}

    def prepare(self, name, direction):
        if name == MEMCPY:
            payload = self._pattern.payload_bytes
            return self._carried(direction, _loops.copy_carrier(payload), words=payload // 4)
        if name == SYMBOLS:
            encoding, _, facts = self._encoded("dmrlec")
            carrier = _loops.encoding_carrier(encoding, direction == "assembly")
            return self._carried(direction, carrier, f"{encoding.symbols} symbols", {**facts, "workspace_bytes": 0})
        ways = {HAND: self._plain_loops, NAIVE: self._naive_loops, INDEXING: self._indexing, VIEWS: self._views}
        if name in ways:
            return quickest(Context(), ways[name](direction), self.arena.trials)
        return self._compiled(name.removeprefix("longshore "), direction)

    def _carried(self, direction, carrier, *rest, **more):
        seconds = partial(carrier.seconds, *self.arena.addresses(direction))
        return Packing(self.arena, direction, seconds, *rest, **more)

    def _plain_loops(self, direction, orders=None):
        """In every order of their loops, or in so many."""
        side = self._pattern.side(direction)
        for level in _loops.pack_loops():
            for order, nests in itertools.islice(loop_orders(side, direction), orders):
                if nests:
                    carrier = _loops.nest_carrier(level, nests)
                else:
                    (piece,) = side.pieces
                    carrier = _loops.list_carrier(level, piece.block, piece.places, direction == "assembly")
                yield ", ".join((level, *order)), self._carried(direction, carrier)

    def _naive_loops(self, direction):
        return self._plain_loops(direction, 1)

    def _indexing(self, direction):
        element, indices = self._pattern.element, self.arena.indices(direction)
        array, message = (_as_elements(a, element) for a in (self.arena.array(direction), self.arena.message))

        def get():
            message[:] = array[indices]

        def put():
            array[indices] = message

        if direction == "assembly":
            yield "message[:] = array[indices]", Packing(self.arena, direction, partial(clocked, get))
            take = partial(np.take, array, indices, axis=0, out=message, mode="clip")
            yield "take", Packing(self.arena, direction, partial(clocked, take))
        else:
            yield "array[indices] = message", Packing(self.arena, direction, partial(clocked, put))

    def _views(self, direction):
        side, word, pairs = self._pattern.side(direction), _NUMPY_WORDS[self._pattern.element], []
        array, message = self.arena.array(direction).view(word), self.arena.message.view(word)
        for piece, at in zip(side.pieces, side.starts()):
            shape = (*(count for count, _ in piece.loops), piece.block // word.itemsize)
            strides = (*(stride for _, stride in piece.loops), word.itemsize)
            view = np.lib.stride_tricks.as_strided(array[piece.start // word.itemsize :], shape, strides)
            dense = message[at // word.itemsize :][: piece.nbytes // word.itemsize].reshape(shape)
            pairs.append((dense, view) if direction == "assembly" else (view, dense))

        def copy():
            for to, from_ in pairs:
                np.copyto(to, from_)

        yield "copyto", Packing(self.arena, direction, partial(clocked, copy))

    @cached_property
    def _relation(self):
        """The pattern's, and the encoding that ls.encode takes where it is not told."""
        relation = self._pattern.relation()
        return relation, ls.encode(relation).kind

    def _encoded(self, kind):
        if kind not in self._encodings:
            (relation, automatic), start = self._relation, time.perf_counter()
            try:
                encoding = ls.encode(relation, kind)
            except ls.ArgumentError as error:
                raise Missing(str(error)) from None
            encoded = time.perf_counter()
            decoded, facts = encoding.decode(), {"automatic": kind == automatic}
            facts |= {"encoded_bytes": encoding.encoded_bytes, "encode_seconds": encoded - start}
            self._encodings[kind] = encoding, decoded, {**facts, "decode_seconds": time.perf_counter() - encoded}
        return self._encodings[kind]

    def _compiled(self, kind, direction):
        (_, relation, facts), start = self._encoded(kind), time.perf_counter()
        assembles = direction == "assembly"
        program = relation.assembler() if assembles else relation.disassembler()
        facts = {**facts, "compile_seconds": time.perf_counter() - start, "workspace_bytes": program.workspace_bytes}
        carrier = (_loops.assembler_carrier if assembles else _loops.disassembler_carrier)(program)
        return self._carried(direction, carrier, str(program), facts)


def loop_orders(side, direction):
    """The nests of a side as plain loops take them, in every order of their loops, the message's own order first."""
    if side.listed:
        yield (), []
        return
    depth = max(len(piece.loops) for piece in side.pieces)
    for order in itertools.permutations(range(depth)):
        nests = []
        for piece, at in zip(side.pieces, side.starts()):
            loops, stride = [], piece.block  # (count, stride in the array, stride in the message)
            for count, array_stride in reversed(piece.loops):
                loops.insert(0, (count, array_stride, stride))
                stride *= count
            if len(loops) == depth:
                loops = [loops[k] for k in order]
            if direction == "assembly":
                nests.append((at, piece.start, piece.block, [(count, to, from_) for count, from_, to in loops]))
            else:
                nests.append((piece.start, at, piece.block, loops))
        own = order == tuple(range(depth))
        yield () if own else ("loops in order " + " ".join(str(k + 1) for k in order),), nests


def _as_elements(array, element):
    """As NumPy's own numbers where an element is one, else as rows of numbers."""
    if element in _NUMPY_WORDS:
        return array.view(_NUMPY_WORDS[element])
    word = _NUMPY_WORDS[8 if element % 8 == 0 else 4]
    return array.view(word).reshape(-1, element // word.itemsize)
