"""Random derived datatypes: what Longshore reads in them and makes of relations, against MPI_Pack and MPI_Unpack.

python run_checks.py "datatypes.random_datatypes(1, 1500)"
"""

import ctypes
import itertools
import random
import sys

import longshore as ls
import numpy as np
from checks import check
from longshore import _mpi
from mpi4py import MPI

NAMED = [
    MPI.BYTE,
    MPI.CHAR,
    MPI.SHORT,
    MPI.INT,
    MPI.FLOAT,
    MPI.DOUBLE,
    MPI.INT64_T,
    MPI.C_DOUBLE_COMPLEX,
    MPI.SHORT_INT,
    MPI.INT_INT,
    MPI.DOUBLE_INT,
    MPI.LONG_INT,
    MPI.FLOAT_INT,
    MPI.PACKED,
]
KINDS = [
    "dup",
    "contiguous",
    "vector",
    "hvector",
    "indexed",
    "hindexed",
    "indexed_block",
    "hindexed_block",
    "struct",
    "subarray",
    "darray",
    "resized",
    "small_vector",
    "small_hindexed",
    "small_subarray",
]
MOST_BYTES = 60_000  # of a buffer


def fortran_types():
    """The parametrised ones, where the library has them."""
    for make, args in (
        (MPI.Datatype.Create_f90_real, (6, 30)),
        (MPI.Datatype.Create_f90_complex, (12, 200)),
        (MPI.Datatype.Create_f90_integer, (9,)),
    ):
        try:
            made = make(*args)
        except MPI.Exception:
            continue
        if made != MPI.DATATYPE_NULL and made.Get_size() > 0:
            yield made


def value_index_types():
    if MPI.Get_version() >= (4, 1) and hasattr(MPI.Datatype, "Get_value_index"):
        for value, index in ((MPI.INT8_T, MPI.INT64_T), (MPI.DOUBLE, MPI.INT16_T)):
            try:
                made = MPI.Datatype.Get_value_index(value, index)
            except (MPI.Exception, NotImplementedError):
                continue
            if made != MPI.DATATYPE_NULL:
                yield made


