"""Why an executor is gone: one word for Spark's sentence, and the exit code in it."""

from __future__ import annotations

import re
import signal
from collections import OrderedDict
from dataclasses import dataclass

from spark_events.api import Failure

OUT_OF_MEMORY, KILLED, EXITED = "out_of_memory", "killed", "exited"
HEARTBEAT_TIMEOUT, KILLED_BY_DRIVER = "heartbeat_timeout", "killed_by_driver"
_KILLED = 128 + signal.SIGKILL
# Spark's reasons are sentences with hosts, ids and exit codes in them; as labels they would be endless.
_REASONS = (
    ("decommissioned", re.compile(r"(?i)decommission")),
    ("preempted", re.compile(r"(?i)preempt|status: -102\b")),
    ("evicted", re.compile(r"(?i)\bevict")),
    ("drained", re.compile(r"(?i)\bdrain")),
    # What a master says of it has in it how it noticed: "worker lost: 10.0.0.7:7078 got disassociated".
    ("worker_lost", re.compile(r"(?i)worker lost")),
    (
        OUT_OF_MEMORY,
        # Of any exit code 137, Spark on Kubernetes says "possible container OOM": that is only a guess.
        re.compile(
            r"(?i)(?<!possible container )\boom|out ?of ?memory|memory limit|beyond the [^\n]{0,40}memory"
            r"|(code|status):? (52|-103|-104)\b"
        ),
    ),
    ("deleted", re.compile(r"(?i)was deleted by a user or the framework|was not found in the cluster")),
    (KILLED, re.compile(r"(?i)(code|status):? 137\b|\bsigkill\b")),
    (HEARTBEAT_TIMEOUT, re.compile(r"(?i)heartbeat")),
    (KILLED_BY_DRIVER, re.compile(r"(?i)killed by driver|idle|request(ed)? by (the )?driver")),
    ("connection_lost", re.compile(r"(?i)disassociated|disconnected|connection")),
    ("process_lost", re.compile(r"(?i)executor process lost")),
    (EXITED, re.compile(r"(?i)exit")),
    ("worker_lost", re.compile(r"(?i)worker|node|host|machine")),
    ("shutdown", re.compile(r"(?i)shut ?down|stopp")),
)
OTHER = "other"
OF_EXIT_CODES = frozenset((OUT_OF_MEMORY, KILLED, EXITED, OTHER))
"""Reasons that say no more than an exit code and its meaning."""
REASONS = (*dict.fromkeys(name for name, _ in _REASONS), OTHER)
"""Why an executor may be gone, each in one word."""
BEFORE_REGISTERING = frozenset((OUT_OF_MEMORY, KILLED, EXITED, "preempted", "evicted", "deleted", OTHER))
"""Reasons for which an executor may go before it registers with the driver."""
APPLICATION_ENDED = "application_ended"
"""Not one of Spark's reasons: the executor lived until the application's end."""
EXPECTED = frozenset(
    ("decommissioned", "preempted", "drained", KILLED_BY_DRIVER, "shutdown", APPLICATION_ENDED)
)
"""Reasons that are not failures: somebody wanted the executor gone."""
_NAMES = re.compile(r"(?i)(\bon host:? |\bcontainer (?:name|image): )\S+")
"""The names of hosts and images, such as ``preemptible-pool-7``, in the sentences of YARN and Kubernetes."""
_EXIT_CODE = re.compile(r"(?i)\b(?:code|status):? (-?\d{1,4})\b")

# Spark's SparkExitCode and ExecutorExitCode, and YARN's ContainerExitStatus.
_MEANINGS = {
    0: "ended by itself, without an error",
    1: "ended by an error; its log has it",
    50: "an uncaught exception",
    51: "an uncaught exception, and another one while it was logged",
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
    signal.SIGKILL: "killed (SIGKILL): above a memory limit, by the cluster or the machine, or by hand",
    signal.SIGTERM: "asked to end (SIGTERM)",
    signal.SIGSEGV: "crashed (SIGSEGV): a fault in native code",
    signal.SIGABRT: "aborted (SIGABRT): a fault in native code, or Java could not go on",
}


