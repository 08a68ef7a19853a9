"""Requests to servers that may be hostile: one try, its answer in one timeout and of bounded size."""

from __future__ import annotations

import io
import logging
import re
import threading
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import requests
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.exceptions import ReadTimeoutError

from spark_events.api.toolkit.timed_http import TimedResponse

LONGEST_BODY = 1 << 20
_sending = threading.local()
_PIECE = 4_096
_SECONDS = re.compile(r"[0-9]{1,9}")


class OneTryAdapter(HTTPAdapter):  # type: ignore[misc] # requests has no types
    """Sends once: whoever uses it has retries, and pauses between them, of its own.

    The answer has been read when ``send`` returns, at most 1 MiB of it, unpacked.
    """

    def init_poolmanager(self, *arguments: Any, **keywords: Any) -> None:
        """Make the connections; each reads an answer within one timeout."""
        super().init_poolmanager(*arguments, **keywords)
        _time(self.poolmanager)

    def proxy_manager_for(self, *arguments: Any, **keywords: Any) -> PoolManager:
        """Make the connections by way of a proxy."""
        manager: PoolManager = super().proxy_manager_for(*arguments, **keywords)
        _time(manager)
        return manager

    def send(self, request: PreparedRequest, *arguments: Any, **keywords: Any) -> Response:
        """Send a request, and read the answer."""
        _sending.now = True
        try:
            answer = super().send(request, *arguments, **keywords)
        finally:
            _sending.now = False
        try:
            with answer:
                body = _beginning(answer)
        except requests.ConnectionError as error:
            # requests calls it so, unlike a head that is late.
            late = bool(error.args) and isinstance(error.args[0], ReadTimeoutError)
            raise (requests.ReadTimeout(error, request=request) if late else error) from error.__context__
        answer = self.build_response(request, answer.raw)
        answer.raw = io.BytesIO(body)
        return answer


class _HeadersOnce(logging.Filter):
    """Lets urllib3's warning of headers that it cannot parse through once, without its traceback.

    Each answer of a destination may have them; what others ask with urllib3 is not touched.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_told = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        if not getattr(_sending, "now", False) or not str(record.msg).startswith("Failed to parse headers"):
            return True
        record.exc_info = record.exc_text = None
        is_first, self._is_told = not self._is_told, True
        return is_first


logging.getLogger("urllib3.connection").addFilter(_HeadersOnce())


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """Return what the header Retry-After asks for, in ms; it says s, or a date."""
    value = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(value):
        return int(value) * 1000
    try:
        return max(0, int((parsedate_to_datetime(value).timestamp() - time.time()) * 1000))
    except (ValueError, TypeError, OverflowError):
        return None


def innermost(error: BaseException) -> str:
    """Return the innermost of requests' nested errors, which says why; and whether it is about the proxy."""
    of_proxy = isinstance(error, requests.exceptions.ProxyError)
    while error.__context__ is not None:
        error = error.__context__
    return f"its proxy (see HTTP_PROXY, HTTPS_PROXY): {error}" if of_proxy else str(error)


def _time(manager: PoolManager) -> None:
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _timed(pool) for scheme, pool in pools.items()}


@cache
def _timed(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """Return a kind of connections, also by way of SOCKS, whose answers are read within one timeout."""
    connection = type("TimedConnection", (pool.ConnectionCls,), {"response_class": TimedResponse})
    return type("TimedConnectionPool", (pool,), {"ConnectionCls": connection})


def _beginning(answer: Response) -> bytes:
    """Return an answer's body, unpacked; of one that goes on and on, the beginning.

    Raises:
        OSError: the connection broke, what came cannot be unpacked, or it takes too long.
    """
    body = bytearray()
    # In small pieces: one that is packed can be a thousand times as large.
    for piece in answer.iter_content(_PIECE):
        body += piece
        if len(body) >= LONGEST_BODY:
            break
    return bytes(body)
