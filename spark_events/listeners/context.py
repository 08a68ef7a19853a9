"""What the listeners of one application share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.listeners.all_subtasks import AllSubtasks
from spark_events.listeners.emitter import Emitter
from spark_events.listeners.failure_events import FailureEvents
from spark_events.listeners.scopes import Scopes
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.traces import Traces
from spark_events.listeners.work import ApplicationWork


@dataclass(frozen=True, slots=True)
class ListenerContext:
    """What the listeners of one application share.

    Attributes:
        queries_by_run: by run id, the variables of the streaming query, for the jobs that it runs.
    """

    emitter: Emitter
    failures: FailureEvents
    scopes: Scopes
    settings: ListenerSettings
    traces: Traces
    work: ApplicationWork
    all_subtasks: AllSubtasks
    queries_by_run: dict[str, Mapping[str, str]]

    def query_of_job(self, record: dict[str, Any]) -> Mapping[str, str]:
        """Return the variables of the query that a JobStart's job belongs to; the job group is the run id."""
        properties = record.get("Properties") or {}
        return self.queries_by_run.get(str(properties.get("spark.jobGroup.id")), {})
