"""The codecs of Zarr that make bytes of bytes: compressors, checksums, the shuffle."""

from __future__ import annotations

import base64
import bz2
import importlib
import lzma
import struct
import zlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import NotInstalledError, StoreError
from . import libdeflate
from .zarr_pipeline import Options, Stage, Step

INSTALL = "pip install 'longshore[zarr]'"
_MAX_LZMA_MEMORY = 512 << 20
_BLOSC_NAMES = ("blosclz", "lz4", "lz4hc", "zlib", "zstd", "snappy")
_BLOSC_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


def numcodecs(name: str, **options: Any) -> Any:
    """A codec of numcodecs."""
    try:
        from numcodecs import registry
    except ImportError:
        raise NotInstalledError(f"the codec {name} needs numcodecs: {INSTALL}") from None
    except Exception as error:  # it looks at the versions of what it uses, which may be none that it can read
        raise StoreError(f"the codec {name} needs numcodecs, which cannot be imported: {error}") from None
    try:
        return registry.get_codec({"id": name, **options})
    except (ValueError, TypeError) as error:
        raise StoreError(f"numcodecs refuses the codec {name}: {str(error)[:200]}") from None


class _Compressor(Step):
    """What gives fewer bytes, whose number only its decoder knows."""

    def __init__(self, name: str, before: Stage) -> None:
        super().__init__(name, before, before.compressed())


class Deflate(_Compressor):
    """zlib and gzip."""

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before)
        self._level = options.integer("level", -1, 9, 1)
        self._gzip = name == "gzip"
        self.word = f"{name}:{self._level}"

    def encode(self, data: np.ndarray) -> Any:
        fast = libdeflate.compress(data, self._level, self._gzip)
        if fast is not None:
            return fast
        compressor = zlib.compressobj(self._level, zlib.DEFLATED, 31 if self._gzip else 15)
        return b"".join((compressor.compress(data.data), compressor.flush()))

    def decode(self, data: np.ndarray) -> Any:
        fast = libdeflate.decompress(data, self.before.most, self._gzip)
        if fast is not None:
            return fast
        return _inflate(data, self.before.most, lambda: zlib.decompressobj(31 if self._gzip else 15), many=self._gzip)


class Bz2(_Compressor):
    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before)
        self._level = options.integer("level", 1, 9, 1)
        self.word = f"bz2:{self._level}"

    def encode(self, data: np.ndarray) -> bytes:
        return bz2.compress(data.data, self._level)

    def decode(self, data: np.ndarray) -> bytes:
        return _inflate(data, self.before.most, bz2.BZ2Decompressor, many=True)


class Lzma(_Compressor):
    word = "lzma"

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before)
        self._format = options.choice("format", (lzma.FORMAT_XZ, lzma.FORMAT_ALONE, lzma.FORMAT_RAW), lzma.FORMAT_XZ)
        self._check = options.choice("check", (-1, 0, 1, 4, 10), -1)
        preset = options.take("preset")
        if preset is not None and (type(preset) is not int or (preset & ~lzma.PRESET_EXTREME) not in range(10)):
            raise options.wrong("preset", preset)
        self._preset = preset
        self._filters = _lzma_filters(options)
        if (self._format == lzma.FORMAT_RAW) != (self._filters is not None) and self._format != lzma.FORMAT_XZ:
            raise options.wrong("filters", self._filters)

    def encode(self, data: np.ndarray) -> bytes:
        return lzma.compress(data.data, self._format, self._check, self._preset, self._filters)

    def decode(self, data: np.ndarray) -> bytes:
        return _inflate(data, self.before.most, self._decompressor, many=self._format == lzma.FORMAT_XZ)

    def _decompressor(self) -> lzma.LZMADecompressor:
        if self._format == lzma.FORMAT_RAW:
            return lzma.LZMADecompressor(self._format, filters=self._filters)
        return lzma.LZMADecompressor(self._format, memlimit=_MAX_LZMA_MEMORY)


def _lzma_filters(options: Options) -> list[dict[str, Any]] | None:
    filters = options.take("filters")
    if filters is None:
        return None
    if not isinstance(filters, list) or not 0 < len(filters) <= 4:
        raise options.wrong("filters", filters)
    for item in filters:
        if not isinstance(item, dict) or not all(type(value) is int for value in item.values()):
            raise options.wrong("filters", filters)
        if not 0 <= item.get("dict_size", 0) <= _MAX_LZMA_MEMORY // 2:
            raise options.wrong("dict_size", item["dict_size"])
    return filters


def _inflate(data: np.ndarray, most: int, make: Callable[[], Any], many: bool) -> bytes:
    """Decompresses at most so many bytes. `many`: whether several streams may follow one another."""
    pieces: list[bytes] = []
    total = 0
    rest: Any = data.data
    while True:
        decompressor = make()
        piece = decompressor.decompress(rest, most - total + 1)
        pieces.append(piece)
        total += len(piece)
        if total > most:
            raise StoreError(f"it decompresses to more than the {most} bytes that belong")
        if not decompressor.eof:
            raise StoreError("its compressed data end too early")
        rest = decompressor.unused_data.lstrip(b"\0") if many else decompressor.unused_data
        if not rest:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not many:
            raise StoreError(f"{len(rest)} bytes follow its compressed data")


