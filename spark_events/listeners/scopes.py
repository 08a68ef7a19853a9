"""Where in the scope tree an application, a query, a job and a stage have their places."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.api import ApplicationInfo
from spark_events.runtime.scope import ScopeGroup


class Scopes:
    """Makes the groups of one application.

    Series belong to a group that is the same in every run (application name, query name). Events come from
    groups that also know the run; those are not kept in the tree, however many jobs a driver runs.

    Args:
        root: the root of the scope tree.
        application: the application.
    """

    def __init__(self, root: ScopeGroup, application: ApplicationInfo) -> None:
        self._root = root
        self._name = application.name
        self._instance = {"app_id": application.id}
        if application.attempt_id:
            self._instance["app_attempt_id"] = application.attempt_id

    def application(self) -> ScopeGroup:
        """Return the application's series."""
        return self._root.child("application", (self._name,), {"app_name": self._name})

    def application_run(self) -> ScopeGroup:
        """Return the application's events."""
        return self._events("application", (), {}, {})

    def query(self, name: str) -> ScopeGroup:
        """Return a streaming query's series."""
        variables = {"app_name": self._name, "query_name": name}
        return self._root.child("query", (self._name, "query", name), variables)

    def query_run(self, name: str, query_id: str, run_id: str) -> ScopeGroup:
        """Return the events of one run of a streaming query."""
        instance = {"query_id": query_id, "run_id": run_id}
        return self._events("query", ("query", name), {"query_name": name}, instance)

    def job(self, job_id: int, of_query: Mapping[str, str]) -> ScopeGroup:
        """Return the events of a Spark job; ``of_query`` names the streaming query that it works for."""
        return self._events("job", ("job", str(job_id)), of_query, {"job_id": str(job_id)})

    def stage(self, stage_id: int, attempt: int, of_query: Mapping[str, str]) -> ScopeGroup:
        """Return the events of a stage attempt."""
        instance = {"stage_id": str(stage_id), "stage_attempt": str(attempt)}
        return self._events("stage", ("stage", str(stage_id)), of_query, instance)

    def _events(
        self,
        name: str,
        components: tuple[str, ...],
        variables: Mapping[str, str],
        instance: Mapping[str, str],
    ) -> ScopeGroup:
        return self._root.detached(
            name,
            (self._name, *components),
            {"app_name": self._name, **variables},
            {**self._instance, **instance},
        )
