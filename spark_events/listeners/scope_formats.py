"""Scope formats, as in Flink: the prefixes of metrics' dotted names (``spark.metrics.scope.*``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_events.api import OptionType
from spark_events.runtime.settings import setting

_VARIABLE = re.compile(r"<([^<>]*)>")
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
    application: ScopeFormat = _scope("application", "<app_name>", "The same for an application's metrics.")
    query: ScopeFormat = _scope(
        "query",
        "<app_name>.query.<query_name>",
        "For a streaming query's; also `<query_name>`.",
        "query_name",
    )
    executor: ScopeFormat = _scope(
        "executor",
        "<app_name>.executor.<executor_id>",
        "For an executor's; also `<executor_id>`. `<host>` is the executor's.",
        "executor_id",
    )
    job: ScopeFormat = _scope(
        "job",
        "<app_name>.job.<job_id>",
        "For a Spark job's; also `<query_name>`, `<job_id>`.",
        "query_name",
        "job_id",
    )
    task: ScopeFormat = _scope(
        "task",
        "<app_name>.task.<query_name>",
        "For what your own code reports from [inside tasks](tasks.md); also `<query_name>`.",
        "query_name",
    )
    stage: ScopeFormat = _scope(
        "stage",
        "<app_name>.stage.<stage_id>",
        "For a stage's; also `<query_name>`, `<stage_id>`, `<stage_attempt>`.",
        "query_name",
        "stage_id",
        "stage_attempt",
    )
