"""Pushes metrics to a Pushgateway: for batch jobs that end before anybody scrapes them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from prometheus_client import CollectorRegistry, delete_from_gateway, push_to_gateway
from prometheus_client.exposition import basic_auth_handler, default_handler

from spark_events.api import ConfigError, Refused, ReporterConfig, RetryLater, Scheduled, Secret
from spark_events_prometheus.exposition import CONTENT_TYPE
from spark_events_prometheus.factory import (
    DELETE,
    GROUPING_KEY,
    HOST_URL,
    JOB_NAME,
    PASSWORD,
    RANDOM_SUFFIX,
    TIMEOUT,
    USERNAME,
)
from spark_events_prometheus.reporter import SeriesReporter

_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class PushgatewayReporter(SeriesReporter, Scheduled):
    """Replaces one group of a Pushgateway each ``interval``, and deletes it at the end.

    Args:
        url: of the Pushgateway.
        job: the label ``job`` of the group.
        grouping_key: its other labels.
        delete: whether ``close`` deletes the group.
        timeout_s: how long one request may take, in s.
        credentials: user and password of basic authentication; None for none.
    """

    def __init__(
        self,
        url: str,
        job: str,
        grouping_key: Mapping[str, str],
        delete: bool,
        timeout_s: float,
        credentials: tuple[str, Secret] | None,
    ) -> None:
        super().__init__()
        self._url = url
        self._job = job
        self._grouping_key = dict(grouping_key)
        self._delete = delete
        self._timeout_s = timeout_s
        self._credentials = credentials
        self._pushed = False

    @property
    def destination(self) -> str:
        """The Pushgateway, and the job of the group."""
        return f"{self._url} (job {self._job!r})"

    def report(self) -> None:
        """Replace the group.

        Raises:
            RetryLater: the Pushgateway is away.
            Refused: it does not take the metrics.
        """
        self._ask(push_to_gateway, registry=CollectorRegistry())
        self._pushed = True

    def close(self) -> None:
        """Delete the group, where that is asked for and something was pushed."""
        if self._delete and self._pushed:
            self._pushed = False
            self._ask(delete_from_gateway)

    def probe(self) -> str:
        """Ask the Pushgateway whether it is ready."""
        urlopen(f"{self._url}/-/ready", timeout=self._timeout_s).close()
        return f"{self._url} is ready"

    def _ask(self, call: Callable[..., None], **arguments: Any) -> None:
        try:
            call(
                self._url,
                self._job,
                grouping_key=self._grouping_key,
                timeout=self._timeout_s,
                handler=self._handler,
                **arguments,
            )
        except HTTPError as error:
            reason = f"{self._url} answered {error.code}: {error.read(200).decode(errors='replace').strip()}"
            raise (Refused(reason) if error.code == 400 else RetryLater(reason)) from None
        except OSError as error:
            raise RetryLater(f"{self._url}: {getattr(error, 'reason', error)}") from None

    def _handler(
        self, url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        """Send what this reporter renders, in place of what the client's own registry would be."""
        body = self.render() if method == "PUT" else data
        ours = [("Content-Type", CONTENT_TYPE)]
        if self._credentials is None:
            return default_handler(url, method, timeout, ours, body)
        user, password = self._credentials
        return basic_auth_handler(url, method, timeout, ours, body, user, password.reveal())


def pushgateway_from(config: ReporterConfig) -> PushgatewayReporter:
    """Return the configured reporter.

    Raises:
        ConfigError: the URL is none, or one of user and password is given without the other.
    """
    url = config.get(HOST_URL)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.password:
        shown = url.rpartition("@")[2]
        allowed = "a URL such as http://localhost:9091; user and password have options of their own"
        raise ConfigError.of_value(config.key(HOST_URL.name), shown, allowed)
    config.both_or_none(USERNAME, PASSWORD)
    user, password = config.get(USERNAME), config.get(PASSWORD)
    wrong = [label for label in config.get(GROUPING_KEY) if not _LABEL.fullmatch(label) or label == "job"]
    if wrong:
        allowed = "labels such as team=payments, none of which is job"
        raise ConfigError.of_value(config.key(GROUPING_KEY.name), wrong[0], allowed)
    job = config.get(JOB_NAME) or config.application.name or "spark"
    if config.get(RANDOM_SUFFIX):
        job += secrets.token_hex(8)
    return PushgatewayReporter(
        url.rstrip("/"),
        job,
        config.get(GROUPING_KEY),
        config.get(DELETE),
        config.get(TIMEOUT) / 1000,
        (user, password) if user and password else None,
    )
