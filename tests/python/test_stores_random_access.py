"""Files read at any offset: runs and large parts, of a disk and of URLs, and what servers and names may do to it."""

from __future__ import annotations

import contextlib
import tracemalloc

import longshore as ls
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from longshore.errors import StoreError
from longshore.stores import object_places, random_access
from longshore.stores.layout_json import encode_layout_json
from longshore.stores.random_access import LocalFile, RemoteFile, open_plain
from s3_server import empty_bucket
from web_server import serving

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_runs_are_the_same_from_a_disk_and_from_a_url(tmp_path_factory, data):
    size = data.draw(st.integers(1, 5000))
    raw = np.random.default_rng(size).bytes(size)
    path = tmp_path_factory.mktemp("runs") / "a"
    path.write_bytes(raw)
    fsspec.filesystem("memory").pipe_file("/read-runs/a", raw)
    limits = {"_GAP_BYTES": data.draw(st.integers(0, 64)), "_MERGED_BYTES": data.draw(st.integers(1, 512))}
    limits["_REQUEST_BYTES"] = data.draw(st.integers(1, 512))
    length = data.draw(st.integers(1, size))
    starts = data.draw(st.lists(st.integers(0, size + 3 - length), min_size=1, max_size=20).map(sorted))
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(random_access, name, limit)
        results = []
        for file in (LocalFile(str(path), open_plain(path)), RemoteFile("memory://read-runs/a")):
            out = bytearray(length * len(starts))
            try:
                with file:
                    assert file.size() == size and file.start(7) == raw[:7]
                    file.read_runs(starts, memoryview(out))
                    assert file.read(length, starts[0]) == raw[starts[0] : starts[0] + length]
                results.append(bytes(out))
            except StoreError as error:
                assert "shorter" in str(error)
                results.append(None)
    assert results[0] == results[1]
    if results[0] is not None:
        assert results[0] == b"".join(raw[start : start + length] for start in starts)
    else:
        assert starts[-1] + length > size


def test_a_large_file_of_a_server_without_ranges_is_not_taken_in(tmp_path):
    """What is taken in is counted at the reader's end of the line."""
    size = 1 << 30
    with open(tmp_path / "a.bin", "wb") as file:
        file.truncate(size)
    with serving(tmp_path) as (url, handler):

        def send(self):
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for _ in range(size >> 20):
                    self.wfile.write(bytes(1 << 20))

        handler.do_GET = send
        tracemalloc.start()
        file = RemoteFile(f"{url}/a.bin")
        assert file.size() == size and file.read(100, 0) == bytes(100)
        with pytest.raises(StoreError, match="whole file"):
            file.read(100, 5)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 32 << 20


def test_large_reads_are_made_of_several_requests(monkeypatch):
    raw = np.random.default_rng(3).bytes(10_000)
    fsspec.filesystem("memory").pipe_file("/read-runs/large", raw)
    monkeypatch.setattr(random_access, "_REQUEST_BYTES", 999)
    file = RemoteFile("memory://read-runs/large")
    assert file.read(9000, 7) == raw[7:9007]
    for offset, count in ((7, 10_000), (1 << 40, 1 << 50)):
        with pytest.raises(StoreError, match="shorter"):
            file.read(count, offset)


def test_names_that_a_file_says_stay_in_its_folder(tmp_path):
    """A web server would take quoted slashes and dots for what they are."""
    (tmp_path / "shards").mkdir()
    np.save(tmp_path / "secret.npy", np.arange(4.0))
    layout = ls.Layout("(BLOCK) on 1", (4,))
    names = ["..%2Fsecret.npy", "%2e%2e%2fsecret.npy", "x?y.npy", "a#b.npy", "a b%.npy"]
    with serving(tmp_path) as (url, handler):
        for name in names:
            told = encode_layout_json(layout, (4,), np.dtype("f8"), "C", [name])
            (tmp_path / "shards/layout.json").write_bytes(told)
            with pytest.raises(StoreError, match="missing"):
                ls.open(f"{url}/shards")
            np.save(tmp_path / "shards" / name, np.arange(4.0))
            with ls.open(f"{url}/shards") as opened:
                assert opened.read().tolist() == [0, 1, 2, 3]
        assert not any("secret.npy" in path and not path.startswith("/shards/") for path, _ in handler.asked)


