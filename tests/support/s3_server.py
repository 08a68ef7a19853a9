"""A real server that speaks S3, on a free port of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def running_s3(bucket: str) -> Iterator[str]:
    """Give the endpoint of a server with a bucket, which the environment names while it runs."""
    moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.delenv("AWS_ENDPOINT_URL_S3", raising=False)  # it would win
        # fsspec keeps what it made for another server, with the same keys: another test's may be gone.
        s3fs.S3FileSystem.clear_instance_cache()
        # The buckets of all servers of a process are the same; this one may be there from before.
        s3fs.S3FileSystem().makedirs(bucket, exist_ok=True)
        yield endpoint
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()
