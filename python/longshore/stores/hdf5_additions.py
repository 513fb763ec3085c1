"""Additions to HDF5 files that are there: what is moved comes into a hidden copy of the file, which then takes its
place.

HDF5 changes a file in many places, so that one whose writer is killed can be beyond repair. A copy can be thrown away,
and where the file system lets files share blocks it costs next to nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from .hdf5_values import h5py_module, references_of, told
from .publish import Publication
from .random_access import open_plain

if TYPE_CHECKING:
    from .places import Place

_COPIED_AT_ONCE = 64 << 20
_NOT_SUPPORTED = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


class Addition(Publication):
    """The publication of an HDF5 file that holds what the file of its name holds, and at `place.created` what is moved.
    It takes the place of that file if this is still what it was, and nobody has it open for writing.

    With `force` a dataset takes the place of the dataset of its name."""

    def __init__(self, place: Place, *, force: bool, watcher: Any = None) -> None:
        super().__init__(place.path, folder=False, force=True)
        self._place, self._replaces, self._watcher = place, force, watcher

    def check(self) -> None:
        super().check()
        if not os.access(self.destination, os.W_OK):
            raise StoreError(f"{self.destination} is not to be written, for its permissions say so")
        with reading(self.destination) as file:
            self.based_on = os.stat(self.destination)
            path = self._place.created
            if self._place.format == "netcdf":
                from .netcdf import stored_variable

                path = stored_variable(file, path)
            room = find_room(file, path, self.destination)
            if room.is_taken and not self._replaces:
                raise StoreError(
                    f"{self.destination}::/{self._place.created} exists already; name another place, or replace it "
                    "with --force (in Python force=True)"
                )

    @property
    def beside_bytes(self) -> int:
        return self.based_on.st_size if self.based_on is not None else 0

    def check_space(self, needed: int) -> None:
        super().check_space(needed + self.beside_bytes)

    def create(self) -> str:
        """Makes the hidden copy, while nobody who uses HDF5 can write the file."""
        place = super().create()
        if self._watcher is not None:
            self._watcher.phase("copying what is there", self.beside_bytes)
        with reading(self.destination):
            self._refuse_changed()
            copy_file(self.destination, place, None if self._watcher is None else self._watcher.advance)
            self._refuse_changed()
        self.copied_bytes = self.beside_bytes
        return place

    def publish(self) -> None:
        with reading(self.destination):  # what another writes now would be lost with the old file
            super().publish()


@contextlib.contextmanager
def reading(path: str) -> Iterator[Any]:
    """An HDF5 file, which nobody who uses HDF5 can write as long as it is open here. Raises StoreError where somebody
    does."""
    mistake = f"cannot open {path}, to keep what else it holds"
    os.close(open_plain(path))
    with contextlib.ExitStack() as held:
        with told(mistake):
            try:
                file = held.enter_context(h5py_module().File(path, "r", locking="best-effort"))
            except BlockingIOError:
                raise StoreError(f"{mistake}: another process has it open for writing") from None
        if file.mode != "r":  # HDF5 opens a file once, for all who use it in a process
            raise StoreError(f"{mistake}: this process has it open for writing; close it first")
        yield file


def copy_file(source: str, place: str, advance: Callable[[int], None] | None = None) -> None:
    """Copies a file to another one, which is there and empty, with its mode, its times and, where that is allowed, its
    owner. The two share their blocks where the file system can do that. `advance` is told what has been copied."""
    try:
        with open(source, "rb", buffering=0) as old, open(place, "r+b", buffering=0) as new:
            os.fchmod(new.fileno(), stat.S_IRUSR | stat.S_IWUSR)  # until it has the mode of the other
            while piece := _copied(old.fileno(), new.fileno()):
                if advance is not None:
                    advance(piece)
            status = os.fstat(old.fileno())
        with contextlib.suppress(PermissionError):
            os.chown(place, status.st_uid, status.st_gid)
        shutil.copystat(source, place)
    except OSError as error:
        raise StoreError(error.errno, f"cannot copy {source}: {error.strerror}") from None


def _copied(old: int, new: int) -> int:
    """Copies the next bytes of an open file to another, within the system. How many; 0: there are no more."""
    if hasattr(os, "copy_file_range"):
        try:
            if piece := os.copy_file_range(old, new, _COPIED_AT_ONCE):
                return piece
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    return os.sendfile(new, old, None, _COPIED_AT_ONCE)


@dataclass
class Room:
    """Where in an HDF5 file something is to be."""

    group: Any
    """The innermost group on the way there; those further in are not there yet."""
    name: str
    """What is next on the way: the last name where `group` is the last group."""
    is_taken: bool
    """Whether there is a dataset, or a link that leads elsewhere."""

    def clear(self) -> None:
        """Takes away what is there. What a link leads to is not touched, nor a dataset that has another name too."""
        import h5py

        if not self.is_taken:
            return
        if isinstance(self.group.get(self.name, getlink=True), h5py.HardLink):
            dataset = self.group[self.name]
            is_last_name = h5py.h5o.get_info(dataset.id).rc == 1
            count = len(dataset.shape or ()) if is_last_name else 0
            for d, scales in enumerate(references_of(dataset, "DIMENSION_LIST", count)):
                for scale in scales:
                    h5py.h5ds.detach_scale(dataset.id, scale, d)
        del self.group[self.name]


def find_room(file: Any, path: str, called: str) -> Room:
    """Where in an open file what is called `path` is to be. `called`: what messages call the file. Raises StoreError
    where nothing can be there: below what is no group or in another file, and in the place of anything but a dataset or
    a link."""
    import h5py

    *groups, name = [word for word in path.split("/") if word]
    group, where = file, called
    for word in groups:
        where = f"{where}/{word}"
        if group.get(word, getlink=True) is None:
            return Room(group, word, False)
        group = group.get(word)
        other = file.filename if group is None else group.file.filename
        if not os.path.samefile(other, file.filename):
            group.file.close()
            raise StoreError(f"{where} leads to another file, {other}; name that")
        if not isinstance(group, h5py.Group):
            what = "is no group but a dataset" if isinstance(group, h5py.Dataset) else "is no group"
            raise StoreError(f"{where} {what}, so that it cannot hold a dataset")
    link, where = group.get(name, getlink=True), f"{where}/{name}"
    if isinstance(link, h5py.HardLink):
        found = group[name]
        if not isinstance(found, h5py.Dataset):
            raise StoreError(f"{where} is no dataset but a group or a type; it is not replaced by a dataset")
        if len(found.attrs.get("REFERENCE_LIST", ())):
            raise StoreError(f"{where} is the scale of dimensions of other datasets, which would lose it; it stays")
    return Room(group, name, link is not None)