# -- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@h/a.npy?sig=x::u", "https://me@h/a.npy?...::u"),
        ("cannot read http://h/a.npy?a=b&c=d: no", "cannot read http://h/a.npy?...: no"),
        ("is it http://h/a.npy?", "is it http://h/a.npy?"),
        ("s3://b/a?x=1", "s3://b/a?x=1"),
    ],
)
def test_what_messages_show_of_urls(text, shown):
    assert object_places.without_password(text) == shown


# -- buckets, and servers that are busy -------------------------------------------------------------------------------


@pytest.fixture
def kinds(tmp_path, monkeypatch):
    """A file of a web server and of a bucket, which is the same server's, by their URLs."""
    s3fs = pytest.importorskip("s3fs")
    raw = np.random.default_rng(4).bytes(100_000)
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket/a.bin").write_bytes(raw)
    with serving(tmp_path) as (url, handler):
        for name, value in (("ACCESS_KEY_ID", "me"), ("SECRET_ACCESS_KEY", "secret"), ("DEFAULT_REGION", "us-east-1")):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setattr(object_places, "_FIRST_WAIT", 0.001)
        s3fs.S3FileSystem.clear_instance_cache()
        yield {"http": f"{url}/bucket/a.bin", "s3": "s3://bucket/a.bin"}, handler, raw
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_parts_of_servers_that_err(kinds, kind):
    places, handler, raw = kinds
    file = RemoteFile(places[kind])
    assert file.size() == len(raw) and file.read(50_000, 1000) == raw[1000:51_000]
    for fault, message in (
        ({"ranges": False}, "whole file"),
        ({"cut": 1}, "shorter"),
        ({"more": b"x"}, "more than was asked for"),
        ({"shift": 4}, "another part"),
    ):
        before = {name: getattr(handler, name) for name in fault}
        for name, value in fault.items():
            setattr(handler, name, value)
        with pytest.raises(StoreError, match=message):
            file.read(50_000, 1000)
        for name, value in before.items():
            setattr(handler, name, value)
    assert file.read(10, 99_990) == raw[-10:]


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_lost_connections_are_made_again(kinds, kind):
    places, handler, raw = kinds
    file = RemoteFile(places[kind])
    for name in ("losses", "busy"):
        file.size()
        setattr(handler, name, 2)
        assert file.read(50_000, 1000) == raw[1000:51_000]
        assert getattr(handler, name) == 0
    handler.losses = 1000
    with pytest.raises(StoreError, match="cannot read"):
        file.read(50_000, 1000)
    assert handler.losses > 900


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_change_between_two_parts_is_an_error(kinds, kind, tmp_path):
    places, _, raw = kinds
    file = RemoteFile(places[kind])
    assert file.read(5, 7) == raw[7:12]
    (tmp_path / "bucket/a.bin").write_bytes(raw[::-1])
    with pytest.raises(StoreError, match="has been changed while it was read"):
        file.read(5, 7)
    assert random_access.fingerprint_of([places[kind]]) == random_access.fingerprint_of([places[kind]])


def test_a_change_is_seen_though_its_folder_was_listed():
    """s3fs takes sizes and dates from listings that it has kept."""
    with empty_bucket("listed") as bucket:
        import s3fs

        fs, url = s3fs.S3FileSystem(), f"{bucket}/d/a.bin"
        fs.pipe_file(url, b"one")
        before = random_access.fingerprint_of([url])
        fs.ls("listed/d", detail=True)
        other = s3fs.S3FileSystem(skip_instance_cache=True)
        other.pipe_file(url, b"two")
        assert random_access.fingerprint_of([url]) != before
        other.pipe_file(url, b"twice")
        assert RemoteFile(url).size() == 5
