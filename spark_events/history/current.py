"""What runs now, and since when: from a report of stored events, or from metrics that are served."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from email.message import Message
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import IO, TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError, UsageError, needs_extra
from spark_events.api.toolkit.daemon_executor import call_within
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.api.toolkit.timed_http import http_opener, same_origin
from spark_events.api.toolkit.urls import is_http_url
from spark_events.history.figures.job_runs import ENDS, LOST, UNKNOWN, status_of_silence
from spark_events.history.figures.timeline import BAD_STATES, DOWN, NOT_HEARD, STARTING, STOPPED, UP, UP_IN
from spark_events.history.report import Report
from spark_events.history.table import job_name

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

_TIMEOUT_S = 10
_WHOLE_ANSWER_S = 30
_LARGEST = 256 << 20
"""What is read of a page, in bytes; a collector may serve many drivers."""
_BLOCK = 1 << 20
_TRIED_LINES = 100
_OURS = (b"spark_application_", b"spark_query_", b"push_time_seconds")
_IMPOSSIBLE = 1e12
_KINDS = ("application", "query")
_AGE, _RESTARTS = "status_age_seconds", "num_restarts"
_HEARTBEAT = "spark_application_last_heartbeat_timestamp_seconds"
_HEARTBEAT_INTERVAL = "spark_application_heartbeat_interval_seconds"
_USUAL_INTERVAL_S = 60
_PUSHED = "push_time_seconds"
"""What a Pushgateway adds to each group: when it was last pushed."""
_ANSWERED_BY = "Spark-Events-Answered-By"
"""The header that the reporter ``prometheus`` adds as long as its driver lives."""
_Labels = frozenset[tuple[str, str]]
_STATES = {
    **dict.fromkeys(("FAILED", LOST), DOWN),
    **dict.fromkeys(("FINISHED", "CANCELED"), STOPPED),
    **dict.fromkeys(UP_IN, UP),
    UNKNOWN: NOT_HEARD,
}


class Current(NamedTuple):
    """An application or a query as it is now.

    Attributes:
        kind: ``application`` or ``query``.
        app_name: of the application.
        query_name: None of applications.
        status: such as RUNNING.
        state: ``up``, ``down``, ``unknown``, ``starting``, ``stopped``; ``failed`` of batch applications.
        since_ms: when it came to the status, in ms since the epoch; None where that is not known.
        restarts: None where they are not counted.
        last_heard_ms: when it was last heard of; None where that is not said, and what serves it lives.
    """

    kind: str
    app_name: str
    query_name: str | None
    status: str
    state: str
    since_ms: int | None
    restarts: int | None
    last_heard_ms: int | None

    @property
    def name(self) -> str:
        """Its name, with its application's."""
        return job_name(self._asdict())


def of_report(report: Report) -> list[Current]:
    """Return what runs at the end of a report, the worst first."""
    return [
        Current(
            row["kind"],
            row["app_name"],
            row["query_name"] or None,
            row["status"],
            row["state"],
            row["status_since_ms"],
            row["restarts"],
            row["last_heard_ms"],
        )
        for row in report.tables.uptime
    ]


def of_endpoint(url: str, token: str | None = None) -> list[Current]:
    """Return what runs by the metrics that are served for Prometheus; the worst first.

    A driver serves its own. A collector or a Pushgateway may go on serving those of a driver that is gone, so
    that what has not ended is UNKNOWN or LOST if it was not heard of for as long as in a report.

    Args:
        url: of the metrics; ``/metrics`` unless it has a path.
        token: that the endpoint asks for.

    Raises:
        UsageError: it is not a URL of HTTP.
        ConfigError: it cannot be reached, or serves something else.
        NothingToReadError: it serves no metric of an application.
    """
    shown = path_without_secrets(url)
    with needs_extra("prometheus", "prometheus_client", "reading an endpoint"):
        from prometheus_client.parser import text_string_to_metric_families
    text, headers = _fetched(url, token)
    try:
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    except Exception as error:  # the parser's, which may stumble over anything
        raise ConfigError(f"{shown}: serves no metrics in Prometheus' format: {error}") from error
    page = _Page(samples)
    if not page.statuses:
        raise NothingToReadError(f"{shown}: serves no spark_application_status and no spark_query_status")
    now_s = _now_s(headers.get("Date") or "")
    current = [_current(*of, status, page, now_s) for of, status in page.statuses.items()]
    if headers.get(_ANSWERED_BY) == "driver":  # and not by what serves the figures of one that may be gone
        current = [
            each if each.state in BAD_STATES else each._replace(last_heard_ms=None) for each in current
        ]
    return _worst_first(current)


class _Page:
    """What a page says of applications and queries.

    Args:
        samples: of the page.

    Attributes:
        statuses: of each application and query, by its kind and its labels.
    """

    def __init__(self, samples: Iterable[Sample]) -> None:
        self.statuses: dict[tuple[str, _Labels], str] = {}
        self._values: dict[str, dict[_Labels, float]] = {}
        for sample in samples:
            # A collector may serve several drivers of one name, which its other labels tell apart.
            labels = frozenset((name, value) for name, value in sample.labels.items() if name != "status")
            for kind in _KINDS:
                if sample.name == f"spark_{kind}_status" and sample.value:
                    self.statuses[kind, labels] = sample.labels.get("status", "")
            if _is_possible(sample.value):
                self._values.setdefault(sample.name, {})[labels] = sample.value

    def value(self, name: str, labels: _Labels) -> float | None:
        """Return the value of one series."""
        return self._values.get(name, {}).get(labels)

    def value_around(self, name: str, labels: _Labels) -> float | None:
        """Return the value of what a series belongs to, such as its application: it has all of the labels."""
        return max((value for of, value in self._values.get(name, {}).items() if of <= labels), default=None)


