"""Objects at URLs, through fsspec, or through obstore where fsspec or what it needs for the URL is not installed.

What a web server or a bucket sends is never more than was asked for: where it sends the whole file in place of a part,
no more than that part is taken in, and what does not begin where it should is refused.
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from ..errors import NotInstalledError, StoreError

CLOUD = "pip install 'longshore[cloud]', and s3fs for s3://, gcsfs for gs://, aiohttp for http://"
"""What installs what URLs need."""
_PASSWORD = re.compile(r"(://[^/@:\s]*):[^/\s]*@")
_QUERY = re.compile(r"(https?://[^\s?]*)\?[^\s]*?=[^\s]*?(?=::|[:,;'\")]*(?:\s|$))")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,19})-\d{1,19}|\*)/(\d{1,19}|\*)")
_PIECE_BYTES = 1 << 20
_ROOM_BYTES = 8 << 20  # that there is at once for an answer, so that it need not be moved while it grows
_STAMPS = ("size", "ETag", "etag", "mtime", "LastModified", "created", "generation", "last_modified")
_TRIES, _FIRST_WAIT = 4, 0.2  # of a request whose connection is lost, and seconds before it is made again
_BUSY = (429, 500, 502, 503, 504)
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

    told: str
    """What tells the versions of the object at the URL itself apart, as it was told first; "" before it is. Parts of
    any other version are refused."""

    def get(self, key: str, limit: int) -> bytes | bytearray:
        """What an object holds, up to a limit."""

    def get_range(self, key: str, start: int, length: int) -> bytes | bytearray:
        """Bytes from `start` on. As many as were asked for, unless the object ends before or its server errs."""

    def put(self, key: str, data: memoryview) -> None: ...

    def size(self, key: str) -> int | None:
        """None: there is no such object, though something has its name."""

    def stamp(self, key: str) -> str | None:
        """Something that differs once an object has been written again."""

    def stamps(self, key: str) -> dict[str, str]:
        """What `stamp` says, or what it could, of every object below a key; of none where the place lists nothing."""

    def children(self, key: str) -> dict[str, bool]:
        """The names right below a key, and whether each is a folder."""

    def check(self) -> None:
        """Raises StoreError where the object at the URL itself, of which some has been read, is another one by now."""


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


def changed(name: str) -> StoreError:
    """For a file that is no longer what it was."""
    return StoreError(
        f"{name} has been changed while it was read, or after it was opened; open it again once nobody writes it"
    )


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
    if is_http(url) and hasattr(fs, "set_session"):
        return _Http(fs, path)
    if url.lower().startswith(("s3://", "s3a://")) and hasattr(fs, "_call_s3"):
        return _S3(fs, path)
    return _Fsspec(fs, path)


class _Fsspec:
    """Objects through fsspec."""

    told = ""
    _looked = False
    """Whether it is known which version of the object at the URL itself is there; looked for once."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs, self._root = fs, path.rstrip("/")

    def _path(self, key: str) -> str:
        return below(self._root, key)

    def get(self, key: str, limit: int) -> bytes | bytearray:
        return bytes(self._fs.cat_file(self._path(key), start=0, end=limit))

    def get_range(self, key: str, start: int, length: int) -> bytes | bytearray:
        if not key and not self._looked:
            self._looked = True
            self._must_be(self.stamp("") or "")
        return bytes(self._fs.cat_file(self._path(key), start=start, end=start + length))

    def _must_be(self, told: str) -> None:
        """Raises StoreError where the object at the URL itself is another one than that which was there first."""
        if told and self.told not in ("", told):
            raise changed(without_password(self._path("")))
        self.told = told or self.told

    def check(self) -> None:
        if self._looked:  # no answer to a request for bytes says which version they are of
            self._must_be(self.stamp("") or "")

    def put(self, key: str, data: memoryview) -> None:
        self._fs.pipe_file(self._path(key), bytes(data))

    def _info(self, key: str) -> dict[str, Any] | None:
        path = self._path(key)
        self._fs.invalidate_cache(path)  # or what has changed since its folder was listed would not be seen
        info = self._fs.info(path)
        return None if info.get("type") == "directory" else info

    def size(self, key: str) -> int | None:
        info = self._info(key)
        return None if info is None else int(info["size"])

    def stamp(self, key: str) -> str | None:
        info = self._info(key)
        return None if info is None else _stamp(info)

    def stamps(self, key: str) -> dict[str, str]:
        self._fs.invalidate_cache()
        found = self._fs.find(self._path(key), detail=True)
        self._fs.invalidate_cache()  # or what changes meanwhile would not be seen
        return {path: _stamp(info) for path, info in found.items()}

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


