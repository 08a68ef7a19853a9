"""Which stages took longest, and what they did: where to look, whatever the cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spark_events.api.toolkit.formatting import micros
from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage, read_stage
from spark_events.diagnosis.plans.node import Node, columns, first_of
from spark_events.diagnosis.plans.slow_functions import SLOW
from spark_events.diagnosis.plans.work_in_stage import is_light
from spark_events.diagnosis.queries.streams import flow_of
from spark_events.diagnosis.rdds.stage_place import place_of_stage
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.covered import covered_ms
from spark_events.listeners import spark_records
from spark_events.listeners.issues.executions import Executions
from spark_events.listeners.issues.findings import named
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.long_texts import shorten
from spark_events.listeners.record_types import (
    QueryProgressRecord,
    SQLExecutionEndRecord,
    StageCompletedRecord,
)
from spark_events.listeners.run import Job, Run
from spark_events.why.places import in_words, with_article, with_ends_of_paths

MOST_SHOWN = 3
_LEAST_SHARE, _SMALL_SHARE = 0.1, 0.02
"""Of the run: what the stages of one place took at least, to be shown; and if none took that."""
_LONGEST = 300
_QUERY = "query "
_MOST_NODES, _MOST_COLUMNS, _MOST_PLACES = 3, 4, 10_000
_LONG_FOR_A_ROW_US = 200
"""What a stage takes for a row is told from here on: what computes a few columns takes less."""
_WARM_MS = 30_000
"""In shorter stages, much of the time may be for what is loaded and compiled at first."""
_COMPUTE, _MOST_CALLS = ("Project", "Filter"), 3
_CALLED = re.compile(r"(?<![\w`.])(\w+)\(", re.ASCII)
_CODEC = re.compile(r"\bcompression=(bzip2|xz|lzma|brotli)\b", re.ASCII)
_SPARKS_OWN = re.compile(r"_(?:groupingexpression|(?:w|we|common_expr_|gen_alias_)\d+)", re.ASCII)
"""Columns that Spark makes between two steps, whose names nobody knows."""
_OF_NO_INTEREST = ("Exchange", "BroadcastExchange", "AQEShuffleRead", "Execute", "WriteFiles", "Reused")


@dataclass(slots=True)
class StagesOfPlace:
    """The stages of one place in the code, or of one action, that did the same.

    Attributes:
        name: the place, by which people know them; empty if unknown. Of paths in a long one, the ends.
        does: the nodes of their plan that do more than pass rows on, with columns; empty for RDDs.
        stages: how many there are.
        tasks: how many tasks they had, in all.
        rows: how many went through them at most, in all; 0 if nobody has counted them.
        run_ms: how long their tasks ran, in all.
        spans: when each began and ended, in ms since the epoch, without waiting for a core.
    """

    name: str
    does: str
    stages: int = 0
    tasks: int = 0
    rows: int = 0
    run_ms: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def wall_ms(self) -> int:
        """For how long at least one of them ran."""
        return covered_ms(self.spans)

    @property
    def title(self) -> str:
        """What they are, for a sentence."""
        count = "a stage" if self.stages == 1 else f"{self.stages:,} stages"
        of = f" of {with_article(self.name)}" if self.name else ""
        return f"{count}{of}{f': {self.does}' if self.does else ''}{self.for_each_row}"

    @property
    def for_each_row(self) -> str:
        """What a row takes, if that is long, as a sentence goes on with it."""
        each_us = self.run_ms * 1_000 / self.rows if self.rows else 0
        if each_us < _LONG_FOR_A_ROW_US or self.wall_ms < _WARM_MS:
            return ""
        return f"; {micros(each_us)} of tasks' time for each of {self.rows:,} rows"


@dataclass(slots=True)
class LongestStages(Timeless):
    """Adds up the stages of a run by place.

    Attributes:
        run: what runs now.
    """

    run: Run | None = None
    _executions: Executions = field(default_factory=lambda: Executions(Thresholds()))
    _of_execution: dict[int, list[tuple[str, Job, ExecutedStage]]] = field(default_factory=dict)
    _places: dict[tuple[str, str], StagesOfPlace] = field(default_factory=dict)
    _flows: dict[str, str] = field(default_factory=dict)

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.STAGE_COMPLETED: self.on_stage_completed,
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
            spark_records.QUERY_PROGRESS: self.on_progress,
        }

    def on_stage_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted."""
        info = record["Stage Info"]
        stage, name = read_stage(info, time_ms), place_of_stage(info)
        job = self.run.job_of(stage.id) if self.run is not None else None
        execution = self.run.execution_of(job) if self.run is not None and job is not None else None
        if job is None or execution is None:
            self._add(named(name, job), (), stage)
            return
        self._executions.stage_completed(execution.id, job, stage, info)
        self._of_execution.setdefault(execution.id, []).append((name, job, stage))

    def on_execution_end(self, record: SQLExecutionEndRecord, time_ms: int) -> None:
        """Handle SQLExecutionEnd, whose plan says what its stages did."""
        number = int(record["executionId"])
        stages = self._of_execution.pop(number, [])
        ended, _ = self._executions.ended(record, time_ms, time_ms, 0)
        self._add_all(stages, ended)

    def on_progress(self, record: QueryProgressRecord, time_ms: int) -> None:
        """Handle QueryProgress: people know a query without a name by what it reads and writes."""
        progress = record["progress"]
        has_room = len(self._flows) < _MOST_PLACES
        if has_room and not progress.get("name") and (flow := flow_of(progress)):
            self._flows[str(progress.get("id"))] = flow

    def longest(self, duration_ms: int) -> list[StagesOfPlace]:
        """Return those that took a fair share of a run, the longest first; called after the last record."""
        for stages in self._of_execution.values():
            self._add_all(stages, None)
        self._of_execution.clear()
        for place in self._places.values():
            flow = self._flows.get(place.name.removeprefix(_QUERY))
            place.name = in_words(f"{place.name} ({flow})") if flow else place.name
        by_time = sorted(self._places.values(), key=lambda place: -place.wall_ms)
        longest = by_time[:MOST_SHOWN]
        large = [each for each in longest if each.wall_ms >= _LEAST_SHARE * duration_ms]
        return large or [each for each in longest if each.wall_ms >= _SMALL_SHARE * duration_ms]

    def _add_all(self, stages: list[tuple[str, Job, ExecutedStage]], ended: EndedExecution | None) -> None:
        nodes = ended.nodes_by_stage() if ended is not None else {}
        codec = _slow_codec(ended) if ended is not None else ""
        last = stages[-1][2] if stages else None
        for name, job, stage in stages:
            of_query = job.query.get("query_name")
            place = f"{_QUERY}{of_query}" if of_query else named(name, job, ended)
            self._add(place, nodes.get(stage.id, ()), stage, codec if stage is last else "")

    def _add(self, name: str, nodes: Sequence[Node], stage: ExecutedStage, codec: str = "") -> None:
        written = f"files compressed with {codec}" if codec else ""
        key = shorten(name, _LONGEST), " ← ".join(filter(None, (written, _what(nodes))))
        if key not in self._places and len(self._places) >= _MOST_PLACES:
            return
        place = self._places.setdefault(key, StagesOfPlace(with_ends_of_paths(key[0]), key[1]))
        place.stages += 1
        place.tasks += stage.tasks
        place.run_ms += stage.run_ms
        place.rows += _rows(nodes)
        # What its tasks did not run, it waited for a core.
        run_ms = stage.run_ms or stage.wall_ms
        place.spans.append((max(stage.begun_ms, stage.ended_ms - run_ms), stage.ended_ms))


