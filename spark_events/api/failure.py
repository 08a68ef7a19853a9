"""Failures, and the plugins that label them (FLIP-304)."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api.event import AttributeValue


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A place in the user's code, by OpenTelemetry's names: ``code.file.path`` and so on.

    The name of the function is empty where nobody says it.
    """

    file_path: str
    line_number: int
    function_name: str

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        """It, as attributes of an event or a span."""
        attributes: dict[str, AttributeValue] = {
            "code.file.path": self.file_path,
            "code.line.number": self.line_number,
        }
        if self.function_name:
            attributes["code.function.name"] = self.function_name
        return attributes


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an application, a query, a job or a stage failed.

    Attributes:
        message: the message, without type, error class or stack.
        exception_type: the class that was thrown, such as ``java.lang.ArithmeticException`` or
            ``ValueError``; None where Spark's record has none.
        stacktrace: the whole text that Spark recorded; None where there is none.
        error_class: Spark's error condition, such as ``DIVIDE_BY_ZERO``.
        sql_state: five characters, such as ``22012``.
        code: the place in the user's Python code that raised it, or made the expression that failed; None
            where that is not known.
        exit_code: of the process that ended with it; None where none did, or it is not known.
        exit_signal: the signal that ended that process, such as ``SIGTERM``; None where none did.
    """

    message: str
    exception_type: str | None = None
    stacktrace: str | None = None
    error_class: str | None = None
    sql_state: str | None = None
    code: CodePlace | None = None
    exit_code: int | None = None
    exit_signal: str | None = None


@dataclass(frozen=True, slots=True)
class FailureContext:
    """What a failure belongs to.

    Attributes:
        job_kind: ``application``, ``query``, ``job`` or ``stage``.
        variables: the variables of its metric group.
    """

    job_kind: str
    variables: Mapping[str, str]


class FailureEnricher(abc.ABC):
    """Labels failures; entry-point group ``spark_events.failure_enrichers``.

    It is created without arguments, and called on a thread of its own with a time limit of one second; if it
    takes longer, it is not called again. If it raises, that is logged, and only its own labels are lost.
    """

    @abc.abstractmethod
    def process_failure(self, failure: Failure, context: FailureContext) -> Mapping[str, str | None]:
        """Return labels; each becomes an attribute ``failureLabel.<key>`` of the JobFailureEvent."""
