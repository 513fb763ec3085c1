"""Further cases of `longshore bench stores`, each by its name only: groups with all that they say of themselves, runs
that are killed and resumed, bits flipped in stored chunks, and safetensors from four files to three ranks.

Each takes the bench, an empty folder and what tells the step, and gives its rows. `shown` of a row is what its table
has beside the time, `aims` what was hoped for: in words, the limit, the value, and whether it is a least.
"""

import json
import math
import os
import random
import struct
import time
import warnings
from pathlib import Path

import longshore as ls
import numpy as np

from .machine import summary
from .protocol import Missing, WrongResult
from .stores_measure import measure
from .stores_peers import DATASET, regions
from .stores_tasks import (
    ALLOWED_BYTES,
    COPY,
    LONGSHORE,
    Task,
    check_destination,
    drop_caches,
    longshore_move,
    make_source,
    needs,
    remove,
    stored_bytes,
    tiny,
)

_ARRAYS, _METADATA_BYTES = 50, 50_000
_CHUNKS_THERE = 6  # of eight of an array's chunks of 48 by 10: those that chunks of the source lie in
_KILLS, _FLIPS = {True: 1, False: 10}, {True: 40, False: 1000}  # quick, or not; kills of each of two tasks
_TRIES = 5  # a kill: runs that end before they are killed do not count
_REDONE = 0.05
_LEAST_CEILING = 24_000_000  # of the checkpoint, whose pieces do not become smaller with the scale
_PIECE_BYTES = 8 << 20
_METADATA = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json")


def _row(case, title, seconds, payload_bytes, shown, aims, **more):
    where = {"ranks": 1, "processes": 1, "threads": len(os.sched_getaffinity(0))}
    told = {"case": case, "title": title, "contender": LONGSHORE, **summary(seconds), "payload_bytes": payload_bytes}
    return {**told, **where, "verified": True, "shown": shown, "aims": aims, **more}


def _succeed(command, bench):
    taken = measure(command, seconds=bench.limit)
    if taken.why():
        raise Missing(taken.why())
    return taken


# --- groups


def groups(bench, place, step):
    """Fifty small arrays in one group, with attributes, dimension names, every kind of fill and missing chunks."""
    needs(bench.tasks["A"])
    import zarr

    rows, later = [], int(zarr.__version__.split(".")[0]) >= 3
    for zarr_format in (2, 3) if later else (2,):
        step(f"Zarr {zarr_format}")
        source, destination = place / f"source{zarr_format}.zarr", place / f"destination{zarr_format}.zarr"
        _make_group(source, zarr_format, later)
        options = ("--chunks", "y=48,x=10", "--zarr-format", zarr_format, "--max-mem", "256MB")
        taken = _succeed(longshore_move(source, destination, *options), bench)
        elements = _same_groups(zarr.open_group(str(source), mode="r"), zarr.open_group(str(destination), mode="r"))
        before, after = (_metadata_bytes(path) for path in (source, destination))
        _equal("chunks that are there", _chunks(destination), _ARRAYS * _CHUNKS_THERE)
        title = f"{_ARRAYS} arrays in a group, attributes, names and fills"
        shown = {"Zarr": zarr_format, "bytes of metadata, before": f"{before:,}", "after": f"{after:,}"}
        aims = [(f"groups, Zarr {zarr_format}: bytes of metadata", _METADATA_BYTES, after, False)]
        more = {"metadata_bytes": after, "n": zarr_format, "name": f"Zarr {zarr_format}"}
        rows.append(_row("groups", title, [taken.seconds], elements, shown, aims, **more))
    return rows


