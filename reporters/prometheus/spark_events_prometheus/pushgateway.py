"""Pushes metrics to a Pushgateway: for batch jobs that end before anybody scrapes them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from prometheus_client import CollectorRegistry, delete_from_gateway, push_to_gateway
from prometheus_client.exposition import basic_auth_handler, default_handler

from spark_events.api import ConfigError, Refused, ReporterConfig, RetryLater, Scheduled, Secret
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

_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class PushTarget:
    """The group of a Pushgateway, and how it is reached.

    Attributes:
        url: of the Pushgateway.
        job: the label ``job`` of the group.
        grouping_key: its other labels.
        timeout_s: how long one request may take, in s.
        credentials: user and password of basic authentication; None for none.
    """

    url: str
    job: str
    grouping_key: Mapping[str, str]
    timeout_s: float
    credentials: tuple[str, Secret] | None


class PushgatewayReporter(SeriesReporter, Scheduled):
    """Replaces one group of a Pushgateway each ``interval``, and deletes it at the end.

    Args:
        target: the group.
        delete: whether ``close`` deletes it.
    """

    def __init__(self, target: PushTarget, delete: bool) -> None:
        super().__init__()
        self._target = target
        self._delete = delete
        self._pushed = False

    @property
    def destination(self) -> str:
        """The Pushgateway, and the job of the group."""
        return f"{self._target.url} (job {self._target.job!r})"

    def report(self) -> None:
        """Replace the group.

        Raises:
            RetryLater: the Pushgateway is away.
            Refused: it does not take the metrics.
        """
        self._request(push_to_gateway, registry=CollectorRegistry())
        self._pushed = True

    def close(self) -> None:
        """Delete the group, where that is asked for and something was pushed."""
        if self._delete and self._pushed:
            self._pushed = False
            self._request(delete_from_gateway)

    def probe(self) -> str:
        """Ask the Pushgateway whether it is ready."""
        url = self._target.url
        urlopen(f"{url}/-/ready", timeout=self._target.timeout_s).close()
        return f"{url} is ready"

    def _request(self, call: Callable[..., None], **arguments: Any) -> None:
        target = self._target
        try:
            call(
                target.url,
                target.job,
                grouping_key=dict(target.grouping_key),
                timeout=target.timeout_s,
                handler=self._handler,
                **arguments,
            )
        except HTTPError as error:
            reason = f"{target.url} answered {error.code}: {error.read(200).decode(errors='replace').strip()}"
            raise (Refused(reason) if error.code == 400 else RetryLater(reason)) from None
        except OSError as error:
            raise RetryLater(f"{target.url}: {getattr(error, 'reason', error)}") from None

    def _handler(
        self, url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        """Send this reporter's own exposition in place of that of the client's registry, which is empty."""
        body = self.render() if method == "PUT" else data
        headers = [("Content-Type", CONTENT_TYPE)]
        if self._target.credentials is None:
            return default_handler(url, method, timeout, headers, body)
        user, password = self._target.credentials
        return basic_auth_handler(url, method, timeout, headers, body, user, password.reveal())


def pushgateway_from(config: ReporterConfig) -> PushgatewayReporter:
    """Return the configured reporter.

    Raises:
        ConfigError: the URL or a label is none, or one of user and password is given without the other.
    """
    url = _url_from(config)
    config.both_or_none(USERNAME, PASSWORD)
    user, password = config.get(USERNAME), config.get(PASSWORD)
    grouping_key = config.get(GROUPING_KEY)
    for label in grouping_key:
        if not _LABEL.fullmatch(label) or label == "job":
            allowed = "labels such as team=payments, none of which is job"
            raise ConfigError.of_value(config.key(GROUPING_KEY.name), label, allowed)
    job = config.get(JOB_NAME) or config.application.name or "spark"
    if config.get(RANDOM_JOB_NAME_SUFFIX):
        job += secrets.token_hex(8)
    target = PushTarget(
        url,
        job,
        grouping_key,
        timeout_s=config.get(TIMEOUT) / 1000,
        credentials=(user, password) if user and password else None,
    )
    return PushgatewayReporter(target, config.get(DELETE_ON_SHUTDOWN))


def _url_from(config: ReporterConfig) -> str:
    url = config.get(HOST_URL)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.password:
        without_user = url.rpartition("@")[2]
        allowed = "a URL such as http://localhost:9091; user and password have options of their own"
        raise ConfigError.of_value(config.key(HOST_URL.name), without_user, allowed)
    return url.rstrip("/")
