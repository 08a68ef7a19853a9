"""Notices streaming queries whose ``start`` raises, of which Spark itself tells nobody."""

from __future__ import annotations

import importlib
import sys
import traceback
import uuid
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

from spark_events.api.event import now_ms
from spark_events.listeners.failures.python_errors import users_place
from spark_events.listeners.long_texts import cut_texts
from spark_events.listeners.record_fields import RUN_ID
from spark_events.listeners.spark_records import QUERY_NOT_STARTED
from spark_events.runtime.log_once import logger
from spark_events.sources.driver.replaced_method import Method, ReplacedMethod

Record = dict[str, Any]
_OPTION = "queryName"
_TRACEBACK = "Traceback (most recent call last):\n"


class FailedStarts:
    """Notices each call of ``start`` and ``toTable`` that raises an exception, which the caller gets as ever.

    If several attachments are open, the last one notices them.

    Args:
        take: called with a record of each, on the user's thread: it must neither wait nor raise.
        is_ours: whether a writer belongs to what is attached.
    """

    def __init__(
        self, take: Callable[[Record], None], is_ours: Callable[[Any], bool] = lambda _: True
    ) -> None:
        self._take = take
        self._is_ours = is_ours
        self._methods: tuple[ReplacedMethod[FailedStarts], ...] = ()

    def begin_classic(self) -> None:
        """Notice those of sessions with a driver in this process."""
        self._begin("pyspark.sql.streaming.readwriter", _CLASSIC)

    def begin_connect(self) -> None:
        """Notice those of sessions of Spark Connect."""
        self._begin("pyspark.sql.connect.streaming.readwriter", _CONNECT)

    def end(self) -> None:
        """Notice no further ones."""
        for method in self._methods:
            method.end(self)

    def _begin(self, module: str, methods: tuple[ReplacedMethod[FailedStarts], ...]) -> None:
        self._methods = methods
        try:
            writer = importlib.import_module(module).DataStreamWriter
            is_as_known = all(method.begin(writer, self) for method in methods)
        except (ImportError, AttributeError):
            is_as_known = False
        if not is_as_known:
            logger.warning("this PySpark starts queries differently; those that cannot start are not told")

    def notice(self, writer: Any, error: Exception, caller: FrameType) -> None:
        """Take what is known of a failed start.

        Args:
            writer: PySpark's, whose method raised.
            error: what it raised.
            caller: where it was called.
        """
        # The run has begun then, and its end is told by Spark.
        if type(error).__name__ == "StreamingQueryException" or not self._is_ours(writer):
            return
        place = users_place("".join(traceback.format_stack(caller)).splitlines())
        where = f" ({Path(place.file_path).name}:{place.line_number})" if place is not None else ""
        record = {
            "Event": QUERY_NOT_STARTED,
            "id": "",
            RUN_ID: str(uuid.uuid4()),
            "name": _name(writer) or f"unnamed{where}",
            "time": now_ms(),
            "exception": _text(error, caller),
            "errorClass": _error_class(error),
            "place": None if place is None else [place.file_path, place.line_number, place.function_name],
        }
        self._take(cut_texts(record))


def _noticing(method: Callable[[], ReplacedMethod[FailedStarts]]) -> Callable[[Method], Method]:
    """Return what makes the method that takes the place of PySpark's own."""

    def make(of_spark: Method) -> Method:
        @wraps(of_spark)
        def start(writer: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return of_spark(writer, *arguments, **named)
            except Exception as error:
                _notice(method().last_owner, writer, error)
                raise

        return start

    return make


def _notice(owner: FailedStarts | None, writer: Any, error: Exception) -> None:
    """Let an owner notice a failed start; whatever goes wrong with it, the user gets the user's exception."""
    if owner is None:
        return
    try:
        owner.notice(writer, error, sys._getframe(2))
    except Exception as problem:
        logger.debug("a query that could not start is not told: %r", problem)


def _text(error: Exception, caller: FrameType) -> str:
    """Return an exception as Python prints it when nobody handles it: from the program's first frame on."""
    below = traceback.format_tb(error.__traceback__.tb_next if error.__traceback__ is not None else None)
    lines = (_TRACEBACK, *traceback.format_stack(caller), *below, *traceback.format_exception_only(error))
    return "".join(lines)


def _name(writer: Any) -> str | None:
    """Return the name that a query was to have; None for none."""
    try:
        if (proto := getattr(writer, "_write_proto", None)) is not None:  # of Spark Connect
            named = (text for key, text in proto.options.items() if key.lower() == _OPTION.lower())
            return str(proto.query_name) or next(named, None)
        java = writer._jwrite
        field = java.getClass().getDeclaredField("extraOptions")
        field.setAccessible(True)
        name = field.get(java).get(_OPTION)
        return str(name.get()) if name.isDefined() else None
    except Exception as problem:  # Spark's internals, through py4j
        logger.debug("the name of a query is not known: %r", problem)
        return None


def _error_class(error: Exception) -> str | None:
    for name in ("getCondition", "getErrorClass"):
        try:
            return getattr(error, name)() or None
        except Exception as problem:  # another exception than PySpark's; or the JVM is gone
            logger.debug("the error class of a query's exception is not known: %r", problem)
    return None


_CLASSIC: tuple[ReplacedMethod[FailedStarts], ...] = (
    ReplacedMethod("start", _noticing(lambda: _CLASSIC[0])),
    ReplacedMethod("toTable", _noticing(lambda: _CLASSIC[1])),
)
_CONNECT: tuple[ReplacedMethod[FailedStarts], ...] = (
    ReplacedMethod("start", _noticing(lambda: _CONNECT[0])),
    ReplacedMethod("toTable", _noticing(lambda: _CONNECT[1])),
)