class Draw:
    """Random datatypes and how often each combiner was drawn."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.leaves = [*NAMED, *fortran_types(), *value_index_types()]
        self.drawn = {}
        self.words = ""
        self.compared, self.different = 0, []
        self.hollow = False  # a struct has a member without data: MPICH 5.0.2 may divide by zero in MPI_Pack

    def compare(self, expected, pack):
        """Packed by the library as the standard says? Libraries have their mistakes: they are counted."""
        if self.hollow:
            return
        self.compared += 1
        if expected != pack():
            self.different.append(self.words)

    def count(self, most=4):
        return self.random.choice([0, 1, 1, 2, 2, 3, most])

    def datatype(self, depth):
        draw = self.random
        if depth == 0:
            leaf = draw.choice(self.leaves)
            self.words = leaf.name or f"unnamed({leaf.combiner})"
            return leaf
        kind = draw.choice([*KINDS, "darray"])
        self.drawn[kind] = self.drawn.get(kind, 0) + 1
        if kind == "struct":
            inner, words = [], []
            for _ in range(self.count()):
                inner.append(self.datatype(draw.randint(0, depth - 1)))
                words.append(self.words)
            self.hollow = self.hollow or any(kind.size == 0 for kind in inner)
            args = ([self.count(3) for _ in inner], [draw.randint(-300, 300) for _ in inner], inner)
            self.words = f"struct({args[0]}, {args[1]}, [{', '.join(words)}])"
            return MPI.Datatype.Create_struct(*args)
        inner = self.datatype(depth - 1)
        extent = max(1, abs(inner.extent))
        if kind == "dup":
            args, make = (), inner.Dup
        elif kind == "contiguous":
            args, make = (self.count(),), inner.Create_contiguous
        elif kind == "vector":
            args, make = (self.count(), self.count(), draw.randint(-6, 6)), inner.Create_vector
        elif kind == "hvector":
            args, make = (
                (self.count(), self.count(), draw.randint(-6, 6) * extent + draw.randint(-3, 3)),
                inner.Create_hvector,
            )
        elif kind in ("indexed", "hindexed"):
            n = self.count(6)
            places = [draw.randint(-9, 9) if kind == "indexed" else draw.randint(-200, 200) for _ in range(n)]
            if draw.random() < 0.3:
                places.sort()
            args = ([self.count(3) for _ in range(n)], places)
            make = inner.Create_indexed if kind == "indexed" else inner.Create_hindexed
        elif kind in ("indexed_block", "hindexed_block"):
            n = self.count(6)
            block = kind == "indexed_block"
            args = (self.count(3), [draw.randint(-9, 9) if block else draw.randint(-200, 200) for _ in range(n)])
            make = inner.Create_indexed_block if block else inner.Create_hindexed_block
        elif kind.startswith("small_"):
            args, make = LIBRARY.small(kind, draw), lambda *args: LIBRARY.make_small(kind, args, inner)
        elif kind == "resized":
            args = (draw.randint(-20, 20), draw.choice([extent, extent + draw.randint(0, 30), draw.randint(-5, 60)]))
            make = inner.Create_resized
        elif kind == "subarray":
            ndim = draw.randint(1, 3)
            sizes = [draw.randint(1, 5) for _ in range(ndim)]
            parts = [draw.randint(1, n) for n in sizes]
            args = (
                sizes,
                parts,
                [draw.randint(0, n - p) for n, p in zip(sizes, parts)],
                draw.choice([MPI.ORDER_C, MPI.ORDER_FORTRAN]),
            )
            make = inner.Create_subarray
        else:
            args, make = self.darray(), inner.Create_darray
        self.words = f"{kind}({', '.join(map(str, args))}, {self.words})"
        return make(*args)

    def darray(self):
        draw = self.random
        ndim = draw.randint(1, 3)
        sizes, kinds, arguments, grid = [], [], [], []
        for _ in range(ndim):
            n = draw.randint(1, 9)
            kind = draw.choice(
                [MPI.DISTRIBUTE_NONE, MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_CYCLIC]
            )
            p = 1 if kind == MPI.DISTRIBUTE_NONE else draw.randint(1, 3)
            least = -(-n // p) if kind == MPI.DISTRIBUTE_BLOCK else 1
            argument = (
                MPI.DISTRIBUTE_DFLT_DARG
                if kind == MPI.DISTRIBUTE_NONE or draw.random() < 0.3
                else least + draw.randint(0, 2)
            )
            sizes.append(n), kinds.append(kind), arguments.append(argument), grid.append(p)
        size = int(np.prod(grid))
        return size, draw.randrange(size), sizes, kinds, arguments, grid, draw.choice([MPI.ORDER_C, MPI.ORDER_FORTRAN])

    def placed(self, count):
        """A datatype of which `count` lie in a buffer from its first byte on, and the buffer's bytes."""
        while True:
            self.hollow = False
            try:
                made = self.datatype(self.random.randint(0, 4))
            except MPI.Exception:  # Open MPI refuses some that hold nothing
                continue
            if made.Get_size() * max(count, 1) > MOST_BYTES:
                continue
            # Not the true extent that the library tells: Open MPI's is wrong where a stride is -1 byte.
            offsets = plain_offsets(made, count)
            first, last = (int(offsets.min()), int(offsets.max()) + 1) if offsets.size else (0, 0)
            if last - first <= MOST_BYTES:
                break
        shift = -first + self.random.randint(0, 20)
        self.hollow = self.hollow or made.size == 0
        moved = MPI.Datatype.Create_resized(MPI.Datatype.Create_struct([1], [shift], [made]), made.lb, made.extent)
        self.words = f"{count} of {self.words} shifted {shift}"
        return moved, last + shift


