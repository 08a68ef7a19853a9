"""What the tasks of a stage measured, made up for tests of diagnoses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_events.diagnosis.measured import TasksMeasured, read_tasks_measured
from spark_events.sources.event_log.tasks.task_statistics import QUANTITIES, Distribution


def statistics(
    run_ms: Sequence[int],
    read: Sequence[int] = (),
    at_once: int = 4,
    hosts: Mapping[str, tuple[int, int, int]] | None = None,
    rows: Sequence[int] = (),
    written: Sequence[int] = (),
    **others: Any,
) -> dict[str, Any]:
    """Return a record's Task Statistics, of tasks that began at the same time, at 1,000 ms."""
    longest = sorted(range(len(run_ms)), key=lambda number: -run_ms[number])
    quantities: dict[str, Sequence[int]] = {
        "Duration": run_ms,
        "Executor Run Time": run_ms,
        "Bytes Read": read or [0] * len(run_ms),
        "Records Read": rows or [0] * len(run_ms),
        "Bytes Written": written or [0] * len(run_ms),
    }
    summaries = {}
    for name in QUANTITIES:
        distribution = Distribution()
        distribution.add(quantities.get(name, [0] * len(run_ms)))
        summaries[name] = distribution.summary()
    return {
        "Tasks": len(run_ms),
        "Most Running": at_once,
        "First Launch": 1_000,
        "Last Finish": 1_000 + max(max(run_ms), sum(run_ms) // at_once),
        "Failed": 0,
        "Failed Time": 0,
        "Fetch Failures": 0,
        "Killed": 0,
        "Killed Time": 0,
        **summaries,
        "Longest Runs": [
            [
                number,
                1_000,
                run_ms[number],
                quantities["Bytes Read"][number],
                "1",
                "a",
                quantities["Records Read"][number],
            ]
            for number in longest[:8]
        ],
        "Hosts": {host: list(work) for host, work in (hosts or {}).items()},
        **{name.replace("_", " "): value for name, value in others.items()},
    }


def measured(*args: Any, cpu_ms: int = 0, **others: Any) -> TasksMeasured:
    """Return the same as diagnoses see it, with how long tasks had a CPU, in ms, which the stage's end says."""
    return replace(read_tasks_measured(statistics(*args, **others)), cpu_ms=cpu_ms)
