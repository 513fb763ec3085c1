"""Atomic publication: a store is built under a hidden name beside its place and appears there by one rename, or not at
all.

The hidden name is locked (flock) while its builder lives, so that a later run can tell a stale one, left by a killed
process, from one that somebody is still writing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .._words import short
from ..errors import ArgumentError, LongshoreError, StoreError
from .kept_work import remove_work
from .layout_json import NAME as LAYOUT_JSON
from .own_files import STORES_ROOTS, OwnFiles, bytes_on_disk, mounted, read_document
from .safetensors_header import INDEX_SUFFIX
from .shard_folders import is_group, owned_folders

_PARTIAL = ".longshore-partial-"
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_ASIDE = "-old"
_PATIENCE_S = 1.0
JOURNAL = ".journal"
"""What the name of a hidden output's journal ends in."""
WORK = ".work"
"""What the name of the folder ends in that has what a hidden output still lacks."""
STORES_FILES = re.compile(
    r"zarr\.json|\.z(array|group|attrs|metadata)"  # Zarr's metadata, its chunks, and shards that are being written
    r"|(c[./])?\d+(\.\d+)*(\.index)?|c|\..+\.[0-9a-f]{16}\.partial"
    r"|.+\.safetensors(\.index\.json)?"
)
"""What the files of a store are called, for where nothing tells yet which ones it has."""


