"""Failures of jobs and stages that those of their application or query tell again: they count once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from spark_events.history.figures.application import OWNERS
from spark_events.history.figures.heard import ApplicationRun, application_run

_SAME_WITHIN_MS = 5_000
"""How long after that of its job an application's or a query's failure is the same one."""
_COMPARED_CHARACTERS = 300
_PLACE = re.compile(r" \((?:[^()]|\([^()]*\))*:\d*, in .*\)$")
"""As ``facts`` puts it behind a message; a path may have brackets of its own."""


class OneFailure(NamedTuple):
    """A failure of an application, a query, a job or a stage, as its event tells it; times are in ms."""

    event_id: str
    time_ms: int
    kind: str | None
    app_id: str | None
    attempt: str | None
    query_name: str | None
    error_class: str | None
    exception_type: str | None
    message: str | None


def told_by_owners(failed: Sequence[OneFailure]) -> set[str]:
    """Return the ids of the failures of jobs and stages that those of their owners tell again.

    Of each owner's failure, that is the last before it of a job, and the last of a stage.
    """
    of_jobs: dict[tuple[ApplicationRun, str], list[OneFailure]] = defaultdict(list)
    for failure in failed:
        if failure.kind in ("job", "stage"):
            key = application_run(failure.app_id, failure.attempt), _first_line(failure)
            of_jobs[key].append(failure)
    told_again: set[str] = set()
    for owner in failed:
        if owner.kind in OWNERS:
            alike = of_jobs.get((application_run(owner.app_id, owner.attempt), _first_line(owner)), ())
            causes = [failure for failure in alike if _is_cause(failure, owner)]
            latest = {cause.kind: cause for cause in sorted(causes, key=lambda f: (f.time_ms, f.event_id))}
            told_again.update(cause.event_id for cause in latest.values())
    return told_again


def _is_cause(failure: OneFailure, owner: OneFailure) -> bool:
    """Whether a job's failure, of the same message, is that of its application or query."""
    if owner.kind == "query" and failure.query_name != owner.query_name:
        return False
    # Python's own exceptions have no error class where the application sees them, Spark's no type in the job.
    types = [(each.exception_type or "").rsplit(".", 1)[-1] for each in (failure, owner)]
    same_class = failure.error_class and failure.error_class == owner.error_class
    same = same_class or (types[0] and types[0] == types[1])
    return bool(same) and 0 <= owner.time_ms - failure.time_ms <= _SAME_WITHIN_MS


def _first_line(failure: OneFailure) -> str:
    """Return the first line of a message, without the place in the code."""
    line = (failure.message or "").split("\n", 1)[0]
    return _PLACE.sub("", line)[:_COMPARED_CHARACTERS]
