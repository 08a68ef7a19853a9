"""The formats of scopes, as in Flink: what a metric's dotted name begins with (``spark.metrics.scope.*``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_events.api import Option, OptionType

_VARIABLE = re.compile(r"<([^<>]*)>")
_EVERYWHERE = ("host", "app_name", "app_id", "app_attempt_id")


@dataclass(frozen=True, slots=True)
class ScopeFormat:
    """One format, such as ``<app_name>.query.<query_name>``.

    Attributes:
        parts: what stood between the dots.
    """

    parts: Sequence[str]

    def render(self, variables: Mapping[str, str]) -> tuple[str, ...]:
        """Return the scope's components; one that comes out empty, as that of no query, is left out."""
        filled = (_VARIABLE.sub(lambda match: variables.get(match.group(1), ""), part) for part in self.parts)
        return tuple(part for part in filled if part)


def _option(scope: str, default: str, *own: str) -> Option[ScopeFormat]:
    allowed = (*_EVERYWHERE, *own)

    def parse(text: str) -> ScopeFormat:
        unknown = [name for name in _VARIABLE.findall(text) if name not in allowed]
        if unknown:
            raise ValueError(f"<{unknown[0]}> is none of them")
        parts = text.split(".")
        if not all(parts):
            raise ValueError("there is nothing between two dots, or at an end")
        return ScopeFormat(parts)

    variables = ", ".join(f"<{name}>" for name in allowed)
    kind = OptionType("scope format", f"texts and variables between dots, of {variables}", parse)
    return Option(f"scope.{scope}", kind, parse(default), f"what names in the scope {scope} begin with")


DRIVER = _option("driver", "<app_name>.driver")
APPLICATION = _option("application", "<app_name>")
QUERY = _option("query", "<app_name>.query.<query_name>", "query_name")
JOB = _option("job", "<app_name>.job.<job_id>", "query_name", "job_id")
STAGE = _option("stage", "<app_name>.stage.<stage_id>", "query_name", "stage_id", "stage_attempt")
OPTIONS = (DRIVER, APPLICATION, QUERY, JOB, STAGE)


@dataclass(frozen=True, slots=True)
class ScopeFormats:
    """The formats of all scopes.

    Attributes:
        driver: of the framework itself.
        application: of the application.
        query: of a streaming query.
        job: of a Spark job.
        stage: of a stage attempt.
    """

    driver: ScopeFormat = DRIVER.default
    application: ScopeFormat = APPLICATION.default
    query: ScopeFormat = QUERY.default
    job: ScopeFormat = JOB.default
    stage: ScopeFormat = STAGE.default
