"""What one run of an application did, and how long that took: what its next runs are compared with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from spark_events.runtime.redaction import DEFAULT_REGEX

_VERSION = 1


@dataclass(slots=True)
class Work:
    """A piece of work in one run: all SQL executions, or jobs, of one name and plan; or the run as a whole.

    Attributes:
        name: the call site, or the description that the user gave it.
        number: which of its name it was in the run, by their first starts, from 0.
        plan: a digest of the shape of its plan; empty without one.
        times: how often it was done.
        duration_ms: how long that took.
        figures: what its tasks read, wrote and spilled, in bytes, how many there were, and so on, by name.
    """

    name: str
    number: int = 0
    plan: str = ""
    times: int = 0
    duration_ms: int = 0
    figures: dict[str, int] = field(default_factory=dict)

    def add(self, figures: Mapping[str, int]) -> None:
        """Add figures, by name; of ``cores``, the most count."""
        for name, amount in figures.items():
            before = self.figures.get(name, 0)
            self.figures[name] = max(before, amount) if name == "cores" else before + amount


@dataclass(slots=True)
class PastRun:
    """One run of an application.

    Attributes:
        start_ms: when it began, in ms since the epoch.
        spark_version: empty if unknown.
        settings: digests of the values of Spark's settings, by key; the values may be secrets.
        whole: all of its work; its duration is that of the run.
        works: its SQL executions, and the jobs of none.
    """

    app_id: str
    start_ms: int
    spark_version: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    whole: Work = field(default_factory=lambda: Work(""))
    works: list[Work] = field(default_factory=list)

    def to_json(self) -> bytes:
        """Return it as JSON."""
        return orjson.dumps({"version": _VERSION, "run": self})

    @classmethod
    def from_json(cls, text: bytes) -> PastRun:
        """Return a run from its JSON.

        Raises:
            ValueError: it is no such JSON, or of another version.
        """
        read = orjson.loads(text)
        try:
            if read["version"] != _VERSION:
                raise ValueError(f"version {read['version']}; this is {_VERSION}")
            run = read["run"]
            whole, works = Work(**run.pop("whole")), [Work(**work) for work in run.pop("works")]
            past = cls(**run, whole=whole, works=works)
            past.check()
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a past run: {error!r}") from error
        return past

    def check(self) -> None:
        """Check that everything is of its type: others may have written, or damaged, what was read.

        Raises:
            TypeError: something is not.
            AttributeError: something that has parts has none.
        """
        works = (self.whole, *self.works)
        texts = [self.app_id, self.spark_version, *self.settings.values()]
        texts += [text for work in works for text in (work.name, work.plan)]
        numbers = [self.start_ms]
        for work in works:
            numbers += [work.number, work.times, work.duration_ms, *work.figures.values()]
        for values, of_type in ((texts, str), (numbers, int)):
            for value in values:
                if type(value) is not of_type or (of_type is int and int(value) < 0):
                    raise TypeError(f"{str(value)[:40]!r}; expected {of_type.__name__}")

    def like(self, work: Work) -> Work | None:
        """Return what this run did of the same name and plan; or else, of the same name and number."""
        same = [other for other in self.works if other.name == work.name]
        of_plan = (other for other in same if other.plan == work.plan)
        of_number = (other for other in same if other.number == work.number)
        return next(of_plan, None) or next(of_number, None)


def digests(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of settings' values, by key; secrets are left out."""
    return {
        str(key): hashlib.blake2b(str(value).encode(errors="replace"), digest_size=6).hexdigest()
        for key, value in settings.items()
        if not re.search(DEFAULT_REGEX, str(key))
    }