class Library:
    """MPI_Pack and MPI_Unpack of this process's MPI, called past mpi4py, which computes counts from extents."""

    def __init__(self):
        name = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}[_mpi._family(MPI)]
        self.library = ctypes.CDLL(name)
        self.handle = ctypes.c_int if MPI._sizeof(MPI.Datatype) == 4 else ctypes.c_void_p

    def of(self, thing):
        return self.handle.from_address(MPI._addressof(thing))

    def pack(self, buffer, count, datatype):
        """The message's bytes."""
        datatype.Commit()
        message = np.zeros(count * datatype.Get_size() + 64, np.uint8)
        position = ctypes.c_int(0)
        code = self.library.MPI_Pack(
            ctypes.c_void_p(buffer.ctypes.data),
            count,
            self.of(datatype),
            ctypes.c_void_p(message.ctypes.data),
            message.size,
            ctypes.byref(position),
            self.of(MPI.COMM_SELF),
        )
        assert code == 0, code
        return message[: position.value].tobytes()

    # Where there are large counts, mpi4py makes everything with them. Others do not.

    def small(self, kind, draw):
        if kind == "small_vector":
            return draw.randint(0, 4), draw.randint(0, 3), draw.randint(-6, 6)
        n = draw.randint(1, 3)
        if kind == "small_hindexed":
            return n, [draw.randint(0, 3) for _ in range(n)], [draw.randint(-200, 200) for _ in range(n)]
        sizes = [draw.randint(1, 4) for _ in range(n)]
        return n, sizes, [1] * n, [s - 1 for s in sizes], draw.choice([MPI.ORDER_C, MPI.ORDER_FORTRAN])

    def make_small(self, kind, args, inner):
        made = MPI.Datatype()
        name = {
            "small_vector": "MPI_Type_vector",
            "small_hindexed": "MPI_Type_create_hindexed",
            "small_subarray": "MPI_Type_create_subarray",
        }
        lists = [
            a
            if isinstance(a, int)
            else ((ctypes.c_ssize_t if kind == "small_hindexed" and a is args[2] else ctypes.c_int) * len(a))(*a)
            for a in args
        ]
        code = getattr(self.library, name[kind])(*lists, self.of(inner), ctypes.byref(self.of(made)))
        if code:
            raise MPI.Exception(code)
        return made

    def unpack(self, message, buffer, count, datatype):
        datatype.Commit()
        message = np.frombuffer(message, np.uint8)
        code = self.library.MPI_Unpack(
            ctypes.c_void_p(message.ctypes.data),
            message.size,
            ctypes.byref(ctypes.c_int(0)),
            ctypes.c_void_p(buffer.ctypes.data),
            count,
            self.of(datatype),
            self.of(MPI.COMM_SELF),
        )
        assert code == 0, code


LIBRARY = Library()


