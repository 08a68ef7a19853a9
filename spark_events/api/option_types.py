"""Types of options: how their text is read, and what an error message says is allowed."""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from spark_events.api.errors import ConfigError

T = TypeVar("T")

_MS_OF_UNIT = {
    "ms": 1,
    "milli": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}
_LONGEST_MS = 36_525 * 86_400_000
"""A hundred years: with more, some clocks, databases and waiting functions fail."""
_LARGEST, _MOST_DIGITS = 2**63 - 1, 100
_POWER_OF_UNIT = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Secret:
    """A value that str, repr and tracebacks never show.

    Args:
        value: the value itself.
        file: the file it comes from, which is read again each time, because tokens in files are renewed.
        in_clear: whether the configuration has the value itself.
    """

    __slots__ = ("_file", "_value", "in_clear")

    def __init__(self, value: str, file: Path | None = None, in_clear: bool = False) -> None:
        self._value = value
        self._file = file
        self.in_clear = in_clear

    def reveal(self) -> str:
        """Return the value; if its file cannot be read right now, the last value."""
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):  # no text, say
                # It is empty while somebody writes it anew.
                value = _read_secret(self._file).strip()
                if value and value != self._value:
                    _tell_of_secret(value)
                    self._value = value
        return self._value

    def __repr__(self) -> str:
        return "******"


class HearsOfSecrets(Protocol):
    """Keeps secrets out of texts."""

    def learn(self, secret: str) -> None:
        """Called with a secret that a file has by now, before anything uses it."""


_hearing: WeakSet[HearsOfSecrets] = WeakSet()
_hearing_lock = threading.Lock()


def tell_of_secrets(hears: HearsOfSecrets) -> None:
    """Let an object hear of each secret that is read from a file from now on, for as long as it is there."""
    with _hearing_lock:
        _hearing.add(hears)


def _tell_of_secret(secret: str) -> None:
    with _hearing_lock:
        hearing = list(_hearing)
    for hears in hearing:
        hears.learn(secret)


@dataclass(frozen=True, slots=True)
class OptionType(Generic[T]):
    """A type of option.

    Attributes:
        name: as ``spark-events plugins`` shows it.
        allowed: the allowed values, in words that follow "expected".
        parse: text to value; raises ValueError, whose text is added to the error message.
        secret: the value must not be shown.
    """

    name: str
    allowed: str
    parse: Callable[[str], T]
    secret: bool = False

    def read(self, key: str, text: str) -> T:
        """Return the value of a text.

        Args:
            key: the key or the option it is given for, for the error message.
            text: the value as it was written.

        Raises:
            ConfigError: the text is none of the allowed values.
        """
        try:
            return self.parse(text.strip())
        except ValueError as error:
            shown = "******" if self.secret else text
            detail = f" ({error})" if str(error) and not self.secret else ""
            raise ConfigError.of_value(key, shown, self.allowed + detail) from None


def _parse_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError
    if len(text) > _MOST_DIGITS or abs(int(text)) > _LARGEST:
        raise ValueError("more than 2^63")
    return int(text)


def _parse_ratio(text: str) -> float:
    ratio = float(text)
    if not 0 <= ratio <= 1:
        raise ValueError
    return ratio


def _parse_factor(text: str) -> float:
    factor = float(text)
    if not 1 <= factor < math.inf:
        raise ValueError
    return factor


def _with_unit(number: int) -> str:
    return f"{number}s" if number < 1_000 else f"{number}ms or {number}s"


def _parse_duration_ms(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
    if not match:
        raise ValueError
    number, unit = match.groups()
    if not unit:
        # Spark and Flink mean ms, most people s: who writes 60 shall say which.
        if number.strip("0"):
            meant = f"; did you mean {_with_unit(int(number))}?" if len(number) <= _MOST_DIGITS else ""
            raise ValueError(f"a number needs a unit{meant}")
        return 0
    factor = _MS_OF_UNIT.get(unit) or _MS_OF_UNIT.get(unit.removesuffix("s"))
    if factor is None:
        raise ValueError(f"unknown unit {unit!r}")
    if len(number) > _MOST_DIGITS or int(number) * factor > _LONGEST_MS:
        raise ValueError("more than 36525d")
    return int(number) * factor


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)(i?b|b)?", text.lower())
    if not match:
        raise ValueError
    number, unit, _ = match.groups()
    factor: int = 1024 ** _POWER_OF_UNIT[unit]
    if len(number) > _MOST_DIGITS or int(number) * factor > _LARGEST:
        raise ValueError("more than 8388607t")
    return int(number) * factor


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split(r"[,;]", text) if part.strip())


def _parse_map(text: str) -> Mapping[str, str]:
    return dict(_parse_pairs(text))


def _parse_pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        match = re.match(r"([^:=]+)[:=](.*)", part, re.DOTALL)
        if not match:
            raise ValueError(f"{part!r} has no value")
        pairs.append((match.group(1).strip(), match.group(2).strip()))
    return pairs


_LONGEST_SECRET = 1 << 20


def _read_secret(path: Path) -> str:
    """Return what is in a file, but for what makes it longer than any secret."""
    with path.open() as file:
        return file.read(_LONGEST_SECRET + 1)


