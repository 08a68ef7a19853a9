"""A real server that speaks S3, on a free port of this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def running_s3(bucket: str) -> Iterator[str]:
    """Give the endpoint of a server with a bucket, which the environment names while it runs."""
    moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    serving = pytest.importorskip("werkzeug.serving")
    app = _in_turn(moto.DomainDispatcherApplication(moto.create_backend_app))
    server = serving.make_server("127.0.0.1", 0, app, threaded=True, request_handler=moto.MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.port}"
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
    server.shutdown()
    thread.join()
    server.server_close()


def _in_turn(app: Callable[[Any, Any], Iterable[bytes]]) -> Callable[[Any, Any], Iterable[bytes]]:
    """Return an application that answers one request at a time.

    moto looks whether an object exists and then writes it, so two writers that come together with "If-None-Match: *"
    would both succeed. On S3 one of them does.
    """
    turn = threading.Lock()

    def answer(environ: Any, start_response: Any) -> Iterable[bytes]:
        with turn:
            return app(environ, start_response)

    return answer