def _make_group(path, zarr_format, later):
    """Three of nine chunks of each array are there; the others read as the fill value."""
    import zarr

    group = zarr.open_group(str(path), mode="w", **({"zarr_format": zarr_format} if later else {}))
    group.attrs.update({"title": "fifty fields", "history": ["made", "kept"], "version": 1.5})
    fills = (0.0, math.nan, math.inf, -math.inf, -999.5)
    for k in range(_ARRAYS):
        dtype = "<f4" if k % 3 else "<i2"
        fill = fills[k % len(fills)] if k % 3 else -k
        how = {"shape": (60, 40), "chunks": (20, 16), "dtype": dtype, "fill_value": fill}
        names = ["y", "x"]
        if later:
            how |= {"dimension_names": names} if zarr_format == 3 else {}
            array = group.create_array(f"field{k:02}", **how)
        else:
            array = group.create_dataset(f"field{k:02}", **how)
        array.attrs.update({"units": f"K{k}", "valid_range": [0, k], "long_name": f"field number {k}"})
        if zarr_format == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = names
        values = np.arange(60 * 40).reshape(60, 40) % 1000 + k
        array[:20, :16], array[20:40, 16:32], array[40:, :16] = values[:20, :16], values[20:40, 16:32], values[40:, :16]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Zarr 3 has no word on consolidated metadata yet
        zarr.consolidate_metadata(str(path))


def _same_groups(before, after, chunks=(48, 10)):
    """Raises WrongResult unless a group has everything that another one has, in these chunks. The bytes of its
    elements."""
    _equal("attributes of the group", dict(after.attrs), dict(before.attrs))
    names = sorted(before.array_keys())
    _equal("names", sorted(after.array_keys()), names)
    total = 0
    for name in names:
        was, now = before[name], after[name]
        _equal(f"attributes of {name}", dict(now.attrs), dict(was.attrs))
        fills = [np.asarray(array.fill_value, was.dtype).tobytes() for array in (now, was)]
        _equal(f"the fill value of {name}", *fills)
        _equal(f"dtype of {name}", now.dtype, was.dtype)
        dims = [getattr(getattr(array, "metadata", None), "dimension_names", None) for array in (now, was)]
        _equal(f"dimension names of {name}", *dims)
        _equal(f"chunks of {name}", tuple(now.chunks), chunks)
        if not np.array_equal(now[:], was[:], equal_nan=was.dtype.kind == "f"):
            raise WrongResult(f"the elements of {name}")
        total += was.nbytes
    return total


def _equal(what, found, wanted):
    if found != wanted:
        raise WrongResult(f"{what}: {str(found)[:80]} where {str(wanted)[:80]} was")


def _metadata_bytes(path):
    return sum(os.path.getsize(file) for file in path.rglob("*") if file.name in _METADATA)


def _chunks(path):
    return sum(1 for file in path.rglob("*") if file.is_file() and file.name not in _METADATA)


# --- kills


def kills(bench, place, step):
    """Runs of two tasks, one that goes through scratch files and one that does not, each killed (SIGKILL) at any time
    of its duration and then resumed; against a run that nobody disturbs."""
    chance, rows = random.Random(16), []
    for key, megabytes in (("A", 1000), ("B", 1000)) if bench.quick else (("A", 512), ("B", 256)):
        task = bench.tasks[key]
        needs(task)
        source, destination = place / f"source{task.suffix}", place / f"{key}{task.suffix}"
        make_source(task, "raw", source)
        options = ("--chunks", "x".join(map(str, task.target)), "--max-mem", task.ceiling(megabytes), "--resume")
        step(f"{key}, undisturbed")
        whole, clean = _undisturbed(bench, task, source, destination, options), _idle(bench, task, place)
        bytes_of = lambda taken: max(0, taken.bytes_read - clean.bytes_read) + taken.bytes_written  # noqa: E731
        seconds, redone, told = [], [], []
        for _ in range(_TRIES * _KILLS[bench.quick]):
            if len(redone) == _KILLS[bench.quick]:
                break
            step(f"{key}, kill {len(redone) + 1} of {_KILLS[bench.quick]}")
            after = chance.uniform(clean.run_seconds, max(whole.run_seconds, 1.2 * clean.run_seconds))
            killed = measure(longshore_move(source, destination, *options), seconds=after)
            if not killed.stopped or destination.exists():  # it was faster than usual, and had done everything
                remove(destination)
                continue
            resumed = _succeed(longshore_move(source, destination, *options), bench)
            _equal("digest", _report(resumed).get("digest"), _report(whole).get("digest"))
            check_destination(task, "raw", destination)
            seconds.append(killed.run_seconds + resumed.seconds)
            redone.append(max(0.0, (bytes_of(killed) + bytes_of(resumed)) / bytes_of(whole) - 1))
            told.append(_report(resumed).get("resumed_chunks"))
            remove(destination)
        remove(source)
        if not redone:
            raise Missing("every run had ended before it was killed")
        mean = sum(redone) / len(redone)
        shown = {"task": key, "kills": len(redone), "redone, mean": f"{mean:.1%}", "most": f"{max(redone):.1%}"}
        shown |= {"digests": "equal"}
        aims = [(f"kills of {key}: redone a kill, of the job's bytes", _REDONE, mean, False)]
        more = {"name": f"{key} raw {megabytes} MB", "n": megabytes, "redone": redone, "resumed_chunks": told}
        title = "killed at any time and resumed, beside a run that nobody disturbs"
        rows.append(_row("kills", title, seconds, task.nbytes, shown, aims, **more))
    return rows


