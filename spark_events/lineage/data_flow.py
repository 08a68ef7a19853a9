"""A graph of data: which data feeds which, through which job, and how that job ended."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from spark_events.api.errors import NothingToReadError, UsageError
from spark_events.api.toolkit.formatting import some_names


class DataKey(NamedTuple):
    """The identity of a piece of data."""

    namespace: str
    name: str


NO_LONGER = "(no longer)"
"""Said of a flow that its job did not have when its application last ran."""
_OF_TABLES = frozenset({"CREATE", "DROP", "TRUNCATE", "ALTER", "RENAME", "ANALYZE"})


@dataclass(slots=True)
class Flow:
    """A job that moves data from a source to a sink.

    Attributes:
        job: its name, including the application's.
        status: its last status.
        time_ms: when it got that status, in ms since the epoch.
        finished_ms: when a run of it last finished changing the sink's rows, this one or an earlier one; 0 if
            none has.
        columns: for each column of the sink, the source columns that it is computed from.
        influences: source columns that decide which rows the sink gets.
        incomplete: why something may be missing; empty if nothing is known to be.
        modify: what the job does to the sink, such as INSERT or DROP; empty if unknown.
        application: id of the application that ran it.
    """

    job: str
    status: str = "CREATED"
    time_ms: int = 0
    finished_ms: int = 0
    columns: dict[str, list[str]] = field(default_factory=dict)
    influences: list[str] = field(default_factory=list)
    incomplete: str = ""
    modify: str = ""
    application: str = ""

    @property
    def writes_rows(self) -> bool:
        """Whether it has changed the sink's rows, rather than the table itself, or nothing yet."""
        return self.modify not in _OF_TABLES and self.status in ("RUNNING", "FINISHED")

    @property
    def written_ms(self) -> int:
        """When it last changed the sink's rows, in ms since the epoch; 0 if it never has."""
        return self.time_ms if self.writes_rows else self.finished_ms


@dataclass(slots=True)
class DataFlow:
    """Data and what feeds it.

    Attributes:
        titles: the display name of each piece of data: its table's name, or its own.
        columns: of each piece of data, as they were last logged; none if that never was.
        flows: from source to sink, as each job last logged them. An unknown source or sink is None.
        last_applications: by job, the id of the application that ran it last.
        skipped: by file, how many of its lines are not job events.
        torn: the files that cannot be read to their end, with the reason.
    """

    titles: dict[DataKey, str] = field(default_factory=dict)
    columns: dict[DataKey, tuple[str, ...]] = field(default_factory=dict)
    flows: dict[tuple[DataKey | None, DataKey | None], dict[str, Flow]] = field(default_factory=dict)
    last_applications: dict[str, str] = field(default_factory=dict)
    skipped: Counter[Path] = field(default_factory=Counter)
    torn: dict[Path, str] = field(default_factory=dict)

    @property
    def jobs(self) -> list[str]:
        """The names of all jobs, each once."""
        return list(dict.fromkeys(job for jobs in self.flows.values() for job in jobs))

    @property
    def notes(self) -> list[str]:
        """What could not be read, a sentence for each file."""
        skipped = [
            f"{path}: skipped {count} lines that are not job events" for path, count in self.skipped.items()
        ]
        torn = [f"{path}: cannot be read to its end: {reason}" for path, reason in self.torn.items()]
        return skipped + torn

    def title(self, data: DataKey | None) -> str:
        """Return the display name of some data; ``-`` if it is unknown."""
        return "-" if data is None else self.titles[data]

    def columns_by_data(self) -> dict[DataKey, list[str]]:
        """Return the columns of all data: those of the schemas, and those that jobs read or write."""
        names = {key: dict.fromkeys(self.columns.get(key, ())) for key in self.titles}
        for (source, sink), jobs in self.flows.items():
            for flow in jobs.values():
                if sink is not None:
                    names[sink].update(dict.fromkeys(flow.columns))
                if source is not None:
                    read = (*(name for inputs in flow.columns.values() for name in inputs), *flow.influences)
                    names[source].update(dict.fromkeys(read))
        return {key: list(columns) for key, columns in names.items()}

    def find(self, name: str, option: str = "--of") -> DataKey | str:
        """Return the data (a table or a path), or else the job, with this name; the end of a name is enough.

        Args:
            name: the name, or the end of it, or its namespace, a blank and its name.
            option: that has it, for messages.

        Raises:
            NothingToReadError: nothing has this name.
            UsageError: more than one thing has it.
        """
        jobs = self.jobs
        if (whole := DataKey(*name.rpartition(" ")[::2])) in self.titles:
            return whole
        name = name if any(name in (title, key.name) for key, title in self.titles.items()) else _bare(name)
        matches: list[DataKey | str] = [
            key for key, title in self.titles.items() if name in (title, key.name)
        ]
        matches = matches or [key for key, title in self.titles.items() if _ends(name, title, key.name)]
        matches = matches or [job for job in jobs if job == name]
        matches = matches or [job for job in jobs if _ends(name, job)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            several = sorted(key if isinstance(key, str) else " ".join(key) for key in matches)
            raise UsageError(
                f"{option} {name}: more than one match: {', '.join(several)}; "
                f"write the whole of one, such as '{several[0]}'"
            )
        known = {*self.titles.values(), *jobs}
        close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}?" if close else f"there are {some_names(known)}"
        raise NothingToReadError(
            f"{option} {name}: no job has this name, and none reads or writes it; {hint}"
        )

    def sources_of(self, data: DataKey) -> list[tuple[DataKey, list[Flow]]]:
        """Return what feeds some data, and through which jobs."""
        return [
            (source, list(jobs.values()))
            for (source, sink), jobs in self.flows.items()
            if sink == data and source is not None
        ]

    def sinks_of(self, data: DataKey) -> list[tuple[DataKey, list[Flow]]]:
        """Return what some data feeds, and through which jobs."""
        return [
            (sink, list(jobs.values()))
            for (source, sink), jobs in self.flows.items()
            if source == data and sink is not None
        ]

    def current(self) -> Iterator[tuple[DataKey | None, DataKey | None, Flow]]:
        """Yield the flows of each job's last application: a job may read other data than it once did."""
        for (source, sink), jobs in self.flows.items():
            for flow in jobs.values():
                if self.is_current(flow):
                    yield source, sink, flow

    def is_current(self, flow: Flow) -> bool:
        """Return whether a flow is one of its job's last application."""
        return flow.application == self.last_applications.get(flow.job, flow.application)

    def of_job(self, name: str) -> list[tuple[DataKey | None, DataKey | None, Flow]]:
        """Return the sources and sinks of a job, in pairs."""
        return [(source, sink, jobs[name]) for (source, sink), jobs in self.flows.items() if name in jobs]


def _ends(end: str, *names: str) -> bool:
    return any(name.endswith((f".{end}", f"/{end}")) for name in names)


def _bare(name: str) -> str:
    """Return a name as it is shown, without the backticks that it has in SQL."""
    return name.replace("`", "")
