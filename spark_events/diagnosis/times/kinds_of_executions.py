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
class ExecutionKind:
    """What SQL executions of the same shape have in common.

    Attributes:
        writes: the first table or path that they write; empty if they write none.
        reads: the first that they read.
        reads_others: whether some read something else.
        is_of_folder: whether all that they read is in one folder.
    """

    writes: str
    reads: str
    reads_others: bool = False
    is_of_folder: bool = True

    @property
    def label(self) -> str:
        """What people know them by; each may read another part of a folder."""
        if self.writes:
            return f"the write into {self.writes}"
        others = " and others" if self.reads_others and not self.parts_of else ""
        return f"the query of {self.parts_of or self.reads}{others}"

    @property
    def parts_of(self) -> str:
        """The folder of which each reads another part; empty if all read the same, or nobody knows."""
        return _folder(self.reads) if self.reads_others and self.is_of_folder else ""


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
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                return ""
            root = _PARTITIONS.sub("", written[0]) if written else ""
            self._kinds[key] = ExecutionKind(root, read[0])
        elif kind.reads != read[0]:
            kind.reads_others = True
            kind.is_of_folder = kind.is_of_folder and _folder(kind.reads) == _folder(read[0]) != ""
        return key

    def get(self, key: str) -> ExecutionKind | None:
        """Return the kind of a key; None if that is none."""
        return self._kinds.get(key)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
