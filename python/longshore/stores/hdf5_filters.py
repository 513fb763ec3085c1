"""The filters of HDF5's chunked datasets: named in words, applied and undone outside the HDF5 library.

The library works on one thread, under one lock. What most files use (deflate, shuffle, Fletcher's checksum, Zstandard,
LZ4, Blosc, bzip2) is done here, so that every thread has a chunk of its own. All others are left to the library.
"""

from __future__ import annotations

import bz2
import contextlib
import importlib
import itertools
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._words import short
from ..errors import ArgumentError, NotInstalledError
from . import libdeflate
from .hdf5_values import library_lock

DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALE_OFFSET = 1, 2, 3, 4, 5, 6
BZIP2, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD = 307, 32000, 32001, 32004, 32008, 32015
_OPTIONAL, _MANDATORY = 1, 0
_BLOSC_CODECS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_BLOSC_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_BLOSC_HEADER = 16
_BITSHUFFLE_CODECS = {0: "none", 2: "lz4", 3: "zstd"}
_SZIP_NEAREST, _SZIP_ENTROPY, _SZIP_RAW = 32, 4, 128
_LZ4_BLOCK = 1 << 30  # what the filter takes at once unless told otherwise
_FLETCHER_WORDS = 1 << 14
_WORDS = (
    "gzip:0 to gzip:9, shuffle, fletcher32, zstd:0 to zstd:22, lz4, lzf, bz2:1 to bz2:9, blosc:CODEC:LEVEL:SHUFFLE "
    "(such as blosc:lz4:5:shuffle), bitshuffle:lz4, bitshuffle:zstd:LEVEL, bitshuffle:none, szip:nn:PIXELS"
)

Bytes = Any
"""What has the buffer protocol: bytes, a memoryview, an array of uint8."""


class DamagedError(Exception):
    """A chunk's bytes cannot be what its filters made. Whoever knows the chunk's name says the rest."""


@dataclass(frozen=True)
class Filter:
    """One filter of a dataset: its registered number, and the values that the file has for it."""

    id: int
    values: tuple[int, ...] = ()


def filters_of(plist: Any) -> tuple[Filter, ...]:
    """The filters of a dataset's creation property list, what is applied first first."""
    found = (plist.get_filter(i) for i in range(plist.get_nfilters()))
    return tuple(Filter(code, tuple(int(value) for value in values)) for code, _, values, _ in found)


# -- words ------------------------------------------------------------------------------------------------------------


def words_of(filters: Sequence[Filter]) -> tuple[str, ...]:
    """Filters as `--codec` has them."""
    return tuple(_word(filter.id, filter.values) for filter in filters)


def _word(code: int, values: tuple[int, ...]) -> str:
    def value(place: int, otherwise: int) -> int:
        return values[place] if place < len(values) else otherwise

    if code == DEFLATE:
        return f"gzip:{value(0, 6)}"
    if code == ZSTD:
        return f"zstd:{value(0, 3)}"
    if code == BZIP2:
        return f"bz2:{value(0, 9)}"
    if code == BLOSC and value(6, 0) < len(_BLOSC_CODECS) and value(5, 1) < len(_BLOSC_SHUFFLES):
        return f"blosc:{_BLOSC_CODECS[value(6, 0)]}:{value(4, 5)}:{_BLOSC_SHUFFLES[value(5, 1)]}"
    if code == BITSHUFFLE and value(4, 0) in _BITSHUFFLE_CODECS:
        codec = _BITSHUFFLE_CODECS[value(4, 0)]
        return f"bitshuffle:{codec}:{value(5, 3)}" if codec == "zstd" else f"bitshuffle:{codec}"
    if code == SZIP:
        return f"szip:{'nn' if value(0, 0) & _SZIP_NEAREST else 'ec'}:{value(1, 8)}"
    names = {SHUFFLE: "shuffle", FLETCHER32: "fletcher32", LZF: "lzf", LZ4: "lz4", NBIT: "nbit"}
    return names.get(code) or ("scaleoffset" if code == SCALE_OFFSET else f"hdf5-filter-{code}")


