"""Where the keys of a store lie: files below a folder, or objects below a URL.

A key is a path of plain names, "t2m/c/0/1". It is there as a whole or not at all: nobody sees a part of one that is
being written.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import errno
import os
import re
import secrets
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._words import short
from ..errors import StoreError
from . import writeback
from .known_files import KnownFiles
from .object_places import ObjectPlace, asked, changed, is_url, object_place, refused, without_password

_MAX_KEY_BYTES = 4096
_MAX_NAME_BYTES = 255
_MAX_CALL_BYTES = 1 << 30  # Linux moves at most 2^31 - 4096 bytes a call
_PARTIAL = re.compile(r"\..+\.[0-9a-f]{16}\.partial")


def open_keys(place: str) -> Keys:
    """The keys below a folder or a URL."""
    return UrlKeys(place) if is_url(place) else LocalKeys(place)


def parts_of(key: str) -> list[str]:
    """The names that a key is made of. Raises StoreError where one of them would lead out of the store."""
    parts = key.split("/") if key else []
    if len(key) > _MAX_KEY_BYTES:
        raise StoreError(f"a key of {len(key)} characters is too long: {short(key)}")
    for part in parts:
        try:
            length = len(os.fsencode(part))
        except UnicodeEncodeError:
            raise StoreError(f"the key {short(key)} cannot be a file name") from None
        if part in ("", ".", "..") or "\0" in part or length > _MAX_NAME_BYTES:
            raise StoreError(f"the key {short(key)} is not made of plain names, so it could lead out of the store")
    return parts


class Keys(ABC):
    """The keys of one store. All methods may be called from several threads at once."""

    name: str
    """For messages: the folder or the URL."""

    @abstractmethod
    def get(self, key: str, limit: int) -> bytes | None:
        """What a key holds; None where it is missing. Raises StoreError where it holds more than `limit` bytes."""

    @abstractmethod
    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """`length` bytes from `start` on; None where the key is missing. Raises StoreError where it ends before."""

    @abstractmethod
    def put(self, key: str, data: Any) -> int:
        """Makes a key, or replaces what it holds, and returns how many bytes that are."""

    @abstractmethod
    def size(self, key: str) -> int | None:
        """How many bytes a key holds; None where it is missing."""

    @abstractmethod
    def folders(self, key: str, limit: int) -> dict[str, str | None]:
        """The names of the folders right below a key, sorted, each with where it leads if it is a symbolic link to a
        folder. Raises StoreError where there are more than `limit`, or where the place cannot tell."""

    @abstractmethod
    def stamp(self, key: str) -> str | None:
        """Something that differs once a key has been written again; None where it is missing."""

    def exists(self, key: str) -> bool:
        return self.size(key) is not None

    def close(self) -> None:  # noqa: B027
        """Lets go of the place."""

    def where(self, key: str) -> str:
        """A key for messages."""
        return f"{self.name}/{key}" if key else self.name


class LocalKeys(Keys):
    """Keys as files below a folder. A symbolic link below that folder is never followed."""

    def __init__(self, root: str | os.PathLike) -> None:
        self.name = os.fspath(root)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            self._root = os.open(self.name, flags)
        except FileNotFoundError:
            raise StoreError(f"{self.name} does not exist") from None
        except NotADirectoryError:
            raise StoreError(f"{self.name} is not a folder") from None
        except (OSError, ValueError) as error:
            raise refused("open", self.name, error) from None
        self._known: KnownFiles | None = None

    def close(self) -> None:
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def of_known(self, known: KnownFiles) -> LocalKeys:
        """The same keys, of which none is read that has been changed. To be used as long as these are open."""
        keys = copy.copy(self)
        keys._known = known
        return keys

    def check(self, key: str) -> None:
        """Raises StoreError where a key is known to have been changed."""
        try:
            status = os.stat(key, dir_fd=self._root, follow_symlinks=False)
        except OSError:
            return self._missing(key)
        if self._known is not None and not self._known.is_as_it_was(key, status):
            raise changed(self.where(key))

    # -- reading ----------------------------------------------------------------------------------------------------

    def get(self, key: str, limit: int) -> bytes | None:
        fd = self._open_file(key)
        if fd is None:
            return None
        try:
            size = os.fstat(fd).st_size
            if size > limit:
                raise StoreError(f"{self.where(key)} has {size} bytes, where at most {limit} can be right")
            return self._read(fd, key, 0, size)
        finally:
            os.close(fd)

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        fd = self._open_file(key)
        if fd is None:
            return None
        try:
            return self._read(fd, key, start, length)
        finally:
            os.close(fd)

    def size(self, key: str) -> int | None:
        status = self._status(key)
        return None if status is None else status.st_size

    def stamp(self, key: str) -> str | None:
        status = self._status(key)
        return None if status is None else f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"

    def folders(self, key: str, limit: int) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for name, entry in self._entries(key):
            if entry.is_dir():
                link = entry.is_symlink()
                found[name] = os.readlink(os.path.join(self.name, key, name)) if link else None
                if len(found) > limit:
                    raise StoreError(f"{self.where(key)} holds more than {limit} folders")
        return dict(sorted(found.items()))

    def files(self, key: str = "") -> Iterator[tuple[str, os.DirEntry]]:
        """Every plain file below a key. An entry is to be asked before the next one is taken."""
        waiting = [key]
        while waiting:
            folder = waiting.pop()
            for name, entry in self._entries(folder):
                below = f"{folder}/{name}" if folder else name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(below)
                elif entry.is_file(follow_symlinks=False):
                    yield below, entry

    def _entries(self, key: str) -> Iterator[tuple[str, os.DirEntry]]:
        parent = self._folder(parts_of(key))
        if parent is None:
            return
        try:
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        except OSError as error:
            raise refused("list", self.where(key), error) from None
        finally:
            os.close(parent)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    yield entry.name, entry
        except OSError as error:
            raise refused("list", self.where(key), error) from None
        finally:
            os.close(fd)

    def _status(self, key: str) -> os.stat_result | None:
        fd = self._open_file(key)
        if fd is None:
            return None
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def _read(self, fd: int, key: str, start: int, length: int) -> bytes:
        try:
            data = os.pread(fd, min(length, _MAX_CALL_BYTES), start)
            if len(data) == length:
                return data
            pieces = [data]
            done = len(data)
            while done < length and pieces[-1]:
                pieces.append(os.pread(fd, min(length - done, _MAX_CALL_BYTES), start + done))
                done += len(pieces[-1])
        except OSError as error:
            raise refused("read", self.where(key), error) from None
        if done < length:
            raise StoreError(
                f"{self.where(key)} is truncated: it ends at byte {start + done}, where {start + length} are needed"
            )
        return b"".join(pieces)

    # -- writing ----------------------------------------------------------------------------------------------------

    def put(self, key: str, data: Any) -> int:
        *folders, name = parts_of(key)
        view = memoryview(data).cast("B")
        partial = f".{name[:200]}.{secrets.token_hex(8)}.partial"
        parent = self._folder(folders, make=True)
        assert parent is not None
        try:
            fd = os.open(
                partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=parent
            )
            try:
                write_all(fd, view, 0)
            except BaseException:
                os.unlink(partial, dir_fd=parent)
                raise
            finally:
                os.close(fd)
            os.rename(partial, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            raise refused("write", self.where(key), error) from None
        finally:
            os.close(parent)
        return len(view)

    def open_for_writing(self, key: str, make: bool) -> int | None:
        """A descriptor for reading and writing parts of a file, which is made if `make`; None where it is missing."""
        *folders, name = parts_of(key)
        parent = self._folder(folders, make=make)
        if parent is None:
            return None
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if make else 0)
        try:
            fd = os.open(name, flags, 0o666, dir_fd=parent)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused("open", self.where(key), error) from None
        finally:
            os.close(parent)
        return self._plain(fd, key)

    def remove(self, key: str) -> None:
        *folders, name = parts_of(key)
        parent = self._folder(folders)
        if parent is None:
            return
        try:
            os.unlink(name, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as error:
            raise refused("remove", self.where(key), error) from None
        finally:
            os.close(parent)

    def remove_partial(self) -> None:
        """Removes what killed runs have left of keys that they were writing. Nobody else may be writing."""
        for key in [key for key, entry in self.files() if _PARTIAL.fullmatch(entry.name)]:
            self.remove(key)

    # -- to the disk ------------------------------------------------------------------------------------------------

    def sync(self, keys: Iterable[str]) -> None:
        """Brings some files to the disk, and all folders on the way to them."""
        files = list(keys)
        folders = {""}
        for key in files:
            parts = parts_of(key)
            folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
        writeback.wait_for_each(self._sync_file, files)
        writeback.wait_for_each(self._sync_folder, folders)

    def sync_all(self) -> None:
        """Brings everything below the root to the disk."""
        if _sync_file_system(self._root, self.name):
            return
        self.sync(key for key, _ in self.files())

    def _sync_file(self, key: str) -> None:
        fd = self._open_file(key)
        if fd is None:
            raise StoreError(f"{self.where(key)} is missing")
        self._sync(fd, key)

    def _sync_folder(self, key: str) -> None:
        parent = self._folder(parts_of(key))
        if parent is None:
            raise StoreError(f"{self.where(key)} is missing")
        try:
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        finally:
            os.close(parent)
        self._sync(fd, key)

    def _sync(self, fd: int, key: str) -> None:
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems sync no folders
                raise refused("bring to the disk", self.where(key), error) from None
        finally:
            os.close(fd)

    # -- the way to a file ------------------------------------------------------------------------------------------

    def _folder(self, parts: list[str], make: bool = False) -> int | None:
        """A descriptor of a folder below the root, name by name, so that no symbolic link leads elsewhere; None where
        there is none."""
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.dup(self._root)
        for depth, part in enumerate(parts):
            try:
                try:
                    below = os.open(part, flags, dir_fd=fd)
                except FileNotFoundError:
                    if not make:
                        return None
                    with contextlib.suppress(FileExistsError):  # another thread was faster
                        os.mkdir(part, dir_fd=fd)
                    below = os.open(part, flags, dir_fd=fd)
            except OSError as error:
                place = self.where("/".join(parts[: depth + 1]))
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise self._not_plain(part, fd, place, "folder") from None
                raise refused("open", place, error) from None
            finally:
                os.close(fd)
            fd = below
        return fd

    def _open_file(self, key: str) -> int | None:
        """A descriptor for reading a plain file; None where it is missing."""
        parts = parts_of(key)
        if not parts:
            raise StoreError(f"{self.name} is a folder, not a key")
        parent = self._folder(parts[:-1])
        if parent is None:
            self._missing(key)
            return None
        try:
            # O_NONBLOCK: a FIFO in the file's place must not make us wait for ever.
            fd = os.open(parts[-1], os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        except FileNotFoundError:
            self._missing(key)
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise self._not_plain(parts[-1], parent, self.where(key), "file") from None
            raise refused("open", self.where(key), error) from None
        finally:
            os.close(parent)
        return self._plain(fd, key)

    def _plain(self, fd: int, key: str) -> int:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise StoreError(f"{self.where(key)} is not a plain file")
        if self._known is not None and not self._known.is_as_it_was(key, status):
            os.close(fd)
            raise changed(self.where(key))
        return fd

    def _missing(self, key: str) -> None:
        """For a file that is not there."""
        if self._known is not None and not self._known.is_as_it_was(key, None):
            raise changed(self.where(key))

    def _not_plain(self, name: str, parent: int, place: str, wanted: str) -> StoreError:
        try:
            link = stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except OSError:
            link = False
        what = "a symbolic link; links inside a store are not followed" if link else f"not a plain {wanted}"
        return StoreError(f"{place} is {what}")


class UrlKeys(Keys):
    """Keys as objects below a URL, through fsspec, or through obstore where fsspec or what it needs for the URL is not
    installed."""

    def __init__(self, url: str) -> None:
        self.name = without_password(url.rstrip("/"))
        self._place: ObjectPlace = object_place(url.rstrip("/"))

    def get(self, key: str, limit: int) -> bytes | None:
        parts_of(key)
        data = self._call("read", key, lambda: self._place.get(key, limit + 1))
        if data is not None and len(data) > limit:
            raise StoreError(f"{self.where(key)} has more than the {limit} bytes that can be right")
        return data

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        parts_of(key)
        if length == 0:
            return b"" if self.exists(key) else None
        data = self._call("read", key, lambda: self._place.get_range(key, start, length))
        if data is not None and len(data) != length:
            what = "is truncated" if len(data) < length else "lies on a server that gives no ranges"
            raise StoreError(f"{self.where(key)} {what}: {length} bytes from {start} on were {len(data)}")
        return data

    def put(self, key: str, data: Any) -> int:
        parts_of(key)
        view = memoryview(data).cast("B")
        self._call("write", key, lambda: self._place.put(key, view))
        return len(view)

    def size(self, key: str) -> int | None:
        parts_of(key)
        return self._call("look at", key, lambda: self._place.size(key))

    def stamp(self, key: str) -> str | None:
        parts_of(key)
        return self._call("look at", key, lambda: self._place.stamp(key))

    def folders(self, key: str, limit: int) -> dict[str, str | None]:
        parts_of(key)
        if self.name.startswith(("http://", "https://")):
            raise StoreError(
                f"{self.where(key)} cannot be listed over HTTP, and has no consolidated metadata; name one array"
            )
        found = self._call("list", key, lambda: self._place.children(key)) or {}
        names = [name for name, is_folder in found.items() if is_folder]
        if len(names) > limit:
            raise StoreError(f"{self.where(key)} holds more than {limit} folders")
        return dict.fromkeys(sorted(names))

    def stamps(self, key: str) -> dict[str, str]:
        """The stamps of all keys below one; of none where the place lists nothing."""
        return self._call("list", key, lambda: self._place.stamps(key)) or {}

    def _call(self, what: str, key: str, action: Callable[[], Any]) -> Any:
        return asked(self.name, what, self.where(key), action)


def write_all(fd: int, view: memoryview, offset: int) -> None:
    """Writes at an offset, in as many calls as it takes, what will not be written again soon."""
    done = 0
    while done < len(view):
        done += os.pwrite(fd, view[done : done + _MAX_CALL_BYTES], offset + done)
    writeback.begin(fd, offset, len(view))


_syncfs_lock = threading.Lock()


def _sync_file_system(fd: int, name: str) -> bool:
    """syncfs of what a descriptor lies on; False where the system has no such call."""
    try:
        function = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return False
    with _syncfs_lock:  # two at once would wait for the same bytes twice
        if function(fd) == 0:
            return True
        code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise StoreError(code, f"cannot bring {name} to the disk: {os.strerror(code)}")
