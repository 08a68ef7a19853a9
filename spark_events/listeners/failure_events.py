"""Reports failures, with the labels of all enrichers."""

from __future__ import annotations

from spark_events.api import Event, Failure, FailureContext, MetricGroup, Severity
from spark_events.listeners.emitter import Emitter, Entity
from spark_events.listeners.enrichers import Enrichers
from spark_events.listeners.failure_metrics import FailureMetrics

CLASS_SCOPE = "spark_events.listeners.JobFailure"


class FailureEvents:
    """Builds a JobFailureEvent out of a failure, and counts it."""

    def __init__(self, emitter: Emitter, enrichers: Enrichers) -> None:
        self._emitter = emitter
        self._enrichers = enrichers
        self.metrics = FailureMetrics(emitter.series)

    def report(
        self,
        failure: Failure,
        entity: Entity,
        group: MetricGroup,
        time_ms: int,
        *,
        can_restart: bool | None = None,
        is_global: bool | None = None,
        occasion: str = "",
    ) -> None:
        """Report one failure.

        Args:
            failure: what was thrown.
            entity: what failed.
            group: whose variables the event carries.
            time_ms: when, in ms since the epoch.
            can_restart: whether Spark tries again by itself; None where that is not known.
            is_global: whether the whole job failed and not one task; None where that is not known.
            occasion: what tells it from the entity's other failures, in the id.
        """
        labels = self._enrichers.labels(failure, FailureContext(entity.kind, group.all_variables))
        event = (
            Event.builder(CLASS_SCOPE, "JobFailureEvent")
            .set_severity(Severity.WARN if can_restart else Severity.ERROR)
            .set_body(f"{entity.title} failed: {failure.message.split(chr(10), 1)[0]}")
            .set_attribute("canRestart", _word(can_restart))
            .set_attribute("isGlobalFailure", _word(is_global))
            .set_attributes({f"failureLabel.{key}": value for key, value in labels.items()})
            .set_attribute("exception.type", failure.exception_type)
            .set_attribute("exception.message", failure.message)
            .set_attribute("exception.stacktrace", failure.stacktrace)
            .set_attribute("errorClass", failure.error_class)
            .set_attribute("sqlState", failure.sql_state)
        )
        self._emitter.emit(event, entity, group, time_ms, ("failure", occasion), "FAILED")
        self.metrics.count(failure, labels.get("type", ""), entity, time_ms)


def _word(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()
