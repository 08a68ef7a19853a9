"""The rule about folders whose files Spark's jobs list again for each read of the same path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_events.api.toolkit.formatting import duration
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.thresholds import RECOMPUTATION

_LISTS = re.compile(r"Listing leaf files and directories for (\d+) paths:<br/>(.+), \.\.\.", re.ASCII)
"""How Spark describes such a job, with the first of its folders; it runs one for more than 32 of them."""
_PARTITION = re.compile(r"/[^/=]+=[^/]*$")
_WRITES = ("Execute ", "Overwrite", "Append")
_MOST_TABLES, _MOST_FOLDERS = 100, 1_000


class Listing(NamedTuple):
    """A job that lists the files of some folders.

    Attributes:
        path: the first of them.
        folders: how many there are.
    """

    path: str
    folders: int

    @property
    def table(self) -> str:
        """The folder of the table, above those of its partitions."""
        path = self.path
        while (above := _PARTITION.sub("", path)) != path:
            path = above
        return path


class ListedBefore(NamedTuple):
    """What listing the same again has cost so far.

    Attributes:
        issue: of the application.
        since_ms, until_ms: when this job did, and what the driver did for it before, in ms since the epoch.
    """

    issue: Issue
    since_ms: int
    until_ms: int


@dataclass(slots=True)
class _Table:
    """What was listed of one table; times in ms.

    Attributes:
        first: the path of the first job of each read.
        times: how often each path was listed, by the first one of each job.
        folders: how many there are.
        jobs: how many have listed them.
        reads_before: for how many reads, until somebody wrote the table for the last time.
        last_job, ended_ms: its latest job, and when that ended, since the epoch.
        again_ms: how long all of it took that had been listed before.
    """

    first: str
    times: dict[str, int] = field(default_factory=dict)
    folders: int = 0
    jobs: int = 0
    reads_before: int = 0
    last_job: int = -1
    ended_ms: int = 0
    again_ms: int = 0


def listing(description: str) -> Listing | None:
    """Return what a job lists by its description; None if it does something else."""
    match = _LISTS.fullmatch(description)
    return Listing(match[2], int(match[1])) if match else None


class ListedAgain:
    """Adds up what it takes to list files of a table that were listed before, until somebody writes it."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._until_ms = 0

    def take(
        self, lists: Listing, job: int, begun_ms: int, ended_ms: int, beside_ms: int
    ) -> ListedBefore | None:
        """Called when the stage of a job that lists files has ended; returns it if it has listed them again.

        Args:
            lists: what it has listed.
            job: its number.
            begun_ms, ended_ms: when the stage did, in ms since the epoch.
            beside_ms: for how long stages ran at that time that do something else.
        """
        table = self._table(lists)
        if table is None or (lists.path not in table.times and len(table.times) >= _MOST_FOLDERS):
            return None
        # Between two jobs of a read, the driver works for the listing; before a read, the program may.
        goes_on = job == table.last_job + 1 and lists.path != table.first
        since_ms = max(self._until_ms, table.ended_ms if goes_on else begun_ms)
        self._until_ms = max(self._until_ms, ended_ms)
        table.last_job, table.ended_ms = job, ended_ms
        table.jobs += 1
        table.times[lists.path] = table.times.get(lists.path, 0) + 1
        if table.times[lists.path] == 1:
            table.folders += lists.folders
            return None
        table.again_ms += max(0, ended_ms - since_ms - beside_ms)
        return ListedBefore(_issue(lists.table, table), min(since_ms, begun_ms), ended_ms)

    def execution_ended(self, execution: EndedExecution) -> None:
        """Called with each SQL execution that has ended: what it writes has to be listed again."""
        if self._tables:
            self._written(node.table() for node in execution.nodes() if node.name.startswith(_WRITES))

    def _written(self, paths: Iterable[str]) -> None:
        for path in filter(None, paths):
            if (table := self._tables.get(Listing(path, 0).table)) is not None:
                table.reads_before += max(table.times.values(), default=0)
                table.times.clear()
                table.folders = 0

    def _table(self, lists: Listing) -> _Table | None:
        if lists.table not in self._tables and len(self._tables) >= _MOST_TABLES:
            return None
        return self._tables.setdefault(lists.table, _Table(lists.path))


def _issue(path: str, table: _Table) -> Issue:
    reads = table.reads_before + max(table.times.values())
    folders = f"{table.folders:,} folders" if table.folders > 1 else "one folder"
    return Issue(
        RECOMPUTATION,
        f"{RECOMPUTATION} listing {path}",
        table.again_ms,
        None,
        f"{table.jobs:,} jobs list the files of {path} ({folders}), once for each of {reads:,} reads of the "
        f"same path; all but the first take {duration(table.again_ms)}",
        "Read the table once, before the loop, or only the folder that is needed, with the option basePath; "
        "or use a table of a catalog, which knows its partitions. To give the schema does not save this.",
        evidence={
            "listing.path": path,
            "listing.jobs": table.jobs,
            "listing.folders": table.folders,
        },
    )
