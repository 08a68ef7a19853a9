"""OTLP over HTTP, as protobuf."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from spark_events.api import Refused, RetryLater
from spark_events_otlp.signals import Signal
from spark_events_otlp.transport import TRIES_OF_UNCLEAR, Target, Transport

_RETRYABLE = frozenset((408, 425, 429, 502, 503, 504))
_OURS = {
    401: "see exporter.headers",
    403: "see exporter.headers",
    404: "see exporter.endpoint",
    405: "see exporter.endpoint",
    407: "the proxy wants to know who asks",
}
_PROTOBUF = "application/x-protobuf"
_SECONDS = re.compile(r"[0-9]{1,9}")
_LONGEST_BODY = 1 << 20
_PIECE = 4_096
_LONGEST_REASON = 1_000


class HttpTransport(Transport):
    """Sends requests in one session, made anew when the files of TLS change."""

    def __init__(self, target: Target, signal: Signal) -> None:
        super().__init__(target, signal)
        self._session: requests.Session | None = None

    def send(self, request: bytes) -> Any:
        """Send one request and return the parsed answer."""
        files = self._target.tls
        headers = {"Content-Type": _PROTOBUF, **self._target.reveal_headers()}
        if self._target.gzip:
            request, headers["Content-Encoding"] = gzip.compress(request), "gzip"
        try:
            answer = self._connected().post(
                self.endpoint,
                data=request,
                headers=headers,
                timeout=self._target.timeout_s,
                # Here, because REQUESTS_CA_BUNDLE would win over the session's.
                verify=str(files.authorities) if files.authorities else None,
                # A redirected POST would become a GET; and ~/.netrc would replace the configured header.
                allow_redirects=False,
                auth=lambda prepared: prepared,
                stream=True,
            )
            body = _body(answer, self._target.timeout_s)
        except OSError as error:  # of a file of TLS, or of requests, whose errors all are of this kind
            slow = isinstance(error, requests.ReadTimeout)
            raise RetryLater(
                f"{self.endpoint} (http) cannot be reached: {_cause(error)}", smaller=slow
            ) from None
        if 200 <= answer.status_code < 300:
            return self._parse(answer.status_code, body)
        raise self._error(answer, body)

    def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _connected(self) -> requests.Session:
        files = self._target.tls
        stamp = files.stamp()
        if self._session is None or stamp != self._stamp:
            self.close()
            self._stamp = stamp
            self._session = requests.Session()
            if files.certificate and files.key:
                self._session.cert = (str(files.certificate), str(files.key))
        return self._session

    def _parse(self, code: int, content: bytes) -> Any:
        try:
            return self._signal.response.FromString(content)
        except DecodeError:
            raise RetryLater(
                f"{self.endpoint} (http) answered {code}, and nothing of OTLP (see exporter.endpoint)",
            ) from None

    def _error(self, answer: requests.Response, body: bytes) -> Exception:
        """Return what an answer other than success asks for."""
        code = answer.status_code
        said = f"{code} {answer.reason or ''}{_message(answer, body)}"
        reason = f"{self.endpoint} (http) answered {said[:_LONGEST_REASON]}"
        after_ms = retry_after_ms(answer.headers)
        if code in _RETRYABLE:
            return RetryLater(reason, after_ms)
        if code in _OURS or code < 400:
            return RetryLater(f"{reason} ({_OURS.get(code, 'see exporter.endpoint')})", after_ms)
        if code >= 500:
            return RetryLater(reason, after_ms, tries=TRIES_OF_UNCLEAR)
        return Refused(reason)


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """Return what the header Retry-After asks for, in ms; it says s, or a date."""
    value = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(value):
        return int(value) * 1000
    try:
        return max(0, int((parsedate_to_datetime(value).timestamp() - time.time()) * 1000))
    except (ValueError, TypeError, OverflowError):
        return None


def _body(answer: requests.Response, timeout_s: float) -> bytes:
    """Return an answer's body, unpacked; of one that goes on and on, the beginning.

    Args:
        answer: of which only the headers have been read.
        timeout_s: how long reading it may take, in s.

    Raises:
        OSError: the connection broke, what came cannot be unpacked, or it takes too long.
    """
    until, body = time.monotonic() + timeout_s, bytearray()
    with answer:
        # In small pieces: one that is packed can be a thousand times as large.
        for piece in answer.iter_content(_PIECE):
            body += piece
            if len(body) >= _LONGEST_BODY:
                break
            if time.monotonic() > until:
                raise requests.ReadTimeout(f"its answer takes longer than {timeout_s:g} s")
    return bytes(body)


def _message(answer: requests.Response, body: bytes) -> str:
    """Return what the body says, where it is the status message that OTLP asks for."""
    if answer.headers.get("Content-Type") != _PROTOBUF:
        return ""
    try:
        message = Status.FromString(body).message
    except DecodeError:
        return ""
    return f": {message}" if message else ""


def _cause(error: BaseException) -> str:
    """Return the innermost of requests' nested errors, which is the one that says why."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error)
