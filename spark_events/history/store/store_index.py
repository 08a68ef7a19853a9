"""The index of a store: which folder has which day. Several processes may write it at once."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import orjson

from spark_events.api import ConfigError
from spark_events.history.reading.database import Files
from spark_events.runtime.log_once import logger

VERSION = 4
READERS_MS = 600_000
"""How long what is replaced stays for those who read it, in ms."""
_LEFTOVER_MS = 86_400_000
_FOLDER = re.compile(r"part-[^/]+")
_OWN_FOLDER = re.compile(r"part-(\d{13})-[0-9a-f]{32}", re.ASCII)
"""The names that are made here. Spark's files are called ``part-…``, too: nothing else is ever removed."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_INDEX = re.compile(r"store-(\d{8})\.json")
_OLD_INDEX, _OLD_VERSION = "store.json", 3
_KEPT_INDEXES = 5
_BEGUN = 0
"""The number of the index that is written before anything else: where there is none, it is lost."""
_LONGEST_NAME = 200
PARTS = ("checkpoints", "others")
"""The facts of a day lie in two folders; reports read single checkpoints seldom."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store has.

    Attributes:
        days: by the day, as ``2026-11-21``: its ``folder``, the ``sla`` that its sums were made with, and how
            many ``files`` and ``bytes`` each of its folders in there has (unknown for earlier versions').
        before: the folder with what is left of days that were dropped, ``until``, the first day after them,
            and how many ``bytes`` it has; None if there are none.
        replaced: a ``folder`` and the ``day`` in it that nobody needs any more, since ``at_ms``.
    """

    days: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None
    replaced: tuple[Mapping[str, Any], ...] = ()

    def folders(self) -> set[str]:
        """Return the folders in use, or lately."""
        used = {str(entry["folder"]) for entry in (*self.days.values(), *self.replaced)}
        return used | {self.before["folder"]} if self.before else used


class _DamagedIndexError(ConfigError):
    """The error of an index that is not whole."""


