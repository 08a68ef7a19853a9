"""What workers know of the driver that listens: ``attach`` puts it into their environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields

VARIABLE = "SPARK_EVENTS_TASK"


@dataclass(frozen=True)
class DriverLink:
    """How a worker reports.

    Attributes:
        accumulator: the number of PySpark's accumulator that carries the reports of tasks.
        application: its ``identity``, from which ids of spans are computed.
        trace_id, span_id: of the application's span; empty if no spans are reported.
        sampled: whether the application's trace is reported.
        sampling_ratio: the share of the traces of micro-batches that is reported.
        stages_of_queries: whether the stages of streaming queries have spans.
        task_spans: whether tasks have spans, too.
        host, port: where the driver receives the reports of failed tasks; port 0 if it does not.
        token: with which those begin.
        local_variables: whether they have the variables of the function that raised.
        masked: a regular expression; the values of variables whose names it matches are not sent.
    """

    accumulator: int
    application: tuple[str, ...] = ("", "")
    trace_id: str = ""
    span_id: str = ""
    sampled: bool = False
    sampling_ratio: float = 1.0
    stages_of_queries: bool = False
    task_spans: bool = False
    host: str = ""
    port: int = 0
    token: str = ""
    local_variables: bool = False
    masked: str = ""

    def text(self) -> str:
        """Return it as the value of the environment variable."""
        return json.dumps(asdict(self))


_read: dict[str, DriverLink | None] = {}


def driver_link() -> DriverLink | None:
    """Return the link to the driver of this worker; None where nothing is attached, or it cannot be read."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return None
    if text not in _read:
        try:
            _read[text] = _link_of(text)
        except (ValueError, TypeError, KeyError, AttributeError):  # somebody else has set the variable
            _read[text] = None
    return _read[text]


def _link_of(text: str) -> DriverLink:
    known = {field.name for field in fields(DriverLink)}  # a newer driver may say more
    values = {name: value for name, value in json.loads(text).items() if name in known}
    first, second = values["application"]
    return DriverLink(**{**values, "application": (first, second)})
