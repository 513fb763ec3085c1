"""Objects at URLs, through fsspec, or through obstore where fsspec or what it needs for the URL is not installed.

What a server sends is never more than was asked for: of a web server that sends the whole file where a part is asked
for, no more than that part is taken in, and what does not begin where it should is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from ..errors import NotInstalledError, StoreError

CLOUD = "pip install 'longshore[cloud]', and s3fs for s3://, gcsfs for gs://"
"""What installs what URLs need."""
_PASSWORD = re.compile(r"(://[^/@:\s]*):[^/\s]*@")
_QUERY = re.compile(r"(https?://[^\s?]*)\?[^\s]*?=[^\s]*?(?=::|[:,;'\")]*(?:\s|$))")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,19})-\d{1,19}|\*)/(\d{1,19}|\*)")
_PIECE_BYTES = 1 << 20
_STAMPS = ("size", "ETag", "etag", "mtime", "LastModified", "created", "generation", "last_modified")
_NO_RANGES = "its server sends the whole file where a part of it is asked for; copy the file to a disk first"

Result = TypeVar("Result")


def is_url(place: str) -> bool:
    """Whether a place is named by a URL, "s3://bucket/era5.zarr", and not by a path."""
    return _URL.match(place) is not None


def is_http(place: str) -> bool:
    """Whether a URL is a web server's, which lists no folders."""
    return place.lower().startswith(("http://", "https://"))


def without_password(text: str) -> str:
    """A URL, or a message with URLs, without their passwords, and without the queries that sign URLs."""
    return _QUERY.sub(r"\1?...", _PASSWORD.sub(r"\1@", text))


def without_query(url: str) -> str:
    """A web server's URL without what follows the path of its file; any other place as it is."""
    return url.partition("?")[0] if is_http(url) else url


def below(url: str, name: str) -> str:
    """The URL of a name in a folder. Of a web server's, letters of the name that would mean something else are quoted,
    and the query stays at its end."""
    place = without_query(url)
    said = quote(name) if is_http(url) else name
    return f"{place.rstrip('/')}/{said}{url[len(place) :]}" if name else url


class ObjectPlace(Protocol):
    """Objects below a URL, by keys; the key "" is the object at the URL itself. Methods raise what their library
    raises: FileNotFoundError where an object is missing."""

    def get(self, key: str, limit: int) -> bytes:
        """What an object holds, up to a limit."""

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Bytes from `start` on. As many as were asked for, unless the object ends before or its server errs."""

    def put(self, key: str, data: memoryview) -> None: ...

    def size(self, key: str) -> int | None:
        """None: there is no such object, though something has its name."""

    def stamp(self, key: str) -> str | None:
        """Something that differs once an object has been written again."""

    def children(self, key: str) -> dict[str, bool]:
        """The names right below a key, and whether each is a folder."""


def object_place(url: str) -> ObjectPlace:
    """The objects below a URL. Raises StoreError, and NotInstalledError where no library is there for it."""
    missing = ""
    for library in (_of_fsspec, _Obstore):
        try:
            return library(url)
        except ImportError as error:
            missing = missing or str(error)
        except Exception as error:
            raise refused("open", without_password(url), error) from None
    raise NotInstalledError(
        f"{without_password(url)} needs fsspec, or obstore, and what they need for it ({missing}): {CLOUD}"
    )


def asked(name: str, what: str, where: str, action: Callable[[], Result]) -> Result | None:
    """What a place answers; None where nothing is there. `name` is the place, `where` what of it is meant."""
    try:
        return action()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except ImportError as error:
        raise NotInstalledError(f"{name} needs more than is installed ({error}): {CLOUD}") from None
    except Exception as error:  # each library and each kind of place has its own errors
        raise refused(what, where, error) from None


def refused(what: str, place: str, error: Exception) -> StoreError:
    """What a place said no to."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        return StoreError(error.errno, f"cannot {what} {place}: {without_password(str(error.strerror))}")
    first = without_password((str(error).splitlines() or [""])[0])
    return StoreError(f"cannot {what} {place}: {first[:300] or type(error).__name__}")


def _of_fsspec(url: str) -> ObjectPlace:
    import fsspec

    fs, path = fsspec.core.url_to_fs(url)
    return _Http(fs, path) if is_http(url) and hasattr(fs, "set_session") else _Fsspec(fs, path)


