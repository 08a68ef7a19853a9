"""Which stages took longest, and what they did: where to look, whatever the cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_events.diagnosis.plans.execution import EndedExecution, ExecutedStage, read_stage
from spark_events.diagnosis.plans.node import Node, columns
from spark_events.diagnosis.plans.work_in_stage import is_light
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.times.covered import covered_ms
from spark_events.listeners import spark_records
from spark_events.listeners.issues.executions import Executions
from spark_events.listeners.issues.findings import named
from spark_events.listeners.listener import Handlers, Timeless
from spark_events.listeners.long_texts import shorten
from spark_events.listeners.record_types import SQLExecutionEndRecord, StageCompletedRecord
from spark_events.listeners.run import Job, Run

MOST_SHOWN = 3
_LEAST_SHARE = 0.1
"""Of the run: what the stages of one place took at least, to be shown."""
_LONGEST = 100
_MOST_NODES, _MOST_COLUMNS, _MOST_PLACES = 3, 4, 10_000
_OF_NO_INTEREST = ("Exchange", "BroadcastExchange", "AQEShuffleRead", "Execute", "WriteFiles", "Reused")


@dataclass(slots=True)
class StagesOfPlace:
    """The stages of one place in the code, or of one action, that did the same.

    Attributes:
        name: the place, by which people know them; empty if unknown.
        does: the nodes of their plan that do more than pass rows on, with columns; empty for RDDs.
        stages: how many there are.
        tasks: how many tasks they had, in all.
        spans: when each began and ended, in ms since the epoch.
    """

    name: str
    does: str
    stages: int = 0
    tasks: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def wall_ms(self) -> int:
        """For how long at least one of them ran."""
        return covered_ms(self.spans)

    @property
    def title(self) -> str:
        """What they are, for a sentence."""
        count = "a stage" if self.stages == 1 else f"{self.stages:,} stages"
        the = "the " if self.name.startswith("query of ") else ""
        of = f" of {the}{self.name}" if self.name else ""
        return f"{count}{of}{f': {self.does}' if self.does else ''}"


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

    @property
    def handlers(self) -> Handlers:
        """What it hears."""
        return {
            spark_records.STAGE_COMPLETED: self.on_stage_completed,
            spark_records.SQL_EXECUTION_END: self.on_execution_end,
        }

    def on_stage_completed(self, record: StageCompletedRecord, time_ms: int) -> None:
        """Handle StageCompleted."""
        info = record["Stage Info"]
        stage, name = read_stage(info, time_ms), str(info.get("Stage Name") or "")
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

    def longest(self, duration_ms: int) -> list[StagesOfPlace]:
        """Return those that took a fair share of a run, the longest first; called after the last record."""
        for stages in self._of_execution.values():
            self._add_all(stages, None)
        self._of_execution.clear()
        by_time = sorted(self._places.values(), key=lambda place: -place.wall_ms)
        return [each for each in by_time[:MOST_SHOWN] if each.wall_ms >= _LEAST_SHARE * duration_ms]

    def _add_all(self, stages: list[tuple[str, Job, ExecutedStage]], ended: EndedExecution | None) -> None:
        nodes = ended.nodes_by_stage() if ended is not None else {}
        for name, job, stage in stages:
            of_query = job.query.get("query_name")
            self._add(
                f"query {of_query}" if of_query else named(name, job, ended), nodes.get(stage.id, ()), stage
            )

    def _add(self, name: str, nodes: Iterable[Node], stage: ExecutedStage) -> None:
        key = shorten(name, _LONGEST), _what(nodes)
        if key not in self._places and len(self._places) >= _MOST_PLACES:
            return
        place = self._places.setdefault(key, StagesOfPlace(*key))
        place.stages += 1
        place.tasks += stage.tasks
        place.spans.append((stage.begun_ms, stage.ended_ms))


def _what(nodes: Iterable[Node]) -> str:
    """Return what nodes do, the last of a stage first; of expressions, only the columns are told."""
    does = []
    for node in nodes:
        if is_light(node) or node.name.startswith(_OF_NO_INTEREST):
            continue
        of = columns(node.text)
        more = ", …" if len(of) > _MOST_COLUMNS else ""
        does.append(f"{node.name} ({', '.join(of[:_MOST_COLUMNS])}{more})" if of else node.name)
    return " ← ".join(dict.fromkeys(does[:_MOST_NODES]))
