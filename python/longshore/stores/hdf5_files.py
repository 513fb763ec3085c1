"""HDF5 files opened for reading, on a disk or at a URL.

Of a file at a URL the library reads its metadata through Python, block by block, with a small cache; elements are read
without it. It calls Python while it holds its lock, and the bytes may come by another thread (fsspec has one for all
requests). If that thread happened to collect garbage, and there was an object of h5py's in it, it would wait for the
lock, and both would wait for ever. Hence no garbage is collected while the library reads so: whoever lets it read such
a file, does that within `library_reads`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import io
import os
import secrets
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import StoreError
from .hdf5_values import bound_metadata, h5py_module, told
from .object_places import is_url, without_password
from .random_access import Buffer, LocalFile, Part, RandomAccess, held_by_reads, open_file

_BLOCK_BYTES = 256 << 10
_BLOCKS = 32
_UNCACHED_BYTES = 1 << 20
_MOST_LINKS = 64


@dataclass(frozen=True)
class OpenFile:
    """The bytes of an HDF5 file, as many as there are when it is opened."""

    file: RandomAccess
    size: int
    shift: int = 0
    """What must be added to the addresses of chunks that the library tells."""

    @property
    def path(self) -> str:
        """For messages."""
        return self.file.name

    def read(self, count: int, offset: int, where: str) -> bytes | bytearray:
        """Bytes of the file. Raises StoreError where it has become shorter."""
        return self.file.read(count, offset, where)

    def read_parts(self, parts: Sequence[Part]) -> Iterator[Buffer]:
        """Several parts, as `RandomAccess.read_parts` has them."""
        return self.file.read_parts(parts)

    def check(self) -> None:
        """Raises StoreError where it is known to have been changed since it was opened."""
        self.file.check()

    def held_bytes(self) -> int:
        """What the library and the cache of its metadata hold of the file."""
        return _BLOCK_BYTES * _BLOCKS if self.file.joins else 0

    def thread_bytes(self, read_bytes: int) -> int:
        """What a thread holds that reads so many bytes, beside these."""
        return held_by_reads(read_bytes) if self.file.joins else 0

    def read_runs(self, offsets: Sequence[int], view: memoryview) -> None:
        """Runs of equal size, one after the other."""
        self.file.read_runs(offsets, view)


def open_hdf5(place: str) -> tuple[Any, RandomAccess]:
    """A file as h5py has it, and its bytes. Raises StoreError."""
    checked = open_file(place)
    try:
        _refuse_netcdf3(checked)
        h5py = h5py_module()
        if is_url(place):
            with library_reads(checked), told(f"cannot open {checked.name}"):
                file = h5py.File(_FileLike(checked), "r", rdcc_nbytes=0)
                _open_files.add(file)
                bound_metadata(file.id)
            return file, checked
        with told(f"cannot open {place}"):
            file = h5py.File(place, "r", locking="best-effort", rdcc_nbytes=0)
            bound_metadata(file.id)
    except BaseException:
        checked.close()
        raise
    checked.close()
    if file.mode != "r":  # HDF5 opens a file once, for all who use it in a process
        file.close()
        raise StoreError(f"cannot open {place}: this process has it open for writing; close it first")
    with told(f"cannot open {place}"):  # what the library reads is what is read beside it
        own = LocalFile(place, os.dup(file.id.get_vfd_handle()), checked.told)
    try:
        own.check()
    except BaseException:
        file.close()
        own.close()
        raise
    return file, own


def _refuse_netcdf3(file: RandomAccess) -> None:
    start = file.start(4)
    if start[:3] == b"CDF" and start[3:] in (b"\x01", b"\x02", b"\x05"):
        raise StoreError(
            f"{file.name} is a NetCDF-3 file, which is no HDF5; convert it first: "
            f"nccopy -k nc4 {os.path.basename(file.name)} new.nc"
        )


def check_path(file: Any, place: str, path: str) -> None:
    """Raises StoreError where a path of a file at a URL leads to another file: the library would look for it in this
    one. What is missing, the library tells itself."""
    import h5py

    if not is_url(place):
        return
    said = without_password(place)
    group, words = file, path.split("/")
    for _ in range(_MOST_LINKS + len(words)):
        while words and words[0] in ("", "."):
            words = words[1:]
        if not words or not isinstance(group, h5py.Group):
            return
        link = group.get(words[0], getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise StoreError(f"{path} of {said} leads to another file, {link.filename}; name that")
        if isinstance(link, h5py.SoftLink):
            group, words = (file if link.path.startswith("/") else group), [*link.path.split("/"), *words[1:]]
        elif link is None:
            return
        else:
            group, words = group[words[0]], words[1:]
    raise StoreError(f"{path} of {said} leads through more than {_MOST_LINKS} links")


def address_shift(file: Any) -> int:
    """What the library forgets to add to the addresses of chunks: before HDF5 1.14.4 the user block that comes before
    the HDF5 file itself."""
    block = int(file.userblock_size)
    return block if block and _forgets_user_blocks() else 0


@functools.cache
def _forgets_user_blocks() -> bool:
    """Found out with a file in memory that has one, under a name that no other thread uses for its own."""
    import h5py

    name = f"longshore-user-block-{secrets.token_hex(8)}"
    with h5py.File(name, "w", driver="core", backing_store=False, userblock_size=512) as trial:
        marks = [b"contiguous longshore", b"chunked----longshore"]
        plain = trial.create_dataset("plain", data=np.frombuffer(marks[0], np.uint8))
        chunked = trial.create_dataset("chunked", data=np.frombuffer(marks[1], np.uint8), chunks=(len(marks[1]),))
        trial.flush()
        image = trial.id.get_file_image()
        base = plain.id.get_offset() - image.find(marks[0])
        told_base = chunked.id.get_chunk_info(0).byte_offset - image.find(marks[1])
    return bool(told_base != base)


# -- through Python ---------------------------------------------------------------------------------------------------


class _FileLike(io.RawIOBase):
    """A file as the library reads it through Python: by blocks, of which the last used are kept."""

    def __init__(self, file: RandomAccess) -> None:
        super().__init__()
        self._file, self._size, self._at = file, file.size(), 0
        self._blocks: OrderedDict[int, bytes | bytearray] = OrderedDict()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fills all of a buffer: the library does not look at how much it has got. Behind the file's end are zeros, as
        it has it for files of a disk."""
        view = memoryview(buffer).cast("B")
        there = max(0, min(len(view), self._size - self._at))
        view[there:] = bytes(len(view) - there)
        if there >= _UNCACHED_BYTES:
            view[:there] = self._file.read(there, self._at)
        else:
            done = 0
            while done < there:
                number, within = divmod(self._at + done, _BLOCK_BYTES)
                piece = self._block(number)[within : within + there - done]
                view[done : done + len(piece)] = piece
                done += len(piece)
        self._at += len(view)
        return len(view)

    def _block(self, number: int) -> bytes | bytearray:
        block = self._blocks.get(number)
        if block is None:
            begin = number * _BLOCK_BYTES
            block = self._file.read(min(_BLOCK_BYTES, self._size - begin), begin)
            if len(self._blocks) >= _BLOCKS:
                self._blocks.popitem(last=False)
            self._blocks[number] = block
        else:
            self._blocks.move_to_end(number)
        return block