def _undisturbed(bench, task, source, destination, options):
    """A run, after another one that has filled the caches: it is about as fast as those that are killed."""
    for _ in range(2):
        taken = _succeed(longshore_move(source, destination, *options), bench)
        check_destination(task, "raw", destination)
        remove(destination)
    return taken


def _idle(bench, task, place):
    small, source, destination = tiny(task), place / "tiny.zarr", place / "tiny-moved.zarr"
    make_source(small, "raw", source)
    options = ("--chunks", "x".join(map(str, small.target)), "--max-mem", "64MB", "--resume")
    taken = _succeed(longshore_move(source, destination, *options), bench)
    remove(source)
    remove(destination)
    return taken


def _report(taken):
    try:
        return json.loads(taken.output)
    except ValueError:
        raise WrongResult("the report is no JSON") from None


# --- flipped bits


def flips(bench, place, step):
    """One bit flipped by chance in a stored chunk that has a checksum, and the move tried: it must fail, and leave
    nothing. Half of them in Zarr 3 (crc32c), half in HDF5 (Fletcher 32)."""
    if not hasattr(ls, "move"):
        raise Missing("this longshore has no move()")
    rows, count = [], _FLIPS[bench.quick] // 2
    for words, make in (("Zarr 3, crc32c", _checked_zarr), ("HDF5, Fletcher 32", _checked_hdf5)):
        source, name, chunks = make(place)
        destination, chance = place / f"flipped{Path(source).suffix}", random.Random(16)
        caught, named, seconds = 0, 0, []
        for k in range(count):
            step(f"{words}, {k + 1} of {count}")
            file, first, length, index = chance.choice(chunks)
            at, bit = first + chance.randrange(length), 1 << chance.randrange(8)
            _flip(file, at, bit)
            start = time.perf_counter()
            try:
                ls.move(name.format(source), name.format(destination), chunks=(32, 16), max_mem="64MB", threads=1)
            except ls.LongshoreError as error:
                caught += not destination.exists()
                named += any(form in str(error) for form in _index_words(index))
            seconds.append(time.perf_counter() - start)
            remove(destination)
            _flip(file, at, bit)
        ls.move(name.format(source), name.format(destination), chunks=(32, 16), max_mem="64MB", threads=1)
        shown = {"store": words, "flipped": count, "caught": caught, "chunk named": named}
        aims = [(f"flipped bits caught, {words}", 1.0, caught / count, True)]
        more = {"name": words, "flipped": count, "caught": caught, "named": named}
        rows.append(
            _row("flips", "one bit flipped in a stored chunk", seconds, stored_bytes(source), shown, aims, **more)
        )
    return rows


def _index_words(index):
    return [mark.join(map(str, index)) for mark in (", ", ",", ".", "/")]


def _flip(file, at, bit):
    with open(file, "r+b") as of:
        of.seek(at)
        byte = of.read(1)[0]
        of.seek(at)
        of.write(bytes([byte ^ bit]))


_CHECKED = Task("flips", "", (64, 64), (16, 16), (32, 16), "<f4")


