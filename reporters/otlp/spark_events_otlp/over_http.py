"""OTLP over HTTP, as protobuf."""

from __future__ import annotations

import gzip
import re
from typing import Any

import requests
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from spark_events.api import Refused, RetryLater, text_without_queries
from spark_events.api.toolkit.http_once import LONGEST_BODY, OneTryAdapter, innermost, retry_after_ms
from spark_events_otlp.signals import Signal
from spark_events_otlp.transport import LONGEST_REASON, TRIES_OF_UNCLEAR, Endpoint, OtlpTransport

_RETRYABLE = frozenset((408, 425, 429, 502, 503, 504))
_HINTS = {
    401: "see exporter.headers",
    403: "see exporter.headers",
    404: "see exporter.endpoint",
    405: "see exporter.endpoint",
    407: "the proxy requires authentication",
}
_WANTS_TLS = re.compile(r"(?i)HTTP request (?:to an HTTPS server|was sent to HTTPS port)", re.ASCII)
"""What servers in Go, such as the collector, and nginx say to a client that speaks no TLS."""
_PROTOBUF, _OF_PAGES = "application/x-protobuf", "text/html"


class HttpTransport(OtlpTransport):
    """Sends requests in one session, made anew when the files of TLS change."""

    def __init__(self, endpoint: Endpoint, signal: Signal) -> None:
        super().__init__(endpoint, signal)
        self._session: requests.Session | None = None

    def send(self, request: bytes) -> Any:
        """Send one request and return the parsed answer."""
        authorities = self._endpoint.tls.authorities
        headers = {"Content-Type": _PROTOBUF, **self._endpoint.reveal_headers()}
        if self._endpoint.gzip:
            request, headers["Content-Encoding"] = gzip.compress(request), "gzip"
        try:
            answer = self._session_now().post(
                self._endpoint.url,
                data=request,
                headers=headers,
                timeout=self._endpoint.timeout_s,
                # Here, because REQUESTS_CA_BUNDLE would win over the session's.
                verify=str(authorities) if authorities else None,
                # A redirected POST would become a GET; and ~/.netrc would replace the configured header.
                allow_redirects=False,
                auth=lambda prepared: prepared,
            )
        except OSError as error:  # of a file of TLS, or of requests, whose errors all are of this kind
            reason = f"{self.url} (http) cannot be reached: {text_without_queries(innermost(error))}"
            raise RetryLater(reason, smaller=isinstance(error, requests.ReadTimeout)) from None
        except ValueError as error:  # of what requests reads in an answer, such as where a redirect leads to
            reason = f"{self.url} (http) answered what is no HTTP: {text_without_queries(str(error))}"
            raise RetryLater(f"{reason} (see exporter.endpoint)") from None
        if 200 <= answer.status_code < 300:
            return self._parsed(answer)
        raise self._error_of(answer)

    def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _session_now(self) -> requests.Session:
        """Return the session, which has read the files of TLS as they are now."""
        files = self._endpoint.tls
        stamp = files.stamp()
        if self._session is None or stamp != self._tls_stamp:
            self.close()
            self._tls_stamp = stamp
            self._session = requests.Session()
            for scheme in ("http://", "https://"):
                self._session.mount(scheme, OneTryAdapter())
            if files.certificate and files.key:
                self._session.cert = (str(files.certificate), str(files.key))
        return self._session

    def _parsed(self, answer: requests.Response) -> Any:
        if answer.headers.get("Content-Type", "").startswith(_OF_PAGES):
            raise self._no_otlp(answer)  # an empty one, too, could be parsed
        try:
            return self._signal.response.FromString(answer.content)
        except DecodeError:
            of_otlp = answer.headers.get("Content-Type") == _PROTOBUF
            if of_otlp and len(answer.content) >= LONGEST_BODY:  # of which there is only the beginning
                return self._too_large()
            raise self._no_otlp(answer) from None

    def _no_otlp(self, answer: requests.Response) -> RetryLater:
        return RetryLater(
            f"{self.url} (http) answered {answer.status_code}, but not with OTLP (see exporter.endpoint)"
        )

    def _error_of(self, answer: requests.Response) -> Exception:
        """Return what an answer other than success asks for."""
        code = answer.status_code
        status = f"{code} {answer.reason or ''}{_status_message(answer)}"
        reason = f"{self.url} (http) answered {status[:LONGEST_REASON]}"
        after_ms = retry_after_ms(answer.headers)
        if code in _RETRYABLE:
            return RetryLater(reason, after_ms)
        if code in _HINTS or code < 400:
            return RetryLater(f"{reason} ({_HINTS.get(code, 'see exporter.endpoint')})", after_ms)
        if code >= 500:
            return RetryLater(reason, after_ms, tries=TRIES_OF_UNCLEAR)
        if _WANTS_TLS.search(answer.text[:LONGEST_REASON]):
            return RetryLater(f"{reason}: it expects TLS (see exporter.endpoint: https://…)")
        return Refused(reason)


def _status_message(answer: requests.Response) -> str:
    """Return what the body says, where it is the status message that OTLP asks for."""
    if answer.headers.get("Content-Type") != _PROTOBUF:
        return ""
    try:
        message = Status.FromString(answer.content).message
    except DecodeError:
        return ""
    return f": {message}" if message else ""