def filters_from(words: Sequence[str], itemsize: int, chunk_bytes: int) -> tuple[Filter, ...]:
    """The filters that words ask for, of chunks of elements of that size. Raises ArgumentError, which lists the words
    that there are."""
    filters = tuple(_filter(word, itemsize, chunk_bytes) for word in words)
    if len(filters) > 32:
        raise ArgumentError(f"{len(filters)} codecs are too many; HDF5 has 32 filters a dataset at most")
    return filters


def _filter(word: str, itemsize: int, chunk_bytes: int) -> Filter:
    name, *said = word.split(":")

    def number(place: int, otherwise: int, low: int, high: int) -> int:
        text = said[place] if place < len(said) else str(otherwise)
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise ArgumentError(f"codec {short(word)}: {text!r} is no number from {low} to {high}")
        return int(text)

    def one_of(place: int, otherwise: str, names: Sequence[str]) -> str:
        text = said[place] if place < len(said) else otherwise
        if text not in names:
            raise ArgumentError(f"codec {short(word)}: {text!r} is none of {', '.join(names)}")
        return text

    most = {"gzip": 1, "zlib": 1, "zstd": 2, "bz2": 1, "blosc": 3, "bitshuffle": 2, "szip": 2}
    most |= {"shuffle": 1, "fletcher32": 0, "lzf": 0, "lz4": 0}
    if name not in most:
        raise ArgumentError(f"codec {short(word)} cannot be written to HDF5; what can be is {_WORDS}")
    if len(said) > most[name]:
        raise ArgumentError(f"codec {short(word)} says too much; what can be written to HDF5 is {_WORDS}")
    if name in ("gzip", "zlib"):
        return Filter(DEFLATE, (number(0, 4, 0, 9),))
    if name == "zstd":
        one_of(1, "checksum", ("checksum",))  # which it has anyway
        return Filter(ZSTD, (number(0, 3, 0, 22),))
    if name == "bz2":
        return Filter(BZIP2, (number(0, 9, 1, 9),))
    if name == "shuffle":
        number(0, itemsize, itemsize, itemsize)
        return Filter(SHUFFLE, (itemsize,))
    if name == "blosc":
        codec = _BLOSC_CODECS.index(one_of(0, "lz4", _BLOSC_CODECS))
        level, shuffle = number(1, 5, 0, 9), _BLOSC_SHUFFLES.index(one_of(2, "shuffle", _BLOSC_SHUFFLES))
        return Filter(BLOSC, (2, 2, itemsize if itemsize < 256 else 1, chunk_bytes & 0xFFFFFFFF, level, shuffle, codec))
    if name == "bitshuffle":
        codec_name = one_of(0, "lz4", tuple(_BITSHUFFLE_CODECS.values()))
        codec = next(code for code, known in _BITSHUFFLE_CODECS.items() if known == codec_name)
        return Filter(BITSHUFFLE, (0, codec, number(1, 3, 1, 22)) if codec_name == "zstd" else (0, codec))
    if name == "szip":
        coding = _SZIP_NEAREST if one_of(0, "nn", ("nn", "ec")) == "nn" else _SZIP_ENTROPY
        pixels = number(1, 8, 2, 32)
        if pixels % 2:
            raise ArgumentError(f"codec {short(word)}: the pixels of a block must be an even number")
        return Filter(SZIP, (coding | _SZIP_RAW, pixels))
    return Filter({"fletcher32": FLETCHER32, "lzf": LZF, "lz4": LZ4}[name])


