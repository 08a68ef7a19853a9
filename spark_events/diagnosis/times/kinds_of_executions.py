"""The SQL executions of a program by their shape: what a loop runs has the same each time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from spark_events.diagnosis.plans.execution import EndedExecution

_PARTITIONS = re.compile(r"/[^/=]+=.*")
"""What a path has besides its table's: such as ``/day=2026-11-29``."""
_MOST_KINDS = 500


@dataclass(slots=True)
class _Places:
    """Tables or paths, of which each execution of a kind has one; the first of them.

    Attributes:
        differ: whether some have another one.
        in_folder: whether all are in one folder.
    """

    first: str
    differ: bool = False
    in_folder: bool = True

    def add(self, place: str) -> None:
        """Add that of one more execution."""
        if place != self.first:
            self.differ = True
            self.in_folder = self.in_folder and _folder(self.first) == _folder(place) != ""

    @property
    def folder(self) -> str:
        """The folder of which each has another part; empty if all have the same, or nobody knows."""
        return _folder(self.first) if self.differ and self.in_folder else ""

    def __str__(self) -> str:
        others = " and others" if self.differ and not self.folder else ""
        return f"{self.folder or self.first}{others}"


@dataclass(frozen=True, slots=True)
class ExecutionKind:
    """What SQL executions of the same shape have in common.

    Attributes:
        reads: the first table or path that each reads.
        writes: the first that each writes; None if they write none.
    """

    reads: _Places
    writes: _Places | None

    @property
    def label(self) -> str:
        """What people know them by; each may read, or write, another part of a folder."""
        return f"the write into {self.writes}" if self.writes else f"the query of {self.reads}"

    @property
    def parts_of(self) -> str:
        """The folder of which each reads another part; empty if all read the same, or nobody knows."""
        return self.reads.folder


class KindsOfExecutions:
    """The SQL executions of an application by their shape: the names of their plans' nodes."""

    def __init__(self) -> None:
        self._kinds: dict[str, ExecutionKind] = {}

    def take(self, execution: EndedExecution) -> str:
        """Return the key of what an execution is one of; empty if it reads no table, or there are too many.

        Args:
            execution: that has ended, with its plans.
        """
        written = execution.written()
        read = [table for table in execution.tables() if table not in written]
        if not read:
            return ""
        names = "\n".join(node.name for node in execution.nodes())
        key = f"{bool(written)} {sha256(names.encode(errors='replace')).hexdigest()[:16]}"
        into = _PARTITIONS.sub("", written[0]) if written else ""
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                return ""
            kind = ExecutionKind(_Places(read[0]), _Places(into) if into else None)
            self._kinds[key] = kind
        kind.reads.add(read[0])
        if kind.writes is not None:
            kind.writes.add(into)
        return key

    def get(self, key: str) -> ExecutionKind | None:
        """Return the kind of a key; None if that is none."""
        return self._kinds.get(key)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
