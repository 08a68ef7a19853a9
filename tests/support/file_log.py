"""Reads what the file log reporter has written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def events_and_spans(folder: Path | str) -> dict[str, str]:
    """Return the settings of a file log of events and of spans in a folder."""
    return {
        f"spark.{kind}.reporter.file.{key}": value
        for kind in ("events", "traces")
        for key, value in (("factory.class", "file_log"), ("path", str(folder)))
    }


def file_events(folder: Path) -> list[Event]:
    """Return all events of a file log, in the order in which they were written."""
    files = sorted(folder.glob("*.events.*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(line) for path in files for line in whole_lines(path)]


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file that are written to their end; the last one may just be coming in."""
    return path.read_text().rpartition("\n")[0].splitlines()


def statuses(events: Iterable[Event], kind: str) -> list[str]:
    """Return the new statuses of all jobs of a kind."""
    return [
        event["attributes"]["newJobStatus"]
        for event in events
        if event["eventName"] == "JobStatusChangeEvent" and event["attributes"]["job_kind"] == kind
    ]


def of_name(events: Iterable[Event], name: str, **attributes: Any) -> list[Event]:
    """Return the events of a name, with these attributes; ``__`` stands for a dot."""
    wanted = {key.replace("__", "."): value for key, value in attributes.items()}
    return [
        event
        for event in events
        if event["eventName"] == name and wanted.items() <= event["attributes"].items()
    ]


class Submissions:
    """The events of an application that is submitted again and again, each time with an id of its own.

    Args:
        folder: of the file log, which is the same for all.
    """

    def __init__(self, folder: Path) -> None:
        self._events = folder

    @property
    def events(self) -> list[Event]:
        return file_events(self._events)

    @property
    def applications(self) -> list[str]:
        """The ids of the applications, one of each submission."""
        return list(dict.fromkeys(event["attributes"]["app_id"] for event in self.events))

    def of(self, number: int, name: str, **attributes: Any) -> list[Event]:
        """Return the events of a submission; -1 is the last."""
        return of_name(self.events, name, app_id=self.applications[number], **attributes)

    def states(self, number: int, kind: str) -> list[str]:
        """Return the statuses of all jobs of a kind of a submission."""
        application = self.applications[number]
        return statuses(
            (event for event in self.events if event["attributes"].get("app_id") == application), kind
        )