def plain_places(combiner, numbers, extent):
    """Displacements of the copies of the one inner datatype, element
    by element, in bytes: the definitions of MPI-3.1, chapter 4."""
    get = numbers.get
    if combiner in ("DUP", "RESIZED"):
        return [0]
    if combiner == "CONTIGUOUS":
        return [k * extent for k in range(get("count"))]
    if combiner in ("VECTOR", "HVECTOR"):
        step = get("stride") * (extent if combiner == "VECTOR" else 1)
        return [k * step + j * extent for k in range(get("count")) for j in range(get("blocklength"))]
    if combiner in ("INDEXED", "HINDEXED", "INDEXED_BLOCK", "HINDEXED_BLOCK"):
        places = get("displacements")
        lengths = get("blocklengths") if "blocklengths" in numbers else [get("blocklength")] * len(places)
        unit = 1 if combiner.startswith("H") else extent
        return [place * unit + j * extent for place, n in zip(places, lengths) for j in range(n)]
    if combiner == "SUBARRAY":
        owned = [range(first, first + n) for first, n in zip(get("starts"), get("subsizes"))]
        sizes = get("sizes")
    else:
        sizes, grid = get("gsizes"), get("psizes")
        owned = []
        for n, kind, b, p, me in zip(sizes, get("distribs"), get("dargs"), grid, np.unravel_index(get("rank"), grid)):
            if b == MPI.DISTRIBUTE_DFLT_DARG:
                b = -(-n // p) if kind == MPI.DISTRIBUTE_BLOCK else 1
            owned.append([i for i in range(n) if kind == MPI.DISTRIBUTE_NONE or i // b % p == me])
    strides = np.cumprod([1, *(sizes[:0:-1] if get("order") == MPI.ORDER_C else sizes[:-1])])
    if get("order") == MPI.ORDER_FORTRAN:  # the first dimension runs fastest
        owned = owned[::-1]
    return [int(np.dot(index, strides[::-1])) * extent for index in itertools.product(*owned)]


def plain_typemap(datatype):
    """The offsets of a datatype's bytes in order."""
    if datatype.is_predefined:
        pairs = ((MPI.SHORT_INT, 2, 4, 4), (MPI.FLOAT_INT, 4, 4, 4), (MPI.DOUBLE_INT, 8, 8, 4), (MPI.LONG_INT, 8, 8, 4))
        pair = next((numbers for kind, *numbers in pairs if kind == datatype), None)
        if MPI.Get_version() >= (4, 1) and datatype.combiner == MPI.COMBINER_VALUE_INDEX:
            value, index = datatype.contents[-1]
            pair = value.size, -(-value.size // index.size) * index.size, index.size
        return [*range(pair[0]), *range(pair[1], pair[1] + pair[2])] if pair else [*range(datatype.size)]
    inner, combiner, numbers = datatype.decode()
    if combiner == "STRUCT":
        return [
            place + j * kind.extent + byte
            for kind, place, n in zip(numbers["datatypes"], numbers["displacements"], numbers["blocklengths"])
            for j in range(n)
            for byte in plain_typemap(kind)
        ]
    bytes_ = plain_typemap(inner)
    return [place + byte for place in plain_places(combiner, numbers, inner.extent) for byte in bytes_]


def plain_offsets(datatype, count):
    one = np.array(plain_typemap(datatype), int)
    return (np.arange(count)[:, None] * datatype.extent + one).ravel()


def assemble(relation, buffer):
    return relation.assembler()(buffer).tobytes() if relation.elements else b""


def one_import(draw, values):
    count = draw.random.choice([0, 1, 1, 2, 3, 7])
    datatype, size = draw.placed(count)
    buffer = values[:size].copy()
    relation = ls.from_mpi_datatype(datatype, count)
    expected = buffer[plain_offsets(datatype, count)].tobytes()
    assert assemble(relation, buffer) == expected
    draw.compare(expected, lambda: LIBRARY.pack(buffer, count, datatype))
    return relation, buffer, expected


def one_export(draw, relation, buffer, expected):
    """The relation's source side packs the message; its own message goes back where it came from."""
    most = draw.random.choice([None, None, 2, 3, 7])
    datatype = make(relation, "source", most)
    assert LIBRARY.pack(buffer, 1, datatype) == expected, f"most={most}"
    datatype.Free()


def one_destination(draw, relation, size):
    """Scattering with the destination's datatype is what the disassembler does."""
    most = draw.random.choice([None, None, 2, 3, 7])
    message = np.arange(relation.bytes, dtype=np.uint32).astype(np.uint8)
    ours, theirs = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    if relation.elements:
        relation.disassembler()(message, ours)
    datatype = make(relation, "destination", most)
    LIBRARY.unpack(message, theirs, 1, datatype)
    assert np.array_equal(ours, theirs), f"most={most}"
    datatype.Free()


def make(relation, side, most):
    """to_mpi_datatype with a bound on the counts in one constructor."""
    if most is None:
        return ls.to_mpi_datatype(relation, side)
    module = _mpi.open_comm(MPI.COMM_SELF)[0]
    return _mpi._object_of(MPI, MPI.Datatype(), module.to_datatype(relation, side, most))


def one_pair(draw, values):
    """Sending with one datatype and receiving with another of as many bytes."""
    datatype, size = draw.placed(1)
    bytes_ = datatype.Get_size()
    words = draw.words
    for _ in range(60):  # another one whose size goes into the first's, with dense bytes for the rest
        count = draw.random.choice([1, 2, 3])
        other, room = draw.placed(count)
        part = other.Get_size() * count
        if part <= bytes_ and (part > 0 or bytes_ == 0):
            break
    else:
        return
    repeats = bytes_ // part if part else 0
    span = room + 40
    members = [
        (0, MPI.Datatype.Create_hvector(MPI.Datatype.Create_contiguous(other, count), repeats, 1, span)),
        (repeats * span, MPI.Datatype.Create_contiguous(MPI.BYTE, bytes_ - repeats * part)),
    ]
    members = [(place, member) for place, member in members if member.size]
    receive = (
        MPI.Datatype.Create_struct([1] * len(members), *map(list, zip(*members)))
        if members
        else MPI.BYTE.Create_contiguous(0)
    )
    draw.words = f"{words} -> {repeats} times {span} apart, and {bytes_ - repeats * part} bytes: {draw.words}"
    buffer = values[:size].copy()
    total = repeats * span + bytes_ - repeats * part
    message = buffer[plain_offsets(datatype, 1)]
    places = plain_offsets(receive, 1)
    try:
        relation = ls.from_mpi_datatype(datatype, 1, receive)
    except ls.ArgumentError:
        assert len(set(places)) < len(places), "refused without an overlap"
        return
    assert len(set(places)) == len(places), "an overlap was not refused"
    expected, result = np.zeros(total, np.uint8), np.zeros(total, np.uint8)
    expected[places] = message
    if relation.elements:
        relation.move(buffer, result)
    assert np.array_equal(result, expected)

    def unpacked():
        with_margins = np.zeros(total + 2000, np.uint8)  # what goes wrong in the library must not break this process
        LIBRARY.unpack(message, with_margins[1000:-1000], 1, receive)
        return with_margins[1000:-1000].tobytes()

    draw.compare(expected.tobytes(), unpacked)
    one_export(draw, relation, buffer, message.tobytes())
    one_destination(draw, relation, total)


def one_relation(draw, values):
    """Relations that no datatype was the source of."""
    r = draw.random
    size = r.choice([1, 2, 3, 4, 8, 16, 24])
    n = r.choice([0, 1, 2, 5, 300])
    numbers = np.random.default_rng(r.randrange(10**9))
    kind = r.choice(["indices", "strided", "blocks", "layouts", "mixed"])
    draw.words = f"{kind} {n} of {size} bytes"

    def indices():
        return ls.AddressRelation.from_indices(numbers.integers(0, 400, n), numbers.permutation(400)[:n], size)

    if kind == "indices":
        relation = indices()
    elif kind == "strided":
        relation = ls.AddressRelation.strided(
            (5, 4, 3), (12 * size, -size, 4 * size), (12 * size, 3 * size, size), size, 3 * size, 0
        )
    elif kind == "blocks":
        lengths = numbers.integers(1, 9, 20)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        relation = ls.AddressRelation.from_blocks(
            np.stack([numbers.integers(0, 2000, 20), numbers.permutation(20) * 9 * size, lengths], 1)
            if r.random() < 0.5
            else np.stack([starts * size * 2, starts * size, lengths], 1),
            size,
        )
    elif kind == "layouts":
        source = ls.Layout(f"(CYCLIC({r.randint(1, 4)}), BLOCK) on 2x2", (13, 17))
        target = ls.Layout(f"(BLOCK, CYCLIC({r.randint(1, 4)})) on 2x2", (17, 13))
        relation = ls.AddressRelation.from_layouts(source, r.randrange(4), target, r.randrange(4), size, (1, 0))
    else:
        shifted = ls.AddressRelation.strided((100,), (3 * size,), (size,), size, 0, 400 * size)
        relation = ls.AddressRelation.concatenate([indices(), shifted])
    buffer = values[: max(relation.source_extent[1], 1)].copy()
    one_export(draw, relation, buffer, assemble(relation, buffer))
    one_destination(draw, relation, max(relation.destination_extent[1], 1))


@check
def random_datatypes(seed, cases):
    draw = Draw(seed)
    values = np.random.default_rng(seed).integers(0, 256, 2 * MOST_BYTES + 1000, dtype=np.uint8)
    for number in range(cases):
        try:
            relation, buffer, expected = one_import(draw, values)
            one_export(draw, relation, buffer, expected)
            one_pair(draw, values)
            one_relation(draw, values)
        except BaseException:
            print(f"case {number}: {draw.words}", file=sys.stderr)
            raise
    missing = set(KINDS) - set(draw.drawn)
    assert cases < 100 or not missing, missing
    # Seen: MPICH 5.0.2 once in 30000, with a negative extent; Open MPI 5.0.11 once in 500: a stride of -1 byte is no
    # stride at all, and vectors of complex numbers are unpacked wrongly.
    allowed = draw.compared // (50 if _mpi._family(MPI) == "openmpi" else 500)
    assert len(draw.different) <= allowed, f"MPI_Pack differs {len(draw.different)} times of {draw.compared}"
    leaves = sorted({leaf.combiner for leaf in draw.leaves})
    print(f"MPI_Pack differs {len(draw.different)} times of {draw.compared}: {draw.different}; leaves of {leaves}")