class StoreIndex:
    """The newest of the files ``store-<number>.json`` in a folder.

    A change is a new file with the next number, which only one process can create, on all file systems on
    which ``Files.create`` can promise that; see ``HadoopFiles``.

    Attributes:
        contents: as they were last read or written.

    Raises:
        ConfigError: the folder is not that of a store, or of a store of another version.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._number = 0
        self.contents = Contents()
        self.reload()

    def reload(self) -> None:
        """Read what others have written meanwhile."""
        names = self._files.names()
        self._number = _newest(names)
        if self._number:
            self.contents = self._newest_readable(names)
        elif _OLD_INDEX in names:
            self.contents = self._read(_OLD_INDEX, _OLD_VERSION)
        elif _name(_BEGUN) not in names:
            self._refuse_others(names)

    def begin(self) -> None:
        """Write down that this is a store, unless that is known: an interrupted process may leave no more.

        Raises:
            ConfigError: the folder cannot be made, or not be written.
        """
        try:
            if not self._number and _name(_BEGUN) not in self._files.names():
                self._files.create(_name(_BEGUN), _content(Contents()))
        except OSError as error:
            raise ConfigError(
                f"--store {self._path}: is not a folder that can be written ({error.strerror or error}); "
                "give a new one, or one that a report has made"
            ) from error

    def _refuse_others(self, names: Iterable[str]) -> None:
        """Refuse a folder without an index that has something in it.

        Raises:
            ConfigError: it is so.
        """
        theirs = [name for name in names if name[0] not in "_."]
        strange = [name for name in theirs if not _OWN_FOLDER.fullmatch(name)]
        if strange:
            raise ConfigError(
                f"{self._path}: has no store-<number>.json but {strange[0]}: not a store of spark-events"
            )
        if theirs:
            raise ConfigError(
                f"{self._path}: has {theirs[0]}, which is of a store, but no index, store-<number>.json: "
                "restore that, or give another folder and add all events to it"
            )

    def commit(self, contents: Contents) -> bool:
        """Write the contents, unless another process has written others; return whether they are written.

        What they replace is removed after some time: others may be reading it.
        """
        now_ms = time.time_ns() // 1_000_000
        replaced = [*contents.replaced, *self._replaced_by(contents, now_ms)]
        over = [each for each in replaced if each["at_ms"] + READERS_MS <= now_ms]
        contents = replace(contents, replaced=tuple(each for each in replaced if each not in over))
        name = _name(self._number + 1)
        if not self._files.create(name, _content(contents)):
            return False
        self._number += 1
        added = contents.folders() - self.contents.folders()
        newest = _newest(self._files.names())
        # If there is a newer one, others have built on this; or theirs of this number had come and gone.
        if newest > self._number and not added & self._read(_name(newest), VERSION).folders():
            self._files.remove(name)
            return False
        self.contents = contents
        self._clean(over, now_ms)
        return True

    def _replaced_by(self, contents: Contents, now_ms: int) -> Iterable[Mapping[str, Any]]:
        for day, entry in self.contents.days.items():
            if contents.days.get(day, {}).get("folder") != entry["folder"]:
                yield {"folder": entry["folder"], "day": day, "at_ms": now_ms}
        before = self.contents.before
        if before and (contents.before is None or contents.before["folder"] != before["folder"]):
            yield {"folder": before["folder"], "day": "", "at_ms": now_ms}

    def _clean(self, over: Iterable[Mapping[str, Any]], now_ms: int) -> None:
        """Remove what is replaced for long, and what interrupted processes have left behind."""
        used = self.contents.folders()
        for each in over:
            folder, day = each["folder"], each["day"]
            if folder in used and day and _OWN_FOLDER.fullmatch(folder):
                self._files.remove(f"{folder}/sums/date={day}")
                for part in PARTS:
                    self._files.remove(f"{folder}/facts/part={part}/date={day}")
        removed = {each["folder"] for each in over} - used
        for name in self._files.names():
            match, index = _OWN_FOLDER.fullmatch(name), _INDEX.fullmatch(name)
            left = match and name not in used and int(match[1]) + _LEFTOVER_MS < now_ms
            old = name == _OLD_INDEX or (index and int(index[1]) <= self._number - _KEPT_INDEXES)
            if (match and name in removed) or left or old:
                self._files.remove(name)

    def _newest_readable(self, names: Iterable[str]) -> Contents:
        """Return the contents of the newest index that is whole; say so if that is not the newest of all."""
        damaged = ""
        indexes = [name for name in names if _INDEX.fullmatch(name) and name != _name(_BEGUN)]
        for name in sorted(indexes, reverse=True):
            try:
                contents = self._read(name, VERSION)
            except _DamagedIndexError as error:
                damaged = damaged or str(error)
                continue
            if damaged:
                logger.warning(
                    "%s; %s is used instead, so what was added since then is missing: add it again",
                    damaged,
                    name,
                )
            return contents
        raise ConfigError(f"{damaged}; there is no older index: restore the folder, or begin a new one")

    def _read(self, name: str, version: int) -> Contents:
        try:
            content = orjson.loads(self._files.read(name))
            whole = isinstance(content, dict) and (content.get("version") != version or "days" in content)
        except (ValueError, OSError) as error:
            raise _DamagedIndexError(f"{self._path}/{name}: cannot be read ({error})") from error
        if not whole:
            raise _DamagedIndexError(f"{self._path}/{name}: is not the index of a store")
        if content.get("version") == version and (odd := _odd_part(content)):
            raise _DamagedIndexError(
                f"{self._path}/{name}: is not the index of a store: {odd} is not as it was written"
            )
        if content.get("version") != version:
            raise ConfigError(f"{self._path}/{name}: version {content.get('version')!r}; {version} is known")
        return Contents(content["days"], content.get("before"), tuple(content.get("replaced") or ()))


def _content(contents: Contents) -> bytes:
    """Return an index, as it is written."""
    written = {
        "version": VERSION,
        "days": contents.days,
        "before": contents.before,
        "replaced": contents.replaced,
    }
    return orjson.dumps(written, option=orjson.OPT_INDENT_2)


def _odd_part(content: Mapping[str, Any]) -> str:
    """Return what of an index is not such as is written; empty if nothing is.

    What it names is read and removed with this user's rights, and others may write to the store.
    """
    try:
        for day, entry in content["days"].items():
            numbers = (*entry.get("files", {}).values(), *entry.get("bytes", {}).values())
            if not (_is_date(day) and _is_folder(entry["folder"]) and all(type(n) is int for n in numbers)):
                return f"day {day[:20]!r}"
            entry["sla"]
        before = content.get("before")
        if before is not None and not (
            _is_folder(before["folder"]) and _is_date(before["until"]) and type(before.get("bytes", 0)) is int
        ):
            return "before"
        for each in content.get("replaced") or ():
            is_day = each["day"] == "" or _is_date(each["day"])
            if not (is_day and _is_folder(each["folder"]) and type(each["at_ms"]) is int):
                return "replaced"
    except (KeyError, TypeError, AttributeError) as error:
        return f"a part of it ({type(error).__name__})"
    return ""


def _is_folder(name: Any) -> bool:
    return isinstance(name, str) and len(name) < _LONGEST_NAME and _FOLDER.fullmatch(name) is not None


def _is_date(text: Any) -> bool:
    """Return whether a text is a day; a time or a path is none."""
    if not isinstance(text, str) or not _DAY.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _newest(names: Iterable[str]) -> int:
    """Return the number of the newest index; 0 if there is none."""
    return max((int(match[1]) for name in names if (match := _INDEX.fullmatch(name))), default=0)


def _name(number: int) -> str:
    return f"store-{number:08}.json"


def new_folder() -> str:
    """Return a name for a folder: when it was begun, in ms since the epoch, and something unique."""
    return f"part-{time.time_ns() // 1_000_000}-{uuid.uuid4().hex}"
