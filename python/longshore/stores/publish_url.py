"""Publication at a URL: an output is made in a local temporary folder and uploaded once it is complete.

Nothing can be renamed in an object store, so a folder's chunks are uploaded first and the documents that make a reader
find it last, the root's at the very end. A single file is one object, which appears when its upload is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import wait
from typing import Any

from ..errors import ArgumentError, LongshoreError, NotInstalledError, StoreError, VerificationError
from .layout_json import NAME as LAYOUT_JSON
from .layout_json import SHARD_NAME, parse_layout_json
from .npy import MAGIC as NPY_MAGIC
from .object_places import CLOUD, refused, without_password
from .own_files import LONGEST_DOCUMENT, STORES_ROOTS, OwnFiles
from .places import Place
from .publish import STORES_FILES, Publication, add_to, is_full, is_store, sync_folder
from .safetensors_header import INDEX_SUFFIX
from .shard_folders import SINGLE
from .worker_threads import WorkerThreads

_MARKER = ".longshore-upload"
"""An object that lies beside an unfinished upload, and holds the hidden name of what is uploaded."""
_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", LAYOUT_JSON)
_THREADS = 8
_PIECE_BYTES = 8 << 20
_LONGEST_LAYOUT = 64 << 20
_LONGEST_HEAD = 1 << 10
_LARGER_DISK = "what is uploaded is made there first: set TMPDIR to a larger disk"


def publication_of(
    place: Place, *, folder: bool, force: bool, verify: bool = False, watcher: Any = None
) -> Publication:
    """The publication of a destination. `watcher` is told how far uploads are, and copies of what is there; `verify`:
    whether every object that is uploaded is read back."""
    if place.is_added:
        from .hdf5_additions import Addition

        return Addition(place, force=force, watcher=watcher)
    if not place.is_url:
        return Publication(place.publish_path, folder=folder, force=force)
    return UrlPublication(place, folder=folder, force=force, verify=verify, watcher=watcher)


def refuse_url_overlap(source: Place, destination: Place, files: Iterable[str] = ()) -> None:
    """The source is never touched: the destination may not be it, lie in it, or hold it. `files`: URLs of others that
    belong to the source."""
    system, ours = _named(destination.path)
    for url in (source.path, *files):
        other, theirs = _named(url)
        if system == other and (ours.startswith(theirs) or theirs.startswith(ours)):
            raise StoreError(f"{destination.text} is the source itself, lies inside it or holds it; name another place")


def _named(url: str) -> tuple[Any, str]:
    """The file system of a URL and the name that it has for what is there, which several URLs may mean: with "/" at the
    end. Where fsspec does not know it, the URL's scheme and the rest of it."""
    scheme, _, rest = url.partition("://")
    try:
        import fsspec

        system = fsspec.get_filesystem_class(scheme)
        name = system._strip_protocol(url)
    except (ImportError, ValueError):
        system, name = scheme, rest
    return system, f"{name.rstrip('/')}/"