def _rows(nodes: Iterable[Node]) -> int:
    """Return how many rows go into or come out of a node of a stage at most; 0 if some are not counted."""
    counted: list[int | None] = [0]
    for node in nodes:
        counted += [below.rows for below in node.children or (node,)]
        counted.append(node.rows or 0)
    return 0 if None in counted else max(each or 0 for each in counted)


def _slow_codec(ended: EndedExecution) -> str:
    """Return the codec with which an execution compresses its files, if that takes long; else empty.

    Of several actions, as in ``foreachBatch``, nobody knows which of the stages is whose.
    """
    if len(ended.plans) > 1:
        return ""
    codecs = (_CODEC.search(node.text) for node in ended.nodes() if node.name.startswith("Execute"))
    return next((match[1] for match in codecs if match), "")


def _what(nodes: Sequence[Node]) -> str:
    """Return what nodes do, the last of a stage first; of expressions, the columns and the functions."""
    does = []
    for node in nodes:
        if is_light(node) or node.name.startswith(_OF_NO_INTEREST):
            continue
        of = [name for name in columns(node.text) if not _SPARKS_OWN.fullmatch(name)]
        calls = list(dict.fromkeys(name for name in _CALLED.findall(node.text) if name.lower() in SLOW))
        calling = f"; {', '.join(calls[:_MOST_CALLS])}" if node.name in _COMPUTE and calls else ""
        does.append(f"{node.name} ({first_of(of, _MOST_COLUMNS)}{calling})" if of else node.name)
    return " ← ".join(dict.fromkeys(does[:_MOST_NODES]))
