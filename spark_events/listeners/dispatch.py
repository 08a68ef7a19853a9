"""Hands each record to the listeners that hear it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spark_events.listeners.listener import Handle, Handler, Listener, Record

OnError = Callable[[str, Exception], None]


class Dispatcher:
    """Hands records to the listeners that hear them.

    Args:
        listeners: those of one application.
        on_error: called with the record's name, or ``tick``, for an exception of a listener; the other
            listeners still hear the record.
    """

    def __init__(self, listeners: Iterable[Listener], on_error: OnError) -> None:
        self._on_error = on_error
        listeners = tuple(listeners)
        self._tickers = [listener.tick for listener in listeners]
        by_name: dict[str, list[Handler]] = {}
        for listener in listeners:
            for name, handlers in listener.handlers.items():
                by_name.setdefault(name, []).extend(_phased(handlers))
        self._handlers = {
            name: [handler.handle for handler in sorted(handlers, key=lambda handler: handler.phase)]
            for name, handlers in by_name.items()
        }

    def hears(self, name: str) -> bool:
        """Return whether any listener hears records of this name."""
        return name in self._handlers

    def hand(self, name: str, record: Record, time_ms: int) -> None:
        """Hand a record to all that hear it."""
        for handle in self._handlers.get(name, ()):
            try:
                handle(record, time_ms)
            except Exception as error:
                self._on_error(name, error)

    def tick(self, now_ms: int) -> None:
        """Let time pass for all."""
        for tick in self._tickers:
            try:
                tick(now_ms)
            except Exception as error:
                self._on_error("tick", error)


def _phased(handlers: Handle | Handler | tuple[Handler, ...]) -> tuple[Handler, ...]:
    if isinstance(handlers, tuple):
        return handlers
    return (handlers if isinstance(handlers, Handler) else Handler(handlers),)
