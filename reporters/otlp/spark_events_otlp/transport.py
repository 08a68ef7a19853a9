"""Sends one request over gRPC or HTTP, and reads the answer: done, try again, or never."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from spark_events.api import ConfigError, ReporterConfig, RetryLater, Secret, SparkEventsError
from spark_events_otlp.factory import CERTIFICATE, COMPRESSION, ENDPOINT, HEADERS, PROTOCOL, TIMEOUT

_GRPC_RETRYABLE = frozenset(
    (
        "CANCELLED",
        "DEADLINE_EXCEEDED",
        "RESOURCE_EXHAUSTED",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNAVAILABLE",
        "DATA_LOSS",
    )
)
_HTTP_RETRYABLE = frozenset((429, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class Signal:
    """What differs between logs and traces on the wire.

    Attributes:
        path: of HTTP.
        stub: the class of the gRPC stub.
        response: the class of the answer.
    """

    path: str
    stub: Any
    response: Any


class Transport(Protocol):
    """Sends requests to one destination."""

    endpoint: str

    def send(self, request: Any) -> Any:
        """Send one request and return the parsed answer.

        Raises:
            RetryLater: the destination is away, or asks for a later try.
            SparkEventsError: it will never take this request.
        """

    def close(self) -> None:
        """Close the connection."""


def transport_from(config: ReporterConfig, signal: Signal) -> Transport:
    """Return the configured transport; nothing is connected yet.

    Raises:
        ConfigError: the endpoint is no URL, or the certificate cannot be read.
    """
    protocol = config.get(PROTOCOL)
    default = "http://localhost:4317" if protocol == "grpc" else "http://localhost:4318"
    endpoint = config.get(ENDPOINT) or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or default
    url = urlsplit(endpoint)
    try:
        valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        valid = False
    if not valid:
        allowed = "a URL such as http://localhost:4317 or https://collector.example.org"
        raise ConfigError.of_value(config.key(ENDPOINT.name), endpoint, allowed)
    return (_Grpc if protocol == "grpc" else _Http)(config, signal, endpoint)


def _authorities(config: ReporterConfig) -> bytes | None:
    path = config.get(CERTIFICATE)
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        # Without it the system's authorities would be trusted, which nobody asked for.
        raise ConfigError.of_value(
            config.key(CERTIFICATE.name), path, f"a PEM file ({error.strerror})"
        ) from error


class _Grpc:
    def __init__(self, config: ReporterConfig, signal: Signal, endpoint: str) -> None:
        self.endpoint = endpoint
        self._signal = signal
        self._timeout_s = config.get(TIMEOUT) / 1000
        self._compress = config.get(COMPRESSION) == "gzip"
        self._headers = config.get(HEADERS)
        self._authorities = _authorities(config)
        self._channel: Any = None
        self._export: Any = None

    def send(self, request: Any) -> Any:
        import grpc

        if self._export is None:
            self._connect()
        try:
            return self._export(
                request,
                timeout=self._timeout_s,
                metadata=[(key.lower(), value) for key, value in _reveal(self._headers).items()],
                compression=grpc.Compression.Gzip if self._compress else None,
            )
        except grpc.RpcError as error:
            code = error.code().name
            reason = f"{self.endpoint} (grpc) answered {code}: {error.details()}"
            if code in _GRPC_RETRYABLE:
                raise RetryLater(reason) from None
            raise SparkEventsError(reason) from None

    def _connect(self) -> None:
        import grpc

        url = urlsplit(self.endpoint)
        target = f"{url.hostname}:{url.port or 4317}"
        # A collector that comes back is noticed within a second, and not after gRPC's two minutes.
        options = [("grpc.max_reconnect_backoff_ms", 1_000), ("grpc.initial_reconnect_backoff_ms", 200)]
        if url.scheme == "https":
            credentials = grpc.ssl_channel_credentials(self._authorities)
            self._channel = grpc.secure_channel(target, credentials, options)
        else:
            self._channel = grpc.insecure_channel(target, options)
        self._export = self._signal.stub(self._channel).Export

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = self._export = None


class _Http:
    def __init__(self, config: ReporterConfig, signal: Signal, endpoint: str) -> None:
        import requests

        path = signal.path
        self.endpoint = endpoint if endpoint.endswith(path) else endpoint.rstrip("/") + path
        self._signal = signal
        self._timeout_s = config.get(TIMEOUT) / 1000
        self._compress = config.get(COMPRESSION) == "gzip"
        self._headers = config.get(HEADERS)
        _authorities(config)
        self._session = requests.Session()
        self._session.verify = config.get(CERTIFICATE) or True

    def send(self, request: Any) -> Any:
        import requests

        body = request.SerializeToString()
        headers = {"Content-Type": "application/x-protobuf", **_reveal(self._headers)}
        if self._compress:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        try:
            answer = self._session.post(self.endpoint, data=body, headers=headers, timeout=self._timeout_s)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise RetryLater(f"{self.endpoint} (http) cannot be reached: {_cause(error)}") from None
        if answer.ok:
            return self._signal.response.FromString(answer.content)
        reason = f"{self.endpoint} (http) answered {answer.status_code} {answer.reason}"
        if answer.status_code in _HTTP_RETRYABLE:
            raise RetryLater(reason, _retry_after_ms(answer.headers))
        raise SparkEventsError(reason)

    def close(self) -> None:
        self._session.close()


def _reveal(headers: Mapping[str, Secret]) -> dict[str, str]:
    return {key: value.reveal() for key, value in headers.items()}


def _retry_after_ms(headers: Mapping[str, str]) -> int | None:
    value = headers.get("Retry-After", "")
    return int(value) * 1000 if value.isdigit() else None


def _cause(error: BaseException) -> str:
    """Return the innermost of requests' nested errors, which is the one that says why."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error)
