"""Why an executor is gone: one word for Spark's sentence, and the exit code in it."""

from __future__ import annotations

import re
import signal

# Spark's reasons are sentences with hosts, ids and exit codes in them; as labels they would be endless.
_REASONS = (
    ("decommissioned", re.compile(r"(?i)decommission")),
    ("preempted", re.compile(r"(?i)preempt")),
    # What a master says of it has in it how it noticed: "worker lost: 10.0.0.7:7078 got disassociated".
    ("worker_lost", re.compile(r"(?i)worker lost")),
    ("out_of_memory", re.compile(r"(?i)\boom|out ?of ?memory|memory limit|(code|status):? (137|52)\b")),
    ("heartbeat_timeout", re.compile(r"(?i)heartbeat")),
    ("killed_by_driver", re.compile(r"(?i)killed by driver|idle|request(ed)? by (the )?driver")),
    ("connection_lost", re.compile(r"(?i)disassociated|disconnected|connection")),
    ("exited", re.compile(r"(?i)exit")),
    ("worker_lost", re.compile(r"(?i)worker|node|host|machine")),
    ("shutdown", re.compile(r"(?i)shut ?down|stopp")),
)
OTHER = "other"
REASONS = (*dict.fromkeys(name for name, _ in _REASONS), OTHER)
"""Why an executor may be gone, each in one word."""
APPLICATION_ENDED = "application_ended"
"""Not one of Spark's reasons: the executor lived until the application's end."""
EXPECTED = frozenset(("decommissioned", "preempted", "killed_by_driver", "shutdown", APPLICATION_ENDED))
"""Reasons that are no failure: somebody wanted the executor gone."""
_EXIT_CODE = re.compile(r"(?i)\b(?:code|status):? (-?\d{1,4})\b")

# Spark's SparkExitCode and ExecutorExitCode, and YARN's ContainerExitStatus.
_MEANINGS = {
    0: "ended by itself, without an error",
    1: "ended by an error; its log has it",
    50: "an exception that nobody caught",
    51: "an exception that nobody caught, and another one while that was logged",
    52: "Java's OutOfMemoryError: its heap was full",
    53: "no folder for blocks could be made on its disk",
    56: "the driver did not answer its heartbeats",
    57: "killed by Spark's task reaper: a task that was cancelled did not end",
    58: "its blocks could not be registered with the driver again",
    -100: "YARN released its container, or the node was lost",
    -102: "YARN preempted its container",
    -103: "YARN killed its container: above its limit of virtual memory",
    -104: "YARN killed its container: above its limit of physical memory",
}
_SIGNALS: dict[int, str] = {
    signal.SIGKILL: "killed (SIGKILL): most often above the memory limit of its container, or by hand",
    signal.SIGTERM: "asked to end (SIGTERM)",
    signal.SIGSEGV: "crashed (SIGSEGV): a fault in native code",
    signal.SIGABRT: "aborted (SIGABRT): a fault in native code, or Java could not go on",
}


_TASK_LOST = re.compile(r"ExecutorLostFailure \(executor ([^\s()]+) [^()]*\)(?: Reason: ([^\n]{0,1000}))?")


def lost_executor(message: str) -> tuple[str, str] | None:
    """Return the executor with whose end a task failed, and why it ended, in Spark's words.

    Args:
        message: of a failure; of several executors, the first is returned. None where there is none.
    """
    match = _TASK_LOST.search(message)
    return (match.group(1), match.group(2) or "") if match else None


def reason_class(reason: str) -> str:
    """Return in one word why an executor was removed, by Spark's sentence."""
    return next((name for name, pattern in _REASONS if pattern.search(reason)), OTHER)


def exit_code(reason: str) -> int | None:
    """Return the exit code in Spark's sentence; None where it has none."""
    match = _EXIT_CODE.search(reason)
    return int(match.group(1)) if match else None


def exit_meaning(code: int) -> str | None:
    """Return what an executor's exit code means; None where it means nothing in particular."""
    if code in _MEANINGS:
        return _MEANINGS[code]
    if not 128 < code < 128 + signal.NSIG:
        return None
    return _SIGNALS.get(code - 128, f"ended by signal {code - 128}")
