"""`longshore bench stores`: `longshore move` from chunk grid to chunk grid within a memory ceiling, beside copies of
the files and the programs that people use for it.

Every contender runs as a process of its own and is measured from outside (`stores_measure`): seconds until it has ended
and the disk has everything, what all its processes read and wrote, what they held at most. The same command on next to
nothing tells what the tool takes to be there, which is taken off bytes and memory. What was written is compared with
the formula of the elements (`stores_tasks`), read by zarr-python or h5py.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import stores_peers, stores_show
from .machine import available_memory, summary
from .protocol import Bench, BenchError, Missing, choose, missing, words_of
from .stores_further import FURTHER
from .stores_measure import killed_in, limited_group, limited_groups, measure
from .stores_peers import DATASET, GZIP_LEVEL, PEERS
from .stores_tasks import (
    ALLOWED_BYTES,
    CEILINGS,
    COPY,
    LIMITED,
    LONGSHORE,
    Task,
    check_destination,
    drop_caches,
    longshore_move,
    make_source,
    needs,
    remove,
    stored_bytes,
    tasks,
    tiny,
)

SCALES = {True: 1 / 64, False: 1 / 8}  # quick, or not
STANDARD = ("A", "B", "C", "D", "F")
LIMIT_SECONDS = {True: 20.0, False: 1800.0}
_PYTHONS = "LONGSHORE_PEER_PYTHON"  # interpreters that have peers, with what the system puts between paths
_TINY_CEILING = 64_000_000
_QUICK_CASES, _QUICK_CEILINGS = ("A", "D"), (1000,)
_ZARR, _HDF5 = ("zarr2", "zarr3"), ("hdf5", "netcdf")


@dataclass(frozen=True)
class StoreCase:
    """A task with a codec at a ceiling; without one it is for those who take none."""

    task: Task
    codec: str
    megabytes: int | None

    key = property(lambda self: self.task.key)
    ceiling = property(lambda self: None if self.megabytes is None else self.task.ceiling(self.megabytes))
    needed_bytes = property(lambda self: (self.ceiling or 0) + ALLOWED_BYTES)

    @property
    def name(self):
        return f"{self.key} {self.codec}" + ("" if self.megabytes is None else f" {self.megabytes} MB")

    def facts(self):
        task = self.task
        told = {"case": task.key, "n": self.megabytes, "title": task.words, "codec": self.codec, "format": task.format}
        grids = {"shape": [*task.shape], "chunks": [*task.chunks], "target": [*task.target], "dtype": task.dtype}
        return {**told, **grids, "payload_bytes": task.nbytes, "ceiling_bytes": self.ceiling, "ranks": 1}


# --- what is run


def cores():
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Program:
    """A contender: the formats it is for, whether it takes a ceiling, its command for a job, and why it cannot run."""

    name: str
    formats: tuple
    has_ceiling: bool
    command: Callable
    lacking: Callable = lambda bench: ""
    slow_to_start: bool = False
    threads: Callable = cores

    def applies(self, case):
        return case.task.format in self.formats and self.has_ceiling == (case.megabytes is not None)


def _longshore(bench, job):
    chunks, within = "x".join(map(str, job["chunks"])), ""
    if job["format"] == "netcdf":
        chunks = ",".join(f"{name}={n}" for name, n in zip(("time", "lat", "lon"), job["chunks"]))
    if job["format"] == "hdf5":
        within = f"::/{DATASET}"
    options = ["--chunks", chunks, "--max-mem", job["ceiling"]]
    if job["format"] in _ZARR:
        options += ["--zarr-format", job["format"][-1]]
    if job["shards"]:
        options += ["--shards", "x".join(map(str, job["shards"]))]
    return longshore_move(job["source"] + within, job["destination"] + within, *options)


def _no_chunks(bench):
    return "" if "--chunks" in bench.words_of_move else "this longshore's `move` takes no --chunks"


def _copy(bench, job):
    return ["cp", "-r", "--reflink=never", job["source"], job["destination"]]


def _h5repack(bench, job):
    """Has no limit: HDF5's cache of chunks is of the usual size."""
    layout = f"{DATASET}:CHUNK={'x'.join(map(str, job['chunks']))}"
    gzip = ["-f", f"{DATASET}:GZIP={GZIP_LEVEL}"] if job["codec"] == "gzip" else []
    return ["h5repack", "-l", layout, *gzip, job["source"], job["destination"]]


