"""Bit-blit with address relations: the generalised memcpy of Dinda & O'Hallaron, section 6.

    python examples/bitblit.py [IMAGE] [--out DIR]

Turns, mirrors, tiles, cuts and warps a picture, and copies a part of it to where it does not quite fit. Each of these
is an address relation, that is pairs of pixels, made once and carried out by `move` or a compiled program; NumPy checks
every one. Without an image, a harbour is drawn. The pictures are written to DIR (default: bitblit-pictures).
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import longshore as ls
import numpy as np

RGB = np.dtype([("red", "u1"), ("green", "u1"), ("blue", "u1")])
RGBA = np.dtype([*RGB.descr, ("alpha", "u1")])


# -- pictures: (height, width) arrays whose elements are pixels
# ----------------------------------------------------------------


def harbour(height: int = 1080, width: int = 1920) -> np.ndarray:
    """An evening harbour: sky, sun, water, a quay with cranes, a ship and its load."""
    y, x = np.mgrid[0:height, 0:width]
    u, v = x / width, y / height
    picture = np.empty((height, width, 3))
    dusk, gold = np.array([62, 78, 130]), np.array([250, 190, 120])
    blend = np.clip(v / 0.55, 0, 1)[..., None] ** 1.5
    picture[:] = dusk * (1 - blend) + gold * blend
    sun = np.exp(-((u - 0.72) ** 2 * 3 + (v - 0.47) ** 2) * 900)[..., None]
    picture += sun * (np.array([255, 236, 170]) - picture)
    water = v > 0.55
    waves = 0.5 + 0.5 * np.sin(2 * np.pi * (180 * np.maximum(v - 0.55, 0) ** 0.6 + 2 * np.sin(9 * u + 40 * v)))
    glitter = np.exp(-((u - 0.72) ** 2) * 60 / np.maximum(v - 0.5, 0.02)) * waves
    sea = np.array([24, 52, 78]) + glitter[..., None] * np.array([215, 150, 80]) + waves[..., None] * 14
    picture[water] = sea[water]

    def box(left, right, top, bottom, colour):
        picture[int(top * height) : int(bottom * height), int(left * width) : int(right * width)] = colour

    box(0, 0.33, 0.60, 1.0, (58, 54, 56))  # the quay
    box(0, 0.33, 0.60, 0.612, (104, 96, 92))
    for foot, load in ((0.03, 0.12), (0.20, 0.39)):  # cranes
        box(foot, foot + 0.008, 0.22, 0.60, (170, 60, 40))
        box(foot + 0.045, foot + 0.053, 0.22, 0.60, (150, 52, 36))
        box(max(foot - 0.05, 0), load + 0.03, 0.215, 0.232, (190, 70, 45))
        box(load, load + 0.0015, 0.232, 0.40, (40, 40, 44))
        box(load - 0.015, load + 0.017, 0.40, 0.43, (208, 168, 60))
    hull = (v > 0.62) & (v < 0.74) & (u > 0.36 + 0.25 * (v - 0.62)) & (u < 0.86 - 0.5 * np.maximum(v - 0.62, 0) ** 0.9)
    picture[hull] = (44, 40, 62)
    picture[hull & (v > 0.72)] = (132, 44, 40)
    colours = [(186, 74, 58), (66, 118, 160), (214, 176, 84), (96, 140, 92), (150, 150, 158)]
    for row in range(3):
        for column in range(11 - row):
            left, top = 0.39 + 0.034 * column, 0.588 - 0.034 * row
            box(left, left + 0.032, top, top + 0.032, colours[(3 * row + 2 * column) % 5])
            box(left, left + 0.032, top + 0.029, top + 0.032, (30, 30, 36))
    box(0.785, 0.835, 0.46, 0.62, (226, 222, 214))  # the bridge
    box(0.79, 0.83, 0.475, 0.49, (50, 66, 90))
    picture += np.random.default_rng(7).normal(0, 2, picture.shape)
    return pixels(np.clip(picture, 0, 255).astype(np.uint8))


def pixels(bytes_: np.ndarray) -> np.ndarray:
    """An array of shape (height, width, 3 or 4), uint8, as pixels."""
    bytes_ = np.ascontiguousarray(bytes_, np.uint8)
    return bytes_.view(RGB if bytes_.shape[2] == 3 else RGBA)[..., 0]


def channels(picture: np.ndarray) -> np.ndarray:
    """Contiguous pixels as bytes: a view with one more axis."""
    return picture.view(np.uint8).reshape(*picture.shape, picture.itemsize)


def numbers(picture: np.ndarray) -> np.ndarray:
    """Pixels as NumPy copies them fastest one by one: those of 4 bytes as integers."""
    return picture.view(np.uint32) if picture.itemsize == 4 else picture


def with_alpha(picture: np.ndarray) -> np.ndarray:
    opaque = np.full((*picture.shape, 4), 255, np.uint8)
    opaque[..., :3] = channels(picture)
    return pixels(opaque)


def read_picture(path: str) -> np.ndarray:
    try:
        from PIL import Image
    except ImportError:
        from matplotlib import image

        read = image.imread(path)
        read = np.round(read * 255).astype(np.uint8) if read.dtype.kind == "f" else read
        return pixels(read[..., :3] if read.ndim == 3 else np.repeat(read[..., None], 3, axis=2))
    with Image.open(path) as opened:
        return pixels(np.asarray(opened.convert("RGB")))


def write_png(picture: np.ndarray, path: Path) -> None:
    """The file appears whole or not at all."""
    height, width = picture.shape
    rows = np.zeros((height, 1 + width * picture.itemsize), np.uint8)  # each row begins with its filter, 0: none
    rows[:, 1:] = channels(picture).reshape(height, -1)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if picture.itemsize == 3 else 6, 0, 0, 0)
    content = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b"")
    )
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            file.write(content)
            file.close()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


# -- operations
# -----------------------------------------------------------------------------------------------------------------


@dataclass
class Blit:
    """What moves, and how NumPy would: each way writes a destination of its own, in pixels or in bytes."""

    name: str
    relation: ls.AddressRelation
    destination: np.ndarray
    numpy_ways: list[Callable[[np.ndarray], None]]


def views_blit(name, picture, destination, view, place=lambda array: array) -> Blit:
    """A blit that one slice assignment says: place(destination)[...] = view(picture), on the first two axes of both."""
    relation = ls.relation_of_views(picture, view(picture), destination, place(destination))

    def as_pixels(out):
        place(numbers(out))[...] = view(numbers(picture))

    def as_bytes(out):
        place(channels(out))[...] = view(channels(picture))

    return Blit(name, relation, destination, [as_pixels, as_bytes])


def turned(picture, quarters) -> Blit:
    shape = picture.shape[:: -1 if quarters % 2 else 1]
    return views_blit(
        f"turned by {90 * quarters}", picture, np.empty(shape, picture.dtype), lambda a: np.rot90(a, quarters)
    )


def mirrored(picture, axis) -> Blit:
    name = ("upside down", "mirrored")[axis]
    return views_blit(name, picture, np.empty_like(picture), lambda a: np.flip(a, axis))


def window_of(shape) -> tuple[slice, slice]:
    """The middle of a picture, a bit to the right: where the ship lies."""
    height, width = shape
    return slice(height * 2 // 5, height * 4 // 5), slice(width * 7 // 20, width * 9 // 10)


def window(picture) -> Blit:
    rows, columns = window_of(picture.shape)
    destination = np.empty(picture[rows, columns].shape, picture.dtype)
    return views_blit("window", picture, destination, lambda a: a[rows, columns])


def tiled(picture, down=3, across=2) -> Blit:
    """A window side by side with itself: each pixel has several destinations."""
    rows, columns = window_of(picture.shape)
    height, width = picture[rows, columns].shape
    blocks = (down, height, across, width)
    return views_blit(
        f"tiled {down} x {across}",
        picture,
        np.empty((down * height, across * width), picture.dtype),
        lambda a: np.broadcast_to(a[rows, columns][None, :, None], blocks + a.shape[2:]),
        lambda b: b.reshape(blocks + b.shape[2:]),
    )


def clipped(picture, top, left) -> Blit:
    """A window copied onto the picture, its upper left corner at (top, left), as far as it lies inside."""
    rows, columns = window_of(picture.shape)
    part = picture[rows, columns].shape
    to, of = [], []
    for at, length, limit in zip((top, left), part, picture.shape):
        first, last = max(at, 0), max(min(at + length, limit), max(at, 0))
        to.append(slice(first, last))
        of.append(slice(first - at, last - at))
    return views_blit(
        "copied and clipped", picture, picture.copy(), lambda a: a[rows, columns][tuple(of)], lambda b: b[tuple(to)]
    )


def rippled(picture) -> Blit:
    """A warp, which no strides can say: the source of each pixel by its index."""
    height, width = picture.shape
    y, x = np.mgrid[0:height, 0:width]
    depth = np.clip((y - 0.55 * height) / max(height, 1), 0, None)
    from_y = np.clip(np.rint(y + 25 * depth * np.sin(y * 0.09)), 0, max(height - 1, 0)).astype(np.int64)
    from_x = np.clip(np.rint(x + 60 * depth * np.sin(x * 0.02 + y * 0.13)), 0, max(width - 1, 0)).astype(np.int64)
    indices = (from_y * width + from_x).ravel()
    relation = ls.AddressRelation.from_indices(indices, np.arange(picture.size), picture.dtype)

    def as_pixels(out):
        numbers(out).reshape(-1)[:] = numbers(picture).reshape(-1)[indices]

    def as_bytes(out):
        np.take(
            channels(picture).reshape(-1, picture.itemsize),
            indices,
            0,
            channels(out).reshape(-1, picture.itemsize),
            "clip",
        )

    return Blit("rippled", relation, np.empty_like(picture), [as_pixels, as_bytes])


def blits(picture) -> list[Blit]:
    height, width = picture.shape
    return [
        turned(picture, 1),
        turned(picture, 2),
        turned(picture, 3),
        mirrored(picture, 1),
        mirrored(picture, 0),
        window(picture),
        tiled(picture),
        clipped(picture, -height // 5, -width // 6),
        rippled(picture),
    ]


# -- carrying them out
# ----------------------------------------------------------------------------------------------------------


def median_ms(action: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return sorted(times)[rounds // 2] * 1e3


def run(picture: np.ndarray, folder: Path | None, rounds: int) -> bool:
    """Prints a line for each blit; writes pictures where there is a folder for them. False where NumPy disagrees."""
    kind = "RGB" if picture.itemsize == 3 else "RGBA"
    height, width = picture.shape
    print(
        f"\n{kind}, {width} x {height} pixels of {picture.itemsize} bytes, times in milliseconds (medians of {rounds}):"
    )
    print(f"  {'':<19}{'pixels':>9}{'stored in':>12}{'Longshore':>11}{'NumPy':>8}")
    right = True
    for blit in blits(picture):
        expected, destination = blit.destination.copy(), blit.destination
        blit.relation.move(picture, destination)
        blit.numpy_ways[0](expected)
        same = np.array_equal(channels(destination), channels(expected))
        right = right and same

        program = blit.relation.program()
        ours = median_ms(lambda: program(picture, destination), rounds)
        numpys = min(median_ms(lambda way=way: way(expected), rounds) for way in blit.numpy_ways)
        speed = f"{numpys / ours:.1f} times as fast" if ours <= numpys else f"{ours / numpys:.1f} times as slow"
        stored = ls.encode(blit.relation).encoded_bytes
        verdict = speed if same else "NOT WHAT NUMPY HAS"
        print(f"  {blit.name:<19}{blit.relation.elements:>9}{stored:>10} B{ours:>11.2f}{numpys:>8.2f}   {verdict}")
        if folder is not None:
            write_png(destination, folder / f"{blit.name.replace(' ', '-')}.png")
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", nargs="?", help="a picture; without one, a harbour is drawn")
    parser.add_argument("--out", type=Path, default=Path("bitblit-pictures"), help="folder for the pictures")
    parser.add_argument("--size", default="1920x1080", help="of the harbour, WIDTHxHEIGHT")
    parser.add_argument("--rounds", type=int, default=9, help="of each timing")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    picture = read_picture(options.image) if options.image else harbour(height, width)
    options.out.mkdir(parents=True, exist_ok=True)
    write_png(picture, options.out / "original.png")
    right = run(picture, options.out, options.rounds)
    right = run(with_alpha(picture), None, options.rounds) and right
    print("\nNumPy's time is the better of copying pixels one by one and as bytes.")
    print(f"All as NumPy has it. Pictures: {options.out}" if right else "Longshore and NumPy differ.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