def set_filters(plist: Any, filters: Sequence[Filter]) -> None:
    """Puts filters into a dataset's creation property list. Raises NotInstalledError where one is missing that only the
    library can apply."""
    for filter in filters:
        if filter.id not in _STEPS:
            need_plugin(filter.id)
        # An optional filter may be missing: what is written here was filtered before.
        plist.set_filter(filter.id, _MANDATORY if filter.id == FLETCHER32 else _OPTIONAL, filter.values)


def need_plugin(code: int) -> None:
    """Makes a filter known to the library, or raises NotInstalledError."""
    from h5py import h5z

    if h5z.filter_avail(code):
        return
    with contextlib.suppress(ImportError):
        importlib.import_module("hdf5plugin")
    if not h5z.filter_avail(code):
        raise NotInstalledError(
            f"the filter {_word(code, ())} (number {code}) is not installed; pip install hdf5plugin has the usual ones"
        )


def replace_plugins() -> bool:
    """Gives the library the filters of hdf5plugin in the place of those that it has, and returns whether that could be
    done: netCDF4, once imported, has h5py's library find filters that are made for its own and fail. The library keeps
    those that an open dataset uses."""
    try:
        return bool(importlib.import_module("hdf5plugin").register(force=True))
    except (ImportError, OSError, RuntimeError, ValueError):
        return False


# -- the filters, undone and applied --------------------------------------------------------------------------------


def fletcher32(data: Bytes) -> int:
    """Fletcher's checksum as HDF5 has it: of 16-bit words, the first byte the higher, an odd last byte as a word."""
    whole = np.frombuffer(data, np.uint8)
    words = whole[: whole.size & ~1].view(">u2")
    first = second = 0
    some = False
    for start in range(0, words.size, _FLETCHER_WORDS):
        part = words[start : start + _FLETCHER_WORDS].astype(np.uint64)
        total = int(part.sum())
        some = some or total != 0
        second = (second + part.size * first + int(np.dot(part, _DESCENDING[-part.size :]))) % 65535
        first = (first + total) % 65535
    if whole.size & 1:
        last = int(whole[-1]) << 8
        some = some or last != 0
        first = (first + last) % 65535
        second = (second + first) % 65535
    # The library adds the carry to the sum, which makes 65535, and not 0, of every multiple of 65535 but 0 itself.
    if some:
        first, second = first or 65535, second or 65535
    return second << 16 | first


_DESCENDING = np.arange(_FLETCHER_WORDS, 0, -1, dtype=np.uint64)


def _check_fletcher32(data: Bytes, size: int, values: tuple[int, ...]) -> Bytes:
    content, found = memoryview(data)[:size], int.from_bytes(memoryview(data)[size:], "little")
    wanted = fletcher32(content)
    # HDF5 before 1.6.3 swapped the bytes of each half on little-endian machines; the library takes that too.
    swapped = (wanted >> 8 & 0x00FF00FF) | (wanted << 8 & 0xFF00FF00)
    if found not in (wanted, swapped):
        raise DamagedError(f"its checksum (fletcher32) is {found:08x}, that of its bytes {wanted:08x}")
    return content


def _add_fletcher32(data: Bytes, values: tuple[int, ...]) -> Bytes:
    content = np.frombuffer(data, np.uint8)
    stored = np.empty(content.size + 4, np.uint8)
    stored[:-4] = content
    stored[-4:] = np.frombuffer(struct.pack("<I", fletcher32(content)), np.uint8)
    return stored


def _planes(flat: np.ndarray, element: int) -> tuple[np.ndarray, int]:
    """Bytes as a matrix of a row an element, and how many bytes are in whole elements."""
    whole = flat.size - flat.size % element
    return flat[:whole].reshape(-1, element), whole


def _shuffle(data: Bytes, values: tuple[int, ...]) -> Bytes:
    element = values[0] if values else 1
    flat = np.frombuffer(data, np.uint8)
    if element <= 1 or flat.size < 2 * element:
        return data
    matrix, whole = _planes(flat, element)
    shuffled = np.empty(flat.size, np.uint8)
    shuffled[:whole].reshape(element, -1)[...] = matrix.T
    shuffled[whole:] = flat[whole:]
    return shuffled