_open_files: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """The library would call Python when that is gone."""
    for file in list(_open_files):
        with contextlib.suppress(Exception):
            file.close()


# -- no garbage meanwhile ---------------------------------------------------------------------------------------------

_lock = threading.RLock()
_readers = 0
_collects = False


def library_reads(file: RandomAccess) -> contextlib.AbstractContextManager[None]:
    """Within this the library may read a file. Where it reads through Python, this is to be opened before the library's
    lock is taken."""
    return contextlib.nullcontext() if isinstance(file, LocalFile) else _without_collection()


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage is collected as long as this is open, nor is any being collected when it has been opened."""
    global _readers, _collects
    with _lock:
        if _readers == 0:
            _collects = gc.isenabled()
            gc.disable()
            try:
                while not _collected_here():
                    time.sleep(0.001)
            except BaseException:
                _collect_again()
                raise
        _readers += 1
    try:
        yield
    finally:
        with _lock:
            _readers -= 1
            if _readers == 0:
                _collect_again()


def _collect_again() -> None:
    global _collects
    if _collects:
        gc.enable()
    _collects = False


def _forget_readers() -> None:
    """In a process that was forked, no other thread reads any more, whatever these were at."""
    global _lock, _readers
    _lock, _readers = threading.RLock(), 0
    _collect_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_readers)


def _collected_here() -> bool:
    """Collects a little garbage; False where another thread is at that, so that nothing was done."""
    ran: list[str] = []
    own = threading.get_ident()

    def note(phase: str, _: Any) -> None:
        if threading.get_ident() == own:
            ran.append(phase)

    gc.callbacks.append(note)
    try:
        gc.collect(0)
    finally:
        gc.callbacks.remove(note)
    return bool(ran)
