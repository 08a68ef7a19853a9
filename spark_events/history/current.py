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
from spark_events.api.toolkit.daemon_executor import call_within
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.history.figures.timeline import DOWN, LAST_FAILED, NOT_HEARD, STARTING, STOPPED, UP, UP_IN
from spark_events.history.report import Report

BAD_STATES = (DOWN, NOT_HEARD, LAST_FAILED)
_TIMEOUT_S = 10
_WHOLE_ANSWER_S = 30
_HANDLERS = (
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPRedirectHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.UnknownHandler,
)
_LARGEST = 256 << 20
_KINDS = ("application", "query")
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
        return f"{self.app_name} / {self.query_name}" if self.query_name else self.app_name


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
        UsageError: it is no URL of HTTP.
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
    values: dict[str, dict[tuple[str, str], float]] = {}
    statuses: dict[tuple[str, str, str], str] = {}
    for sample in samples:
        app, query = sample.labels.get("app_name", ""), sample.labels.get("query_name", "")
        for kind in _KINDS:
            if sample.name == f"spark_{kind}_status" and sample.value:
                statuses[kind, app, query] = sample.labels.get("status", "")
        values.setdefault(sample.name, {})[app, query] = sample.value
    if not statuses:
        raise NothingToReadError(f"{shown}: serves no spark_application_status and no spark_query_status")
    return _worst_first(_current(key, status, values) for key, status in statuses.items())


def _current(
    key: tuple[str, str, str], status: str, values: Mapping[str, Mapping[tuple[str, str], float]]
) -> Current:
    kind, *names = key
    now_ms = time.time_ns() // 1_000_000
    of_job = names[0], names[1]
    age_s = values.get(f"spark_{kind}_status_age_seconds", {}).get(of_job)
    restarts = values.get(f"spark_{kind}_num_restarts", {}).get(of_job)
    return Current(
        kind,
        names[0],
        names[1] or None,
        status,
        _STATES.get(status, STARTING),
        None if age_s is None or not isfinite(age_s) else now_ms - round(age_s * 1_000),
        None if restarts is None or not isfinite(restarts) else int(restarts),
        None,
    )


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
        raise ConfigError(f"{path_without_secrets(url)}: cannot be reached: {reason}") from error


def _answer(request: urllib.request.Request) -> str:
    """Return what is served, also behind redirects, which lead nowhere but to HTTP.

    Raises:
        OSError, ValueError: the server cannot be reached, or answers with an error.
        HTTPException: it speaks something else.
    """
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    with opener.open(request, timeout=_TIMEOUT_S) as answer:
        page = answer.read(_LARGEST)
        if answer.length:  # what is missing may be what is down
            raise http.client.IncompleteRead(page, answer.length)
    return str(page.decode(errors="replace"))
