"""A dict that nobody changes: what is reported is handed to several reporters at once."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ReadOnly(dict[K, V]):
    """The variables or attributes of an event or a span; ``dict(...)`` of them can be changed.

    It is a dict, which everything that writes dicts can write, such as ``json``. Its copies are plain dicts.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("all reporters are given the same variables and attributes: change dict(...) of them")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[K, V]]]:
        return dict, (dict(self),)
