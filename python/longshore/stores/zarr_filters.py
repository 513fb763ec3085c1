"""The codecs of Zarr that look at elements: the filters of numcodecs, and compressors of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import NotInstalledError, StoreError
from .zarr_compressors import COMPRESSORS, numcodecs
from .zarr_pipeline import Options, Stage, Step

_NUMBER = re.compile(r"[<>|=]?[biufc]\d{1,2}|\|?\?|bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)")
_TEXT = re.compile(r"[<>]U\d{1,9}")
_MAX_LABELS = 65535
_ZFP_MOST = 3  # a block of zfp takes less than so many times its elements' bytes
_ZFP_HEADER = 1024
_OBJECTS = ("json", "json2", "msgpack", "msgpack2", "pickle", "vlen-utf8", "vlen-bytes", "vlen-array")


class _Filter(Step):
    """A filter of numcodecs: an element in, an element out."""

    def __init__(self, name: str, before: Stage, taken: np.dtype, given: np.dtype, options: dict[str, Any]) -> None:
        _check_whole(name, before, taken)
        if before.shape is not None and taken.itemsize != before.dtype.itemsize:
            raise StoreError(f"the codec {name} takes elements of {taken}, the array has {before.dtype}")
        super().__init__(name, before, Stage(before.most, True, taken, before.shape).typed(given))
        self.word = name
        self._taken, self._given = taken, given
        self._options = options
        self._codec: Any = None

    def ready(self) -> None:
        if self._codec is None:
            self._codec = numcodecs(self.name, **self._options)

    def encode(self, data: np.ndarray) -> Any:
        self.ready()
        return self._codec.encode(data.view(self._taken))

    def decode(self, data: np.ndarray) -> Any:
        self.ready()
        with np.errstate(all="ignore"):  # what was stored may be anything
            return self._codec.decode(data.view(self._given))


class _PackBits(Step):
    word = "packbits"

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        _check_whole(name, before, np.dtype(bool))
        size = 1 + -(-before.most // 8)
        super().__init__(name, before, Stage(size, True, np.dtype("u1"), None if before.shape is None else (size,)))

    def encode(self, data: np.ndarray) -> np.ndarray:
        packed = np.empty(self.after.most, "u1")
        packed[0] = -len(data) % 8
        packed[1:] = np.packbits(data.view(bool))
        return packed

    def decode(self, data: np.ndarray) -> np.ndarray:
        if data[0] != -self.before.most % 8:
            raise StoreError(f"it says that {data[0]} bits are padding, {-self.before.most % 8} are")
        return np.unpackbits(data[1:], count=self.before.most)


class _Pcodec(Step):
    word = "pcodec"

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        if before.dtype.kind not in "iuf" or before.dtype.itemsize > 8:
            raise StoreError(f"the codec {name} does not take elements of {before.dtype}")
        _check_whole(name, before, before.dtype)
        super().__init__(name, before, before.compressed())
        self._options: dict[str, Any] = {"level": options.integer("level", 0, 12, 8)}
        for key in ("mode_spec", "delta_spec", "paging_spec"):
            value = options.take(key)
            if value is not None:
                if not isinstance(value, str):
                    raise options.wrong(key, value)
                self._options[key] = value
        for key in ("delta_encoding_order", "equal_pages_up_to"):
            value = options.take(key)
            if value is not None:
                if type(value) is not int or not 0 <= value < 2**31:
                    raise options.wrong(key, value)
                self._options[key] = value

    def ready(self) -> None:
        try:
            import pcodec  # noqa: F401
        except ImportError:
            raise NotInstalledError("the codec pcodec needs pcodec: pip install 'numcodecs[pcodec]'") from None

    def encode(self, data: np.ndarray) -> Any:
        self.ready()
        return numcodecs("pcodec", **self._options).encode(data.view(self.before.dtype))

    def decode(self, data: np.ndarray) -> np.ndarray:
        self.ready()
        from pcodec import standalone

        native = self.before.dtype.newbyteorder("=")
        out = np.empty(self.before.most // native.itemsize, native)
        progress = standalone.simple_decompress_into(bytes(data), out)
        if progress.n_processed != len(out) or not progress.finished:
            raise StoreError(f"it holds another number of elements than {len(out)}")
        return out


class _Zfp(Step):
    """zfp, whose decoder checks nothing: the header must be right, and the data so long that it cannot run beyond."""

    word = "zfpy"

    def __init__(self, name: str, before: Stage, options: Options) -> None:
        if before.dtype.str[1:] not in ("i4", "i8", "f4", "f8"):
            raise StoreError(f"the codec {name} does not take elements of {before.dtype}")
        _check_whole(name, before, before.dtype)
        extents = before.shape or (before.most // before.dtype.itemsize,)
        if len(extents) > 4:
            raise StoreError(f"the codec {name} takes at most 4 dimensions, the array has {len(extents)}")
        most = before.dtype.itemsize * _ZFP_MOST
        for extent in extents:
            most *= -(-extent // 4) * 4
        super().__init__(name, before, before.bytes_of(most + _ZFP_HEADER, False))
        self._options: dict[str, Any] = {}
        for key in ("mode", "tolerance", "rate", "precision"):
            value = options.take(key)
            if value is not None:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise options.wrong(key, value)
                self._options[key] = value
        options.take("compression_kwargs")  # numcodecs repeats in it what it makes of the others

    def ready(self) -> None:
        try:
            import zfpy  # noqa: F401
        except ImportError:
            raise NotInstalledError("the codec zfpy needs zfpy: pip install 'numcodecs[zfpy]'") from None

    def encode(self, data: np.ndarray) -> Any:
        self.ready()
        elements = data.view(self.before.dtype)
        shaped = elements if self.before.shape is None else elements.reshape(self.before.shape)
        return numcodecs("zfpy", **self._options).encode(shaped)

    def decode(self, data: np.ndarray) -> Any:
        self.ready()
        import zfpy

        raw = bytes(data)
        header = zfpy.header(raw)
        extents = [header[name] for name in ("nx", "ny", "nz", "nw") if header[name]]
        item = np.dtype(header["type"])
        size, blocks = item.itemsize, 1
        for extent in extents:
            size *= extent
            blocks *= -(-extent // 4)
        if size != self.before.most or item.str[1:] != self.before.dtype.str[1:]:
            raise StoreError(f"its header promises {size} bytes of {item}, {self.before.most} belong")
        most_bits = 16 + _ZFP_MOST * 8 * item.itemsize * 4 ** len(extents)
        if header["config"]["expert"]["minbits"] > most_bits:
            raise StoreError("its header promises longer blocks than there can be")
        return zfpy.decompress_numpy(raw.ljust(blocks * most_bits // 8 + _ZFP_HEADER, b"\0"))


class Swap(Step):
    """Elements in the other byte order."""

    def __init__(self, name: str, before: Stage) -> None:
        super().__init__(name, before, before.typed(before.dtype.newbyteorder()))
        kind = {"c": f"V{before.dtype.itemsize // 2}", "U": "V4"}.get(before.dtype.kind, f"V{before.dtype.itemsize}")
        self._size = np.dtype(kind).itemsize

    def encode(self, data: np.ndarray) -> np.ndarray:
        return data.view(f"u{self._size}").byteswap()

    decode = encode


class Permute(Step):
    """An array with its dimensions in another order, behind a codec that looked at the elements."""

    def __init__(self, name: str, before: Stage, axes: tuple[int, ...]) -> None:
        assert before.shape is not None
        self._axes = axes
        self._back = tuple(np.argsort(axes))
        shape = tuple(before.shape[axis] for axis in axes)
        super().__init__(name, before, Stage(before.most, True, before.dtype, shape))

    def encode(self, data: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(data.view(self.before.dtype).reshape(self.before.shape).transpose(self._axes))

    def decode(self, data: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(data.view(self.after.dtype).reshape(self.after.shape).transpose(self._back))


class Unknown(Step):
    """A codec that nobody here can undo. What an array with one holds can be told, not read."""

    def __init__(self, name: str, before: Stage) -> None:
        super().__init__(name, before, before.compressed())
        self.word = name

    def ready(self) -> None:
        if self.name.removeprefix("numcodecs.") in _OBJECTS:
            raise StoreError(f"the codec {self.name} is for objects, not for elements of {self.before.dtype}")
        raise StoreError(f"the codec {self.name!r} is unknown here")

    def encode(self, data: np.ndarray) -> Any:
        self.ready()

    def decode(self, data: np.ndarray) -> Any:
        self.ready()


def _check_whole(name: str, before: Stage, dtype: np.dtype) -> None:
    if not before.exact or before.most % dtype.itemsize:
        raise StoreError(f"the codec {name} cannot follow what comes before it: elements of {dtype} are needed")


def _number(options: Options, key: str, default: np.dtype | None = None) -> np.dtype:
    value = options.take(key)
    if value is None and default is not None and default.kind in "biufc":
        return default
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise options.wrong(key, value)
    try:
        return np.dtype(value)
    except TypeError:
        raise options.wrong(key, value) from None


def _delta(name: str, before: Stage, options: Options) -> Step:
    taken = _number(options, "dtype", before.dtype)
    given = _number(options, "astype", taken)
    return _Filter(name, before, taken, given, {"dtype": taken.str, "astype": given.str})


def _fixed_scale_offset(name: str, before: Stage, options: Options) -> Step:
    taken = _number(options, "dtype", before.dtype)
    given = _number(options, "astype", taken)
    scale, offset = options.number("scale"), options.number("offset")
    if scale == 0:
        raise options.wrong("scale", scale)
    return _Filter(
        name, before, taken, given, {"scale": scale, "offset": offset, "dtype": taken.str, "astype": given.str}
    )


def _quantize(name: str, before: Stage, options: Options) -> Step:
    taken = _number(options, "dtype", before.dtype)
    given = _number(options, "astype", taken)
    if taken.kind != "f" or given.kind != "f":
        raise options.wrong("dtype", taken.str)
    digits = options.integer("digits", -300, 300)
    return _Filter(name, before, taken, given, {"digits": digits, "dtype": taken.str, "astype": given.str})


def _bit_round(name: str, before: Stage, options: Options) -> Step:
    keep = options.integer("keepbits", 0, 52)
    if before.dtype.kind != "f" or before.dtype.itemsize > 8:
        raise StoreError(f"the codec {name} does not take elements of {before.dtype}")
    return _Filter(name, before, before.dtype, before.dtype, {"keepbits": keep})


def _as_type(name: str, before: Stage, options: Options) -> Step:
    taken = _number(options, "decode_dtype", before.dtype)
    given = _number(options, "encode_dtype")
    return _Filter(name, before, taken, given, {"decode_dtype": taken.str, "encode_dtype": given.str})


def _categorize(name: str, before: Stage, options: Options) -> Step:
    text = options.take("dtype")
    if not isinstance(text, str) or not _TEXT.fullmatch(text):
        raise options.wrong("dtype", text)
    code = options.take("astype", "|u1")
    if not isinstance(code, str) or not _NUMBER.fullmatch(code):
        raise options.wrong("astype", code)
    given = np.dtype(code)
    labels = options.take("labels")
    if not isinstance(labels, list) or len(labels) > _MAX_LABELS or not all(isinstance(word, str) for word in labels):
        raise options.wrong("labels", labels)
    try:
        taken = np.dtype(text)
    except (ValueError, TypeError):
        raise options.wrong("dtype", text) from None
    if not taken.itemsize:
        raise options.wrong("dtype", text)
    return _Filter(name, before, taken, given, {"labels": labels, "dtype": text, "astype": given.str})


FILTERS: dict[str, Callable[[str, Stage, Options], Step]] = {
    "delta": _delta,
    "fixedscaleoffset": _fixed_scale_offset,
    "quantize": _quantize,
    "bitround": _bit_round,
    "astype": _as_type,
    "packbits": _PackBits,
    "categorize": _categorize,
}
NUMBERS: dict[str, Callable[[str, Stage, Options], Step]] = {"pcodec": _Pcodec, "zfpy": _Zfp}
BY_NAME = {**COMPRESSORS, **FILTERS, **NUMBERS}
"""By what numcodecs calls them."""