def _checked_zarr(place):
    try:
        import zarr
        from zarr.codecs import BytesCodec, Crc32cCodec, ZstdCodec
    except ImportError:
        raise Missing("the source is made by zarr-python 3: pip install 'zarr>=3'") from None
    source = place / "checked.zarr"
    codecs = {"serializer": BytesCodec(endian="little"), "compressors": [ZstdCodec(level=3), Crc32cCodec()]}
    shape, chunks = _CHECKED.shape, _CHECKED.chunks
    array = zarr.create_array(store=str(source), shape=shape, chunks=chunks, dtype="<f4", zarr_format=3, **codecs)
    array[:] = _CHECKED.values((slice(0, 64), slice(0, 64)))
    files = [file for file in source.rglob("*") if file.is_file() and file.name != "zarr.json"]
    index = lambda file: tuple(map(int, file.relative_to(source).parts[1:]))  # noqa: E731
    return source, "{}", [(file, 0, file.stat().st_size, index(file)) for file in files]


def _checked_hdf5(place):
    try:
        import h5py
    except ImportError:
        raise Missing("the source is made by h5py: pip install h5py") from None
    source = place / "checked.h5"
    how = {"chunks": _CHECKED.chunks, "compression": "gzip", "fletcher32": True}
    with h5py.File(source, "w") as file:
        dataset = file.create_dataset(DATASET, data=_CHECKED.values((slice(0, 64), slice(0, 64))), **how)
        dataset.flush()
        of = [dataset.id.get_chunk_info(k) for k in range(dataset.id.get_num_chunks())]
        index = [tuple(at // n for at, n in zip(one.chunk_offset, _CHECKED.chunks)) for one in of]
        chunks = [(source, one.byte_offset, one.size, at) for one, at in zip(of, index)]
    return source, f"{{}}::/{DATASET}", chunks


# --- safetensors


def safetensors(bench, place, step):
    """A checkpoint of four files and an index, whose largest tensor is four times the ceiling, to blocks of rows for
    three ranks that do not divide; beside a copy of the files."""
    ceiling = max(_LEAST_CEILING, round(256e6 * bench.scale))
    tensors, source = _tensors(4 * ceiling), place / "checkpoint"
    step("checkpoint")
    _make_checkpoint(source, tensors)
    volume, rounds, samples, copies = sum(task.nbytes for task in tensors.values()), bench.rounds(None), [], []
    idle, _ = _move_checkpoint(bench, *_tiny_checkpoint(place), 64_000_000)
    for k in range(rounds):
        step(f"{k + 1} of {rounds}")
        copied, moved = place / "copied", place / "moved"
        bench.cold = drop_caches()
        copies.append(_succeed(["cp", "-r", "--reflink=never", str(source), str(copied)], bench).seconds)
        remove(copied)
        drop_caches()
        taken, how = _move_checkpoint(bench, tensors, source, moved, ceiling)
        samples.append(taken)
        for name, task in tensors.items():
            _compare_parts(task, name, _parts_of(moved, name))
        remove(moved)
    # Where tensors are moved one at a time, the command is started so often, and so is the idle one.
    moved_bytes = [_bytes_of(taken) - _bytes_of(idle) for taken in samples]
    over_v = max(0, sorted(moved_bytes)[rounds // 2]) / volume
    held = max(0, max(one.peak_bytes for taken in samples for one in taken) - idle[0].peak_bytes)
    seconds, title = [sum(one.seconds for one in taken) for taken in samples], "four files to three ranks, unevenly"
    row = _row("safetensors", title, seconds, volume, {}, [], detail=how)
    copy = {**row, "contender": COPY, **summary(copies), "threads": 1, "detail": ""}
    ratio = row["seconds_median"] / copy["seconds_median"]
    row["shown"] = {"bytes ÷ V": f"{over_v:.2f}", "× cp": f"{ratio:.2f}", "memory": f"{held / 1e6:.0f} MB"}
    row["shown"] |= {"ceiling": f"{ceiling / 1e6:.0f} MB", "how": how}
    row["aims"] = [("safetensors: bytes over V", 2.02, over_v, False), ("safetensors: × cp", 1.3, ratio, False)]
    row["aims"] += [("safetensors: memory over the ceiling and 64 MB", 1.0, held / (ceiling + ALLOWED_BYTES), False)]
    row |= {"bytes_over_v": over_v, "memory_over_idle_bytes": held, "ceiling_bytes": ceiling}
    return [row, copy]


def _bytes_of(taken):
    return sum(one.bytes_read + one.bytes_written for one in taken)


def _move_checkpoint(bench, tensors, source, moved, ceiling):
    """What moving took, and in how many commands: all at once, or a tensor at a time where that is refused."""
    options = ("--to", "(BLOCK, *) on 3", "--max-mem", ceiling)
    taken = measure(longshore_move(source, moved, *options), seconds=bench.limit)
    if not taken.why():
        return [taken], "one command"
    if moved.exists():
        raise WrongResult(f"it failed and left something ({taken.why()})")
    moved.mkdir()
    each = [_succeed(longshore_move(f"{source}::{name}", moved / name, *options), bench) for name in tensors]
    return each, "a command a tensor"


def _tiny_checkpoint(place):
    tensors, source = _tensors(1 << 16), place / "tiny"
    _make_checkpoint(source, tensors)
    return tensors, source, place / "tiny-moved"


def _tensors(largest):
    """Names and tensors of 4-byte elements: one of so many bytes, and seven that together have as many."""
    columns = 1024 if largest >= 1 << 24 else 64
    rows = [largest // (4 * columns), *(largest // (4 * columns) * share // 28 for share in range(1, 8))]
    rows = [n + (1 if n % 3 == 0 else 0) for n in rows]
    return {
        f"layers.{k}.weight": Task(f"tensor {k}", "", (n, columns), (n, columns), (n, columns), "<f4")
        for k, n in enumerate(rows)
    }


def _make_checkpoint(folder, tensors):
    """Four files: the largest tensor by itself, the others in turn."""
    folder.mkdir()
    files, where = [[] for _ in range(4)], {}
    for k, name in enumerate(tensors):
        files[0 if k == 0 else 1 + k % 3].append(name)
    for k, names in enumerate(files):
        file, header, at = f"model-{k + 1:05}-of-00004.safetensors", {}, 0
        for name in names:
            end = at + tensors[name].nbytes
            header[name], at = {"dtype": "F32", "shape": [*tensors[name].shape], "data_offsets": [at, end]}, end
            where[name] = file
        words = json.dumps(header).encode()
        words += b" " * (-len(words) % 8)
        with open(folder / file, "wb") as out:
            out.write(struct.pack("<Q", len(words)) + words)
            for name in names:
                for piece in _pieces(tensors[name]):
                    out.write(tensors[name].values(piece).tobytes())
    index = {"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _pieces(task):
    rows = max(1, _PIECE_BYTES // (4 * task.shape[1]))
    return regions(task.shape, (rows, task.shape[1]))


def _parts_of(folder, name):
    """A tensor's blocks of rows in the order of the ranks, not yet read: of `.npy` files in a folder with its name, or
    of safetensors files that each have a part."""
    arrays = [np.load(file, mmap_mode="r") for file in sorted((folder / name).glob("*.npy"))]
    for file in sorted(folder.rglob("*.safetensors")):
        with open(file, "rb") as of:
            length = struct.unpack("<Q", of.read(8))[0]
            facts = json.loads(of.read(length)).get(name)
        if facts is not None:
            at = 8 + length + facts["data_offsets"][0]
            arrays.append(np.memmap(file, "<f4", "r", at, tuple(facts["shape"])))
    if not arrays:
        raise WrongResult(f"{name} is not there")
    return arrays


def _compare_parts(task, name, parts):
    _equal(f"rows of {name}", [len(part) for part in parts], _rows_of_three(task.shape[0]))
    first = 0
    for part in parts:
        for piece in regions(part.shape, (max(1, _PIECE_BYTES // (4 * part.shape[1])), part.shape[1])):
            rows = slice(first + piece[0].start, first + piece[0].stop)
            if not np.array_equal(part[piece], task.values((rows, piece[1]))):
                raise WrongResult(f"{name}, rows {rows.start} to {rows.stop}")
        first += len(part)


def _rows_of_three(rows):
    """BLOCK of HPF: every rank has the same number but for the last."""
    block = -(-rows // 3)
    return [block, block, rows - 2 * block]


FURTHER = {"groups": groups, "kills": kills, "flips": flips, "safetensors": safetensors}
