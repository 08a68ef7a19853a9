"""What runs now, and since when: from a report of stored events, or from metrics that are served."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from spark_events.api import ConfigError
from spark_events.api.errors import NothingToReadError, UsageError, needs_extra
from spark_events.api.timed_http import http_opener
from spark_events.api.toolkit.daemon_executor import call_within
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.history.figures.timeline import BAD_STATES, DOWN, STARTING, STOPPED, UP, UP_IN
from spark_events.history.report import Report
from spark_events.history.table import job_name

_TIMEOUT_S = 10
_WHOLE_ANSWER_S = 30
_LARGEST = 256 << 20
_IMPOSSIBLE = 1e12
_KINDS = ("application", "query")
_AGE, _RESTARTS = "status_age_seconds", "num_restarts"
_Labels = frozenset[tuple[str, str]]
_STATES = {"FAILED": DOWN, "FINISHED": STOPPED, "CANCELED": STOPPED, **dict.fromkeys(UP_IN, UP)}


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
        last_heard_ms: when it was last heard of; None where that is now.
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
    """Return what runs by the metrics that a driver, or a collector, serves for Prometheus; the worst first.

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
    text = _fetched(url, token)
    try:
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    except ValueError as error:
        raise ConfigError(f"{shown}: serves no metrics in Prometheus' format: {error}") from error
    values: dict[tuple[str, _Labels], float] = {}
    statuses: dict[tuple[str, _Labels], str] = {}
    for sample in samples:
        # A collector may serve several drivers of one name, which its other labels tell apart.
        labels = frozenset((name, value) for name, value in sample.labels.items() if name != "status")
        for kind in _KINDS:
            if sample.name == f"spark_{kind}_status" and sample.value:
                statuses[kind, labels] = sample.labels.get("status", "")
            if sample.name in (f"spark_{kind}_{_AGE}", f"spark_{kind}_{_RESTARTS}"):
                values[sample.name, labels] = sample.value
    if not statuses:
        raise NothingToReadError(f"{shown}: serves no spark_application_status and no spark_query_status")
    return _worst_first(_current(*of, status, values) for of, status in statuses.items())


def _current(kind: str, labels: _Labels, status: str, values: Mapping[tuple[str, _Labels], float]) -> Current:
    now_ms, names = time.time_ns() // 1_000_000, dict(labels)
    age_s = values.get((f"spark_{kind}_{_AGE}", labels))
    restarts = values.get((f"spark_{kind}_{_RESTARTS}", labels))
    return Current(
        kind,
        names.get("app_name", ""),
        names.get("query_name") or None,
        status,
        _STATES.get(status, STARTING),
        None if age_s is None or not _is_possible(age_s) else now_ms - round(age_s * 1_000),
        None if restarts is None or not _is_possible(restarts) else int(restarts),
        None,
    )


def _is_possible(figure: float) -> bool:
    """Return whether a figure is one that JSON and clocks can have; whatever is served may say anything."""
    return isfinite(figure) and abs(figure) < _IMPOSSIBLE


def _worst_first(current: Iterable[Current]) -> list[Current]:
    return sorted(
        current, key=lambda each: (each.state not in BAD_STATES, each.app_name, each.query_name or "")
    )


def _fetched(url: str, token: str | None) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{path_without_secrets(url)}: expected a URL such as http://localhost:9249/metrics")
    whole = urlunsplit(parts._replace(path=parts.path if parts.path.strip("/") else "/metrics"))
    request = urllib.request.Request(whole, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        return call_within(_WHOLE_ANSWER_S, lambda: _answer(request))
    except urllib.error.HTTPError as error:
        hint = "; give --token" if error.code in (401, 403) else ""
        raise ConfigError(
            f"{path_without_secrets(url)}: answers {error.code} {error.reason}{hint}"
        ) from error
    except http.client.HTTPException as error:
        raise ConfigError(f"{path_without_secrets(url)}: answers no HTTP: {error!r}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ConnectionRefusedError):
            raise ConfigError(f"{path_without_secrets(url)}: connection refused; is it running?") from error
        said = getattr(reason, "strerror", None) or reason
        raise ConfigError(f"{path_without_secrets(url)}: cannot be reached: {said}") from error


def _answer(request: urllib.request.Request) -> str:
    """Return what is served, also behind redirects, which lead nowhere but to HTTP.

    Raises:
        OSError, ValueError: the server cannot be reached, or answers with an error.
        HTTPException: it speaks something else.
    """
    with http_opener().open(request, timeout=_TIMEOUT_S) as answer:
        page = answer.read(_LARGEST)
        if answer.length:  # what is missing may be what is down
            raise http.client.IncompleteRead(page, answer.length)
    return str(page.decode(errors="replace"))
