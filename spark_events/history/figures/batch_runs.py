"""The runs of batch applications: whether the last one was fine, when it was, and how long one takes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from spark_events.history.figures.job_runs import ENDS, UNKNOWN, RunOfJob
from spark_events.history.figures.timeline import DOWN_AFTER

COLUMNS = {
    "app_name": "STRING",
    "runs": "BIGINT",
    "ok": "BIGINT",
    "failed": "BIGINT",
    "canceled": "BIGINT",
    "running": "BIGINT",
    "unknown": "BIGINT",
    "last_status": "STRING",
    "last_start_ms": "BIGINT",
    "last_end_ms": "BIGINT",
    "last_duration_ms": "BIGINT",
    "usual_ms": "BIGINT",
    "last_ok_end_ms": "BIGINT",
}
"""Of the table of runs, and their types."""


def batch_runs(app_name: str, runs: Sequence[RunOfJob], since_ms: int, until_ms: int) -> dict[str, Any]:
    """Return the row of a batch application.

    Args:
        app_name: its name.
        runs: of it, at least one.
        since_ms, until_ms: runs that were over before are not counted, in ms since the epoch; the last one is
            known, whenever it was.

    Returns:
        ``app_name``; ``runs``: how many there were; of these ``ok``: FINISHED, ``failed``: FAILED or LOST,
        ``canceled``, ``running``, ``unknown``: not heard of; ``last_status``: of the run that began last;
        ``last_start_ms``, ``last_end_ms``: since the epoch, None where not known, or not over;
        ``last_duration_ms``; ``usual_ms``: the median of those that were ok; ``last_ok_end_ms``: when the
        last that was ok ended, None where none was.
    """
    counted = [run for run in runs if since_ms <= (until_ms if run.end_ms is None else run.end_ms)]
    ok = [run for run in counted if run.status == "FINISHED"]
    durations_ms = [duration_ms for run in ok if (duration_ms := _duration_ms(run)) is not None]
    going_on = [run for run in counted if run.status not in ENDS]
    unknown = sum(run.status == UNKNOWN for run in going_on)
    last = max(runs, key=lambda run: (run.begun_ms, run.run))
    return {
        "app_name": app_name,
        "runs": len(counted),
        "ok": len(ok),
        "failed": sum(run.status in DOWN_AFTER for run in counted),
        "canceled": sum(run.status == "CANCELED" for run in counted),
        "running": len(going_on) - unknown,
        "unknown": unknown,
        "last_status": last.status,
        "last_start_ms": _start_ms(last),
        "last_end_ms": last.end_ms,
        "last_duration_ms": _duration_ms(last),
        "usual_ms": int(statistics.median(durations_ms)) if durations_ms else None,
        "last_ok_end_ms": max(
            (run.end_ms for run in runs if run.status == "FINISHED" and run.end_ms), default=None
        ),
    }


def _start_ms(run: RunOfJob) -> int | None:
    """Return when a run began; None where only its end is known."""
    return None if run.spans[0].status in ENDS else run.begun_ms


def _duration_ms(run: RunOfJob) -> int | None:
    start_ms = _start_ms(run)
    return None if start_ms is None or run.end_ms is None else run.end_ms - start_ms