def _parse_secret(text: str) -> Secret:
    path, in_clear = None, False
    if text.startswith("env:"):
        name = text.removeprefix("env:")
        text = os.environ.get(name, "")
        if not text:
            raise ValueError(f"env:{name}: the variable {name} is not set or is empty")
    elif text.startswith("file:"):
        path = Path(text.removeprefix("file:").removeprefix("//"))
        try:
            text = _read_secret(path)
        except OSError as error:
            raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
        if len(text) > _LONGEST_SECRET:  # a device, or another file than was meant
            raise ValueError(f"{path}: is longer than {_LONGEST_SECRET:,} characters")
        text = text.strip()
        if not text:
            raise ValueError(f"{path}: is empty")
        _tell_of_secret(text)
    else:
        in_clear = True
    if not text:  # one was meant to be there
        raise ValueError
    return Secret(text, path, in_clear)


def _parse_secret_map(text: str) -> Mapping[str, Secret]:
    return {key: _parse_secret(value) for key, value in _parse_map(text).items()}


def _parse_ports(text: str) -> range:
    match = re.fullmatch(r"(\d+)(?:\s*-\s*(\d+))?", text)
    if not match:
        raise ValueError
    first = int(match.group(1))
    last = int(match.group(2) or first)
    if not 0 <= first <= last <= 65535:
        raise ValueError
    return range(first, last + 1)


def _absolute(path: Path) -> Path:
    """Return a path as it is now: the program may change its current folder, as notebooks do."""
    try:
        return path.absolute()
    except FileNotFoundError:
        raise ValueError("is relative to the current folder, which is gone") from None


def _parse_local_path(text: str) -> Path:
    if not text or "\0" in text:  # nothing would be the folder in which the driver happens to run
        raise ValueError
    if text.removeprefix("file:").startswith("~"):  # it would be a folder of that name
        raise ValueError("~ is not expanded; write out which folder it means")
    if "://" not in text and not text.startswith("file:"):
        return _absolute(Path(text))
    url = urlsplit(text)
    if url.scheme != "file" or url.netloc not in ("", "localhost") or not url.path:
        raise ValueError(f"{url.scheme}: is not a local file system")
    return Path(unquote(url.path))


def _parse_address(text: str) -> str:
    if not text:  # for the system, it would be all addresses
        raise ValueError
    return text


STRING: OptionType[str] = OptionType("string", "a string", str)
BOOL = OptionType("bool", "true or false", _parse_bool)
INT = OptionType("int", "a whole number", _parse_int)
RATIO = OptionType("ratio", "a number from 0 to 1", _parse_ratio)
FACTOR = OptionType("factor", "a number of at least 1", _parse_factor)
DURATION = OptionType("duration", "a duration such as 500ms, 60s or 5min", _parse_duration_ms)
SIZE = OptionType("size", "a size such as 512k, 64m or 1g", _parse_size)
LIST = OptionType("list", "a list such as a,b", _parse_list)
MAP = OptionType("map", "a map such as key:value,key:value", _parse_map)
MAP_OF_PAIRS = OptionType(
    "map", "a map such as key=value;key=value", lambda text: _parse_map(text.replace(";", ","))
)
PORTS = OptionType("ports", "a port from 0 to 65535 or a range such as 9249-9260", _parse_ports)
ADDRESS = OptionType("string", "an address, such as 127.0.0.1; 0.0.0.0 stands for all", _parse_address)
LOCAL_PATH = OptionType(
    "local path", "a local folder such as file:///var/log/spark-reports", _parse_local_path
)
SECRET = OptionType(
    "secret",
    "env:NAME of a variable that is set and not empty, file:/path of such a file, or the value itself",
    _parse_secret,
    secret=True,
)
SECRET_MAP = OptionType(
    "secret map",
    "a map such as key:value,key:value, where a value may be env:NAME or file:/path",
    _parse_secret_map,
    secret=True,
)


def in_clear(option_type: OptionType[Any], text: str) -> bool:
    """Return whether an option contains a secret instead of a reference to one."""
    if not option_type.secret or not text:
        return False
    value = option_type.parse(text)
    parts = value.values() if isinstance(value, Mapping) else (value,)
    return any(isinstance(part, Secret) and part.in_clear for part in parts)


def keys_of_map(option_type: OptionType[Any], text: str) -> list[str]:
    """Return the keys of a map as they are written, each as often as it is there; none of another type."""
    if option_type is MAP_OF_PAIRS:
        text = text.replace(";", ",")
    elif option_type not in (MAP, SECRET_MAP):
        return []
    return [key for key, _ in _parse_pairs(text)]


def choice(*values: str) -> OptionType[str]:
    """Return the type of an option with a fixed set of values."""

    def parse(text: str) -> str:
        if text not in values:
            raise ValueError
        return text

    return OptionType("choice", " or ".join(values), parse)


def some_of(*values: str) -> OptionType[tuple[str, ...]]:
    """Return the type of an option that is a list of fixed values."""

    def parse(text: str) -> tuple[str, ...]:
        words = _parse_list(text)
        wrong = [word for word in words if word not in values]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is not one of them")
        return words

    return OptionType("list", f"a list of some of {', '.join(values)}", parse)


def at_least(least: int, of: OptionType[int]) -> OptionType[int]:
    """Return an option type with a lower bound, in ms or bytes where it has a unit."""
    unit = {DURATION.name: " ms", SIZE.name: " bytes"}.get(of.name, "")

    def parse(text: str) -> int:
        value = of.parse(text)
        if value < least:
            raise ValueError(f"the minimum is {least}{unit}")
        return value

    return OptionType(of.name, of.allowed, parse)


FSYNC = choice("never", "interval", "always")
"""When the disk has to have what is written: what a crash of the machine may cost; each second by default."""
DROP_POLICY = choice("oldest", "newest")
"""What a full queue drops: what is in it for longest, or what comes new."""
