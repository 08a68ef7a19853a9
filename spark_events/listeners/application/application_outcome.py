"""How an application ended, from its ApplicationEnd: what it comes to, and so whatever it ran."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_events.api import Failure, JobStatus
from spark_events.listeners.failures.failures import parse_failure
from spark_events.listeners.spark_records import EXIT_SIGNAL, OUTCOME_ASSUMED

KILLED = "the driver was killed"
ENDED_BY = "the driver was ended by"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an application.

    Attributes:
        status: FINISHED, FAILED, or CANCELED if a signal ended it that was meant to.
        failure: why it failed; None if it did not.
        assumed: whether it may have ended differently.
        exit_code: of its process; None if unknown.
        exit_signal: the signal that ended it; None if none did.
    """

    status: JobStatus
    failure: Failure | None = None
    assumed: bool = False
    exit_code: int | None = None
    exit_signal: str | None = None

    @property
    def of_what_ran(self) -> JobStatus:
        """The status that whatever the application still ran comes to."""
        return JobStatus.FAILED if self.failure is not None else JobStatus.CANCELED

    @property
    def attributes(self) -> Mapping[str, str | int | None]:
        """What the events of the end carry."""
        return {
            "exit.code": self.exit_code,
            "exit.signal": self.exit_signal,
            "outcome": "assumed" if self.assumed else None,
        }


def outcome_of(record: Mapping[str, Any], meant: Collection[str] = ()) -> Outcome:
    """Return the outcome that an ApplicationEnd tells.

    Args:
        record: Spark's, which from version 4 has an exit code, with what a source has added.
        meant: the signals that stop an application on purpose.
    """
    code, name = record.get("ExitCode") or None, record.get(EXIT_SIGNAL)
    thrown, assumed = record.get("Exception"), bool(record.get(OUTCOME_ASSUMED))
    if name in meant:
        return Outcome(JobStatus.CANCELED, None, assumed, code, name)
    if not code and not name and not thrown:
        return Outcome(JobStatus.FINISHED, None, assumed)
    failure = parse_failure(thrown) if thrown else Failure(_sentence(code, name))
    failure = replace(failure, exit_code=code, exit_signal=name)
    return Outcome(JobStatus.FAILED, failure, assumed, code, name)


def _sentence(code: int | None, name: str | None) -> str:
    if name is None:
        return f"the application ended with exit code {code}"
    said = f" (exit code {code})" if code else ""
    if name == "SIGKILL":
        return f"{KILLED} by SIGKILL{said}: by hand, or because memory ran out"
    return f"{ENDED_BY} {name}{said}"
