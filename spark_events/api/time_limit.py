"""Calls of a plugin's code, which may block for ever, with a limit to the time that anybody waits for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import TypeVar

from spark_events.api.daemon_executor import DaemonExecutor

T = TypeVar("T")


def call_within(seconds: float, call: Callable[[], T], executor: DaemonExecutor | None = None) -> T:
    """Call a function on another thread, and wait for it for a limited time.

    A call that takes longer is left behind on its daemon thread.

    Args:
        seconds: how long to wait, in s.
        call: what to call.
        executor: whose thread calls it; None takes a new one.

    Returns:
        What it returns.

    Raises:
        TimeoutError: it takes longer.
        BaseException: what it raises.
    """
    caller = executor or DaemonExecutor(1, "spark-events-call")
    future = caller.submit(call)
    if executor is None:
        caller.shutdown(wait=False)
    if not wait([future], seconds).done:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return future.result()