class Publication:
    """The place where a store will appear. Use as a context manager: without `publish()` nothing stays behind.

    With `force` a file takes the place of a file, and a folder of shards that of another. Of a folder that is replaced,
    only its `layout.json` and the shards that this names are removed; one that holds anything else is refused."""

    def __init__(self, destination: str | os.PathLike, *, folder: bool, force: bool = False) -> None:
        self.destination = os.path.abspath(destination)
        self.called = self.destination
        """For messages: where it will appear."""
        self.folder = folder
        self.force = force
        self.parent, self.name = os.path.split(self.destination)
        self.partial: str | None = None
        """The hidden path."""
        self.based_on: os.stat_result | None = None
        """Of a file that was made from the one it is to replace: what that one was then."""
        self.copied_bytes = 0
        """What was copied of that one."""
        self.stale_removed: list[str] = []
        self.resumes = False
        """Whether what a killed run has left is gone on with, if it can be."""
        self._lock: int | None = None
        self._published = False

    # -- before anything is written ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Refuses a destination that cannot or must not be written. Writes nothing."""
        if not self.name:
            raise StoreError(f"{self.destination} cannot be a destination")
        if len(os.fsencode(self.name)) > 255 - len(_PARTIAL) - 17 - len(JOURNAL):
            raise StoreError(f"the name {self.name!r} is too long: a hidden one is made from it while writing")
        if not os.path.isdir(self.parent):
            raise StoreError(f"the folder {self.parent} does not exist; make it first")
        self._put_back()
        self._check_existing()

    def _check_existing(self) -> bool:
        """Whether there is something to replace; refused where that must not be."""
        try:
            status = os.lstat(self.destination)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(error.errno, f"cannot look at {self.destination}: {error.strerror}") from None
        if stat.S_ISLNK(status.st_mode):
            raise StoreError(f"{self.destination} is a symbolic link; name the place itself")
        if not self.force:
            raise StoreError(
                f"{self.destination} exists already; name another place, or replace it with --force (in Python "
                "force=True)"
            )
        if stat.S_ISDIR(status.st_mode) != self.folder:
            was, wanted = ("folder", "file") if not self.folder else ("file", "folder")
            raise StoreError(f"{self.destination} is a {was}; it is not replaced by a {wanted}")
        if self.folder:
            _check_replaceable(self.destination)
        elif not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{self.destination} is not a plain file; it is not replaced")
        return True

    def _stale(self, ending: str) -> Iterator[str]:
        """What killed runs left for this destination, locked while it is looked at."""
        pattern = re.compile(re.escape(f".{self.name}{_PARTIAL}") + "[0-9a-f]{16}" + ending)
        try:
            names = [name for name in os.listdir(self.parent) if pattern.fullmatch(name)]
        except OSError:
            return
        for name in names:
            fd = _open_locked(os.path.join(self.parent, name))
            if fd is None:
                continue  # somebody is writing it, or it is gone, or not ours to judge
            try:
                yield name
            finally:
                _release(fd)

    def _beside(self) -> list[str]:
        """What lies beside this destination's hidden outputs."""
        pattern = re.compile(re.escape(f".{self.name}{_PARTIAL}") + f"[0-9a-f]{{16}}({re.escape(JOURNAL)}|{WORK})")
        try:
            return [name for name in os.listdir(self.parent) if pattern.fullmatch(name)]
        except OSError:
            return []

    def _put_back(self) -> None:
        """What lay aside while it was replaced takes its place again, where the run that replaced it was killed
        between."""
        for name in self._stale(_ASIDE):
            path = os.path.join(self.parent, name)
            if os.path.lexists(path.removesuffix(_ASIDE)):
                with contextlib.suppress(OSError):
                    _rename_to_nothing(path, self.destination)

    def adopt(self) -> str | None:
        """Takes over what a killed run has left of this destination together with a journal, and returns the hidden
        path; None where there is nothing of that kind. The newest, where there are several."""
        found = [name for name in self._stale("") if os.path.isfile(os.path.join(self.parent, name) + JOURNAL)]
        paths = [os.path.join(self.parent, name) for name in found]
        for path in sorted(paths, key=lambda path: -os.lstat(path + JOURNAL).st_mtime_ns):
            self._lock = _open_locked(path)
            if self._lock is not None and os.path.isdir(path) == self.folder:
                self.partial = path
                return path
            self._unlock()
        return None

    @property
    def journal(self) -> str:
        """Where what has been finished is kept, beside the hidden output."""
        assert self.partial is not None
        return self.partial + JOURNAL

    @property
    def work(self) -> str:
        """Where what has been read and not yet written is kept, beside the hidden output."""
        assert self.partial is not None
        return self.partial + WORK

    def was_left(self, name: str) -> bool:
        """Whether a hidden output of this name is what this run goes on with, or could."""
        path = os.path.join(self.parent, name)
        if self.partial is not None:
            return path == self.partial
        pattern = re.escape(f".{self.name}{_PARTIAL}") + "[0-9a-f]{16}"
        return re.fullmatch(pattern, name) is not None and os.path.isfile(path + JOURNAL)

    def keep(self) -> None:
        """Leaves the unfinished output and its journal where they are, for another run to go on."""
        self.partial = None
        self._unlock()

    def remove_stale(self) -> None:
        """Removes what killed runs left for this destination; their names go to `stale_removed`."""
        for name in self._stale(f"({_ASIDE})?"):
            if name.endswith(_ASIDE) and not os.path.lexists(self.destination):
                continue  # all that there is
            with contextlib.suppress(OSError):
                _remove(os.path.join(self.parent, name))
                self.stale_removed.append(name)
        for name in self._beside():
            path, ending = os.path.splitext(os.path.join(self.parent, name))
            if not os.path.lexists(path):
                if ending == WORK:
                    remove_work(path + WORK)
                    continue
                with contextlib.suppress(OSError):
                    os.unlink(path + JOURNAL)

    @property
    def base(self) -> tuple[int, ...]:
        """The file that it was made from: equal for two files only if they are one, unchanged. () for none."""
        return () if self.based_on is None else _identity(self.based_on)

    @property
    def beside_bytes(self) -> int:
        """What is copied, beside what is moved, before anything is."""
        return 0

    def check_space(self, needed: int) -> None:
        """Refuses what the disk has no room for. What killed runs have left of this destination counts as free: it is
        gone on with, or removed."""
        place = os.statvfs(self.parent)
        free = place.f_bavail * place.f_frsize
        if place.f_blocks and needed > free and needed > (free := free + self._bytes_there()):
            raise StoreError(
                errno.ENOSPC, f"the disk of {self.parent} is full: {needed} bytes are needed, {free} are free"
            )

    def _bytes_there(self) -> int:
        """What the hidden output takes on the disk, or what killed runs have left that this one goes on with or
        removes."""
        if self.partial is not None:
            return sum(map(bytes_on_disk, (self.partial, self.work)))
        names = [
            name
            for name in self._stale(f"({_ASIDE})?")
            if not name.endswith(_ASIDE) or os.path.lexists(self.destination)
        ]
        paths = [os.path.join(self.parent, name) for name in names]
        with_journal = [path for path in paths if os.path.isfile(path + JOURNAL) and os.path.isdir(path) == self.folder]
        if self.resumes and with_journal:  # the newest of which is gone on with, and the others stay
            paths = [max(with_journal, key=lambda path: os.lstat(path + JOURNAL).st_mtime_ns)]
        return sum(bytes_on_disk(path) + bytes_on_disk(path + WORK) for path in paths)

    # -- building ---------------------------------------------------------------------------------------------------

    def create(self) -> str:
        """Makes the hidden file or folder and returns its path."""
        for _ in range(16):
            path = os.path.join(self.parent, f".{self.name}{_PARTIAL}{secrets.token_hex(8)}")
            try:
                if self.folder:
                    os.mkdir(path)
                else:
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
            except FileExistsError:
                continue
            except OSError as error:
                raise StoreError(error.errno, f"cannot write in {self.parent}: {error.strerror}") from None
            self._lock = _open_locked(path, when_unsupported=True)
            if self._lock is not None:
                self.partial = path
                return path
            # Another run took it for a stale one before it was locked: try again under another name.
        raise StoreError(errno.EBUSY, f"cannot create a hidden file in {self.parent}")

    def publish(self) -> None:
        """Makes the finished store appear under its own name, durably. All files in it must have been synced."""
        assert self.partial is not None
        try:
            if self.folder:
                sync_folder(self.partial)
            self._rename(self.partial)
            sync_folder(self.parent)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(error.errno, f"cannot publish {self.destination}: {error.strerror}") from None
        finally:
            self._unlock()

    def discard(self) -> None:
        """Removes the hidden file or folder, if it was not published."""
        if self.partial and not self._published:
            with contextlib.suppress(OSError):  # the lock goes with this process, so the next run removes it
                _remove_at_last(self.partial)
            with contextlib.suppress(OSError):
                os.unlink(self.journal)
            remove_work(self.work)
            self.partial = None
        self._unlock()

    def __enter__(self) -> Publication:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, LongshoreError):
            self._name_destination(error)
        self.discard()

    def _name_destination(self, error: LongshoreError) -> None:
        """Has an error speak of the destination, and not of the hidden place that is gone when it is read."""
        hidden = re.escape(os.path.join(self.parent, f".{self.name}{_PARTIAL}")) + "[0-9a-f]{16}" + f"(?!{_ASIDE}|\\.)"

        def renamed(value: Any) -> Any:
            return re.sub(hidden, lambda _: self.called, value) if isinstance(value, str) else value

        error.args = tuple(map(renamed, error.args))
        if isinstance(error, OSError):
            error.strerror = renamed(error.strerror)

    def _unlock(self) -> None:
        if self._lock is not None:
            _release(self._lock)
            self._lock = None

    def _rename(self, partial: str) -> None:
        self._refuse_changed()
        if not self.force or not self._check_existing():
            if not _rename_to_nothing(partial, self.destination):
                raise StoreError(f"{self.destination} has appeared meanwhile; it is not replaced")
            self._published = True
            return
        if not self.folder:
            os.replace(partial, self.destination)
            self._published = True
            return
        with contextlib.ExitStack() as held, contextlib.ExitStack() as undo:
            old = self._swap(partial, held, undo)
            _check_replaceable(old, self.destination)  # what has come into it meanwhile is not taken away
            undo.pop_all()
            self._published = True
            sync_folder(self.parent)
            with contextlib.suppress(OSError):  # the next run to this place removes what is left
                _remove(old)

    def _refuse_changed(self) -> None:
        if self.based_on is None:
            return
        with contextlib.suppress(FileNotFoundError):
            if _identity(os.lstat(self.destination)) == self.base:
                return
        raise StoreError(f"{self.destination} has been changed meanwhile; it is not replaced")

    def _swap(self, partial: str, held: contextlib.ExitStack, undo: contextlib.ExitStack) -> str:
        """Puts the new folder in the place of the old one, and returns where that is now."""
        if rename_with_flags(partial, self.destination, _RENAME_EXCHANGE):
            undo.callback(rename_with_flags, partial, self.destination, _RENAME_EXCHANGE)
            return partial
        # Without the exchange the place is empty for a moment; what was there lies beside it, locked as the new one is.
        lock = _open_locked(self.destination, when_unsupported=True)
        if lock is None:
            raise StoreError(errno.EBUSY, f"{self.destination} is being replaced by somebody else")
        held.callback(_release, lock)
        old = partial + _ASIDE
        os.rename(self.destination, old)
        undo.callback(os.rename, old, self.destination)
        os.rename(partial, self.destination)
        undo.callback(os.rename, self.destination, partial)
        return old


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems sync no folders
            raise
    finally:
        os.close(fd)


