"""Files that are read at any offset, and folders that are looked into, on a disk or at a URL.

Readers of formats take these and nothing else, so that what they can read of a disk they can read of a URL.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import StoreError
from .object_places import ObjectPlace, asked, below, changed, is_http, is_url, object_place, without_password

_CALL_BYTES = 1 << 30  # Linux moves at most 2^31 - 4096 bytes a call
_LARGE_BYTES = 1 << 20
_REQUEST_BYTES = 8 << 20  # what is asked of a server at once; it is held beside what it is for
_GAP_BYTES = 64 << 10
_MERGED_BYTES = 2 << 20
_MOST_ENTRIES = 1 << 20


Part = tuple[int, int, str]
"""How many bytes of a file, from where on, and what they are."""
Buffer = bytes | bytearray | memoryview


class RandomAccess(ABC):
    """A file that is read at any offset. All methods may be called from several threads at once."""

    name: str
    """For messages: the path, or the URL without its password."""
    told: str = ""
    """What tells the file that has been read from one that takes its place, and from what it becomes when it is written
    again; of a file at a URL as soon as some of it has been read. "" where nothing does."""

    @abstractmethod
    def size(self) -> int:
        """How many bytes it has: of a file on a disk now, of one at a URL when it was first asked."""

    @abstractmethod
    def read(self, count: int, offset: int, where: str = "") -> bytes | bytearray:
        """Bytes of the file. Raises StoreError where it does not have them; `where` says what they are."""

    joins = False
    """Whether `read_parts` asks for several parts at once."""

    def read_parts(self, parts: Sequence[Part]) -> Iterator[Buffer]:
        """What `read` gives, of several parts in any order; where they are joined, all of them are held at once."""
        for part in parts:
            yield self.read(*part)

    @abstractmethod
    def read_runs(self, offsets: Sequence[int], view: memoryview) -> None:
        """Fills `view` with as many runs of equal size as there are offsets, which ascend."""

    @abstractmethod
    def check(self) -> None:
        """Raises StoreError where the file is known to be another one than that which was opened."""

    def start(self, count: int) -> bytes:
        """The first bytes of the file, fewer where it has no more."""
        return bytes(self.read(min(count, self.size()), 0))

    def close(self) -> None:  # noqa: B027, not all hold something
        """Lets go of the file."""

    def __enter__(self) -> RandomAccess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class LocalFile(RandomAccess):
    """A file by its descriptor, which `close` closes. `told`: what it must be to be read, "" for anything: whoever
    makes a file reads it, too."""

    def __init__(self, path: str, fd: int, told: str = "") -> None:
        self.name, self.fd, self.told = path, fd, told

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def read(self, count: int, offset: int, where: str = "") -> bytes | bytearray:
        try:
            data = os.pread(self.fd, min(count, _CALL_BYTES), offset)
            parts = [data]
            done = len(data)
            while data and done < count:
                data = os.pread(self.fd, min(count - done, _CALL_BYTES), offset + done)
                parts.append(data)
                done += len(data)
        except OSError as error:
            raise StoreError(error.errno, f"cannot read {where or self.name}: {error.strerror}") from None
        if done < count:
            raise _shorter(where, self.name)
        self.check()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_runs(self, offsets: Sequence[int], view: memoryview) -> None:
        size = len(view) // len(offsets)
        place, fd = 0, self.fd
        try:
            if size >= _LARGE_BYTES and hasattr(os, "posix_fadvise"):
                for offset in offsets:  # the disk has all of it to do at once, whatever other threads read meanwhile
                    os.posix_fadvise(fd, offset, size, os.POSIX_FADV_WILLNEED)
            for offset in offsets:
                stop = place + size
                done = os.preadv(fd, (view[place:stop],), offset)
                while done < size:
                    part = os.preadv(fd, (view[place + done : min(stop, place + done + _CALL_BYTES)],), offset + done)
                    if part == 0:
                        raise _shorter("", self.name)
                    done += part
                place = stop
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(error.errno, f"cannot read {self.name}: {error.strerror}") from None
        self.check()

    def check(self) -> None:
        if self.told and told_by(self.fd, self.name) != self.told:
            raise changed(self.name)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def held_by_reads(nbytes: int) -> int:
    """What a thread holds that reads so many bytes of a file at a URL, beside these."""
    return min(max(nbytes, 2 * _MERGED_BYTES), _REQUEST_BYTES)


class RemoteFile(RandomAccess):
    """A file at a URL, of which ranges are asked. What lies close to each other is asked for at once."""

    joins = True

    def __init__(self, url: str, told: str = "") -> None:
        """`told`: what the file told that was there before, which must still be the one; "" for any."""
        self.name = without_password(url)
        self._place: ObjectPlace = object_place(url)
        self._place.told = told
        self._size: int | None = None

    @property
    def told(self) -> str:  # type: ignore[override]
        return self._place.told

    def check(self) -> None:
        def look() -> bool:
            self._place.check()
            return True

        if not asked(self.name, "look at", self.name, look):
            raise changed(self.name)

    def exists(self) -> bool:
        """Whether there is a file, and not a folder or nothing."""
        if self._size is None:
            size = asked(self.name, "look at", self.name, lambda: self._place.size(""))
            if size is not None and not 0 <= size < 1 << 63:
                raise StoreError(f"{self.name} cannot be used: its server says that it has {size} bytes")
            self._size = size
        return self._size is not None

    def size(self) -> int:
        if not self.exists():
            raise StoreError(f"{self.name} is missing")
        assert self._size is not None
        return self._size

    def read(self, count: int, offset: int, where: str = "") -> bytes | bytearray:
        if count <= _REQUEST_BYTES:
            return self._range(count, offset, where)
        if offset + count > self.size():  # before there is room made for it
            raise _shorter(where, self.name)
        data = bytearray(count)
        self._fill(memoryview(data), offset, where)
        return data

    def read_parts(self, parts: Sequence[Part]) -> Iterator[Buffer]:
        order = sorted(range(len(parts)), key=lambda k: parts[k][1])
        found: list[Buffer] = [b""] * len(parts)
        for first, last, end in _near([parts[k][:2] for k in order]):
            count, begin, where = parts[order[first]]
            if last == first + 1:
                found[order[first]] = self.read(count, begin, where)
                continue
            data = memoryview(self._range(end - begin, begin, f"{where} and what lies near it"))
            for k in order[first:last]:
                at = parts[k][1] - begin
                found[k] = data[at : at + parts[k][0]]
        found.reverse()
        while found:  # whoever has used one lets go of it
            yield found.pop()

    def read_runs(self, offsets: Sequence[int], view: memoryview) -> None:
        size = len(view) // len(offsets)
        for first, last, end in _near([(size, offset) for offset in offsets]):
            begin = offsets[first]
            if last == first + 1:
                self._fill(view[first * size : last * size], begin, "")
                continue
            data = memoryview(self._range(end - begin, begin, ""))
            for run in range(first, last):
                at = offsets[run] - begin
                view[run * size : (run + 1) * size] = data[at : at + size]

    def _fill(self, view: memoryview, offset: int, where: str) -> None:
        for begin in range(0, len(view), _REQUEST_BYTES):
            end = min(begin + _REQUEST_BYTES, len(view))
            view[begin:end] = self._range(end - begin, offset + begin, where)

    def _range(self, count: int, offset: int, where: str) -> bytes | bytearray:
        if count == 0:
            return b""
        what = where or self.name
        data = asked(self.name, "read", what, lambda: self._place.get_range("", offset, count))
        if data is None:
            raise StoreError(f"{self.name} is missing")
        if len(data) < count:
            raise _shorter(where, self.name, f" or its server has sent {len(data)} bytes of {count}")
        if len(data) > count:
            raise StoreError(f"{what} cannot be read: its server sent {len(data)} bytes where {count} were asked for")
        return data


def _near(parts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Parts of a file, (bytes, offset) in ascending order, that are asked for at once: the number of the first, that
    behind the last, and where in the file they end."""
    first = 0
    while first < len(parts):
        count, begin = parts[first]
        last, end = first + 1, begin + count
        while last < len(parts):
            count, offset = parts[last]
            if offset - end > _GAP_BYTES or max(end, offset + count) - begin > _MERGED_BYTES:
                break
            last, end = last + 1, max(end, offset + count)
        yield first, last, end
        first = last


