"""The places of an application, a query, a job and a stage in the scope tree, and formats of their names."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_events.api import ApplicationInfo, OptionType
from spark_events.runtime.scope import ScopeGroup
from spark_events.runtime.settings import setting

_VARIABLE = re.compile(r"<([^<>]*)>")
SCOPES = (
    *("application", "query", "job", "stage", "executor", "task", "driver", "sql_execution"),
    *("reporter", "bridge", "task_reports", "executor_sink", "eventlog", "values"),
)
"""The scopes below ``spark``; what the second line has are the framework's own metrics."""
_EVERYWHERE = ("host", "app_name", "app_id", "app_attempt_id")


@dataclass(frozen=True, slots=True)
class ScopeFormat:
    """One format, such as ``<app_name>.query.<query_name>``, split at its dots."""

    parts: Sequence[str]

    def render(self, variables: Mapping[str, str]) -> tuple[str, ...]:
        """Return the scope's components, without empty ones, such as the name of a query if there is none."""
        filled = (
            _VARIABLE.sub(lambda variable: variables.get(variable.group(1), ""), part) for part in self.parts
        )
        return tuple(part for part in filled if part)


def _scope(scope: str, default: str, doc: str, *own: str) -> Any:
    """Declare the format of a scope, with the variables that it has besides the common ones."""
    allowed = (*_EVERYWHERE, *own)

    def parse(text: str) -> ScopeFormat:
        unknown = [name for name in _VARIABLE.findall(text) if name not in allowed]
        if unknown:
            raise ValueError(f"<{unknown[0]}> is not one of them")
        parts = text.split(".")
        if not all(parts):
            raise ValueError("a part before, between or after dots is empty")
        return ScopeFormat(parts)

    variables = ", ".join(f"<{name}>" for name in allowed)
    option_type = OptionType(
        "scope format", f"text and variables separated by dots; variables: {variables}", parse
    )
    return setting(f"spark.metrics.scope.{scope}", option_type, parse(default), doc)


@dataclass(frozen=True, slots=True)
class ScopeFormats:
    """The formats of all scopes: the framework's own, and those of what it reports on."""

    driver: ScopeFormat = _scope(
        "driver",
        "<app_name>.driver",
        "Prefix of the dotted names of the framework's own metrics. Variables here and below: `<host>`, "
        "`<app_name>`, `<app_id>`, `<app_attempt_id>`.",
    )
    application: ScopeFormat = _scope(
        "application", "<app_name>", "Prefix of the names of an application's metrics."
    )
    query: ScopeFormat = _scope(
        "query",
        "<app_name>.query.<query_name>",
        "Prefix for a streaming query's metrics; also `<query_name>`.",
        "query_name",
    )
    executor: ScopeFormat = _scope(
        "executor",
        "<app_name>.executor.<executor_id>",
        "Prefix for an executor's metrics; also `<executor_id>`. `<host>` is the executor's.",
        "executor_id",
    )
    job: ScopeFormat = _scope(
        "job",
        "<app_name>.job.<job_id>",
        "Prefix for a Spark job's metrics; also `<query_name>`, `<job_id>`.",
        "query_name",
        "job_id",
    )
    task: ScopeFormat = _scope(
        "task",
        "<app_name>.task.<query_name>",
        "Prefix for what your own code reports from [inside tasks](tasks.md); also `<query_name>`.",
        "query_name",
    )
    stage: ScopeFormat = _scope(
        "stage",
        "<app_name>.stage.<stage_id>",
        "Prefix for a stage's metrics; also `<query_name>`, `<stage_id>`, `<stage_attempt>`.",
        "query_name",
        "stage_id",
        "stage_attempt",
    )


