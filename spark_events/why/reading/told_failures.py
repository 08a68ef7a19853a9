"""What an explanation says of failures: each once, also where a job's is its application's as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spark_events.history.figures.told_again import OneFailure, told_by_owners


class ToldFailure(NamedTuple):
    """A failure, and the sentence about it."""

    failure: OneFailure
    sentence: str


def told_failure(event_id: str, time_ms: int, attributes: Mapping[str, Any], sentence: str) -> ToldFailure:
    """Return the failure that a JobFailureEvent with these attributes tells."""
    failure = OneFailure(
        event_id,
        time_ms,
        attributes.get("job_kind"),
        attributes.get("app_id"),
        attributes.get("app_attempt_id"),
        attributes.get("query_name"),
        attributes.get("errorClass"),
        attributes.get("exception.type"),
        attributes.get("exception.message"),
    )
    return ToldFailure(failure, sentence)


def sentences(failures: Sequence[ToldFailure]) -> list[str]:
    """Return what is said of failures, in order, as often as a report counts them."""
    once = list({each.failure.event_id: each for each in failures}.values())
    told_again = told_by_owners([each.failure for each in once])
    in_order = sorted(once, key=lambda each: each.failure.time_ms)
    return [each.sentence for each in in_order if each.failure.event_id not in told_again]