# Kubernetes begins with a blank line, and says only in a later one whether its limit was the reason.
_TASK_LOST = re.compile(
    r"ExecutorLostFailure \(executor ([^\s()]{1,100}) [^()]{0,300}\)(?: Reason:\s{0,10}(.{0,2000}))?",
    re.DOTALL,
)
_AFTER_REASON = re.compile(r"\nDriver stacktrace:|\n\tat ")
# "The relative remote executor(Id: 0), which maintains the block data to fetch is dead."
_DEAD_SOURCE = re.compile(r"remote executor\(Id: ([^\s()]{1,100})\), which maintains [^\n]{0,100} is dead")
FETCH_FAILED = "FetchFailedException"
_MOST_LOSSES = 1_000


def lost_executor(message: str) -> tuple[str, str] | None:
    """Return the executor with whose end a task failed, and why it ended, in Spark's words.

    Args:
        message: of a failure; of several executors, the first is returned. None where there is none.
    """
    match = _TASK_LOST.search(message)
    if match is None:
        return None
    return match.group(1), _AFTER_REASON.split(match.group(2) or "", maxsplit=1)[0].strip()


@dataclass(frozen=True, slots=True)
class FailedStage:
    """How an attempt of a stage has failed.

    Attributes:
        fetched_from: the executor whose shuffle data a task could not fetch; None where nobody says it.
        begun_ms: when the attempt began, in ms since the epoch.
    """

    failure: Failure
    fetched_from: str | None
    begun_ms: int


class ExecutorEnds:
    """Of what the executors ended that are gone, in Spark's words, for the failures that follow from it."""

    def __init__(self) -> None:
        self._ends: OrderedDict[str, tuple[int, str]] = OrderedDict()

    def put(self, executor: str, sentence: str, time_ms: int) -> None:
        """Called when an executor was removed."""
        self._ends[executor] = time_ms, sentence
        if len(self._ends) > _MOST_LOSSES:
            self._ends.popitem(last=False)

    def cause_of(self, failure: Failure, stage: FailedStage | None) -> tuple[str, str] | None:
        """Return the executor with whose end something failed, and why it ended, in Spark's words, or "".

        Args:
            failure: what failed.
            stage: its stage, if any, or the one that failed last.
        """
        lost = lost_executor(failure.message)
        if lost is not None or not (failure.exception_type or "").endswith(FETCH_FAILED):
            return lost
        dead = _DEAD_SOURCE.search(failure.message)
        executor = dead.group(1) if dead else self._source(stage)
        if executor is None or not (dead or executor in self._ends):
            return None  # it lives all the same
        return executor, self._ends.get(executor, (0, ""))[1]

    def _source(self, stage: FailedStage | None) -> str | None:
        """Return the executor whose shuffle data a stage could not fetch; None if it may be another."""
        if stage is None or stage.fetched_from is not None:
            return stage.fetched_from if stage else None
        # Spark has forgotten already where the data was: with the executor that went meanwhile, if it is one.
        gone = [executor for executor, (time_ms, _) in self._ends.items() if time_ms >= stage.begun_ms]
        return gone[0] if len(gone) == 1 else None


def reason_class(reason: str) -> str:
    """Return in one word why an executor was removed, by Spark's sentence, whatever its hosts are called."""
    said = _NAMES.sub(r"\1", reason)
    return next((name for name, pattern in _REASONS if pattern.search(said)), OTHER)


def exit_code(reason: str) -> int | None:
    """Return the exit code in Spark's sentence; None where it has none."""
    match = _EXIT_CODE.search(reason)
    return int(match.group(1)) if match else None


def exit_meaning(code: int, reason: str = OTHER) -> str | None:
    """Return what an executor's exit code means; None where it means nothing in particular.

    Args:
        code: a signal's is 128 more than its number.
        reason: why the executor is gone, in one word, by all that Spark says.
    """
    if code == _KILLED and reason == OUT_OF_MEMORY:
        return "killed (SIGKILL): above the memory limit of its container"
    if code == _KILLED and reason not in OF_EXIT_CODES:
        return "killed (SIGKILL)"
    if code in _MEANINGS:
        return _MEANINGS[code]
    if not 128 < code < 128 + signal.NSIG:
        return None
    return _SIGNALS.get(code - 128, f"ended by signal {code - 128}")