def _unshuffle(data: Bytes, size: int, values: tuple[int, ...]) -> Bytes:
    element = values[0] if values else 1
    flat = np.frombuffer(data, np.uint8)
    if element <= 1 or flat.size < 2 * element:
        return data
    plain = np.empty(flat.size, np.uint8)
    matrix, whole = _planes(plain, element)
    planes = flat[:whole].reshape(element, -1)
    if element <= 16:  # a column at a time is several times as fast as a transposition
        for byte in range(element):
            matrix[:, byte] = planes[byte]
    else:
        matrix[...] = planes.T
    plain[whole:] = flat[whole:]
    return plain


def _inflate(data: Bytes, size: int, values: tuple[int, ...]) -> Bytes:
    fast = libdeflate.decompress(data, size)
    if fast is not None:
        return fast
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(data, size + 1)
    except zlib.error as error:
        raise DamagedError(f"it cannot be inflated: {error}") from None
    if not stream.eof and len(plain) <= size:
        raise DamagedError("it cannot be inflated: it ends too early")
    return plain


def _deflate(data: Bytes, values: tuple[int, ...]) -> Bytes:
    level = values[0] if values else 6
    fast = libdeflate.compress(data, level)
    return zlib.compress(data, level) if fast is None else fast


def _unbzip2(data: Bytes, size: int, values: tuple[int, ...]) -> Bytes:
    stream = bz2.BZ2Decompressor()
    try:
        plain = stream.decompress(data, size + 1)
    except (OSError, ValueError) as error:
        raise DamagedError(f"bzip2 cannot decompress it: {error}") from None
    if not stream.eof and len(plain) <= size:
        raise DamagedError("bzip2 cannot decompress it: it ends too early")
    return plain


def _bzip2(data: Bytes, values: tuple[int, ...]) -> Bytes:
    return bz2.compress(data, values[0] if values else 9)


def _zstd_content_bytes(data: Bytes) -> int | None:
    """What the header of a Zstandard frame says of its content (RFC 8878, 3.1.1.1); None where it does not."""
    head = bytes(memoryview(data)[:18])
    if len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
        raise DamagedError("it does not start as a Zstandard frame does")
    descriptor = head[4]
    single, flag = descriptor >> 5 & 1, descriptor >> 6
    place = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    width = (single, 2, 4, 8)[flag]
    if len(head) < place + width:
        raise DamagedError("it ends inside its header")
    return int.from_bytes(head[place : place + width], "little") + (256 if flag == 1 else 0) if width else None


def _unzstd(data: Bytes, size: int, values: tuple[int, ...]) -> Bytes:
    said = _zstd_content_bytes(data)
    if said is not None and said != size:
        raise DamagedError(f"its Zstandard frame has {said} bytes")
    return _into(size, lambda plain: _codec("zstd").decompress(data, plain), "Zstandard")


def _zstd(data: Bytes, values: tuple[int, ...]) -> Bytes:
    return _codec("zstd").compress(data, values[0] if values else 3, True)  # with a checksum of its own


def _unlz4(data: Bytes, size: int, values: tuple[int, ...]) -> Bytes:
    view = memoryview(data)
    if len(view) < 12:
        raise DamagedError("it ends inside its LZ4 header")
    said, block = struct.unpack(">QI", view[:12])
    if said != size or not block:
        raise DamagedError(f"its LZ4 header promises {said} bytes in blocks of {block}")
    plain = np.empty(size, np.uint8)
    place = 12
    for start in range(0, size, block):
        part = plain[start : start + block]
        length = int.from_bytes(view[place : place + 4], "big")
        packed = view[place + 4 : place + 4 + length]
        if not length or len(packed) != length:
            raise DamagedError("it ends inside an LZ4 block")
        if length == part.size:  # what LZ4 does not make smaller is stored as it is
            part[...] = np.frombuffer(packed, np.uint8)
        else:
            framed = struct.pack("<I", part.size) + packed  # as numcodecs has it
            _checked(lambda: _codec("lz4").decompress(framed, part), "LZ4")
        place += 4 + length
    return plain