def _current(kind: str, labels: _Labels, status: str, page: _Page, now_s: float) -> Current:
    names = dict(labels)
    age_s = page.value(f"spark_{kind}_{_AGE}", labels)
    restarts = page.value(f"spark_{kind}_{_RESTARTS}", labels)
    pushed_s = page.value_around(_PUSHED, labels)
    since_s = None if age_s is None else (pushed_s or now_s) - age_s
    heartbeat_s = page.value_around(_HEARTBEAT, labels)
    heard_s = max((at_s for at_s in (heartbeat_s, pushed_s) if at_s is not None), default=None)
    if heartbeat_s is not None and heard_s is not None and status not in ENDS:
        interval_s = page.value_around(_HEARTBEAT_INTERVAL, labels) or _USUAL_INTERVAL_S
        if silence := status_of_silence(now_s - heard_s, interval_s):
            status, since_s = silence, heard_s
    return Current(
        kind,
        names.get("app_name", ""),
        names.get("query_name") or None,
        status,
        _STATES.get(status, STARTING),
        _ms(since_s),
        None if restarts is None else int(restarts),
        _ms(heard_s),
    )


def _ms(at_s: float | None) -> int | None:
    return None if at_s is None else round(at_s * 1_000)


def _is_possible(figure: float) -> bool:
    """Return whether a figure is one that JSON and clocks can have; whatever is served may say anything."""
    return isfinite(figure) and abs(figure) < _IMPOSSIBLE


def _worst_first(current: Iterable[Current]) -> list[Current]:
    return sorted(
        current, key=lambda each: (each.state not in BAD_STATES, each.app_name, each.query_name or "")
    )


def _now_s(served_at: str) -> float:
    """Return the time by the clock of whoever served a page, in s since the epoch; by ours if it says none.

    A driver whose clock differs from ours is not silent for that.
    """
    try:
        return parsedate_to_datetime(served_at).timestamp()
    except (ValueError, OverflowError):
        return time.time()


def _fetched(url: str, token: str | None) -> tuple[str, Message]:
    if not is_http_url(url):
        raise UsageError(f"{path_without_secrets(url)}: expected a URL such as http://localhost:9249/metrics")
    parts = urlsplit(url)
    whole = urlunsplit(parts._replace(path=parts.path if parts.path.strip("/") else "/metrics"))
    request = urllib.request.Request(whole, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        return call_within(_WHOLE_ANSWER_S, lambda: _answer(request))
    except urllib.error.HTTPError as error:
        raise ConfigError(f"{path_without_secrets(url)}: {_answered(error, whole, token)}") from error
    except _TooLargeError as error:
        raise ConfigError(f"{path_without_secrets(url)}: {error}") from error
    except http.client.HTTPException as error:
        raise ConfigError(f"{path_without_secrets(url)}: answers no HTTP: {error!r}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ConnectionRefusedError):
            raise ConfigError(f"{path_without_secrets(url)}: connection refused; is it running?") from error
        said = getattr(reason, "strerror", None) or reason
        raise ConfigError(f"{path_without_secrets(url)}: cannot be reached: {said}") from error


def _answered(error: urllib.error.HTTPError, asked: str, token: str | None) -> str:
    answers = f"answers {error.code} {error.reason}"
    if error.code not in (401, 403):
        return answers
    if token is None or same_origin(asked, error.url):
        return f"{answers}; give --token"
    return (
        f"redirects to {path_without_secrets(error.url)}, which {answers}; the token is not sent there: "
        "give that URL, if it is to have the token"
    )


def _answer(request: urllib.request.Request) -> tuple[str, Message]:
    """Return what is served, also behind redirects, which lead nowhere but to HTTP, and its headers.

    Raises:
        OSError, ValueError: the server cannot be reached, or answers with an error.
        HTTPException: it speaks something else.
    """
    with http_opener().open(request, timeout=_TIMEOUT_S) as answer:
        page = b"\n".join(_read_lines(answer))
        if answer.length:  # what is missing may be what is down
            raise http.client.IncompleteRead(page, answer.length)
        return page.decode(errors="replace"), answer.headers


class _TooLargeError(Exception):
    """The error of a page that is larger than is read."""


def _read_lines(answer: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines that matter, and the first ones, which tell whether it is a page of metrics at all.

    Raises:
        _TooLargeError: there are more than so many bytes.
        OSError, HTTPException: it cannot be read.
    """
    size = lines = 0
    rest = b""
    while block := answer.read(_BLOCK):
        size += len(block)
        if size > _LARGEST:
            raise _TooLargeError(f"serves more than {_LARGEST >> 20} MiB; give the URL of one driver")
        *whole, rest = (rest + block).split(b"\n")
        yield from (each for each in whole if each.startswith(_OURS) or (lines := lines + 1) <= _TRIED_LINES)
        rest = rest[:_BLOCK]
    yield rest