def _shorter(where: str, name: str, more: str = "") -> StoreError:
    if where and where != name:
        return StoreError(f"{where} ends behind the end of {name}, which has become shorter{more}")
    return StoreError(f"{name} has become shorter while it was read{more}")


def open_file(place: str | os.PathLike, *, follow_links: bool = True) -> RandomAccess:
    """The file at a path or a URL, opened. Raises StoreError where there is none, or no plain one."""
    name = os.fspath(place)
    if not is_url(name):
        return open_local(name, follow_links=follow_links)
    remote = RemoteFile(name)
    remote.size()
    return remote


def open_local(name: str, *, follow_links: bool = True) -> LocalFile:
    """The file at a path, opened for reading, which must stay as it is for as long as it is read."""
    fd = open_plain(name, follow_links=follow_links)
    try:
        return LocalFile(name, fd, told_by(fd, name))
    except BaseException:
        os.close(fd)
        raise


def told_by(fd: int, name: str) -> str:
    """What tells an open file from what takes its place: size, time, inode, and whether it still has a name."""
    try:
        status = os.fstat(fd)
    except OSError as error:
        raise StoreError(error.errno, f"cannot look at {name}: {error.strerror}") from None
    return f"{_stamp(status)}{'' if status.st_nlink else ' gone'}"


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}"


