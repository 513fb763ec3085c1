"""Atomic publication: a store is built under a hidden name beside its place and appears there by one rename, or not at all.

The hidden name is locked (flock) while its builder lives, so that a later run can tell a stale one, left by a killed
process, from one that somebody is still writing.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import stat

from ..errors import StoreError
from .layout_json import NAME as LAYOUT_JSON

_PARTIAL = ".longshore-partial-"
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


class Publication:
    """The place where a store will appear. Use as a context manager: without `publish()` nothing stays behind."""

    def __init__(self, destination, *, folder, force=False):
        self.destination = os.path.abspath(destination)
        self.folder = folder
        self.force = force
        self.parent, self.name = os.path.split(self.destination)
        self.partial = None  # the hidden path
        self.stale_removed = []
        self._lock = None
        self._published = False

    # -- before anything is written ---------------------------------------------------------------------------------

    def check(self):
        """Refuses a destination that cannot or must not be written. Writes nothing."""
        if not self.name:
            raise StoreError(f"{self.destination} cannot be a destination")
        if len(os.fsencode(self.name)) > 255 - len(_PARTIAL) - 17:
            raise StoreError(f"the name {self.name!r} is too long: a hidden one is made from it while writing")
        if not os.path.isdir(self.parent):
            raise StoreError(f"the folder {self.parent} does not exist; make it first")
        try:
            status = os.lstat(self.destination)
        except FileNotFoundError:
            return
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
            _check_replaceable_folder(self.destination)
        elif not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{self.destination} is not a plain file; it is not replaced")

    def remove_stale(self):
        """Removes what killed runs left for this destination; their names go to `stale_removed`."""
        prefix = f".{self.name}{_PARTIAL}"
        try:
            names = [name for name in os.listdir(self.parent) if name.startswith(prefix)]
        except OSError:
            return
        for name in names:
            path = os.path.join(self.parent, name)
            fd = _open_locked(path)
            if fd is None:
                continue  # somebody is writing it, or it is gone, or not ours to judge
            try:
                _remove(path)
                self.stale_removed.append(name)
            except OSError:
                pass
            finally:
                os.close(fd)

    def check_space(self, needed):
        """Refuses what the disk has no room for."""
        place = os.statvfs(self.parent)
        free = place.f_bavail * place.f_frsize
        if place.f_blocks and needed > free:
            raise StoreError(
                errno.ENOSPC, f"the disk of {self.parent} is full: {needed} bytes are needed, {free} are free"
            )

    # -- building ---------------------------------------------------------------------------------------------------

    def create(self):
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

    def publish(self):
        """Makes the finished store appear under its own name, durably. All files in it must have been synced."""
        try:
            if self.folder:
                sync_folder(self.partial)
            self._rename()
            self._published = True
            sync_folder(self.parent)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(error.errno, f"cannot publish {self.destination}: {error.strerror}") from None
        finally:
            self._unlock()

    def discard(self):
        """Removes the hidden file or folder, if it was not published."""
        if self.partial and not self._published:
            try:
                _remove(self.partial)
            except FileNotFoundError:
                pass
            except OSError:
                pass  # the lock goes with this process, so the next run removes it
            self.partial = None
        self._unlock()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.discard()

    def _unlock(self):
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _rename(self):
        if not self.force or not os.path.lexists(self.destination):
            if rename_with_flags(self.partial, self.destination, _RENAME_NOREPLACE):
                return
            if os.path.lexists(self.destination):
                raise StoreError(f"{self.destination} has appeared meanwhile; it is not replaced")
            os.rename(self.partial, self.destination)
            return
        if not self.folder:
            os.replace(self.partial, self.destination)
            return
        _check_replaceable_folder(self.destination)
        if not rename_with_flags(self.partial, self.destination, _RENAME_EXCHANGE):
            # Without the exchange the place is empty for a moment; what was there lies beside it until the end.
            aside = f"{self.partial}-old"
            os.rename(self.destination, aside)
            try:
                os.rename(self.partial, self.destination)
            except OSError:
                os.rename(aside, self.destination)
                raise
            self.partial = aside
        sync_folder(self.parent)
        try:
            _remove(self.partial)  # now the old contents
        except OSError:
            pass  # published all the same; the next run to this place removes what is left


def sync_folder(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems sync no folders
            raise
    finally:
        os.close(fd)


def rename_with_flags(old, new, flags):
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


def refuse_overlap(source, destination):
    """The source is never touched: the destination may not be it, lie in it, or hold it."""
    if not os.path.exists(source):
        raise StoreError(f"{os.fspath(source)} does not exist")
    src, dst = os.path.realpath(source), os.path.realpath(destination)
    if src == dst or (os.path.exists(dst) and os.path.samefile(src, dst)):
        raise StoreError(f"{os.fspath(destination)} is the source itself; name another place")
    if dst.startswith(src + os.sep):
        raise StoreError(f"{os.fspath(destination)} lies inside the source; name a place outside")
    if src.startswith(dst + os.sep):
        raise StoreError(f"{os.fspath(destination)} holds the source; name another place")


def _check_replaceable_folder(path):
    """--force replaces folders of shards only: it must not take a home folder away because of a slip of the hand."""
    with os.scandir(path) as entries:
        for entry in entries:
            plain = entry.is_file(follow_symlinks=False)
            if not plain or not (entry.name == LAYOUT_JSON or entry.name.endswith(".npy")):
                raise StoreError(
                    f"{path} holds {entry.name!r}, which is no shard; --force replaces folders of shards only"
                )


def _open_locked(path, when_unsupported=False):
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


def _remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
