"""Codecs in words, as `--codec` has them, and what Zarr's two formats say for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._words import short
from ..errors import ArgumentError
from .zarr_codecs import CORE, PREFIX, named
from .zarr_filters import FILTERS, NUMBERS

_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_METHODS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
KNOWN = (
    "zstd:LEVEL (1 to 22), zstd:LEVEL:checksum, gzip:LEVEL, zlib:LEVEL (0 to 9), bz2:LEVEL (1 to 9), lzma, lz4, "
    f"blosc:METHOD:LEVEL:SHUFFLE (METHOD one of {', '.join(_METHODS)}; SHUFFLE one of {', '.join(_SHUFFLES)}), "
    "shuffle, crc32c, crc32, adler32, fletcher32, jenkins_lookup3"
)
"""For messages."""


def configs_of(words: Sequence[str], itemsize: int) -> list[dict[str, Any]]:
    """What numcodecs calls the codecs that words ask for. Raises ArgumentError where one is unknown."""
    configs = []
    for word in words:
        name, *given = word.split(":") if isinstance(word, str) else ("",)
        make = _MAKERS.get(name)
        config = make(given, itemsize) if make is not None else None
        if config is None:
            raise ArgumentError(f"the codec {short(word)} is unknown to Zarr; known are: {KNOWN}")
        configs.append({"id": name, **config})
    return configs


def format_2(configs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The filters and the compressor of a `.zarray`."""
    filters = list(configs[:-1])
    return {"filters": filters or None, "compressor": configs[-1] if configs else None}


def format_3(configs: Sequence[dict[str, Any]], endian: str, itemsize: int) -> list[dict[str, Any]]:
    """The codecs of a `zarr.json`, with the one that makes bytes behind those that take elements."""
    makes_bytes: dict[str, Any] = {"name": "bytes"}
    if endian:
        makes_bytes["configuration"] = {"endian": endian}
    filters = [_to_format_3(config, itemsize) for config in configs if config["id"] in FILTERS]
    numbers = [_to_format_3(config, itemsize) for config in configs if config["id"] in NUMBERS]
    others = [_to_format_3(config, itemsize) for config in configs if config["id"] not in (*FILTERS, *NUMBERS)]
    return [*filters, *(numbers or [makes_bytes]), *others]


def configs_of_v2(filters: Any, compressor: Any) -> list[dict[str, Any]]:
    """What a `.zarray` says of codecs, in the order in which they are applied."""
    return [*(filters or ()), *(() if compressor is None else (compressor,))]


def configs_of_v3(codecs: Sequence[Any]) -> list[dict[str, Any]] | None:
    """The same of a `zarr.json`, as numcodecs calls them; None where numcodecs has no name for one of them."""
    configs = []
    for codec in codecs:
        name, given = named(codec)
        if name in ("bytes", "endian", "transpose"):
            continue
        if name.startswith(PREFIX):
            configs.append({"id": name.removeprefix(PREFIX), **given})
        elif name == "blosc":
            options = {key: value for key, value in given.items() if key != "typesize"}
            if options.get("shuffle") in _SHUFFLES:
                options["shuffle"] = _SHUFFLES.index(options["shuffle"])
            configs.append({"id": name, **options})
        elif name in CORE:
            configs.append({"id": name, **given})
        else:
            return None
    return configs


def _to_format_3(config: dict[str, Any], itemsize: int) -> dict[str, Any]:
    name = config["id"]
    given = {key: value for key, value in config.items() if key != "id"}
    if name == "zstd":
        given = {"level": given.get("level", 0), "checksum": given.get("checksum", False)}
    elif name == "blosc":
        shuffle = given.get("shuffle", 1)
        size = given.get("typesize") or itemsize
        if shuffle == -1:
            shuffle = 2 if size == 1 else 1
        given = {
            "typesize": min(size, 255),
            "cname": given.get("cname", "lz4"),
            "clevel": given.get("clevel", 5),
            "shuffle": _SHUFFLES[shuffle],
            "blocksize": given.get("blocksize", 0),
        }
    elif name == "crc32c" and given.get("location", "end") == "end":
        return {"name": name}
    elif name != "gzip":
        return {"name": PREFIX + name, "configuration": given}
    return {"name": name, "configuration": given}


def _level(low: int, high: int, default: int) -> Callable[[list[str], int], dict[str, Any] | None]:
    def make(given: list[str], itemsize: int) -> dict[str, Any] | None:
        level = _integer(given[0], low, high) if given else default
        return {"level": level} if level is not None and len(given) < 2 else None

    return make


def _zstd(given: list[str], itemsize: int) -> dict[str, Any] | None:
    level = _integer(given[0], -131072, 22) if given else 3
    if level is None or given[1:] not in ([], ["checksum"]):
        return None
    return {"level": level, **({"checksum": True} if given[1:] else {})}


def _lz4(given: list[str], itemsize: int) -> dict[str, Any] | None:
    acceleration = _integer(given[0], 1, 65537) if given else 1
    return {"acceleration": acceleration} if acceleration is not None and len(given) < 2 else None


def _blosc(given: list[str], itemsize: int) -> dict[str, Any] | None:
    method, level, shuffle = [*given, *("lz4", "5", "shuffle")[len(given) :]][:3]
    number = _integer(level, 0, 9)
    if len(given) > 3 or method not in _METHODS or number is None or shuffle not in _SHUFFLES:
        return None
    return {"cname": method, "clevel": number, "shuffle": _SHUFFLES.index(shuffle), "blocksize": 0}


def _shuffle(given: list[str], itemsize: int) -> dict[str, Any] | None:
    size = _integer(given[0], 1, 1 << 30) if given else itemsize
    return {"elementsize": size} if size is not None and len(given) < 2 else None


def _plain(given: list[str], itemsize: int) -> dict[str, Any] | None:
    return None if given else {}


def _integer(text: str, low: int, high: int) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if low <= number <= high else None


_MAKERS: dict[str, Callable[[list[str], int], dict[str, Any] | None]] = {
    "zstd": _zstd,
    "gzip": _level(-1, 9, 6),
    "zlib": _level(-1, 9, 6),
    "bz2": _level(1, 9, 9),
    "lz4": _lz4,
    "blosc": _blosc,
    "shuffle": _shuffle,
    **dict.fromkeys(("lzma", "crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3"), _plain),
}
