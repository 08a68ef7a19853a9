"""OTLP over gRPC."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from spark_events.api import Refused, RetryLater
from spark_events_otlp.grpc_import import grpc
from spark_events_otlp.signals import Signal
from spark_events_otlp.transport import LONGEST_REASON, TRIES_OF_UNCLEAR, Endpoint, OtlpTransport

_REFUSED = frozenset(("INVALID_ARGUMENT", "FAILED_PRECONDITION", "ALREADY_EXISTS"))
_UNCLEAR = frozenset(("INTERNAL", "UNKNOWN"))
_HINTS = {
    "UNAUTHENTICATED": "see exporter.headers",
    "PERMISSION_DENIED": "see exporter.headers",
    "UNIMPLEMENTED": "it does not serve this signal; see exporter.endpoint",
    "NOT_FOUND": "see exporter.endpoint",
}
_REFUSED_CONNECTION = "Connection refused"
_TOO_LARGE = re.compile(r"message (?:is )?larger than max", re.ASCII)
_EXHAUSTED, _UNPACKED = "RESOURCE_EXHAUSTED", "Decompressed message larger than max"
_LARGEST_ANSWER = (4 << 20) - 3
"""In bytes; not gRPC's default, for what a destination passes on of a call of its own has that."""
_OF_HTTP = re.compile(r"Received http2 header with status: (\d+)", re.ASCII)
_HTTP_TOO_LARGE, _HTTP_BROKEN = 413, 500
_OF_TLS = re.compile(r"(?i)ssl|tls|certificate|handshake|tsi_|hostname verification", re.ASCII)
_NO_STATUS = ("Stream removed", "No status received")
"""How gRPC's details begin where something answered that is no server of gRPC, such as a proxy."""
_STATUS_KEY = "grpc-status-details-bin"