def open_plain(path: str | os.PathLike, *, follow_links: bool = True) -> int:
    """A descriptor for reading a file that is there and is a plain one."""
    # O_NONBLOCK: a FIFO in the file's place must not make us wait for ever.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
    name = os.fspath(path)
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        raise StoreError(f"{name} is missing") from None
    except OSError as error:
        if not follow_links and os.path.islink(path):
            raise StoreError(f"{name} is a symbolic link; shards must be plain files") from None
        raise StoreError(error.errno, f"cannot open {name}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreError(f"{name} cannot be used: it is not a plain file")
    return fd


def fingerprint_of(places: Iterable[str]) -> str:
    """A digest of the names, sizes and times of files and folders, or of what servers say of them instead."""
    digest = hashlib.sha256()
    for place in places:
        if is_url(place):
            said = _stamp_of(place)
        else:
            try:
                status = os.stat(place)
            except OSError as error:
                raise StoreError(error.errno, f"cannot look at {place}: {error.strerror}") from None
            said = _stamp(status)
        digest.update(f"{without_password(place)}\0{said}\n".encode(errors="replace"))
    return digest.hexdigest()


def _stamp_of(url: str) -> str:
    name, place = without_password(url), object_place(url)
    return str(asked(name, "look at", name, lambda: place.stamp("")))


# -- folders ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """What a folder has under a name."""

    name: str
    place: str
    """Its path or URL."""
    is_folder: bool
    is_link: bool = False
    """Whether it is a symbolic link."""


def joined(folder: str, name: str) -> str:
    """The place of a name in a folder."""
    return below(folder, name) if is_url(folder) else os.path.join(folder, name)


def is_file(place: str) -> bool:
    """Whether there is a file."""
    return RemoteFile(place).exists() if is_url(place) else os.path.lexists(place) and not os.path.isdir(place)


def exists_in(folder: str, name: str) -> bool:
    """Whether a folder has a file of this name."""
    place = joined(folder, name)
    return RemoteFile(place).exists() if is_url(folder) else os.path.lexists(place)


def lists_folders(place: str) -> bool:
    """Whether `entries_in` can look into folders there."""
    return not is_http(place)


def entries_in(folder: str) -> list[Entry]:
    """What a folder holds, by name; hidden names left out. Raises StoreError where that cannot be told."""
    if not is_url(folder):
        try:
            with os.scandir(folder) as entries:
                found = [Entry(one.name, one.path, one.is_dir(), one.is_symlink()) for one in entries]
        except OSError as error:
            raise StoreError(error.errno, f"cannot look into {folder}: {error.strerror}") from None
    else:
        found = [Entry(name, joined(folder, name), is_folder) for name, is_folder in _children(folder).items()]
    return sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)


def _children(folder: str) -> dict[str, bool]:
    name = without_password(folder)
    if is_http(folder):
        raise StoreError(errno.ENOTSUP, f"{name} cannot be looked into: web servers list no folders; name one file")
    place = object_place(folder)
    found = asked(name, "look into", name, lambda: place.children("")) or {}
    if len(found) > _MOST_ENTRIES:
        raise StoreError(f"{name} holds more than {_MOST_ENTRIES} names")
    for child in found:
        if child in ("", ".", "..") or "/" in child or "\0" in child:
            raise StoreError(f"{name} holds the name {child!r}, which is no file's")
    return found
