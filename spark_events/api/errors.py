"""Exceptions of spark-events.

* SparkEventsError
    * ConfigError          a key, its value, what is allowed and what to do
        * MissingExtraError    a reporter's third-party package is not installed
    * NothingToAttachToError   what ``attach`` was given is no running session
    * RetryLater           raised *by* a reporter: the destination is away, try again
    * Refused              raised *by* a reporter: the destination will never take these records
    * PartlyRefused        raised *by* a reporter: it took them, but for some
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def install(extra: str) -> str:
    """Return the command that adds an extra to an installation, for messages.

    Wherever spark-events is from, a clone, a wheel or an index, pip adds what is missing.
    """
    return f"pip install 'spark-events[{extra}]'"


class SparkEventsError(Exception):
    """Base class of all exceptions of spark-events."""


class ConfigError(SparkEventsError):
    """One or more configuration keys that cannot be used as they are.

    Args:
        message: one sentence that names the key or the file, the value, what is allowed, and what to do.
        problems: the sentences of several mistakes found at once; empty if there is only one.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[str, ...] = tuple(problems) or (message,)

    @classmethod
    def of_value(cls, key: str, value: str, allowed: str) -> ConfigError:
        """Build the error of a value that the key does not take."""
        return cls(f"{key}: {value!r} is not valid; expected {allowed}")

    @classmethod
    def of_all(cls, problems: Sequence[str]) -> ConfigError:
        """Build one error from several problems, each of which names its own key or file."""
        if len(problems) == 1:
            return cls(problems[0])
        lines = "".join(f"\n  - {problem}" for problem in problems)
        return cls(f"{len(problems)} problems in the configuration:{lines}", problems)


class UsageError(ConfigError):
    """A command line that cannot be used as it is."""


class NothingToReadError(ConfigError):
    """There is nothing, or nothing of what is asked for, at the paths that a command is to read."""


class NothingToAttachToError(SparkEventsError, TypeError):
    """What ``attach`` was given is no running session of a Spark that it knows."""


class MissingExtraError(ConfigError):
    """A package is missing that an extra of spark-events installs."""

    def __init__(self, extra: str, package: str, what: str = "") -> None:
        super().__init__(
            f"{what or f'reporter type {extra!r}'} needs the package {package!r}, which is not installed: "
            + install(extra)
        )


@contextmanager
def needs_extra(extra: str, package: str, what: str = "") -> Iterator[None]:
    """Turn a failing import into an error that names the extra to install.

    Args:
        extra: its name; for a reporter, the same as the reporter type's.
        package: the package it provides, for import errors that do not name the missing one.
        what: what needs it, for the message; by default, the reporter type named like the extra.

    Raises:
        MissingExtraError: a module was not found.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(extra, error.name or package, what) from error


class RetryLater(SparkEventsError):  # noqa: N818 - says what to do, as StopIteration does
    """A reporter cannot deliver now and keeps its records.

    Raise it from ``Reporter.flush`` or ``SendingReporter.send`` alone. The worker tries again after a pause
    that grows with each try, and hands over nothing new until then.

    Args:
        reason: what stands in the way, for the log; never a secret.
        after_ms: the pause that the destination asked for, in ms; None leaves it to the worker.
        tries: how many failed tries in a row make the records given to ``send`` count as refused; None
            tries forever.
        smaller: whether fewer records at once may get through, because the destination is slow.
    """

    def __init__(
        self, reason: str, after_ms: int | None = None, *, tries: int | None = None, smaller: bool = False
    ) -> None:
        super().__init__(reason)
        self.after_ms = after_ms
        self.tries = tries
        self.smaller = smaller


class Refused(SparkEventsError):  # noqa: N818 - an answer, and no fault of ours
    """The destination will never accept these records of ``SendingReporter.send``.

    They are then sent in halves, down to the records at fault, which are put aside.

    Args:
        reason: the destination's answer, for the log and beside the record; never a secret.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class PartlyRefused(SparkEventsError):  # noqa: N818 - an answer, and no fault of ours
    """The destination accepted the records of ``SendingReporter.send`` except for some.

    None of them is sent again.

    Args:
        count: how many it refused; it does not say which.
        reason: the destination's answer, for the log and beside the records; never a secret.
    """

    def __init__(self, count: int, reason: str) -> None:
        super().__init__(reason)
        self.count = count