def _stamp(info: Mapping[str, Any]) -> str:
    return " ".join(str(info.get(what, "")) for what in _STAMPS)


class _Part(NamedTuple):
    """What a server has sent of a file."""

    data: bytearray
    size: int | None
    """The whole file's, if the server tells it."""
    told: str
    """What tells the file's versions apart: its ETag and date."""


class _InParts(_Fsspec):
    """Files of which parts are asked here, with the sessions that fsspec keeps: it would take in whatever is sent."""

    def get(self, key: str, limit: int) -> bytearray:
        return self._ask(key, 0, limit).data

    def check(self) -> None:
        """Every answer with bytes says which version they are of, and has been looked at."""

    def get_range(self, key: str, start: int, length: int) -> bytearray:
        return self._ask(key, start, length).data

    def _ask(self, key: str, start: int, length: int) -> _Part:
        from fsspec.asyn import sync

        place = self._path(key)
        part: _Part = sync(self._fs.loop, self._asked, place, start, length)
        if not key:
            self._must_be(part.told)
        return part

    async def _asked(self, place: str, start: int, length: int) -> _Part:
        """A part, asked for again where the connection is lost or the server is busy."""
        import asyncio  # which a process that reads no URLs is spared

        for waits in range(_TRIES - 1):
            try:
                return await self._fetch(place, start, length)
            except Exception as error:
                if not self._may_pass(error):
                    raise
            await asyncio.sleep(_FIRST_WAIT * 4**waits)
        return await self._fetch(place, start, length)

    @abstractmethod
    async def _fetch(self, place: str, start: int, length: int) -> _Part:
        """A part of a file."""

    @abstractmethod
    def _may_pass(self, error: Exception) -> bool:
        """Whether a request may do better when it is made again."""


