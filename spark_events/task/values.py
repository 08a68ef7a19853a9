"""Whatever the user's code gives, as plain values that the driver can take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from spark_events.task.short_texts import CONTAINERS, MOST_BITS, beginning_of, said_of_long

LONGEST_NAME = 200
LONGEST_TEXT = 4_096
MOST_ATTRIBUTES = 50
ERROR_TEXT_S = 0.5
"""How long a task waits for the text of an exception that one of its spans tells."""
_LARGEST = 2**63 - 1
"""The largest whole number of OTLP, and of most JSON; larger ones are sent as texts."""

Value = bool | int | float | str
NOT_GIVEN: Any = object()
"""In the place of an argument that is not given by position."""


def error_of(error: BaseException) -> tuple[str, str]:
    """Return what a span says of an error: its type and message."""
    return type(error).__name__, text_within(error, ERROR_TEXT_S)


def text_within(value: Any, within_s: float) -> str:
    """Return the text of a value, or that the user's own ``__str__`` takes longer than some seconds."""
    texts: list[str] = []
    call_within(lambda: texts.append(text_of(value)), within_s)
    return texts[0] if texts else f"<its str took more than {within_s} s>"


def call_within(work: Callable[[], None], within_s: float) -> None:
    """Call what runs methods of the user's objects, which may compute for minutes; wait no longer than said.

    It runs on another thread, which ends with the worker; at once where there may be no more threads.
    """
    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        work()
        return
    thread.join(within_s)


def text_of(value: Any) -> str:
    """Return the text of whatever the user's code has given, cut to its longest length."""
    try:
        text = value if type(value) is str else _text_of(value)
        # Half a character, as in a file name of another encoding, is not text that can be sent.
        return text[:LONGEST_TEXT].encode("utf-8", "replace").decode()
    except Exception as error:  # it is the user's own method
        return f"<its str raised {type(error).__name__}>"


def _text_of(value: Any) -> str:
    """Return the text of a value, or its beginning, without the work that all of a long one takes."""
    of_type = type(value)
    if of_type is int and value.bit_length() <= MOST_BITS:  # the commonest label that is no text
        return str(value)
    if of_type in CONTAINERS or of_type is int:
        return beginning_of(value, LONGEST_TEXT)
    if isinstance(value, BaseException) and of_type.__str__ is BaseException.__str__:  # type: ignore[comparison-overlap]
        args = value.args  # as Python does
        return text_of(args[0] if len(args) == 1 else args) if args else ""
    return said_of_long(value) or str(value)


def attributes_of(given: dict[str, Any]) -> dict[str, Value]:
    """Return attributes that the driver can take as they are, no more than the limit."""
    return {name_of(key): plain(value) for key, value in list(given.items())[:MOST_ATTRIBUTES]}


def name_of(value: Any) -> str:
    """Return a name, cut to its longest length."""
    return text_of(value)[:LONGEST_NAME]


def plain(value: Any) -> Value:
    """Return a value that the driver can take as it is; numpy's numbers, say, become Python's."""
    number = number_of(value)
    if number is None or (type(number) is int and abs(number) > _LARGEST):
        return text_of(value)
    return number


def number_of(value: Any) -> float | None:
    """Return a number as Python's own, whichever library it is of; None if it is none."""
    try:
        plain_value = value.item() if callable(getattr(value, "item", None)) else value
        if type(plain_value) in (bool, int, float):
            return plain_value  # type: ignore[no-any-return]
        if isinstance(plain_value, int):
            return int(plain_value)  # of an IntEnum, say
        return float(plain_value) if isinstance(plain_value, float) else None
    except Exception:  # a library may raise anything, if it has many values, say
        return None


def taken(given: Any, name: str, named: dict[str, Any], default: Any = "") -> Any:
    """Return an argument of a call whose other arguments have names of the user's own.

    Args:
        given: by position; then one of that name is the user's own: ``event("Login", name="alice")``.
        name: by which it may be given, too.
        named: all arguments that are given by name; it is taken out of these.
        default: what it is if it is not given.
    """
    return named.pop(name, default) if given is NOT_GIVEN else given


def unpacked(given: dict[str, Any]) -> dict[str, Any]:
    """Return labels one of which is ``labels``, with those in it, as other libraries have it.

    Like ``labels={"reason": "old"}``; what is no mapping that can be read is a label of that name.
    """
    labels = given["labels"]
    try:
        if not isinstance(labels, Mapping):
            return given
        others = {key: value for key, value in given.items() if key != "labels"}
        return others | {name_of(key): value for key, value in labels.items()}
    except Exception:  # of the user's own type
        return given
