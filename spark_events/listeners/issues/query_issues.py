"""What makes a streaming query slow: what all its micro-batches have lost, by cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from spark_events.diagnosis.claims import Claims
from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.queries.small_batches import SmallBatches, batch_work
from spark_events.diagnosis.queries.streams import (
    SourceStopped,
    StreamBehind,
    flow_of,
    is_for_each_batch,
    sources_of,
)
from spark_events.diagnosis.repeated_work.batches import OF_BATCH
from spark_events.diagnosis.thresholds import FOREACH_BATCH
from spark_events.diagnosis.writes.small_files import WRITES
from spark_events.listeners import spark_records
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.emitter import Entity
from spark_events.listeners.issues.issue_events import GrowingIssues, IssueEvents, Subject
from spark_events.listeners.issues.watched_query import WatchedQuery
from spark_events.listeners.listener import Handlers, Timeless, early
from spark_events.listeners.queries.checkpoint import input_rows
from spark_events.listeners.record_fields import RUN_ID
from spark_events.listeners.record_types import (
    ApplicationEndRecord,
    LogReadRecord,
    QueryIdleRecord,
    QueryProgressRecord,
    QueryStartedRecord,
    QueryTerminatedRecord,
)

_MOST_OF_ONE = 100


class QueryIssues(Timeless):
    """The issues of the streaming queries of one application, each told as its cost grows.

    Args:
        context: what it belongs to.
        events: reports them.
        cores: says how many cores all executors have; 0 if unknown.
    """

    def __init__(self, context: ListenerContext, events: IssueEvents, cores: Callable[[], int]) -> None:
        self._context = context
        self._cores = cores
        self._events = events
        self._queries: dict[str, WatchedQuery] = {}

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._queries

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.QUERY_STARTED: self.on_started,
            spark_records.QUERY_PROGRESS: self.on_progress,
            spark_records.QUERY_IDLE: self.on_idle,
            spark_records.QUERY_TERMINATED: early(self.on_terminated),
            spark_records.APPLICATION_END: early(self.on_application_end),
            spark_records.LOG_READ: self.on_log_read,
        }

    def on_started(self, record: QueryStartedRecord, time_ms: int) -> None:
        """Handle QueryStarted."""
        run_id = str(record[RUN_ID])
        name = self._context.run.query_of(run_id).get("query_name", "")
        growing = GrowingIssues(self._events, Claims())
        source = SourceStopped(self._context.settings.thresholds)
        behind = StreamBehind(record.get("triggerIntervalMs"), bool(record.get("bounded")))
        small = SmallBatches(self._context.settings.thresholds)
        self._queries.setdefault(
            run_id, WatchedQuery(str(record["id"]), name, growing, source, behind, small)
        )

    def on_terminated(self, record: QueryTerminatedRecord, time_ms: int) -> None:
        """Handle QueryTerminated: what the query lost is told as a whole."""
        self._end(str(record[RUN_ID]), time_ms)

    def on_application_end(self, record: ApplicationEndRecord, time_ms: int) -> None:
        """Handle ApplicationEnd, which ends what still runs."""
        for run_id in list(self._queries):
            self._end(run_id, time_ms)

    def stage_ended(self, run_id: str, collected_bytes: int) -> None:
        """Called when a stage of a query has ended, with the size of the rows that it sent to the driver."""
        self._queries[run_id].collected_bytes += collected_bytes

    def job_ended(self, run_id: str, lasted_ms: int) -> None:
        """Called when a job of a query has ended."""
        query = self._queries[run_id]
        query.busy_ms += lasted_ms
        query.jobs_ms += lasted_ms

    def batch_ended(self, run_id: str, ended: EndedExecution, parts_ms: int) -> None:
        """Called when the SQL execution of a micro-batch has ended, with the time of those in it, in ms."""
        query = self._queries.get(run_id)
        if query is not None:
            query.own_ms += max(0, ended.lasted_ms - max(parts_ms, query.jobs_ms))
            query.executions += max(1, len(ended.plans))
            query.state_growth.knows(ended.nodes())
            query.state_parts.ran(ended)
            query.copied_ms = query.rewrites.take(ended, parts_ms)
            query.complete.take(ended)
            query.static.take(ended)
            query.of_plans = list(query.static.issues())
            if (of_mode := query.complete.issue()) is not None:
                query.of_plans.append(of_mode)
            query.work = batch_work(ended, alone=len(self._queries) == 1)

    def lost(self, run_id: str, issues: Iterable[tuple[Issue, str]], time_ms: int) -> None:
        """Called with what one micro-batch has lost, and the names of what lost it.

        Why it has written many files, its progress says.
        """
        query, named = self._queries[run_id], list(issues)
        query.files += [each for each in named if each[0].cause == WRITES]
        self._add(query, run_id, [each for each in named if each[0].cause != WRITES], time_ms)

    def _add(
        self, query: WatchedQuery, run_id: str, issues: Iterable[tuple[Issue, str]], time_ms: int
    ) -> None:
        changed = set()
        for issue, name in issues:
            if issue.kind == FOREACH_BATCH and not query.has_written:
                query.has_written = True
                continue  # its first tasks also wait for what the writer loads, and for Python
            at = (issue.cause, name)
            if at not in query.lost and len(query.lost) >= _MOST_OF_ONE:
                continue
            before = query.lost.get(at)
            query.lost[at] = before.plus(issue) if before else issue
            query.times[at] = query.times.get(at, 0) + 1
            changed.add(at)
        for at in sorted(changed):
            self._tell(query, run_id, query.lost[at], at[1], query.times[at], time_ms)

    def on_progress(self, record: QueryProgressRecord, time_ms: int) -> None:
        """Handle QueryProgress."""
        progress = record["progress"]
        run_id = str(progress.get(RUN_ID))
        query = self._queries.get(run_id)
        if query is None:
            return
        if "addBatch" in (took := progress.get("durationMs") or {}):
            query.batches_ms += int(took["addBatch"])
            if is_for_each_batch(progress):
                code = query.code.take(progress, query.own_ms, query.executions, query.collected_bytes)
                self._take_of_batches(query, run_id, code, time_ms)
        rows, begun_ms = input_rows(progress), _begun_ms(progress)
        query.sources, query.flow = sources_of(progress), flow_of(progress)
        of_batches = list(_of_batches(query, progress, rows, begun_ms))
        query.jobs_ms = query.own_ms = query.executions = query.collected_bytes = 0
        query.work = None
        if progress.get("stateOperators"):
            self._take(query, run_id, self._of_state(query, progress), time_ms)
        self._take_files(query, run_id, time_ms)
        issues = [
            query.behind.take(progress, rows, begun_ms, query.sources),
            query.source.take(rows, time_ms, query.sources),
        ]
        self._take(query, run_id, issues, time_ms)
        for issue, batches_ms in filter(None, of_batches):
            self._take_of_batches(query, run_id, issue, time_ms, batches_ms)

    def _of_state(self, query: WatchedQuery, progress: Mapping[str, Any]) -> Iterator[Issue | None]:
        yield from query.state_growth.take(progress)
        yield from query.state_rows.take(progress)
        cores = self._cores()
        of_parts = [each for each in query.files if query.state_parts.makes(each[0], progress, cores)]
        query.files = [each for each in query.files if each not in of_parts]
        yield query.state_parts.take(progress, cores, [issue for issue, _ in of_parts])

    def _take_files(self, query: WatchedQuery, run_id: str, time_ms: int) -> None:
        files, query.files = query.files, []
        self._add(query, run_id, files, time_ms)

    def on_idle(self, record: QueryIdleRecord, time_ms: int) -> None:
        """Handle QueryIdle."""
        run_id = str(record[RUN_ID])
        if (query := self._queries.get(run_id)) is not None:
            self._take(query, run_id, [query.source.take(0, time_ms, query.sources)], time_ms)

    def on_log_read(self, record: LogReadRecord, time_ms: int) -> None:
        """Handle LogRead."""
        for run_id, query in self._queries.items():
            self._take_files(query, run_id, time_ms)
            query.growing.tell(time_ms)

    def _end(self, run_id: str, time_ms: int) -> None:
        query = self._queries.pop(run_id, None)
        if query is None:
            return
        self._take_files(query, run_id, time_ms)
        self._take_of_batches(query, run_id, query.code.close(), time_ms)
        query.growing.close(time_ms)

    def _take_of_batches(
        self,
        query: WatchedQuery,
        run_id: str,
        issue: Issue | None,
        time_ms: int,
        batches_ms: int | None = None,
    ) -> None:
        """Take an issue of the query's micro-batches, which took so long in all, in ms."""
        if issue is not None:
            whole_ms = query.batches_ms if batches_ms is None else batches_ms
            subject = self._subject(query, run_id, "the time of its micro-batches", whole_ms, {})
            query.growing.take(issue, subject, time_ms)

    def _take(self, query: WatchedQuery, run_id: str, issues: Iterable[Issue | None], time_ms: int) -> None:
        """Take issues of the query as a whole."""
        for issue in issues:
            if issue is not None:
                query.growing.take(issue, self._subject(query, run_id, "", query.batches_ms, {}), time_ms)

    def _tell(
        self, query: WatchedQuery, run_id: str, issue: Issue, name: str, times: int, time_ms: int
    ) -> None:
        attributes = {"stageName": name or None, "stagesSeen": times}
        subject = self._subject(query, run_id, "the time of its jobs", query.busy_ms, attributes)
        of = "micro-batches" if issue.cause == OF_BATCH else "stages"
        reported = replace(
            issue,
            cause=f"{issue.cause} {name}",
            sentence=issue.sentence if times == 1 else f"in {times} {of}, the latest: {issue.sentence}",
        )
        query.growing.take(reported, subject, time_ms)

    def _subject(
        self, query: WatchedQuery, run_id: str, whole: str, whole_ms: int, attributes: Mapping[str, Any]
    ) -> Subject:
        # Nobody knows a query by its id: what it reads and writes stands beside that.
        flow = f" ({query.flow})" if query.flow and query.name == query.query_id else ""
        return Subject(
            Entity("query", run_id, f"query {query.name!r}{flow}", query.name),
            self._context.scopes.query_run(query.name, query.query_id, run_id),
            whole,
            whole_ms,
            attributes,
        )


def _of_batches(
    query: WatchedQuery, progress: Mapping[str, Any], rows: int, begun_ms: int | None
) -> Iterator[tuple[Issue, int] | None]:
    """Yield what all micro-batches have lost, and how long they took; None where that is little."""
    yield query.slow_source.take(progress, rows, query.sources)
    for_each = is_for_each_batch(progress)
    if for_each and (issue := query.rewrites.issue()) is not None:
        yield issue, query.batches_ms
    for of_plan in query.of_plans:
        yield of_plan, query.batches_ms
    if query.work is not None:
        of_copies_ms = max(0, query.copied_ms - query.work.tasks_ms)  # which is told of those
        code_ms = query.own_ms + of_copies_ms if for_each else 0
        yield query.small.take(progress, rows, begun_ms, query.work, code_ms)


def _begun_ms(progress: Mapping[str, Any]) -> int | None:
    """Return when a micro-batch began, in ms since the epoch; None if its progress does not say it."""
    try:
        return spark_records.parse_timestamp_ms(str(progress.get("timestamp")))
    except ValueError:
        return None
