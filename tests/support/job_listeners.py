"""Job status listeners, loaded as ``module:Class`` the way a stranger's are."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from spark_events.api import (
    Failure,
    JobExecutionListener,
    JobListenerContext,
    JobStatusChangedEvent,
    JobStatusChangedListener,
    JobStatusChangedListenerFactory,
    LineageVertex,
    Option,
    option_types,
)

LABEL = Option("label", option_types.STRING, "none", "what it is called")


class Collecting(JobStatusChangedListener):
    """Keeps what it is told, and what its slow work has done."""

    instances: ClassVar[list[Collecting]] = []

    def __init__(self, context: JobListenerContext) -> None:
        self.context = context
        self.label = context.config.get(LABEL)
        self.events: list[JobStatusChangedEvent] = []
        self.done: list[str] = []
        self.calls: list[str] = []
        self.slow = threading.Event()
        Collecting.instances.append(self)

    def on_event(self, event: JobStatusChangedEvent) -> None:
        self.events.append(event)
        self.context.io_executor.submit(self._work, event.job_id)

    def _work(self, job_id: str) -> None:
        self.slow.wait(0.2)
        self.done.append(job_id)

    def close(self) -> None:
        self.calls.append(f"close after {len(self.done)}")


class CollectingFactory(JobStatusChangedListenerFactory):
    options = (LABEL,)

    def create_listener(self, context: JobListenerContext) -> JobStatusChangedListener:
        return Collecting(context)


class CoroutineFactory(JobStatusChangedListenerFactory):
    """Makes a listener whose method runs nothing."""

    def create_listener(self, context: JobListenerContext) -> JobStatusChangedListener:
        class Coroutine(JobStatusChangedListener):
            async def on_event(self, event: JobStatusChangedEvent) -> None:  # type: ignore[override]
                pass

        return Coroutine()


class OlderCoroutineFactory(JobStatusChangedListenerFactory):
    """The same of the older form."""

    def create_listener(self, context: JobListenerContext) -> JobStatusChangedListener:
        class Coroutine(JobExecutionListener):
            async def on_finished(self, job_id: str, job_name: str) -> None:  # type: ignore[override]
                pass

        return Coroutine()


class RaisingFactory(JobStatusChangedListenerFactory):
    """Makes a listener that raises at all it is told."""

    def create_listener(self, context: JobListenerContext) -> JobStatusChangedListener:
        class Raising(JobStatusChangedListener):
            def on_event(self, event: JobStatusChangedEvent) -> None:
                raise RuntimeError("I will not listen")

        return Raising()


class OlderForm(JobExecutionListener):
    """Knows the older form alone."""

    told: ClassVar[list[tuple[Any, ...]]] = []

    def on_created(
        self,
        job_id: str,
        job_name: str,
        sources: tuple[LineageVertex, ...],
        sinks: tuple[LineageVertex, ...],
    ) -> None:
        self.told.append(("created", job_name, len(sources), len(sinks)))

    def on_finished(self, job_id: str, job_name: str) -> None:
        self.told.append(("finished", job_name))

    def on_canceled(self, job_id: str, job_name: str) -> None:
        self.told.append(("canceled", job_name))

    def on_failed(self, job_id: str, job_name: str, exception: Failure | None) -> None:
        self.told.append(("failed", job_name, exception.message if exception else None))


class OlderFactory(JobStatusChangedListenerFactory):
    def create_listener(self, context: JobListenerContext) -> JobStatusChangedListener:
        return OlderForm()
