"""Pushes metrics to a Pushgateway: for batch jobs that end before anybody scrapes them."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPSHandler, Request

from prometheus_client import CollectorRegistry, delete_from_gateway, push_to_gateway, pushadd_to_gateway

from spark_events.api import (
    ConfigError,
    Refused,
    ReporterConfig,
    RetryLater,
    Scheduled,
    is_http_url,
    url_without_secrets,
)
from spark_events.api.toolkit.timed_http import TimedResponse, http_opener
from spark_events_prometheus.exposition import CONTENT_TYPE
from spark_events_prometheus.options import (
    DELETE_ON_SHUTDOWN,
    GROUPING_KEY,
    HOST_URL,
    JOB_NAME,
    PASSWORD,
    RANDOM_JOB_NAME_SUFFIX,
    TIMEOUT,
    USERNAME,
)
from spark_events_prometheus.reporter import SeriesReporter

_LONGEST_ANSWER, _SHOWN = 10_000, 200
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class PushgatewayReporter(SeriesReporter, Scheduled):
    """Replaces one group of a Pushgateway each ``interval`` and at the end, and may delete it then.

    Raises:
        ConfigError: the URL or a label is none, or one of user and password is given without the other.
    """

    def __init__(self, config: ReporterConfig) -> None:
        self._grouping_key = _grouping_key_from(config)
        super().__init__(taken=("job", *self._grouping_key))
        self._url = _url_from(config)
        config.both_or_none(USERNAME, PASSWORD)
        self._job = config.get(JOB_NAME) or config.application.name or "spark"
        if config.get(RANDOM_JOB_NAME_SUFFIX):
            self._job += secrets.token_hex(8)
        self._timeout_s = config.get(TIMEOUT) / 1000
        self._user, self._password = config.get(USERNAME), config.get(PASSWORD)
        self._deletes = config.get(DELETE_ON_SHUTDOWN)
        self._pushed = False
        self._tells_end = config.tells_end
        self._has_group = not (config.tells_end and config.get(RANDOM_JOB_NAME_SUFFIX))

    @property
    def destination(self) -> str:
        """The Pushgateway, and the job of the group."""
        return f"{self._url} (job {self._job!r})"

    def report(self) -> None:
        """Replace the group; where this tells the end of another process, the metrics of the same names.

        Raises:
            RetryLater: the Pushgateway is away.
            Refused: it does not take the metrics.
        """
        if not self._has_group:  # which suffix the process that has ended had is not known
            return
        push = pushadd_to_gateway if self._tells_end else push_to_gateway
        self._request(push, registry=CollectorRegistry())
        self._pushed = True

    def close(self) -> None:
        """Delete the group, where that is asked for and something was pushed."""
        if self._deletes and self._pushed:
            self._pushed = False
            self._request(delete_from_gateway)

    def probe(self) -> str:
        """Ask the Pushgateway whether it is ready.

        Raises:
            RetryLater: it is away, or not ready.
            Refused: it says that it was asked wrongly.
        """
        with self._errors():
            _open(self._authorized(Request(f"{self._url}/-/ready")), self._timeout_s)
        return f"{self._url} is ready"

    def _request(self, call: Callable[..., None], **arguments: Any) -> None:
        with self._errors():
            call(
                self._url,
                self._job,
                grouping_key=self._grouping_key,
                timeout=self._timeout_s,
                handler=self._handler,
                **arguments,
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what the Pushgateway's answer, or that there is none, asks for."""
        try:
            yield
        except HTTPError as error:
            reason = f"{self._url} answered {error.code}: {_said_by(error)}"
            raise (Refused(reason) if error.code == 400 else RetryLater(reason)) from None
        except (OSError, HTTPException, ValueError) as error:  # the last of addresses and lengths in answers
            cause = getattr(error, "reason", error)
            if isinstance(cause, ConnectionRefusedError):
                cause = "connection refused; is a Pushgateway running there?"
            raise RetryLater(f"{self._url}: {cause}") from None

    def _handler(
        self, url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        """Send this reporter's own exposition in place of that of the client's registry, which is empty."""
        body = data if method == "DELETE" else self.render()
        request = Request(url, body, {"Content-Type": CONTENT_TYPE}, method=method)
        return partial(_open, self._authorized(request), self._timeout_s)

    def _authorized(self, request: Request) -> Request:
        if self._user and self._password:
            pair = base64.b64encode(f"{self._user}:{self._password.reveal()}".encode()).decode()
            request.add_header("Authorization", f"Basic {pair}")
        return request


class _TimedHttp(HTTPConnection):
    response_class = TimedResponse


class _TimedHttps(HTTPSConnection):
    response_class = TimedResponse


class _HttpHandler(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_TimedHttp, req)


class _HttpsHandler(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_TimedHttps, req)


def _open(request: Request, timeout_s: float) -> None:
    """Send a request, and read the head of the answer, both within the timeout.

    Raises:
        OSError: nobody answers in time, or the answer is an error.
        HTTPException: what answers does not speak HTTP.
    """
    http_opener(_HttpHandler, _HttpsHandler).open(request, timeout=timeout_s).close()


def _said_by(error: HTTPError) -> str:
    """Return the first words of an answer, and the last, which of a long one say what is wrong."""
    try:
        answer = error.read(_LONGEST_ANSWER).decode(errors="replace").strip()
        return answer if len(answer) <= 2 * _SHOWN else f"{answer[:_SHOWN]} … {answer[-_SHOWN:]}"
    except (OSError, HTTPException) as broken:
        return f"({broken})"


def _grouping_key_from(config: ReporterConfig) -> dict[str, str]:
    grouping_key = config.get(GROUPING_KEY)
    for label in grouping_key:
        if not _LABEL.fullmatch(label) or label == "job":
            allowed = "labels such as team=payments, none of which is job"
            raise ConfigError.of_value(config.key(GROUPING_KEY.name), label, allowed)
    return dict(grouping_key)


def _url_from(config: ReporterConfig) -> str:
    url = config.get(HOST_URL)
    parts = urlsplit(url if is_http_url(url) else "")
    if not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        allowed = "a URL such as http://localhost:9091 without a query; a user has options of its own"
        raise ConfigError.of_value(config.key(HOST_URL.name), url_without_secrets(url), allowed)
    return url.rstrip("/")
