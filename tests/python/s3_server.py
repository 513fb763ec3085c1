"""An S3 server of this machine, for tests."""

import contextlib

import pytest


@contextlib.contextmanager
def empty_bucket(name):
    """The URL of a new bucket; whoever asks without what it takes is skipped."""
    pytest.importorskip("s3fs")
    server_of = pytest.importorskip("moto.server")
    with pytest.MonkeyPatch.context() as patch:
        server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir(name)
        try:
            yield f"s3://{name}"
        finally:
            s3fs.S3FileSystem.clear_instance_cache()
            server.stop()