def _nccopy(bench, job):
    """A quarter of the memory for what is on its way, and for the cache of chunks of either file."""
    spec = ",".join(f"{name}/{n}" for name, n in zip(("time", "lat", "lon"), job["chunks"]))
    quarter = str(job["ceiling"] // 4)
    return ["nccopy", "-c", spec, "-m", quarter, "-h", quarter, "-e", "100003", job["source"], job["destination"]]


def _debian(program, package):
    return lambda bench: "" if shutil.which(program) else f"not installed; Debian: apt-get install {package}"


def _peer(name, peer):
    def command(bench, job):
        return [bench.python_for(name)[0], stores_peers.__file__, name, job["file"]]

    def lacking(bench):
        return bench.python_for(name)[1]

    return Program(name, peer.formats, peer.has_ceiling, command, lacking, peer.slow_to_start)


_EVERY_FORMAT = (*_ZARR, *_HDF5)
PROGRAMS = (
    Program(LONGSHORE, _EVERY_FORMAT, True, _longshore, _no_chunks),
    Program(LIMITED, _EVERY_FORMAT, True, _longshore, lambda bench: _no_chunks(bench) or limited_groups()[1]),
    Program(COPY, _EVERY_FORMAT, False, _copy, threads=lambda: 1),
    *(_peer(name, peer) for name, peer in PEERS.items()),
    Program("h5repack", ("hdf5",), False, _h5repack, _debian("h5repack", "hdf5-tools"), threads=lambda: 1),
    Program("nccopy", ("netcdf",), True, _nccopy, _debian("nccopy", "netcdf-bin"), threads=lambda: 1),
)


# --- the bench


class Stores(Bench):
    name = "stores"
    usual_rounds = (1, 3)
    everybody = PROGRAMS

    def __init__(self, quick=False, *, scale=None, codecs=None, folder=None, limit=None, peer_pythons=(), **options):
        self.scale = SCALES[quick] if scale is None else float(scale)
        self.tasks = tasks(self.scale)
        self.codecs = {*choose("codec", codecs, ["raw", "zstd", "gzip"])}
        self._chosen_codecs = codecs is not None
        self.limit = LIMIT_SECONDS[quick] if limit is None else float(limit)
        if folder is not None and not Path(folder).is_dir():
            raise BenchError(f"no such folder: {folder}")
        given = [*peer_pythons, *filter(None, os.environ.get(_PYTHONS, "").split(os.pathsep))]
        self._versions = {python: _versions_of(python) for python in (sys.executable, *given)}
        self.further, self._made, self._idle = [], None, {}
        self._within, self.cold, self.allowed = folder, False, f"{ALLOWED_BYTES // 10**6} MB"
        super().__init__(quick, **options)

    @cached_property
    def folder(self):
        """Holds everything that is made, until the bench is closed."""
        return Path(tempfile.mkdtemp(prefix="longshore-stores-", dir=self._within))

    def notes(self):
        self.caches = "dropped" if self.cold else "not dropped, which takes root: files come from memory"
        return super().notes()

    def wanted(self, given):
        usual = _QUICK_CASES if self.quick else STANDARD
        keys = choose("case", usual if given is None else given, [*self.tasks, *FURTHER])
        self.further = [key for key in keys if key in FURTHER]
        ceilings = self.sizes or (_QUICK_CEILINGS if self.quick else CEILINGS)
        few = self.quick and given is None and not self._chosen_codecs
        codecs = self.codecs - {"raw"} if few else self.codecs
        return [
            StoreCase(self.tasks[key], codec, megabytes)
            for key in keys
            if key in self.tasks
            for codec in self.tasks[key].codecs
            if codec in codecs
            for megabytes in (None, *ceilings)
        ]

    @cached_property
    def words_of_move(self):
        """What `longshore move --help` says."""
        command = [sys.executable, "-m", "longshore.cli", "move", "--help"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def python_for(self, name):
        """The first interpreter that has what a peer needs, or what the first lacks, and how to get it."""
        for python, versions in self._versions.items():
            if not stores_peers.lacking(PEERS[name], versions):
                return python, ""
        lacks = stores_peers.lacking(PEERS[name], self._versions[sys.executable])
        elsewhere = "here or in an environment of its own, whose Python --peer-python names"
        return None, f"{lacks}; {PEERS[name].install}, {elsewhere}"

    def source(self, task, codec):
        """The path of a task's source, which is made if it was not the last one."""
        if self._made != (task, codec):
            self.remove_source()
            needs(task)
            free = shutil.disk_usage(self.folder).free
            if free < 4 * task.nbytes:
                raise Missing(f"needs {4 * task.nbytes / 1e9:.1f} GB of disk, and {free / 1e9:.1f} GB are free")
            make_source(task, codec, self.source_path(task))
            self._made = task, codec
        return self.source_path(task)

    def source_path(self, task):
        return self.folder / f"source{task.suffix}"

    def remove_source(self):
        if self._made is not None:
            remove(self.source_path(self._made[0]))
        self._made = None

    def close(self):
        if "folder" in vars(self):
            shutil.rmtree(self.folder, ignore_errors=True)

    def measure(self, context, case, contenders, rounds):
        """The rows of a case: contenders take turns, and everything that they write is looked at."""
        ready, lacking = {}, {}
        for program in (program for program in contenders if program.applies(case)):
            why = "slow to start: not with --quick" if self.quick and program.slow_to_start else program.lacking(self)
            if why:
                lacking[program.name] = why
            else:
                ready[program.name] = program
        samples = {name: [] for name in ready}
        try:
            source = self.source(case.task, case.codec) if ready else None
        except Missing as error:
            return [], [missing(name, str(error), case.name) for name in ready]
        for k in range(rounds):
            for name in [name for name in ready if name not in lacking]:
                context.step(f"{case.name}/{name}/{k + 1} of {rounds}")
                try:
                    self.idle(ready[name], case)
                    samples[name].append(self.once(ready[name], case.task, case.codec, source, case.ceiling))
                except Exception as error:
                    lacking[name] = words_of(error).replace(f"{self.folder}/", "")
        rows = [self._row(case, ready[name], taken) for name, taken in samples.items() if name not in lacking]
        for row in rows:
            if row["contender"] == LONGSHORE:
                context.step(f"{case.name}/{LONGSHORE}, beforehand")
                row |= self._predicted(ready[LONGSHORE], case, source, row)
        return rows, [missing(name, why, case.name) for name, why in lacking.items()]

    def once(self, program, task, codec, source, ceiling):
        """Runs a program from a cold start and looks at what it wrote. Returns what it took."""
        with tempfile.TemporaryDirectory(prefix="run-", dir=self.folder) as place:
            job = self._job(place, task, codec, source, ceiling)
            self.cold = drop_caches()
            command, limits = program.command(self, job), self._limits()
            if program.name == LIMITED:
                idle = self.idle(program, StoreCase(task, codec, None)).peak_bytes
                with limited_group(limited_groups()[0], ceiling + idle + ALLOWED_BYTES) as group:
                    taken = measure(command, **limits, group=group)
                    killed = killed_in(group)
                if killed:
                    raise Missing("killed by the kernel: it held more memory than the group may")
            else:
                taken = measure(command, **limits)
            if taken.why():
                raise Missing(taken.why())
            if program.name != COPY:
                check_destination(task, codec, job["destination"])
            taken.stored_bytes, taken.source_bytes = stored_bytes(job["destination"]), stored_bytes(source)
            taken.facts = _same_header(source, job["destination"]) if task.format == "netcdf" else {}
        return taken

    def _limits(self):
        """A program is stopped before it takes the memory that everybody else needs."""
        return {"seconds": self.limit, "most_bytes": int(0.8 * available_memory())}

    def _job(self, place, task, codec, source, ceiling):
        scratch = Path(place) / "scratch"
        scratch.mkdir()
        paths = {"source": str(source), "destination": f"{place}/destination{task.suffix}", "scratch": str(scratch)}
        grids = {"shape": task.shape, "dtype": task.dtype, "source_chunks": task.chunks, "chunks": task.target}
        how = {"shards": task.shards, "codec": codec, "format": task.format, "ceiling": ceiling}
        job = {**paths, **grids, **how, "threads": cores(), "file": f"{place}/job.json"}
        Path(job["file"]).write_text(json.dumps(job))
        return job

    def idle(self, program, case):
        """What a program takes for next to nothing, in a format and with a codec. Measured once."""
        key = program.name.removesuffix(" in a cgroup"), case.task.format, case.codec
        if key not in self._idle:
            small, ceiling = tiny(case.task), _TINY_CEILING if program.has_ceiling else None
            with tempfile.TemporaryDirectory(prefix="tiny-", dir=self.folder) as place:
                source = Path(place) / f"source{small.suffix}"
                make_source(small, case.codec, source)
                job = self._job(place, small, case.codec, source, ceiling)
                taken = measure(program.command(self, job), **self._limits())
            self._idle[key] = taken
        if why := self._idle[key].why():
            raise Missing(f"{why} (of a tiny array)")
        return self._idle[key]

    def _row(self, case, program, samples):
        idle = self.idle(program, case)

        def middle(name):
            return max(0, round(statistics.median(getattr(taken, name) - getattr(idle, name) for taken in samples)))

        volume, last, ceiling = case.task.nbytes, samples[-1], case.ceiling
        read, written = middle("bytes_read"), middle("bytes_written")
        peak = max(taken.peak_bytes for taken in samples)
        above = max(0, peak - idle.peak_bytes)
        row = {**case.facts(), "contender": program.name, **summary([taken.seconds for taken in samples])}
        row |= {"idle_seconds": idle.run_seconds, "processes": 1, "threads": program.threads(), "verified": True}
        row |= {"bytes_read": read, "bytes_written": written, "bytes_over_v": (read + written) / volume}
        row |= {"disk_read_bytes": middle("disk_read"), "disk_written_bytes": middle("disk_written")}
        row |= {"source_bytes": last.source_bytes, "stored_bytes": last.stored_bytes}
        row |= {"bytes_over_stored": (read + written) * 2 / (last.source_bytes + last.stored_bytes)}
        row |= {"peak_memory_bytes": peak, "idle_memory_bytes": idle.peak_bytes, "memory_over_idle_bytes": above}
        row |= {"within_ceiling": None if ceiling is None else above <= ceiling + ALLOWED_BYTES}
        return row | _told(program, last, read + written) | last.facts

    def _predicted(self, program, case, source, row):
        """What a dry run, from a cold start too, says of the bytes and the seconds that were measured."""
        with tempfile.TemporaryDirectory(prefix="run-", dir=self.folder) as place:
            job = self._job(place, case.task, case.codec, source, case.ceiling)
            drop_caches()
            taken = measure([*program.command(self, job), "--dry-run"], **self._limits())
        if taken.why():
            return {"detail": f"its dry run: {taken.why()}"}
        report = json.loads(taken.output)
        parts = [report["predicted"][name] for name in ("bytes_read", "bytes_written", "bytes_spilled")]
        told = {
            "predicted_bytes": sum(parts),
            "predicted_ratio": sum(parts) / (row["bytes_read"] + row["bytes_written"]),
        }
        if report["seconds_predicted"] is not None:
            told["seconds_predicted"] = report["seconds_predicted"] + row["idle_seconds"]
        return told

    def beside(self, step):
        """Cases that are no array from grid to grid."""
        rows, lacking = [], []
        for key in self.further:
            self.remove_source()
            step(f"{key}/longshore")
            why = _no_chunks(self)
            try:
                if why:
                    raise Missing(why)
                with tempfile.TemporaryDirectory(prefix=f"{key}-", dir=self.folder) as place:
                    rows += FURTHER[key](self, Path(place), lambda words: step(f"{key}/longshore/{words}"))
            except Exception as error:
                lacking.append(missing(LONGSHORE, words_of(error).replace(f"{self.folder}/", ""), key))
        return rows, lacking

    def finish(self, result):
        result |= {"scale": self.scale, "cold": self.cold, "aims": stores_show.aims(result["rows"])}

    def tables(self, result):
        yield from stores_show.tables(result)

    def figure(self, result):
        return stores_show.figure(result)


def _told(program, taken, measured_bytes):
    """What Longshore's own report says, beside what was measured from outside."""
    if not program.name.startswith(LONGSHORE):
        return {}
    try:
        report = json.loads(taken.output)
    except ValueError:
        return {"detail": "its report is no JSON"}
    told = {"report": {name: what for name, what in report.items() if name not in ("source", "destination")}}
    if report.get("floor_bytes"):
        told["bytes_over_floor"] = measured_bytes / report["floor_bytes"]
    return told


def _same_header(source, destination):
    """Whether `ncdump -h` says the same of two files but for their names."""
    if not shutil.which("ncdump"):
        return {}
    heads = []
    for path in (source, destination):
        said = subprocess.run(["ncdump", "-h", str(path)], capture_output=True, text=True, check=False).stdout
        heads.append(said.split("\n", 1)[-1])  # the first line has the file's name
    return {"same_header": bool(heads[0]) and heads[0] == heads[1]}


def _versions_of(python):
    command = [python, stores_peers.__file__, "--versions"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(f"{python} is no Python that runs: {error}") from None
    return json.loads(said)
