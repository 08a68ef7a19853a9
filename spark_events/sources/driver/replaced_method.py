"""Replaces a method of PySpark's while something is attached."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Owner = TypeVar("Owner")
Method = Callable[..., Any]


class ReplacedMethod(Generic[Owner]):
    """A method that is replaced once for all attachments of the process, until the last of them ends.

    Args:
        name: of the method.
        make: returns the method that takes the place of PySpark's own.
        changed: called with True when it has been replaced, and with False when PySpark's own is back.
    """

    def __init__(
        self, name: str, make: Callable[[Method], Method], changed: Callable[[bool], None] = lambda _: None
    ) -> None:
        self._name = name
        self._make = make
        self._changed = changed
        self._lock = threading.RLock()  # a signal's handler may stop Spark at any moment
        self._open: list[Owner] = []
        self._put_back: Callable[[], None] | None = None

    @property
    def last_owner(self) -> Owner | None:
        """The one that began last, of those that have not ended."""
        last = self._open[-1:]
        return last[0] if last else None

    def begin(self, of_class: Any, owner: Owner) -> bool:
        """Replace the method of a class for an owner; return False if it has no such method."""
        with self._lock:
            of_spark = getattr(of_class, self._name, None)
            if of_spark is None:
                return False
            self._open.append(owner)
            if self._put_back is None:
                setattr(of_class, self._name, self._make(of_spark))
                self._put_back = lambda: setattr(of_class, self._name, of_spark)
                self._changed(True)
        return True

    def end(self, owner: Owner) -> None:
        """Put PySpark's own method back, unless another owner needs the new one."""
        with self._lock:
            if owner in self._open:
                self._open.remove(owner)
            if not self._open and self._put_back is not None:
                self._put_back()
                self._put_back = None
                self._changed(False)