def rename_with_flags(old: str, new: str, flags: int) -> bool:
    """renameat2; False where the system or the file system does not have it (or the target of NOREPLACE exists)."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    if function(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.EEXIST, errno.ENOTEMPTY):
        return False
    raise OSError(code, os.strerror(code), new)


def _rename_to_nothing(old: str, new: str) -> bool:
    """Renames; False, with nothing done, where there is something of the new name."""
    if rename_with_flags(old, new, _RENAME_NOREPLACE):
        return True
    if os.path.lexists(new):
        return False
    os.rename(old, new)
    return True


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def file_name(path: str | os.PathLike) -> str:
    """A path as text. Raises ArgumentError where there is none, and StoreError for what no file can be called."""
    name = os.fspath(path)
    if not name:
        raise ArgumentError("the path is empty")
    try:
        if b"\0" not in os.fsencode(name):
            return name
    except UnicodeEncodeError:
        pass
    raise StoreError(f"{short(name)} is no file name")


def is_full(error: BaseException) -> bool:
    """Whether an error tells that a disk has no room, or that this user may have no more of it."""
    if not isinstance(error, OSError) or error.errno is not None:
        return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return os.strerror(errno.ENOSPC) in str(error)  # as HDF5 says it


def add_to(error: BaseException, words: str) -> None:
    """Has an error say more, at its end."""
    if isinstance(error, OSError) and error.errno is not None:
        error.strerror = f"{error.strerror or error}; {words}"
        error.args = (error.errno, error.strerror)
    else:
        error.args = (f"{error}; {words}",)


def refuse_overlap(
    source: str | os.PathLike, destination: str | os.PathLike, files: Iterable[str | os.PathLike] = ()
) -> None:
    """The source is never touched: the destination may not be it, lie in it, or hold it. `files`: others that belong to
    the source, wherever they are."""
    for each in (source, *files):
        _refuse_overlap(each, destination)


def _refuse_overlap(source: str | os.PathLike, destination: str | os.PathLike) -> None:
    if not os.path.exists(source):
        raise StoreError(f"{os.fspath(source)} does not exist")
    src, dst = os.path.realpath(source), os.path.realpath(destination)
    if src == dst or (os.path.exists(dst) and os.path.samefile(src, dst)):
        raise StoreError(f"{os.fspath(destination)} is the source itself; name another place")
    if dst.startswith(src + os.sep):
        raise StoreError(f"{os.fspath(destination)} lies inside the source; name a place outside")
    if src.startswith(dst + os.sep):
        raise StoreError(f"{os.fspath(destination)} holds the source; name another place")


def _check_replaceable(path: str, called: str = "") -> None:
    """A slip of the hand must not take anything but a store away: raises StoreError where a folder is none, or holds
    anything besides, and names that. `called`: what messages call the folder."""
    called = called or path
    only = "--force (in Python force=True) replaces folders of shards and stores only"
    names = sorted(os.listdir(path))
    for name in mounted(path):
        raise StoreError(f"{called} holds {name!r}, where something else is mounted; unmount that first")
    if LAYOUT_JSON not in names and is_store(names):
        for name in _foreign_files(path):
            raise StoreError(
                f"{called} holds {name!r}, which is not of the Zarr or safetensors store; move that away first"
            )
        return
    if LAYOUT_JSON not in names and not is_group(path):
        what = f"holds {names[0]!r}, which is no shard, for there is" if names else "is a folder with"
        raise StoreError(f"{called} {what} no {LAYOUT_JSON}; {only}, so remove it yourself or name another place")
    for _ in owned_folders(path, called, only):
        pass


def is_store(names: Collection[str]) -> bool:
    """Whether a folder with these names is a Zarr group or array, or a checkpoint of safetensors."""
    return any(name in STORES_ROOTS or ("/" not in name and name.endswith(INDEX_SUFFIX)) for name in names)


def _foreign_files(path: str, *, by_name: bool | None = False) -> Iterator[str]:
    """What lies in the folder of a store and is not the store's: names, as they are found. `by_name`: what is called as
    a store's files are is its; None: only where no document of Zarr's tells which files the store has."""
    own = OwnFiles(os.listdir(path), lambda name: read_document(os.path.join(path, name)))
    if by_name is None:
        by_name = not any(map(own.has, STORES_ROOTS))
    for folder, folders, files in os.walk(path):
        below = f"{folder[len(path) + 1 :]}/".lstrip("/")
        for name in files:
            known = STORES_FILES.fullmatch(name) if by_name else own.has(below + name)
            if not known or not stat.S_ISREG(os.lstat(os.path.join(folder, name)).st_mode):
                yield below + name
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                yield below + name


def _release(fd: int) -> None:
    """Closes a descriptor that holds a lock, also where a process that was forked meanwhile has it too."""
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def _open_locked(path: str, when_unsupported: bool = False) -> int | None:
    """A descriptor that holds the lock of `path`, or None when somebody else holds it or it is no longer that path."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES) and when_unsupported:
                return fd  # a file system without locks: nobody will take this for stale either
            os.close(fd)
            return None
        here, there = os.fstat(fd), os.stat(path, follow_symlinks=False)
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _remove_at_last(path: str) -> None:
    """Removes this run's own output, to which somebody may still be adding, such as a worker that is being ended."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _remove(path, by_name=True)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or time.monotonic() > until:
                raise
        time.sleep(_PATIENCE_S / 50)


def _remove(path: str, *, by_name: bool | None = None) -> None:
    """Removes a hidden file, or a hidden folder with what a run of ours leaves in one: a store, or a part of one, which
    may not tell what is its. OSError, with nothing removed, where it holds anything else."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    for name in mounted(path):
        raise OSError(errno.EBUSY, "something else is mounted there", os.path.join(path, name))
    if LAYOUT_JSON not in os.listdir(path) and next(_foreign_files(path, by_name=by_name), None) is None:
        # What tells of chunks goes after them, so that a run that is killed meanwhile leaves nothing unknown.
        for _, folders, files, fd in os.fwalk(path, topdown=False):
            for name in sorted(files, key=lambda name: name in STORES_ROOTS):
                os.unlink(name, dir_fd=fd)
            for name in folders:
                os.rmdir(name, dir_fd=fd)
        os.rmdir(path)
        return
    for owned, names in list(owned_folders(path, path, unfinished=True)):
        folder = os.open(owned, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name in names:
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(owned)
