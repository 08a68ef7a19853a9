"""Sends one request over gRPC or HTTP, and reads the answer: done, try again, or never."""

from __future__ import annotations

import abc
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from spark_events.api import ConfigError, PartlyRefused, ReporterConfig, Secret
from spark_events_otlp.factory import (
    CERTIFICATE,
    CLIENT_CERTIFICATE,
    CLIENT_KEY,
    COMPRESSION,
    ENDPOINT,
    HEADERS,
    PROTOCOL,
    TIMEOUT,
)
from spark_events_otlp.signals import Signal
from spark_events_otlp.tls import TlsFiles

TRIES_OF_UNCLEAR = 10
"""How often a request is sent that the destination breaks on, before its records count as refused."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go, and how.

    Attributes:
        endpoint: a URL without a path for gRPC, and with the signal's path for HTTP.
        timeout_s: how long one request may take, in s.
        gzip: whether requests are compressed.
        headers: of each request.
        tls: the files of TLS.
    """

    endpoint: str
    timeout_s: float
    gzip: bool
    headers: Mapping[str, Secret]
    tls: TlsFiles

    def reveal_headers(self) -> dict[str, str]:
        """Return the headers as they go on the wire."""
        return {key.lower(): value.reveal() for key, value in self.headers.items()}


class Transport(abc.ABC):
    """Sends requests to one destination.

    Args:
        target: where requests go.
        signal: what is sent.

    Attributes:
        endpoint: the destination, for messages.
    """

    def __init__(self, target: Target, signal: Signal) -> None:
        self.endpoint = target.endpoint
        self._target = target
        self._signal = signal
        self._stamp: tuple[int, ...] = ()
        """Of the files of TLS, as the connection has read them."""

    @abc.abstractmethod
    def send(self, request: bytes) -> Any:
        """Send one serialised request and return the parsed answer.

        Raises:
            RetryLater: the destination is away, or asks for a later try.
            Refused: it will never take this request.
        """

    def deliver(self, request: bytes) -> None:
        """Send one serialised request; to return is to say that all of it was taken.

        Raises:
            PartlyRefused: it was taken but for some records.
            RetryLater: the destination is away, or asks for a later try.
            Refused: it will never take this request.
        """
        answer = self.send(request)
        refused = getattr(answer.partial_success, self._signal.rejected)
        if refused:
            reason = answer.partial_success.error_message or "without a reason"
            raise PartlyRefused(refused, f"{self.endpoint} answered: {reason}")

    def probe(self) -> str:
        """Send an empty request, close the connection, and say who answered."""
        try:
            self.send(b"")
        finally:
            self.close()
        return f"{self.endpoint} answered"

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection; the next request would make another."""


def transport_from(config: ReporterConfig, signal: Signal) -> Transport:
    """Return the configured transport; nothing is connected yet.

    Raises:
        ConfigError: the endpoint is no URL, or a file of TLS cannot be read.
    """
    files = TlsFiles(config.get(CERTIFICATE), config.get(CLIENT_CERTIFICATE), config.get(CLIENT_KEY))
    files.check(config, (CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY))
    over_http = config.get(PROTOCOL) == "http"
    target = Target(
        endpoint=_endpoint(config, signal, over_http),
        timeout_s=config.get(TIMEOUT) / 1000,
        gzip=config.get(COMPRESSION) == "gzip",
        headers=config.get(HEADERS) or _headers_of_environment(signal),
        tls=files,
    )
    if over_http:
        from spark_events_otlp.over_http import HttpTransport

        return HttpTransport(target, signal)
    from spark_events_otlp.over_grpc import GrpcTransport

    return GrpcTransport(target, signal)


def _endpoint(config: ReporterConfig, signal: Signal, over_http: bool) -> str:
    default = "http://localhost:4318" if over_http else "http://localhost:4317"
    given = config.get(ENDPOINT) or environment("ENDPOINT", signal) or default
    key = config.key(ENDPOINT.name)
    try:
        url = urlsplit(given)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        valid = False
    if not valid:
        allowed = "a URL such as http://localhost:4317 or https://collector.example.org"
        raise ConfigError.of_value(key, _without_user(given), allowed)
    if url.username or url.password:
        raise ConfigError(
            f"{key}: {_without_user(given)!r} has a user or a password in it; give them as a header: "
            f"{config.key(HEADERS.name)} authorization:env:NAME"
        )
    if over_http and not given.endswith(signal.path):
        return given.rstrip("/") + signal.path
    return given


def _without_user(url: str) -> str:
    return re.sub(r"//[^/]*@", "//******@", url)


def environment(name: str, signal: Signal) -> str | None:
    """Return OpenTelemetry's environment variable, that of the signal before that of all."""
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.name}_{name}") or os.environ.get(
        f"OTEL_EXPORTER_OTLP_{name}"
    )


def _headers_of_environment(signal: Signal) -> dict[str, Secret]:
    pairs = (pair.partition("=") for pair in (environment("HEADERS", signal) or "").split(","))
    return {unquote(key.strip()): Secret(unquote(value.strip())) for key, equals, value in pairs if equals}