class GrpcTransport(OtlpTransport):
    """Sends requests over one channel, made anew when the files of TLS change."""

    def __init__(self, endpoint: Endpoint, signal: Signal) -> None:
        super().__init__(endpoint, signal)
        self._channel: Any = None
        self._export: Any = None

    def send(self, request: bytes) -> Any:
        """Send one request and return the parsed answer."""
        self._connect()
        try:
            answer = self._exported(request)
        except grpc.RpcError as error:
            if _is_of_answer(error.code().name, error.details() or ""):
                return self._too_large()
            raise self._error_of(error) from None
        try:
            if answer is not None:  # as of what says that all is well, and nothing else
                return self._signal.response.FromString(answer)
        except DecodeError:
            pass
        raise RetryLater(f"{self.url} (grpc) answered, but not with OTLP (see exporter.endpoint)")

    def _exported(self, request: bytes) -> bytes | None:
        """Return the answer to one request.

        If one of them is too large once it is unpacked, gRPC does not say which. Where requests are packed,
        this one is then sent once more as it is, so that it can only be the answer.

        Raises:
            RpcError: there is no answer, or one that is too large.
        """
        try:
            return self._call(request, packed=self._endpoint.gzip)
        except grpc.RpcError as error:
            if not self._endpoint.gzip or _UNPACKED not in (error.details() or ""):
                raise
        return self._call(request, packed=False)

    def _call(self, request: bytes, *, packed: bool) -> bytes | None:
        answer: bytes | None = self._export(
            request,
            timeout=self._endpoint.timeout_s,
            metadata=list(self._endpoint.reveal_headers().items()),
            compression=grpc.Compression.Gzip if packed else None,
        )
        return answer

    def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            self._channel.close()
            self._channel = self._export = None

    def _connect(self) -> None:
        try:
            stamp = self._endpoint.tls.stamp()
            if self._export is not None and stamp == self._tls_stamp:
                return
            self.close()
            self._channel = self._open_channel()
        except OSError as error:
            raise RetryLater(f"a TLS file cannot be read: {error}") from error
        self._tls_stamp = stamp
        # Not by the generated stub, which would serialize the request once more. And gRPC would log a
        # traceback for each answer that its deserializer does not take.
        self._export = self._channel.unary_unary(self._signal.method)

    def _open_channel(self) -> Any:
        url = urlsplit(self._endpoint.url)
        address = f"[{url.hostname}]" if ":" in str(url.hostname) else url.hostname
        # A collector that comes back is noticed within a second, and not after gRPC's two minutes.
        options = [
            ("grpc.max_reconnect_backoff_ms", 1_000),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_receive_message_length", _LARGEST_ANSWER),
        ]
        authority = f"{address}:{url.port or 4317}"
        if url.scheme == "https":
            credentials = grpc.ssl_channel_credentials(*self._endpoint.tls.read())
            return grpc.secure_channel(authority, credentials, options)
        return grpc.insecure_channel(authority, options)

    def _error_of(self, error: Any) -> Exception:
        """Return what an error of gRPC asks for."""
        code, details = error.code().name, error.details() or ""
        if code == "UNAVAILABLE" and _REFUSED_CONNECTION in details:
            return RetryLater(f"{self.url} (grpc): connection refused; is a collector running there?")
        reason = f"{self.url} (grpc) answered {code}: {details[:LONGEST_REASON]}"
        if code in _REFUSED or (code == _EXHAUSTED and _TOO_LARGE.search(details)):
            return Refused(reason)
        if (of_http := _OF_HTTP.match(details)) and code in _UNCLEAR:
            return _of_proxy(reason, int(of_http[1]))
        if details.startswith(_NO_STATUS) and code in _UNCLEAR:
            return RetryLater(f"{reason} (see exporter.endpoint)")
        if code in _HINTS:
            return RetryLater(f"{reason} ({_HINTS[code]})")
        if code in _UNCLEAR:
            return RetryLater(reason, retry_info_ms(error), tries=TRIES_OF_UNCLEAR)
        if code == "UNAVAILABLE" and _OF_TLS.search(details):
            reason += " (a TLS problem; see exporter.certificate, exporter.client.certificate)"
        return RetryLater(reason, retry_info_ms(error), smaller=code == "DEADLINE_EXCEEDED")


def _of_proxy(reason: str, status: int) -> RetryLater:
    """Return what an answer of HTTP asks for: no collector has seen the request, which is not to blame.

    Unless it is too large for what answered, or that breaks on it.
    """
    if status == _HTTP_TOO_LARGE:
        return RetryLater(reason, tries=TRIES_OF_UNCLEAR, smaller=True)
    if status >= _HTTP_BROKEN:
        return RetryLater(reason, tries=TRIES_OF_UNCLEAR)
    return RetryLater(f"{reason} (see exporter.endpoint)")


def _is_of_answer(code: str, details: str) -> bool:
    """Return whether the answer is too large: the destination has taken the request, which was not packed.

    A request that is too large has nearly the same details, and so has what a destination says of a call of
    its own: the limit is ours.
    """
    if code != _EXHAUSTED:
        return False
    return details == _UNPACKED or (
        bool(_TOO_LARGE.search(details)) and f" vs. {_LARGEST_ANSWER})" in details
    )


def retry_info_ms(error: Any) -> int | None:
    """Return the pause that an answer asks for, in ms, by google.rpc.RetryInfo."""
    for key, value in error.trailing_metadata() or ():
        if key == _STATUS_KEY:
            try:
                return _retry_delay_ms(Status.FromString(value))
            except (DecodeError, ValueError):  # whatever answered, it is not what gRPC asks for
                return None
    return None


def _retry_delay_ms(status: Any) -> int | None:
    for detail in status.details:
        info = RetryInfo()
        if detail.Is(RetryInfo.DESCRIPTOR) and detail.Unpack(info):
            return max(0, int(info.retry_delay.ToMilliseconds()))
    return None
