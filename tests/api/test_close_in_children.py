"""A forked child that outlives what it was forked from leaves it its ports, and lets its threads end."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from spark_events_prometheus.server import MetricsServer

from spark_events.api import ServerAuthentication
from spark_events.sources.driver.metrics_receiver import MetricsReceiver
from spark_events.sources.driver.tasks.failed_tasks import FailedTaskReceiver

ADDRESS = "127.0.0.1"


def _metrics() -> tuple[int, Callable[[], None]]:
    server = MetricsServer(ADDRESS, 0, lambda _: b"", ServerAuthentication("metrics", None, {}), None)
    return server.port, server.close


def _failed_tasks() -> tuple[int, Callable[[], None]]:
    receiver = FailedTaskReceiver(ADDRESS, 0, "token", lambda _: None)
    return receiver.port, receiver.close


def _executors() -> tuple[int, Callable[[], None]]:
    receiver = MetricsReceiver(ADDRESS, 0, "token")
    receiver.start()
    return receiver.port, receiver.close


@contextmanager
def _child() -> Iterator[None]:
    """Have a forked child that lives until the end of the block."""
    ends, let_end = os.pipe()
    begins, has_begun = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(let_end)
        os.close(has_begun)
        os.read(ends, 1)
        os._exit(0)
    os.close(ends)
    os.close(has_begun)
    os.read(begins, 1)
    os.close(begins)
    try:
        yield
    finally:
        os.close(let_end)
        os.waitpid(pid, 0)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("listen", [_metrics, _failed_tasks, _executors])
def test_a_child_that_lives_on(listen: Callable[[], tuple[int, Callable[[], None]]]) -> None:
    """Otherwise the port would stay taken, and a client of it would wait for an answer."""
    before = {thread.name for thread in threading.enumerate()}
    port, close = listen()
    with _child():
        close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((ADDRESS, port), timeout=10)
        assert {thread.name for thread in threading.enumerate()} <= before
