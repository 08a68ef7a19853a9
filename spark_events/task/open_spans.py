"""The spans of a task that are open, so that each has the right parent in threads and coroutines, too."""

from __future__ import annotations

import threading
from contextlib import suppress
from contextvars import ContextVar


class OpenSpans:
    """The ids of a task's open spans, as each thread and each coroutine sees them.

    A coroutine sees those in which it began. A thread other than the task's has no context of its own:
    outside its own spans, it sees those of the task's thread.

    Args:
        thread: the id of the task's thread.
    """

    def __init__(self, thread: int | None) -> None:
        self._thread = thread
        self._of_thread: list[str] = []

    @property
    def innermost(self) -> str | None:
        """The id of the span that is open around the caller; None if there is none."""
        if of_context := self._of_context():
            return of_context[-1]
        is_other_thread = threading.get_ident() != self._thread
        return self._of_thread[-1] if is_other_thread and self._of_thread else None

    def open(self, span_id: str) -> None:
        """Note that a span is open around what the caller does from now on."""
        _open.set((self, (*self._of_context(), span_id)))
        if threading.get_ident() == self._thread:
            self._of_thread.append(span_id)

    def close(self, span_id: str) -> None:
        """Note that it is not any more; spans need not end in the order in which they began."""
        _open.set((self, tuple(each for each in self._of_context() if each != span_id)))
        with suppress(ValueError):  # another thread's
            self._of_thread.remove(span_id)

    def _of_context(self) -> tuple[str, ...]:
        of_task = _open.get()
        return of_task[1] if of_task and of_task[0] is self else ()  # a worker runs one task after another


_open: ContextVar[tuple[OpenSpans, tuple[str, ...]] | None] = ContextVar("open_spans", default=None)