class _Native(_Compressor):
    """A compressor of numcodecs that writes how many bytes it was given, so that this can be checked beforehand."""

    codec: Any = None
    options: dict[str, Any]

    def ready(self) -> None:
        if self.codec is None:
            self.codec = numcodecs(self.name, **self.options)

    def encode(self, data: np.ndarray) -> Any:
        self.ready()
        return self.codec.encode(data)

    def decode(self, data: np.ndarray) -> np.ndarray:
        self.ready()
        size = self.content(data)
        if size is None:
            if not self.before.exact:
                raise StoreError("it does not say how many bytes it decompresses to")
            size = self.before.most
        self.before.check(size)
        out = np.empty(size, "u1")
        self.codec.decode(data, out)
        return out

    @abstractmethod
    def content(self, data: np.ndarray) -> int | None:
        """How many bytes it says that it holds; None where it does not say."""


class Zstd(_Native):
    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before)
        level = options.integer("level", -131072, 22, 0)
        checksum = options.flag("checksum")
        self.options = {"level": level, **({"checksum": True} if checksum else {})}
        self.word = f"zstd:{level}" + (":checksum" if checksum else "")

    def decode(self, data: np.ndarray) -> np.ndarray:
        try:
            return super().decode(data)
        except RuntimeError:  # of an older numcodecs, as Python 3.10 has it, which reads no frame without a size
            if self.content(data) is not None or not self.before.exact:
                raise
            return super().decode(_with_size(data, self.before.most))

    def content(self, data: np.ndarray) -> int | None:
        head = bytes(data[:18]).ljust(18, b"\0")
        if len(data) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
            raise StoreError("it does not start as a zstd frame does")
        flag, single, dictionary = head[4] >> 6, head[4] >> 5 & 1, head[4] & 3
        start = 5 + (not single) + (0, 1, 2, 4)[dictionary]
        if flag == 0 and not single:
            return None
        size = int.from_bytes(head[start : start + (1 << flag)], "little")
        return size + 256 if flag == 1 else size


def _with_size(data: np.ndarray, size: int) -> np.ndarray:
    """A zstd frame that does not say how many bytes it holds, saying so."""
    start = 6 + (0, 1, 2, 4)[data[4] & 3]  # behind the window's size and the dictionary's number
    head = bytes(data[:start])
    said = head[:4] + bytes([head[4] | 0xC0]) + head[5:] + size.to_bytes(8, "little")
    return np.concatenate([np.frombuffer(said, "u1"), data[start:]])


class Lz4(_Native):
    most_input = 0x7E000000

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before)
        acceleration = options.integer("acceleration", -(2**31), 2**31 - 1, 1)
        self.options = {"acceleration": acceleration}
        self.word = "lz4" if acceleration == 1 else f"lz4:{acceleration}"

    def content(self, data: np.ndarray) -> int:
        if len(data) < 4:
            raise StoreError("it is too short for LZ4")
        return int.from_bytes(bytes(data[:4]), "little")


class Blosc(_Native):
    most_input = 2**31 - 1 - 16

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before)
        method = options.choice("cname", _BLOSC_NAMES, "lz4")
        level = options.integer("clevel", 0, 9, 5)
        shuffle = options.choice("shuffle", (*_BLOSC_SHUFFLES, -1, 0, 1, 2), 1)
        size = options.take("typesize")
        if size is not None and (type(size) is not int or not 0 <= size < 2**31):
            raise options.wrong("typesize", size)
        self._size = size or before.dtype.itemsize
        if shuffle == -1:
            shuffle = 2 if self._size == 1 else 1
        elif isinstance(shuffle, str):
            shuffle = _BLOSC_SHUFFLES.index(shuffle)
        block = options.integer("blocksize", 0, 2**31 - 1, 0)
        self.options = {"cname": method, "clevel": level, "shuffle": shuffle, "blocksize": block}
        self.word = f"blosc:{method}:{level}:{_BLOSC_SHUFFLES[shuffle]}"

    def encode(self, data: np.ndarray) -> Any:
        whole = 1 < self._size < 256 and len(data) % self._size == 0
        return super().encode(data.view(f"V{self._size}") if whole else data)

    def content(self, data: np.ndarray) -> int:
        # The library trusts its header, so what that says of the buffer must be right.
        if len(data) < 16:
            raise StoreError("it is too short for Blosc")
        version, _, _, size, length, block, stored = struct.unpack("<BBBBIII", bytes(data[:16]))
        if version not in (1, 2) or size == 0 or (block == 0 and length):
            raise StoreError("its Blosc header is damaged")
        if stored != len(data):
            raise StoreError(f"its Blosc header promises {stored} bytes, it has {len(data)}")
        return length