def _lz4(data: Bytes, values: tuple[int, ...]) -> Bytes:
    view = memoryview(data).cast("B")
    block = min(values[0] if values and values[0] else _LZ4_BLOCK, len(view))
    parts: list[Bytes] = [struct.pack(">QI", len(view), block)]
    for start in range(0, len(view), block):
        part = view[start : start + block]
        packed = memoryview(_codec("lz4").compress(part))[4:]
        if len(packed) >= len(part):
            packed = part
        parts += struct.pack(">I", len(packed)), packed
    return b"".join(parts)


def _unblosc(data: Bytes, size: int, values: tuple[int, ...]) -> Bytes:
    view = memoryview(data)
    if len(view) < _BLOSC_HEADER:
        raise DamagedError("it ends inside its Blosc header")
    said, _, packed = struct.unpack("<III", view[4:_BLOSC_HEADER])
    if said != size or packed != len(view):
        raise DamagedError(f"its Blosc header promises {said} bytes, packed into {packed} of {len(view)}")
    return _into(size, lambda plain: _codec("blosc").decompress(data, plain), "Blosc")


def _blosc(data: Bytes, values: tuple[int, ...]) -> Bytes:
    element, level, shuffle, codec = values[2], *values[4:7]
    flat = np.frombuffer(data, np.uint8)
    items = flat.view(f"V{element}") if flat.size % element == 0 else flat
    return _codec("blosc").compress(items, _BLOSC_CODECS[codec].encode(), level, shuffle)


def _codec(name: str) -> Any:
    return importlib.import_module(f"numcodecs.{name}")


def _checked(call: Callable[[], Any], name: str) -> None:
    try:
        call()
    except (RuntimeError, ValueError) as error:
        raise DamagedError(f"{name} cannot decompress it: {error}") from None


def _into(size: int, call: Callable[[np.ndarray], Any], name: str) -> np.ndarray:
    plain = np.empty(size, np.uint8)
    _checked(lambda: call(plain), name)
    return plain


@dataclass(frozen=True)
class _Step:
    """How a filter is undone, given the bytes that must come out, and applied."""

    undo: Callable[[Bytes, int, tuple[int, ...]], Bytes]
    apply: Callable[[Bytes, tuple[int, ...]], Bytes]
    codec: str = ""
    """The module of numcodecs that it needs."""
    grows: int | None = 0
    """How many bytes it adds; None: it compresses."""


_STEPS = {
    SHUFFLE: _Step(_unshuffle, _shuffle),
    FLETCHER32: _Step(_check_fletcher32, _add_fletcher32, grows=4),
    DEFLATE: _Step(_inflate, _deflate, grows=None),
    BZIP2: _Step(_unbzip2, _bzip2, grows=None),
    ZSTD: _Step(_unzstd, _zstd, "zstd", None),
    LZ4: _Step(_unlz4, _lz4, "lz4", None),
    BLOSC: _Step(_unblosc, _blosc, "blosc", None),
}


