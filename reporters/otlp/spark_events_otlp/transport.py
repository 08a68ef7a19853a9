"""Sends one request at a time, and reads the answer: done, try again, or never."""

from __future__ import annotations

import abc
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_events.api import PartlyRefused, RetryLater, Secret, url_without_secrets
from spark_events_otlp.signals import Signal

logger = logging.getLogger("spark_events.otlp")
TRIES_OF_UNCLEAR = 10
"""How often a request is sent that the destination breaks on, before its records count as refused."""
LONGEST_REASON = 1_000
"""How much of what a destination says is passed on, in characters."""
# What gRPC sends, and what all servers of HTTP take.
_HEADER_NAME = re.compile(r"[-\w.]{1,256}", re.ASCII)
_HEADER_VALUE = re.compile(r"[ -~]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files; None where none is configured.

    Attributes:
        authorities: whom to trust; the system's authorities by default.
        certificate: the client's own, for mutual TLS.
        key: the certificate's key.
    """

    authorities: Path | None
    certificate: Path | None
    key: Path | None

    def stamp(self) -> tuple[int, ...]:
        """Return the times of change of the files, in ns: another value when one of them is replaced.

        Raises:
            OSError: a file is gone.
        """
        paths = (self.authorities, self.certificate, self.key)
        return tuple(path.stat().st_mtime_ns for path in paths if path is not None)

    def read(self) -> tuple[bytes | None, ...]:
        """Return authorities, key and certificate chain, in the order in which gRPC takes them.

        Raises:
            OSError: a file cannot be read.
        """
        paths = (self.authorities, self.key, self.certificate)
        return tuple(None if path is None else path.read_bytes() for path in paths)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and how.

    Attributes:
        url: without a path for gRPC, and with the signal's path for HTTP.
        timeout_s: how long one request may take, in s.
        gzip: whether requests are compressed.
        headers: of each request.
        tls: the files of TLS.
    """

    url: str
    timeout_s: float
    gzip: bool
    headers: Mapping[str, Secret]
    tls: TlsFiles

    def reveal_headers(self) -> dict[str, str]:
        """Return the headers as they go on the wire.

        Raises:
            RetryLater: a name or a value cannot be sent: its variable or its file may yet be mended.
        """
        revealed = {}
        for key, value in self.headers.items():
            revealed[key.lower()] = text = value.reveal()
            if not _HEADER_NAME.fullmatch(key):
                said = f"{key!r} is no name of a header; expected letters, digits, '-', '_' and '.'"
                raise RetryLater(f"exporter.headers: {said}")
            if not _HEADER_VALUE.fullmatch(text):
                said = "has a line feed, or another character that is no printable ASCII"
                raise RetryLater(
                    f"exporter.headers: the value of {key!r} {said}; nothing is sent until it is mended"
                )
        return revealed


class OtlpTransport(abc.ABC):
    """Sends requests to one endpoint; ``url`` is the endpoint's, for messages, without secrets."""

    def __init__(self, endpoint: Endpoint, signal: Signal) -> None:
        self.url = url_without_secrets(endpoint.url)
        self._endpoint = endpoint
        self._signal = signal
        self._warned = False
        self._tls_stamp: tuple[int, ...] = ()
        """Of the files of TLS, as the connection has read them."""

    @abc.abstractmethod
    def send(self, request: bytes) -> Any:
        """Send one serialized request and return the parsed answer.

        Raises:
            RetryLater: the destination is away, or asks for a later try.
            Refused: it will never take this request.
        """

    def deliver(self, request: bytes, items: int) -> None:
        """Send one serialized request of so many items; returning means that all of it was accepted.

        Raises:
            PartlyRefused: it was taken but for some records.
            RetryLater: the destination is away, or asks for a later try.
            Refused: it will never take this request.
        """
        answer = self.send(request)
        refused = min(getattr(answer.partial_success, self._signal.rejected), items)
        if refused > 0:
            reason = answer.partial_success.error_message[:LONGEST_REASON] or "no reason given"
            raise PartlyRefused(refused, f"{self.url} answered: {reason}")

    def probe(self) -> str:
        """Send an empty request, close the connection, and say who answered."""
        try:
            self.send(b"")
        finally:
            self.close()
        return f"{self.url} answered"

    def _too_large(self) -> Any:
        """Return what stands for an answer that is too large to be read: the request was taken."""
        if not self._warned:
            self._warned = True
            logger.warning("%s has taken a request, but its answer is too large to be read", self.url)
        return self._signal.response()

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection; the next request would make another."""