class Shuffle(Step):
    """The first bytes of all elements, then all second ones, and so on."""

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        self._size = options.integer("elementsize", 0, 1 << 30, 4)
        if not before.exact or (self._size > 1 and before.most % self._size):
            raise StoreError(f"the codec shuffle cannot cut a chunk into elements of {self._size} bytes")
        super().__init__(name, before, before.bytes_of(before.most, True))
        self.word = "shuffle" if self._size == before.dtype.itemsize else f"shuffle:{self._size}"

    def encode(self, data: np.ndarray) -> np.ndarray:
        if self._size <= 1:
            return data
        elements = data.reshape(-1, self._size)
        out = np.empty(elements.shape[::-1], "u1")
        for i in range(self._size):  # NumPy lets go of the GIL in each copy, and one byte of all is its fastest way
            out[i] = elements[:, i]
        return out

    def decode(self, data: np.ndarray) -> np.ndarray:
        if self._size <= 1:
            return data
        planes = data.reshape(self._size, -1)
        out = np.empty(planes.shape[::-1], "u1")
        for i in range(self._size):
            out[:, i] = planes[i]
        return out


class Checksum(Step):
    """Four bytes more, before or after, that tell whether the others are right."""

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before, before.bytes_of(before.most + 4, before.exact))
        self._kind = name
        default = "end" if self._kind == "crc32c" else "start"
        location = options.take("location", default)
        if location not in (None, "start", "end"):
            raise options.wrong("location", location)
        self._at_end = (location or default) == "end"
        self.word = self._kind

    def ready(self) -> None:
        if self._kind == "crc32c":
            crc32c_function()

    def _sum(self, data: np.ndarray) -> bytes:
        functions: dict[str, Callable[[Any], int]] = {"crc32": zlib.crc32, "adler32": zlib.adler32}
        function: Callable[[Any], int] = functions.get(self._kind) or crc32c_function()
        return (function(data) & 0xFFFFFFFF).to_bytes(4, "little")

    def encode(self, data: np.ndarray) -> bytes:
        return b"".join((data.data, self._sum(data)) if self._at_end else (self._sum(data), data.data))

    def decode(self, data: np.ndarray) -> np.ndarray:
        if len(data) < 4:
            raise StoreError(f"it is too short for a {self._kind}")
        payload, found = (data[:-4], data[-4:]) if self._at_end else (data[4:], data[:4])
        wanted = self._sum(payload)
        if bytes(found) != wanted:
            raise StoreError(f"its {self._kind} is {bytes(found)[::-1].hex()}, its bytes have {wanted[::-1].hex()}")
        return payload


class NativeChecksum(Step):
    """The checksums that only numcodecs computes."""

    _codec: Any = None

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before, before.bytes_of(before.most + 4, before.exact))
        self._kind = self.word = name
        self._options: dict[str, Any] = {}
        if self._kind == "jenkins_lookup3":
            self._options["initval"] = options.integer("initval", 0, 2**32 - 1, 0)
            if options.take("prefix") is not None:
                raise StoreError("the codec jenkins_lookup3 has a prefix, which JSON cannot hold")

    def ready(self) -> None:
        if self._codec is None:
            self._codec = numcodecs(self._kind, **self._options)

    def encode(self, data: np.ndarray) -> Any:
        self.ready()
        return self._codec.encode(data)

    def decode(self, data: np.ndarray) -> Any:
        self.ready()
        if len(data) < 5:
            raise StoreError(f"it is too short for a {self._kind}")
        return self._codec.decode(data)


class Base64(Step):
    word = "base64"

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        super().__init__(name, before, before.bytes_of(-(-before.most // 3) * 4, before.exact))

    def encode(self, data: np.ndarray) -> bytes:
        return base64.b64encode(data.data)

    def decode(self, data: np.ndarray) -> bytes:
        return base64.b64decode(data.data, validate=True)


def crc32c_function() -> Callable[[np.ndarray], int]:
    """The checksum of shards, and of the codec of that name."""
    for library, function in (("google_crc32c", "value"), ("crc32c", "crc32c")):
        try:
            return getattr(importlib.import_module(library), function)
        except (ImportError, AttributeError):
            continue
    raise NotInstalledError(f"CRC-32C needs google-crc32c or crc32c: {INSTALL}")


COMPRESSORS: dict[str, Callable[[str, Stage, Options], Step]] = {
    "zlib": Deflate,
    "gzip": Deflate,
    "bz2": Bz2,
    "lzma": Lzma,
    "zstd": Zstd,
    "lz4": Lz4,
    "blosc": Blosc,
    "shuffle": Shuffle,
    "crc32c": Checksum,
    "crc32": Checksum,
    "adler32": Checksum,
    "fletcher32": NativeChecksum,
    "jenkins_lookup3": NativeChecksum,
    "base64": Base64,
}