class Pipeline:
    """All filters of a dataset, for chunks of one size. Threads may share it."""

    def __init__(self, filters: Sequence[Filter], chunk_bytes: int) -> None:
        self.filters, self.chunk_bytes = tuple(filters), chunk_bytes
        self._own = tuple(_own(filter) for filter in filters)

    def own(self, mask: int = 0) -> bool:
        """Whether every filter that was not left out is done here; otherwise `encode` and `decode` are the
        library's."""
        used = [place for place in range(len(self.filters)) if not mask >> place & 1]
        compressors = sum(_compresses(self.filters[place]) for place in used)
        return compressors <= 1 and all(self._own[place] for place in used)

    def need_plugins(self, mask: int = 0) -> None:
        """Makes known to the library the filters of chunks with that mask. Raises NotInstalledError."""
        for place, filter in enumerate(self.filters):
            if not mask >> place & 1:
                need_plugin(filter.id)

    @property
    def most_stored(self) -> int:
        """More bytes than a chunk can have: no filter makes what it cannot compress twice as long."""
        return 2 * self.chunk_bytes + (1 << 16)

    @property
    def between_bytes(self) -> int:
        """What is held beside a chunk, stored and decoded, while it is decoded: what one filter has left to the next.
        A checksum is looked at where it is."""
        return self.chunk_bytes if sum(filter.id != FLETCHER32 for filter in self.filters) > 1 else 0

    def decode(self, stored: Bytes, mask: int) -> Bytes:
        """A chunk's elements, exactly `chunk_bytes`. A bit of the mask that is set says that the filter of that place
        was left out. Raises DamagedError."""
        used = [filter for place, filter in enumerate(self.filters) if not mask >> place & 1]
        sizes = []  # of what each filter was given; behind a compressor the size is what the bytes say
        size: int | None = self.chunk_bytes
        for filter in used:
            sizes.append(size)
            grows = _STEPS[filter.id].grows
            size = None if size is None or grows is None else size + grows
        if size is not None and len(stored) != size:
            raise DamagedError(f"it has {len(stored)} bytes, not {size}")
        data = stored
        for filter, before in zip(reversed(used), reversed(sizes)):
            step = _STEPS[filter.id]
            wanted = len(data) - (step.grows or 0) if before is None else before
            if wanted < 0:
                raise DamagedError("it is too short to have a checksum")
            data = step.undo(data, wanted, filter.values)
            if len(data) != wanted:
                word = _word(filter.id, filter.values)
                raise DamagedError(
                    f"behind {word} it has {'more' if len(data) > wanted else 'fewer'} than {wanted} bytes"
                )
        return data

    def encode(self, chunk: Bytes) -> Bytes:
        """What is stored for a chunk's elements."""
        data = chunk
        for filter in self.filters:
            data = _STEPS[filter.id].apply(data, filter.values)
        return data


def _own(filter: Filter) -> bool:
    """Whether a filter is done here: it is one of those above, and what it needs is installed."""
    step = _STEPS.get(filter.id)
    if step is None or (filter.id == BLOSC and len(filter.values) < 7):
        return False
    try:
        if step.codec:
            _codec(step.codec)
    except ImportError:
        return False
    return True


def _compresses(filter: Filter) -> bool:
    step = _STEPS.get(filter.id)
    return step is None or step.grows is None


class Library:
    """The HDF5 library's own filters, applied to one chunk at a time in a file in memory."""

    _names = itertools.count()

    def __init__(self, type_id: Any, filters: Sequence[Filter], chunks: Sequence[int]) -> None:
        from h5py import h5p

        self._type, self._chunks = type_id, tuple(chunks)
        self._plist = h5p.create(h5p.DATASET_CREATE)
        self._plist.set_chunk(self._chunks)
        for filter in filters:
            need_plugin(filter.id)
        set_filters(self._plist, filters)

    def encode(self, chunk: Bytes) -> tuple[Bytes, int]:
        """What is stored for a chunk's elements, and the mask of filters that were left out, which those may be that
        make nothing smaller."""
        import h5py
        from h5py import h5d, h5s

        name = f"longshore-filters-{next(self._names)}"
        with library_lock(), h5py.File(name, "w", driver="core", backing_store=False, rdcc_nbytes=0) as file:
            dataset = h5d.create(file.id, b"chunk", self._type, h5s.create_simple(self._chunks), self._plist)
            dataset.write(h5s.ALL, h5s.ALL, np.frombuffer(chunk, np.uint8), self._type)
            mask, stored = dataset.read_direct_chunk((0,) * len(self._chunks))
        return stored, mask