class _Http(_InParts):
    """Files of a web server."""

    def size(self, key: str) -> int | None:
        return self._head(key)[0]

    def stamp(self, key: str) -> str | None:
        size, told = self._head(key)
        return f"{size} {told}"

    def stamps(self, key: str) -> dict[str, str]:
        return {}

    def _head(self, key: str) -> tuple[int, str]:
        """A file's size and what tells its versions apart: of an answer to GET, which signed URLs allow alone."""
        part = self._ask(key, 0, 1)
        if part.size is None:
            raise StoreError(f"{without_password(self._path(key))} cannot be used: its server does not say its size")
        return part.size, part.told

    async def _fetch(self, place: str, start: int, length: int) -> _Part:
        options = dict(self._fs.kwargs)
        own = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
        options["headers"] = {**options.get("headers", {}), **own}
        session = await self._fs.set_session()
        async with session.get(self._fs.encode_url(place), **options) as answer:
            if answer.status in (404, 410):
                raise FileNotFoundError(place)
            told = " ".join(answer.headers.get(name, "") for name in ("ETag", "Last-Modified")).strip()
            said = answer.headers.get("Content-Range", "")
            if answer.status == 416:
                found = _CONTENT_RANGE.fullmatch(said)
                return _Part(bytearray(), int(found[2]) if found and found[2] != "*" else None, told)
            answer.raise_for_status()
            encoded = answer.headers.get("Content-Encoding", "identity") not in ("", "identity")
            if encoded and (start or answer.status == 206):
                raise StoreError(f"{without_password(place)} cannot be read in parts: its server compresses it")
            size = _checked(place, start, said if answer.status == 206 else None, answer.content_length)
            data = await _taken(place, answer.content.read, length, answer.status == 206, answer.content_length)
        return _Part(data, None if encoded else size, told)

    def _may_pass(self, error: Exception) -> bool:
        import asyncio

        import aiohttp

        if isinstance(error, aiohttp.ClientResponseError):
            return error.status in _BUSY
        lost = (aiohttp.ClientPayloadError, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
        return isinstance(error, (*lost, asyncio.TimeoutError)) and not isinstance(error, aiohttp.ClientConnectorError)


class _LostError(Exception):
    """A connection was lost while an answer was read."""


class _S3(_InParts):
    """Objects of a bucket, through s3fs, which makes requests again that are not answered."""

    async def _fetch(self, place: str, start: int, length: int) -> _Part:
        import asyncio

        from aiohttp import ClientError
        from botocore.exceptions import HTTPClientError, IncompleteReadError

        bucket, name, version = self._fs.split_path(place)
        words = {"Bucket": bucket, "Key": name, "Range": f"bytes={start}-{start + length - 1}"}
        if version is not None:
            words["VersionId"] = version
        answer = await self._fs._call_s3("get_object", **words)
        body = answer["Body"]
        try:
            is_part = answer["ResponseMetadata"]["HTTPStatusCode"] == 206
            said = answer.get("ContentRange", "") if is_part else None
            size = _checked(place, start, said, answer.get("ContentLength"))
            data = await _taken(place, body.read, length, is_part, answer.get("ContentLength"))
            return _Part(data, size, answer.get("ETag", ""))
        except (ClientError, HTTPClientError, IncompleteReadError, asyncio.TimeoutError) as error:
            raise _LostError(str(error)) from None
        finally:
            body.close()

    def _may_pass(self, error: Exception) -> bool:
        return isinstance(error, _LostError)


def _checked(place: str, start: int, said: str | None, length: int | None) -> int | None:
    """The size of a file, of which a server sends a part and says which (None: it sends the whole file, of this length,
    if it tells one). Raises StoreError where that does not begin at `start`."""
    if said is None:
        if start:
            raise StoreError(f"{without_password(place)} cannot be read in parts: {_NO_RANGES}")
        return length
    found = _CONTENT_RANGE.fullmatch(said)
    if found is None:
        return None
    if found[1] is not None and int(found[1]) != start:
        raise StoreError(f"{without_password(place)}: its server sent another part than was asked for")
    return int(found[2]) if found[2] != "*" else None


async def _taken(
    place: str, read: Callable[[int], Awaitable[bytes]], length: int, is_part: bool, told: int | None
) -> bytearray:
    """At most so many bytes of an answer, which is `told` to have so many. Raises StoreError where a part is longer."""
    data, done = bytearray(max(0, min(length, told or 0, _ROOM_BYTES))), 0
    while done < length and (piece := await read(min(_PIECE_BYTES, length - done))):
        data[done : done + len(piece)] = piece  # within the room that there is, or behind it
        done += len(piece)
    del data[done:]
    if is_part and done == length and await read(1):
        raise StoreError(f"{without_password(place)}: its server sent more than was asked for")
    return data


class _Obstore:
    """Objects through obstore."""

    told = ""

    def __init__(self, url: str) -> None:
        import obstore
        from obstore.store import from_url

        self._library, self._url = obstore, url
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
        for piece in self._asked(key).stream():
            pieces += memoryview(piece)
            if len(pieces) >= limit:
                break
        return bytes(pieces)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return bytes(self._asked(key, {"range": (start, start + length)}).bytes())

    def _asked(self, key: str, options: dict[str, Any] | None = None) -> Any:
        """An answer. Raises StoreError where the object at the URL itself has been changed since the first one."""
        answer = self._library.get(self._store, self._path(key), options=options)
        told = f"{answer.meta['e_tag'] or ''} {answer.meta['last_modified']}"
        if not key and self.told not in ("", told):
            raise changed(without_password(self._url))
        self.told = told if not key else self.told
        return answer

    def check(self) -> None:
        """Every answer with bytes says which version they are of, and has been looked at."""

    def put(self, key: str, data: memoryview) -> None:
        self._library.put(self._store, self._path(key), bytes(data))

    def size(self, key: str) -> int:
        return int(self._library.head(self._store, self._path(key))["size"])

    def stamp(self, key: str) -> str:
        head = self._library.head(self._store, self._path(key))
        return f"{head['size']} {head['e_tag']} {head['last_modified']}"

    def stamps(self, key: str) -> dict[str, str]:
        listed = itertools.chain.from_iterable(self._library.list(self._store, self._path(key)))
        return {entry["path"]: f"{entry['size']} {entry['e_tag']} {entry['last_modified']}" for entry in listed}

    def children(self, key: str) -> dict[str, bool]:
        found = self._library.list_with_delimiter(self._store, self._path(key))
        names = {path.rstrip("/").rpartition("/")[2]: True for path in found["common_prefixes"]}
        return names | {entry["path"].rpartition("/")[2]: False for entry in found["objects"]}
