"""What the listeners of one application share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_events.listeners.emitter import Emitter, Traces
from spark_events.listeners.failures.failure_events import FailureEvents
from spark_events.listeners.run import Run
from spark_events.listeners.scopes import Scopes
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.work.all_subtasks import AllSubtasks
from spark_events.listeners.work.work import ApplicationWork


@dataclass(frozen=True, slots=True)
class ListenerContext:
    """What the listeners of one application share.

    Attributes:
        run: what runs, and what belongs to what.
        redact_name: returns a name or a label of the user's without secrets.
    """

    emitter: Emitter
    failures: FailureEvents
    scopes: Scopes
    settings: ListenerSettings
    traces: Traces
    work: ApplicationWork
    all_subtasks: AllSubtasks
    run: Run
    redact_name: Callable[[str], str]
