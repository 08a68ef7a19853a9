"""Reporters that fork: a child that comes back from their calls ends, and does not report for a second time."""

from __future__ import annotations

import os
import signal

import pytest

from spark_events.api import Event
from spark_events.api.toolkit.daemon_executor import call_within
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from tests.support.forking_reporters import ENDS, Forking
from tests.support.waiting import wait_until


def status_of(pid: int) -> int:
    """Return the exit status of a child; one that does not end is killed."""
    try:
        _, status = wait_until(lambda: _ended(pid), "the end of the child", 30)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    return os.waitstatus_to_exitcode(status)


def _ended(pid: int) -> tuple[int, int] | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return (ended, status) if ended else None


@pytest.mark.parametrize("end", list(ENDS))
@pytest.mark.parametrize("call", ["init", "open", "add", "flush", "send", "close"])
def test_a_child_of_a_call(call: str, end: str) -> None:
    prefix = "spark.events.reporter.forking."
    factory = {f"{prefix}factory.class": "tests.support.forking_reporters:Factory"}
    setups, errors = read_all_setups({**factory, f"{prefix}call": call, f"{prefix}end": end})
    assert not errors, errors
    Forking.children.clear()
    registry = Registry(setups)
    registry.start()
    for _ in range(5):
        registry.root.add_event(Event.builder("test", "MyEvent"))
    registry.close(8_000)

    (pid,) = Forking.children
    assert status_of(pid) == ENDS[end][1]
    assert registry.workers[0].stats.reported.count == 5


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("end", list(ENDS))
def test_a_child_of_a_call_on_a_thread_of_its_own(end: str) -> None:
    """As those of failure enrichers are."""

    def fork() -> int:
        pid = os.fork()
        if not pid:
            ENDS[end][0]()
        return pid

    pid = call_within(30, fork)
    assert status_of(pid) == ENDS[end][1]
