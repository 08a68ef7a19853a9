"""The same figures as ``spark_events.history``, reckoned ms by ms where they are small: plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

ACTIVE = ("RUNNING", "CANCELLING", "FAILING", "RESTARTING", "CREATED")
ENDED = ("FAILED", "CANCELED", "FINISHED", "LOST")
ORDER = ("CREATED", "RESTARTING", "RUNNING", "FAILING", "CANCELLING", "FAILED", "CANCELED", "FINISHED")
Event = dict[str, Any]
Job = tuple[str, str, str]


class Oracle:
    """What some events tell.

    Args:
        events: in any order, with repetitions.
        sla_ms: the SLA.
        step_ms: all times are multiples of it.
    """

    def __init__(self, events: Iterable[Event], sla_ms: int, step_ms: int) -> None:
        once = {event["eventId"]: event for event in events}
        self.events = sorted(once.values(), key=lambda e: (time(e), e["eventId"]))
        self.sla_ms, self.step_ms = sla_ms, step_ms
        self.until_ms = max(map(time, self.events))
        self.heard: dict[tuple[str, str], int] = {}
        for event in self.events:
            attributes = event["attributes"]
            self.heard[attributes["app_name"], attributes["app_id"]] = time(event)
        self.runs = self._runs()

    def states(self) -> dict[Job, list[tuple[int, str, str]]]:
        """Return status and state of each job, step by step; the last is that at the very end."""
        found = {}
        for job, runs in self.runs.items():
            began = min(changes[0][0] for changes, _ in runs)
            found[job] = [
                (now, *self._state_at(runs, now)) for now in range(began, self.until_ms + 1, self.step_ms)
            ]
        return found

    def uptime(self) -> dict[Job, dict[str, int]]:
        """Return ms by state, outages, and the longest of them."""
        found = {}
        for job, line in self.states().items():
            sums = {
                "up": 0,
                "down": 0,
                "starting": 0,
                "stopped": 0,
                "failures": 0,
                "longest": 0,
                "repaired": 0,
            }
            length = 0
            for index, (_, _, state) in enumerate(line):
                step_ms = self.step_ms if index + 1 < len(line) else 0
                sums[state] += step_ms
                before = line[index - 1][2] if index else ""
                length = length + step_ms if state == "down" else 0
                sums["failures"] += state == "down" and before != "down"
                sums["repaired"] += state != "down" and before == "down"
                sums["longest"] = max(sums["longest"], length)
            found[job] = sums
        return found

    def checkpoints(self) -> dict[tuple[str, str], dict[str, int]]:
        """Return completed, late by duration, late by gap, late, and whether one is overdue."""
        by_query: dict[tuple[str, str], list[Event]] = defaultdict(list)
        for event in self.events:
            if event["eventName"] == "CheckpointEvent":
                attributes = event["attributes"]
                by_query[attributes["app_name"], attributes["query_name"]].append(event)
        states = self.states()
        found = {}
        for query, events in by_query.items():
            last: Event | None = None
            seen: set[str] = set()
            sums = {"completed": 0, "late_by_duration": 0, "late_by_gap": 0, "late": 0, "overdue": 0}
            for event in sorted(events, key=lambda e: (time(e), owed(e))):
                attributes = event["attributes"]
                gap = owed(event)
                # Two applications' first checkpoints in the same ms are both owed since the one before.
                before = max((time(e) for e in events if time(e) < time(event)), default=None)
                if (
                    before is not None
                    and attributes["app_id"] not in seen
                    and not self._stopped(query, before, time(event))
                ):
                    gap = max(gap, time(event) - before)
                slow, late = attributes["durationMs"] > self.sla_ms, gap > self.sla_ms
                sums["completed"] += 1
                sums["late_by_duration"] += slow
                sums["late_by_gap"] += late
                sums["late"] += slow or late
                seen.add(attributes["app_id"])
                last = event
            line = states.get(("query", *query))
            if last and line and line[-1][2] == "down" and self.until_ms - time(last) > self.sla_ms:
                sums["overdue"] = 1
                sums["late_by_gap"] += 1
            found[query] = sums
        return found

    def _stopped(self, query: tuple[str, str], after: int, until: int) -> bool:
        return any(
            after <= at < until and status in ("CANCELED", "FINISHED")
            for changes, _ in self.runs.get(("query", *query), [])
            for at, status in changes
        )

    def _runs(self) -> dict[Job, list[tuple[list[tuple[int, str]], int]]]:
        """Return the changes of each run of each job, and when the run was last heard of."""
        changes: dict[Job, dict[str, list[tuple[int, int, str, str]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        apps: dict[tuple[Job, str], tuple[str, str]] = {}
        for event in self.events:
            a = event["attributes"]
            if event["eventName"] == "JobStatusChangeEvent" and a["job.kind"] != "job":
                job = (a["job.kind"], a["app_name"], a.get("query_name", ""))
                run = a.get("run_id") or a["app_id"]
                status = a["newJobStatus"]
                changes[job][run].append((time(event), ORDER.index(status), event["eventId"], status))
                apps[job, run] = (a["app_name"], a["app_id"])
        return {
            job: [
                ([(at, status) for at, _, _, status in sorted(found)], self.heard[apps[job, run]])
                for run, found in runs.items()
            ]
            for job, runs in changes.items()
        }

    def _state_at(self, runs: list[tuple[list[tuple[int, str]], int]], now: int) -> tuple[str, str]:
        active: set[str] = set()
        ends: list[tuple[int, int, str]] = []
        for changes, heard in runs:
            later = [other[0][0] for other, _ in runs if other[0][0] > changes[0][0]]
            for index, (at, status) in enumerate(changes):
                until = changes[index + 1][0] if index + 1 < len(changes) else self.until_ms + 1
                if status in ENDED:
                    if at <= now:
                        ends.append((at, -ENDED.index(status), status))
                    continue
                if index + 1 == len(changes) and later:
                    until = max(at, min(heard, min(later)))
                    if until <= now:
                        ends.append((until, -ENDED.index("LOST"), "LOST"))
                if at <= now < until:
                    active.add(status)
        ended = max(ends)[2] if ends else None
        for status in ACTIVE:
            if status in active:
                up = status in ("RUNNING", "CANCELLING", "FAILING")
                return status, "up" if up else "down" if ended in ("FAILED", "LOST") else "starting"
        assert ended is not None
        return ended, "down" if ended in ("FAILED", "LOST") else "stopped"


def time(event: Event) -> int:
    """Return an event's time, in ms since the epoch."""
    return int(event["timeUnixNano"]) // 1_000_000


def owed(event: Event) -> int:
    """Return how long a checkpoint was owed, by its own event, in ms."""
    attributes = event["attributes"]
    return int(attributes.get("owedMs", attributes["durationMs"]))
