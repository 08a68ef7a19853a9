"""Explains applications from stored events and spans: their issues, and where their time went."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from spark_events.api import Failure
from spark_events.api.errors import NothingToReadError, needs_extra
from spark_events.api.toolkit.formatting import path_without_secrets
from spark_events.listeners.failures.failure_events import in_one_line
from spark_events.runtime.event_names import JOB_FAILURE, PERFORMANCE_ISSUE
from spark_events.spark.file_systems import open_file_system
from spark_events.why.consequences import in_order
from spark_events.why.explanation import Explanation
from spark_events.why.found_issue import by_cost, issue_of
from spark_events.why.grouped import grouped
from spark_events.why.reading.stored_spans import ApplicationSpan, Skipped, application_spans
from spark_events.why.reading.told_failures import ToldFailure, sentences, told_failure

STATUS_EVENT = "JobStatusChangeEvent"
_NAMED = {"application": "app"}
_ENDS = frozenset(("FINISHED", "FAILED", "CANCELED"))
_PEEK_BYTES = 4_096
_STORED_NAME = re.compile(r"\.(parquet|jsonl?(\.(gz|zst))?)$")


class _Run:
    """When an application ran, by the changes of statuses that are stored of it."""

    def __init__(self) -> None:
        self.first_ms, self.last_ms = sys.maxsize, 0
        self.ended = False
        self.failures: list[ToldFailure] = []

    def take(self, time_ms: int, attributes: Mapping[str, Any]) -> None:
        """Called with each change: of the application itself, its queries and jobs."""
        self.first_ms, self.last_ms = min(self.first_ms, time_ms), max(self.last_ms, time_ms)
        if attributes.get("job_kind") == "application":
            self.ended = attributes.get("newJobStatus") in _ENDS

    def take_failure(self, event_id: str, time_ms: int, attributes: Mapping[str, Any]) -> None:
        """Called with each failure."""
        failure = Failure(
            attributes.get("exception.message") or "",
            attributes.get("exception.type"),
            attributes.get("exception.stacktrace"),
        )
        self.first_ms, self.last_ms = min(self.first_ms, time_ms), max(self.last_ms, time_ms)
        sentence = f"{_title(attributes)} failed: {in_one_line(failure)}"
        self.failures.append(told_failure(event_id, time_ms, attributes, sentence))


def _title(attributes: Mapping[str, Any]) -> str:
    """Return the name, in sentences, of what an event is about."""
    kind = attributes.get("job_kind") or "application"
    if kind in ("job", "stage"):
        return f"{kind} {attributes.get(f'{kind}_id') or '?'}"
    return f"{kind} {attributes.get(f'{_NAMED.get(kind, kind)}_name') or '?'!r}"


def stored_events_among(paths: Sequence[str]) -> list[str]:
    """Return those of some paths at which there are stored events, by their first files; others have logs.

    Raises:
        ConfigError: a file system cannot be used.
        NothingToReadError: there is no such file or folder on this machine.
    """
    for path in paths:
        if "://" not in path and not glob.glob(path, recursive=True) and not os.path.exists(path):
            raise NothingToReadError(f"{path}: no such file or folder")
    return [path for path in paths if _has_events(path)]


def _has_events(path: str) -> bool:
    file_system, root = open_file_system(path, path)
    try:
        names = [root] if file_system.isfile(root) else sorted(file_system.find(root))
        if not names and any(letter in root for letter in "*?["):
            names = sorted(file_system.glob(root))
        # Nothing may ever come out of a pipe.
        first = next(filter(file_system.isfile, names), None)
        if first is None:
            return False
        with file_system.open(first, "rb") as file:
            begin: bytes = file.read(_PEEK_BYTES)
    except Exception:  # each file system has errors of its own; whoever reads it says why it cannot be read
        return False
    if begin.lstrip()[:1] == b"{":
        return b'"Event"' not in begin.partition(b"\n")[0]
    return bool(_STORED_NAME.search(first))


def explain_events(paths: Sequence[str], app: str | None = None) -> tuple[list[Explanation], list[str]]:
    """Return the explanation of each application in stored events, and what could not be read.

    Where the time went is in the span of an application that has ended; of others, their issues are known.

    Raises:
        ConfigError: there is nothing to read at a path.
        MissingExtraError: DuckDB is not installed.
    """
    with needs_extra("report", "duckdb", "reading stored events"):
        from spark_events.history.reading.facts import CUT, PROBLEMS
        from spark_events.history.reading.local_files import stored_files
        from spark_events.history.reading.on_duckdb import DuckDb

    database = DuckDb()
    try:
        skipped, example, cut = database.unreadable(paths)
        issues: dict[tuple[str, str], dict[str, tuple[int, Mapping[str, Any]]]] = defaultdict(dict)
        for event_id, time_ms, attributes in database.events_of_name(paths, PERFORMANCE_ISSUE):
            key = (attributes.get("app_name") or "", attributes.get("app_id") or "")
            if "issue" in attributes and attributes.get("live") != "true" and app in (None, *key):
                issues[key].setdefault(event_id, (time_ms, attributes))
        runs: dict[tuple[str, str], _Run] = defaultdict(_Run)
        for _, time_ms, attributes in database.events_of_name(paths, STATUS_EVENT):
            key = (attributes.get("app_name") or "", attributes.get("app_id") or "")
            if app in (None, *key):
                runs[key].take(time_ms, attributes)
        for event_id, time_ms, attributes in database.events_of_name(paths, JOB_FAILURE):
            key = (attributes.get("app_name") or "", attributes.get("app_id") or "")
            if app in (None, *key):
                runs[key].take_failure(event_id, time_ms, attributes)
    finally:
        database.close()
    files = stored_files(paths)
    spans: dict[tuple[str, str], ApplicationSpan] = {}
    of_spans = Skipped(Counter(), Counter(), [])
    whole = [name for name in files.json if name not in database.damaged]
    for span in application_spans([*whole, *files.spans], of_spans):
        key = (span.app_name, span.app_id)
        if app in (None, *key):
            spans[key] = span
    notes = [_skipped_lines(skipped, example)] if skipped else []
    cut += [name for name in of_spans.cut if name not in cut]
    if cut:
        notes.append(f"{len(cut):,} skipped: {PROBLEMS[CUT]} (one is {path_without_secrets(cut[0])})")
    # The database has counted those of the other files that are not JSON.
    lines = of_spans.odd + Counter({name: of_spans.torn[name] for name in files.spans})
    if lines:
        notes.append(_skipped_lines(lines.total(), next(iter(lines))))
    return [
        _explanation(*key, list(issues[key].values()) if key in issues else [], spans.get(key), runs.get(key))
        for key in sorted({*issues, *spans, *runs})
    ], notes


def _explanation(
    app_name: str,
    app_id: str,
    events: Sequence[tuple[int, Mapping[str, Any]]],
    span: ApplicationSpan | None,
    run: _Run | None,
) -> Explanation:
    issues = in_order(grouped(by_cost(issue_of(attributes) for _, attributes in events)))
    failures = [] if run is None else sentences(run.failures)
    if span is None:
        times = [time_ms for time_ms, _ in events]
        times += [] if run is None else [run.first_ms, run.last_ms]
        ended = run is not None and run.ended
        return Explanation(app_name, app_id, min(times), max(times), ended, issues, failures=failures)
    return Explanation(
        app_name,
        app_id,
        span.begun_ms,
        span.ended_ms,
        True,
        issues,
        parts=dict(span.parts),
        critical_path_ms=span.critical_path_ms,
        estimates=list(span.estimates),
        failures=failures,
    )


def _skipped_lines(skipped: int, example: str) -> str:
    from spark_events.history.reading.facts import PROBLEMS

    return f"{skipped:,} skipped: {PROBLEMS['unreadable']} (one is in {path_without_secrets(example)})"
