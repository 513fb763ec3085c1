"""A server of this machine that does what Google Cloud Storage does, for tests."""

import contextlib
import json

import pytest


@contextlib.contextmanager
def empty_bucket(name):
    """The URL of a new bucket; whoever asks without what it takes is skipped."""
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # which asks for credentials
        gcsfs = pytest.importorskip("gcsfs")
        read_other = emulator._read_data
        patch.setattr(emulator, "_read_data", lambda *asked: _read_upload(emulator, *asked) or read_other(*asked))
        server = emulator.create_server("127.0.0.1", 0, in_memory=True, default_bucket=name)
        server.start()
        http = server._api._httpd
        http.handle_error = lambda *_: None  # clients that have enough of an answer
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{http.server_address[1]}")
        gcsfs.GCSFileSystem.clear_instance_cache()
        try:
            yield f"gs://{name}"
        finally:
            gcsfs.GCSFileSystem.clear_instance_cache()
            server.stop()


def _read_upload(emulator, request, query):
    """What is uploaded at once, byte for byte: the emulator reads it as mail and changes the ends of lines. None for
    all else."""
    kind, _, boundary = (request.headers.get("Content-Type") or "").partition("boundary=")
    if not kind.startswith("multipart/related"):
        return None
    mark = b"--" + boundary.strip('"').encode()
    _, about, content = emulator._read_raw_data(request).split(mark, 2)
    head, _, content = content.partition(b"\n\n")
    return {
        "meta": json.loads(about.partition(b"\n\n")[2]),
        "content": content.rpartition(b"\n" + mark)[0],
        "content-type": head.decode().partition(": ")[2].strip(),
    }