class UrlPublication(Publication):
    """The URL where a store will appear. What is hidden while it is made lies in a folder of the user's own among the
    temporary files (TMPDIR says where), so that a later run can remove it, or go on with it.

    With `force` an object takes the place of an object, and a store that of a store: its metadata is deleted before the
    upload, and after it the keys that the new one does not have. If that upload fails the old store is lost."""

    def __init__(self, place: Place, *, folder: bool, force: bool, verify: bool = False, watcher: Any = None) -> None:
        if place.path.startswith(("http://", "https://")):
            raise ArgumentError(
                f"{place.text}: stores are read over HTTP and not written, for HTTP has no uploads of whole stores; "
                "name a bucket (s3://, gs://) or a folder"
            )
        staging = os.path.join(tempfile.gettempdir(), f"longshore-{os.getuid()}")
        name = "upload-" + hashlib.sha256(place.publish_path.encode()).hexdigest()[:32]
        super().__init__(os.path.join(staging, name), folder=folder, force=force)
        self.called = without_password(place.publish_path)
        self._part_of_store = bool(place.created)
        self._verify, self._watcher = verify, watcher
        self._uploads = False
        self._fs, self._root = self._open(place.publish_path)

    def check(self) -> None:
        """Refuses a destination that cannot or must not be written. Writes nothing there."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.parent, 0o700)
        status = os.lstat(self.parent)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise StoreError(
                f"{self.parent} is not a folder that only this user can write; set TMPDIR to another place"
            )
        super().check()
        self._existing()

    def check_space(self, needed: int) -> None:
        try:
            super().check_space(needed)
        except StoreError as error:
            raise StoreError(error.errno, f"{error.strerror}; {_LARGER_DISK}") from None

    def _name_destination(self, error: LongshoreError) -> None:
        """Says of a full disk which one it is."""
        super()._name_destination(error)
        if not isinstance(error, OSError) or self._uploads or _LARGER_DISK in str(error):
            return
        if is_full(error):
            add_to(error, f"the disk of {self.parent} is full, and {_LARGER_DISK}")

    def publish(self) -> None:
        """Uploads what has been made. On an error what was uploaded is deleted again."""
        assert self.partial is not None
        if self.folder:
            sync_folder(self.partial)
        self._uploads = True
        old = self._existing()
        new = self._made(self.partial)
        marker = f"{self._root}/{_MARKER}"
        others = [key for key in old if key not in new and key != marker]
        if others and not self.force:
            raise StoreError(f"{self._shown(min(others))} has appeared meanwhile; it is not replaced")
        if self._watcher is not None:
            self._watcher.phase("uploading", sum(map(os.path.getsize, new.values())))
        if self.folder:
            name = os.path.basename(self.partial).encode()
            self._call("write", marker, lambda: self._fs.pipe_file(marker, name))
        begun: list[str] = []
        arrived: set[str] = set()
        try:
            for key in sorted(filter(_is_metadata, old), key=_upload_order, reverse=True) if self.folder else ():
                self._delete(key)
            below = f"{self._root}/"
            metadata = sorted(filter(_is_metadata, new), key=_upload_order)
            root = [key for key in metadata if "/" not in key.removeprefix(below)]
            self._upload({key: new[key] for key in new if not _is_metadata(key)}, begun, arrived)
            self._upload({key: new[key] for key in metadata if key not in root}, begun, arrived)
            for key in root:
                self._upload({key: new[key]}, begun, arrived)
            for key in old:
                if key not in new and key != marker:
                    self._delete(key)
        except BaseException:
            self._take_back(begun, arrived, old, marker)
            raise
        if self.folder:
            self._delete(marker)
        self.discard()

    # -- what is there ----------------------------------------------------------------------------------------------

    def _existing(self) -> dict[str, int]:
        """The keys of what is to be replaced, with their sizes; refused where that must not be."""
        found = self._list()
        if not found:
            return found
        unfinished = f"{self._root}/{_MARKER}" in found
        is_own = unfinished and self._is_own_upload()
        goes_on = is_own and self.resumes
        if self._part_of_store and not goes_on:
            raise StoreError(f"{self.called} exists already, and what else it holds would be lost; name another store")
        if not self.force and not goes_on:
            what = "holds an unfinished upload of this or another run" if unfinished else "exists already"
            how = "go on with it with --resume (in Python resume=True), " if is_own else ""
            raise StoreError(
                f"{self.called} {what}; {how}name another place, or replace it with --force (in Python force=True)"
            )
        if (self._root in found) == self.folder or (not self.folder and len(found) > 1):
            was, wanted = ("n object", " folder") if self._root in found else (" folder", "n object")
            raise StoreError(f"{self.called} is a{was}; it is not replaced by a{wanted}")
        if self.folder:
            self._check_replaceable([key[len(self._root) + 1 :] for key in found], unfinished)
        return found

    def _is_own_upload(self) -> bool:
        """Whether the upload that has not been finished is of a hidden output that is still here."""
        marker = f"{self._root}/{_MARKER}"
        told = self._call("read", marker, lambda: self._fs.cat_file(marker, start=0, end=_LONGEST_HEAD))
        return self.was_left(bytes(told).decode(errors="replace"))

    def _check_replaceable(self, names: list[str], unfinished: bool) -> None:
        """Raises StoreError where a prefix holds no store, or anything besides."""
        of_shards = LAYOUT_JSON in names
        own = {_MARKER}
        if not of_shards and not unfinished and is_store(names):
            files = OwnFiles(names, self._documents(names).get)
            foreign = [name for name in names if not files.has(name)]
        else:
            for name in [LAYOUT_JSON] if of_shards else [name for name in names if name.endswith(f"/{LAYOUT_JSON}")]:
                own |= self._files_of_shards(name)
            foreign = [
                name
                for name in names
                if name not in own
                and not (unfinished and not of_shards and _may_be_of_store(name))
                and not (not of_shards and name.endswith(SINGLE) and self._is_single(f"{self._root}/{name}"))
            ]
        if foreign:
            raise StoreError(
                f"{self.called} holds {min(foreign)!r}, which is not of a store that can be replaced; move that away "
                "first, or name another place"
            )

    def _documents(self, names: list[str]) -> dict[str, bytes]:
        """What tells which files a store has, by name."""

        def read(name: str) -> bytes:
            key = f"{self._root}/{name}"
            return bytes(self._call("read", key, lambda: self._fs.cat_file(key, start=0, end=LONGEST_DOCUMENT)))

        of_root = [name for name in names if "/" not in name and name.endswith(INDEX_SUFFIX)]
        wanted = [*of_root, *(name for name in names if name.rpartition("/")[2] in STORES_ROOTS)]
        with WorkerThreads(_THREADS, "longshore-look") as pool:
            return dict(zip(wanted, pool.map(read, wanted)))

    def _files_of_shards(self, name: str) -> set[str]:
        """A `layout.json` and the shards that it names, as names below the root."""
        key = f"{self._root}/{name}"
        raw = self._call("read", key, lambda: self._fs.cat_file(key, start=0, end=_LONGEST_LAYOUT))
        told = parse_layout_json(bytes(raw), self._shown(key))
        return {name, *(name.removesuffix(LAYOUT_JSON) + shard for shard in told.shards)}

    def _is_single(self, key: str) -> bool:
        """Whether an object is a `.npy` file of one element without dimensions."""
        head = bytes(self._call("read", key, lambda: self._fs.cat_file(key, start=0, end=_LONGEST_HEAD)))
        return head.startswith(NPY_MAGIC) and b"'shape': ()" in head

    def _list(self) -> dict[str, int]:
        """What lies at the URL or below it, never what only begins with the same letters."""

        def look() -> dict[str, int]:
            self._fs.invalidate_cache()
            try:
                found = self._fs.find(self._root, detail=True)
            except FileNotFoundError:
                return {}
            return {
                key: int(info.get("size") or 0)
                for key, info in found.items()
                if key == self._root or key.startswith(f"{self._root}/")
            }

        keys: dict[str, int] = self._call("list", self._root, look)
        return keys

    # -- uploading --------------------------------------------------------------------------------------------------

    def _made(self, place: str) -> dict[str, str]:
        """The local file of each key."""
        if not self.folder:
            return {self._root: place}
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names]
        return {f"{self._root}/{os.path.relpath(path, place)}": path for path in paths}

    def _upload(self, files: dict[str, str], begun: list[str], arrived: set[str]) -> None:
        """Uploads files side by side, and looks at what has arrived. Adds the keys to `begun`, and once the store has
        taken them to `arrived`."""

        def put(key: str) -> None:
            begun.append(key)
            self._call("write", key, lambda: self._fs.put_file(files[key], key))
            arrived.add(key)
            if self._verify:
                self._call("read", key, lambda: self._compare(files[key], key))
            if self._watcher is not None:
                self._watcher.advance(os.path.getsize(files[key]))

        with WorkerThreads(_THREADS, "longshore-upload") as pool:
            tasks = [pool.submit(put, key) for key in files]
            try:
                for task in tasks:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                wait(tasks)
        sizes = self._list()
        for key, path in files.items():
            if sizes.get(key) != os.path.getsize(path):
                raise StoreError(
                    f"{self._shown(key)} has {sizes.get(key, 'no')} bytes after {os.path.getsize(path)} were uploaded"
                )

    def _compare(self, path: str, key: str) -> None:
        """Reads an object back."""
        with open(path, "rb") as file:
            start = 0
            while piece := file.read(_PIECE_BYTES):
                if self._fs.cat_file(key, start=start, end=start + len(piece)) != piece:
                    raise VerificationError(f"verification failed: {self._shown(key)} does not hold what was uploaded")
                start += len(piece)

    def _take_back(self, begun: Iterable[str], arrived: Collection[str], old: dict[str, int], marker: str) -> None:
        """Deletes what this run has uploaded, what a reader looks for first. The marker stays where a part of an old
        store does, so that this can be replaced."""
        left = bool(old)
        for key in sorted(begun, key=_upload_order, reverse=True):
            if not self.folder and old and key not in arrived:
                continue  # one object replaces another at once, and this one has not: the old one is there
            try:
                self._delete(key)
            except LongshoreError:
                left = True  # the error that led here is the one to tell
        if self.folder and not left:
            with contextlib.suppress(LongshoreError):
                self._delete(marker)

    def _delete(self, key: str) -> None:
        def remove() -> None:
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(key)

        self._call("delete", key, remove)

    # -- the library ------------------------------------------------------------------------------------------------

    def _open(self, url: str) -> tuple[Any, str]:
        try:
            import fsspec

            fs, path = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise NotInstalledError(
                f"writing to {self.called} needs fsspec and its library for it ({error}): {CLOUD}"
            ) from None
        except Exception as error:  # each kind of place has its own errors
            raise refused("open", self.called, error) from None
        root = path.rstrip("/")
        if "/" not in root:
            raise ArgumentError(f"{self.called} is a whole bucket; name a place in it")
        return fs, root

    def _shown(self, key: str) -> str:
        return self.called + key[len(self._root) :]

    def _call(self, what: str, key: str, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:  # each kind of place has its own errors
            raise refused(what, self._shown(key), error) from None


def _is_metadata(key: str) -> bool:
    """Whether a reader finds a store, or an array in it, by this key."""
    name = key.rpartition("/")[2]
    return name in _METADATA or name.endswith(".safetensors.index.json")


def _upload_order(key: str) -> tuple[bool, int, str]:
    """Chunks before metadata, and metadata from the deepest to the root."""
    return _is_metadata(key), -key.count("/"), key


def _may_be_of_store(name: str) -> bool:
    """Whether a key is called as one of an unfinished upload can be, for nothing tells yet which ones there are."""
    base = name.rpartition("/")[2]
    return bool(STORES_FILES.fullmatch(base) or SHARD_NAME.fullmatch(base))