class _Fsspec:
    """Objects through fsspec."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs, self._root = fs, path.rstrip("/")

    def _path(self, key: str) -> str:
        return below(self._root, key)

    def get(self, key: str, limit: int) -> bytes:
        return bytes(self._fs.cat_file(self._path(key), start=0, end=limit))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return bytes(self._fs.cat_file(self._path(key), start=start, end=start + length))

    def put(self, key: str, data: memoryview) -> None:
        self._fs.pipe_file(self._path(key), bytes(data))

    def _info(self, key: str) -> dict[str, Any] | None:
        info = self._fs.info(self._path(key))
        return None if info.get("type") == "directory" else info

    def size(self, key: str) -> int | None:
        info = self._info(key)
        return None if info is None else int(info["size"])

    def stamp(self, key: str) -> str | None:
        info = self._info(key)
        return None if info is None else " ".join(str(info.get(what, "")) for what in _STAMPS)

    def children(self, key: str) -> dict[str, bool]:
        root = self._path(key)
        entries = self._fs.ls(root, detail=True)
        self._fs.invalidate_cache()  # or what changes meanwhile would not be seen
        found = {}
        for entry in entries:
            name = entry["name"].rstrip("/")
            if name != root.rstrip("/") and name.lstrip("/") != root.strip("/"):  # some list the folder itself
                found[name.rpartition("/")[2]] = entry["type"] == "directory"
        return found


class _Http(_Fsspec):
    """Files of a web server. fsspec would take in whatever a server sends, so requests are made here, with the sessions
    that fsspec keeps."""

    _told: str | None = None
    """What the server has said of the file at the URL itself: it must say the same ever after."""

    def get(self, key: str, limit: int) -> bytes:
        return self._ask(key, 0, limit)[0]

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._ask(key, start, length)[0]

    def size(self, key: str) -> int | None:
        return self._head(key)[0]

    def stamp(self, key: str) -> str | None:
        size, told = self._head(key)
        return f"{size} {told}"

    def _head(self, key: str) -> tuple[int | None, str]:
        """A file's size and what tells its versions apart: of an answer to GET, which signed URLs allow alone."""
        _, size, told = self._ask(key, 0, 1)
        if size is None:
            raise StoreError(f"{without_password(self._path(key))} cannot be used: its server does not say its size")
        return size, told

    def _ask(self, key: str, start: int, length: int) -> tuple[bytes, int | None, str]:
        from fsspec.asyn import sync

        url = self._path(key)
        data, size, told = sync(self._fs.loop, self._fetch, url, start, length)
        if not key and told:
            if self._told not in (None, told):
                raise StoreError(f"{without_password(url)} has been changed while it was read")
            self._told = told
        return data, size, told

    async def _fetch(self, url: str, start: int, length: int) -> tuple[bytes, int | None, str]:
        """A part of a file, the whole file's size if the server tells it, and its ETag and date."""
        options = dict(self._fs.kwargs)
        own = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
        options["headers"] = {**options.get("headers", {}), **own}
        session = await self._fs.set_session()
        async with session.get(self._fs.encode_url(url), **options) as answer:
            if answer.status in (404, 410):
                raise FileNotFoundError(url)
            told = " ".join(answer.headers.get(name, "") for name in ("ETag", "Last-Modified")).strip()
            place = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            size = int(place[2]) if place and place[2] != "*" else None
            if answer.status == 416:
                return b"", size, told
            answer.raise_for_status()
            encoded = answer.headers.get("Content-Encoding", "identity") not in ("", "identity")
            if answer.status != 206:
                if start:
                    raise StoreError(f"{without_password(url)} cannot be read in parts: {_NO_RANGES}")
                size = None if encoded else answer.content_length
            elif encoded or (place and place[1] is not None and int(place[1]) != start):
                raise StoreError(f"{without_password(url)}: its server sent another part than was asked for")
            data = bytearray()
            while len(data) < length and (piece := await answer.content.read(min(_PIECE_BYTES, length - len(data)))):
                data += piece
            if answer.status == 206 and len(data) == length and await answer.content.read(1):
                raise StoreError(f"{without_password(url)}: its server sent more than was asked for")
        return bytes(data), size, told


class _Obstore:
    """Objects through obstore."""

    def __init__(self, url: str) -> None:
        import obstore
        from obstore.store import from_url

        self._library = obstore
        # The last name is a part of every key, so that there is one for the object at the URL itself.
        root, _, self._last = url.rpartition("/")
        if root.endswith(":/"):  # a whole bucket, or a whole server
            root, self._last = url, ""
        plain = url.startswith("http://")
        self._store = from_url(root, client_options={"allow_http": True}) if plain else from_url(root)

    def _path(self, key: str) -> str:
        return "/".join(word for word in (self._last, key) if word)

    def get(self, key: str, limit: int) -> bytes:
        pieces = bytearray()
        for piece in self._library.get(self._store, self._path(key)).stream():
            pieces += memoryview(piece)
            if len(pieces) >= limit:
                break
        return bytes(pieces)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return bytes(self._library.get_range(self._store, self._path(key), start=start, length=length))

    def put(self, key: str, data: memoryview) -> None:
        self._library.put(self._store, self._path(key), bytes(data))

    def size(self, key: str) -> int:
        return int(self._library.head(self._store, self._path(key))["size"])

    def stamp(self, key: str) -> str:
        head = self._library.head(self._store, self._path(key))
        return f"{head['size']} {head['e_tag']} {head['last_modified']}"

    def children(self, key: str) -> dict[str, bool]:
        found = self._library.list_with_delimiter(self._store, self._path(key))
        names = {path.rstrip("/").rpartition("/")[2]: True for path in found["common_prefixes"]}
        return names | {entry["path"].rpartition("/")[2]: False for entry in found["objects"]}