class Scopes:
    """Makes the groups of one application.

    Series belong to a group that is the same in every run (application name, query name). Events come from
    groups that also know the run. The tree does not keep those, so it stays small however many jobs run.
    """

    def __init__(self, root: ScopeGroup, application: ApplicationInfo, formats: ScopeFormats) -> None:
        self._root = root
        self._formats = formats
        self._name = application.name
        self._of_receiver = {
            "spark.application.id": application.id,
            "spark.application.name": application.name,
        }
        self._everywhere = variables_of(application)
        self._instance = {"app_id": application.id}
        if application.attempt_id:
            self._instance["app_attempt_id"] = application.attempt_id

    def application(self) -> ScopeGroup:
        """Return the group of the application's series."""
        return self._root.child("application", self._render(self._formats.application), self._labels())

    def events(self) -> ScopeGroup:
        """Return the group in which events are counted."""
        return self._root.child("", self._render(self._formats.application), self._labels())

    def application_run(self) -> ScopeGroup:
        """Return the group of the application's events."""
        return self._events("application", self._formats.application, {}, {})

    def query(self, name: str) -> ScopeGroup:
        """Return the group of a streaming query's series."""
        variables = {"query_name": name}
        return self._root.child(
            "query", self._render(self._formats.query, variables), self._labels(variables)
        )

    def query_run(self, name: str, query_id: str, run_id: str) -> ScopeGroup:
        """Return the group of the events of one run of a streaming query."""
        instance = {"query_id": query_id, "run_id": run_id}
        return self._events("query", self._formats.query, {"query_name": name}, instance)

    def executor_series(self, executor: str, host: str) -> ScopeGroup:
        """Return the series of an executor, the only ones that have its id and host."""
        return self._series("executor", self._formats.executor, {"executor_id": executor, "host": host})

    def executor_run(self, executor: str, host: str) -> ScopeGroup:
        """Return the events of an executor."""
        instance = {"executor_id": executor, "host": host}
        return self._events("executor", self._formats.executor, {}, instance)

    def job(self, job_id: int, of_query: Mapping[str, str]) -> ScopeGroup:
        """Return the group of a Spark job's events; ``of_query`` names the streaming query it belongs to."""
        return self._events("job", self._formats.job, of_query, {"job_id": str(job_id)})

    def job_series(self, job_id: int, of_query: Mapping[str, str]) -> ScopeGroup:
        """Return the group of a Spark job's series, the only ones with its id."""
        return self._series("job", self._formats.job, {**of_query, "job_id": str(job_id)})

    def stage(self, stage_id: int, attempt: int, of_query: Mapping[str, str]) -> ScopeGroup:
        """Return the group of a stage attempt's events."""
        instance = {"stage_id": str(stage_id), "stage_attempt": str(attempt)}
        return self._events("stage", self._formats.stage, of_query, instance)

    def stage_series(self, stage_id: int, attempt: int, of_query: Mapping[str, str]) -> ScopeGroup:
        """Return the group of a stage attempt's series, the only ones with its id."""
        variables = {**of_query, "stage_id": str(stage_id), "stage_attempt": str(attempt)}
        return self._series("stage", self._formats.stage, variables)

    def task(self, query_name: str) -> ScopeGroup:
        """Return the group of the series that tasks report; the query's name is empty for those of none."""
        variables = {"query_name": query_name} if query_name else {}
        components = self._render(self._formats.task, variables)
        return self._root.child("task", components, self._labels(variables))

    def task_run(
        self, stage_id: int, partition: int, attempt: int, of_query: Mapping[str, str]
    ) -> ScopeGroup:
        """Return the group of the events and spans that one task reports."""
        instance = {"stage_id": str(stage_id), "partition": str(partition), "task_attempt": str(attempt)}
        return self._events("task", self._formats.task, of_query, instance)

    def own_code(self) -> ScopeGroup:
        """Return the group of the series that the driver's own code reports."""
        components = (*self._render(self._formats.application), "driver")
        return self._root.child("driver", components, self._labels())

    def own_code_run(self) -> ScopeGroup:
        """Return the group of the events and spans that the driver's own code reports."""
        return self._events("driver", self._formats.application, {}, {})

    def sql_execution(self, execution: int) -> ScopeGroup:
        """Return the group of an SQL execution's spans."""
        instance = {"sql_execution_id": str(execution)}
        return self._events("sql_execution", self._formats.application, {}, instance)

    def receiver_driver(self) -> ScopeGroup:
        """Return the driver's series under the names of the collector's receiver."""
        components = (*self._render(self._formats.application), "driver")
        return self._root.detached("driver", components, self._of_receiver, {})

    def receiver_executor(self, executor: str, host: str) -> ScopeGroup:
        """Return an executor's series under the receiver's names."""
        components = self._render(self._formats.executor, {"executor_id": executor, "host": host})
        return self._receiver("executor", components, {"spark.executor.id": executor})

    def receiver_job(self, job_id: str) -> ScopeGroup:
        """Return a Spark job's series under the receiver's names."""
        components = self._render(self._formats.job, {"job_id": job_id})
        return self._receiver("job", components, {"spark.job.id": job_id})

    def receiver_stage(self, stage_id: str, attempt: str) -> ScopeGroup:
        """Return a stage attempt's series under the receiver's names."""
        components = self._render(self._formats.stage, {"stage_id": stage_id, "stage_attempt": attempt})
        return self._receiver(
            "stage", components, {"spark.stage.id": stage_id, "spark.stage.attempt.id": attempt}
        )

    def _receiver(self, name: str, components: tuple[str, ...], ids: Mapping[str, str]) -> ScopeGroup:
        return self._root.detached(name, components, {**self._of_receiver, **ids}, {})

    def _render(self, scope: ScopeFormat, variables: Mapping[str, str] | None = None) -> tuple[str, ...]:
        return scope.render({**self._everywhere, **(variables or {})})

    def _labels(self, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"app_name": self._name, **(variables or {})}

    def _series(self, name: str, scope: ScopeFormat, variables: Mapping[str, str]) -> ScopeGroup:
        components, labels = self._render(scope, variables), self._labels(variables)
        return self._root.detached(name, components, labels, {})

    def _events(
        self, name: str, scope: ScopeFormat, variables: Mapping[str, str], instance: Mapping[str, str]
    ) -> ScopeGroup:
        components = self._render(scope, {**variables, **instance})
        return self._root.detached(name, components, self._labels(variables), {**self._instance, **instance})


def variables_of(application: ApplicationInfo) -> dict[str, str]:
    """Return the variables that every scope format may name."""
    return {
        "host": socket.gethostname(),
        "app_name": application.name,
        "app_id": application.id,
        "app_attempt_id": application.attempt_id,
    }
