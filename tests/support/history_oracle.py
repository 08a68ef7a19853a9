"""The same figures as ``spark_events.history``, reckoned ms by ms where they are small: plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

ACTIVE = ("RUNNING", "CANCELLING", "FAILING", "UNKNOWN", "RESTARTING", "CREATED")
ENDED = ("FAILED", "CANCELED", "FINISHED", "LOST")
STOPS = ("CANCELED", "FINISHED")
ORDER = ("CREATED", "RESTARTING", "RUNNING", "FAILING", "CANCELLING", "FAILED", "CANCELED", "FINISHED")
Event = dict[str, Any]
Job = tuple[str, str, str]


class OfRun(NamedTuple):
    """The changes of a run, in order; whose it is, and of which query; when that was last heard of, how often."""

    changes: list[tuple[int, str]]
    application: tuple[str, str, str]
    query: str
    heard: int
    beats: int

    @property
    def began(self) -> int:
        """When that was."""
        return self.changes[0][0]

    def is_after_end_of(self, other: OfRun) -> bool:
        """Whether the other one, which began before, must have ended by then: a query has one run at a time."""
        return (self.application, self.query) == (other.application, other.query)


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
        self.heard: dict[tuple[str, str, str], int] = {}
        self.beats: dict[tuple[str, str, str], int] = {}
        self.with_queries: set[str] = set()
        for event in self.events:
            attributes = event["attributes"]
            self.heard[whose(event)] = time(event)
            if event["eventName"] == "HeartbeatEvent":
                self.beats[whose(event)] = attributes["intervalMs"]
            if attributes.get("query_name"):
                self.with_queries.add(attributes["app_name"])
        self.runs = self._runs()

    def states(self) -> dict[Job, list[tuple[int, str, str]]]:
        """Return status and state of each job, step by step; the last is that at the very end."""
        found = {}
        for job, runs in self.runs.items():
            began = min(run.began for run in runs)
            found[job] = [
                (now, *self._state_at(job, now)) for now in range(began, self.until_ms + 1, self.step_ms)
            ]
        return found

    def uptime(self) -> dict[Job, dict[str, int | None]]:
        """Return ms by state, outages, and the longest of them; of a batch application, its failures."""
        found = {}
        for job, line in self.states().items():
            names = (
                "up",
                "down",
                "unknown",
                "starting",
                "stopped",
                "failed",
                "outages",
                "longest",
                "repaired",
            )
            sums: dict[str, int | None] = dict.fromkeys(names, 0)
            length = 0
            for index, (_, _, state) in enumerate(line):
                step_ms = self.step_ms if index + 1 < len(line) else 0
                sums[state] += step_ms
                before = line[index - 1][2] if index else ""
                length = length + step_ms if state == "down" else 0
                sums["outages"] += state == "down" and before != "down"
                sums["repaired"] += state not in ("down", "unknown") and before == "down"
                sums["longest"] = max(sums["longest"], length)
            del sums["failed"]
            if self.is_batch(job):
                sums = dict.fromkeys(sums)
            found[job] = {**sums, "failures": len(self.failures_of(job))}
        return found

    def is_batch(self, job: Job) -> bool:
        """Whether it is an application that never had a query."""
        return job[1] not in self.with_queries

    def failures_of(self, job: Job) -> list[int]:
        """Return when it failed, or was lost."""
        told = [
            time(event)
            for event in self.events
            if event["eventName"] == "JobFailureEvent" and self._of_job(event) == job
        ]
        return told + [at for run in self.runs[job] if (at := self._lost(job, run)) is not None]

    def lost(self) -> dict[tuple[str, str, int], int]:
        """Return how many lost runs are listed: by application's name, query's name and day."""
        found: dict[tuple[str, str, int], int] = defaultdict(int)
        for job, runs in self.runs.items():
            for run in runs:
                at = self._lost(job, run)
                of_application = [
                    other
                    for other in self.runs.get(("application", job[1], ""), [])
                    if other.application == run.application
                ]
                gone = any(
                    self._lost(("application", job[1], ""), each) is not None for each in of_application
                )
                if at is not None and (job[0] == "application" or not gone):
                    found[job[1], job[2], at // 86_400_000] += 1
        return dict(found)

    def batches(self) -> dict[str, dict[str, Any]]:
        """Return the runs of batch applications."""
        found = {}
        for job, runs in self.runs.items():
            if not self.is_batch(job):
                continue
            in_order = sorted(runs, key=lambda run: (run.began, "/".join(filter(None, run.application))))
            ends = [(self._ends_as(job, run), run) for run in in_order]
            took = sorted(
                run.changes[-1][0] - run.began
                for status, run in ends[:-1]
                if status == "FINISHED" and run.changes[0][1] not in ENDED
            )
            half = len(took) // 2
            statuses = [status for status, _ in ends]
            found[job[1]] = {
                "runs": len(runs),
                "ok": statuses.count("FINISHED"),
                "failed": statuses.count("FAILED") + statuses.count("LOST"),
                "canceled": statuses.count("CANCELED"),
                "unknown": statuses.count("UNKNOWN"),
                "last_status": statuses[-1],
                "usual_ms": (took[half] + took[-half - 1]) // 2 if took else None,
            }
        return found

    def checkpoints(self) -> dict[tuple[str, str], dict[str, int]]:
        """Return completed, late by duration, late by gap, late, whether one is overdue, and what never came."""
        names = ("completed", "late_by_duration", "late_by_gap", "late", "overdue", "stopped_late")
        by_query: dict[tuple[str, str], list[Event]] = defaultdict(list)
        for event in self.events:
            if event["eventName"] == "CheckpointEvent":
                attributes = event["attributes"]
                by_query[attributes["app_name"], attributes["query_name"]].append(event)
        states = self.states()
        found = {}
        for query, events in by_query.items():
            seen: set[str] = set()
            sums = dict.fromkeys(names, 0)
            for event in sorted(events, key=lambda e: (time(e), owed(e))):
                attributes = event["attributes"]
                gap = owed(event)
                # Two applications' first checkpoints in the same ms are both owed since the one before.
                before = max((time(e) for e in events if time(e) < time(event)), default=0)
                if attributes["app_id"] not in seen:
                    gap = max(gap, self._gap(query, event, before, states))
                slow, late = attributes["durationMs"] > self.sla_ms, gap > self.sla_ms
                sums["completed"] += 1
                sums["late_by_duration"] += slow
                sums["late_by_gap"] += late
                sums["late"] += slow or late
                seen.add(attributes["app_id"])
            found[query] = sums
        for (kind, app_name, query_name), line in states.items():
            query = app_name, query_name
            if kind == "query" and query in by_query and line and line[-1][2] == "down":
                went = self._went_down(line, max(map(time, by_query[query])), self.until_ms + 1)
                assert went is not None
                if self.until_ms - went > self.sla_ms:
                    found[query]["overdue"] = 1
                    found[query]["late_by_gap"] += 1
        for event in self.events:
            attributes = event["attributes"]
            stopped = attributes["job_kind"] == "query" and attributes.get("newJobStatus") in STOPS
            if stopped and attributes.get("owedMs", 0) > self.sla_ms:
                query = attributes["app_name"], attributes["query_name"]
                found.setdefault(query, dict.fromkeys(names, 0))
                found[query]["late_by_gap"] += 1
                found[query]["stopped_late"] += 1
        return found

    def _gap(self, query: tuple[str, str], event: Event, before: int, states: dict[Job, Any]) -> int:
        """Return how long an application's first checkpoint was owed by what came before it."""
        at = time(event)
        before = max([before, *self._stops(query, at)])
        runs = self.runs.get(("query", *query), [])
        began = [run.began for run in runs if run.application == whose(event) and run.began <= at]
        if began and owed(event) < at - max(began):
            return 0
        if not runs:
            return at - before if before else 0
        went = self._went_down(states[("query", query[0], query[1])], before, at)
        return 0 if went is None else at - went

    def _went_down(self, line: list[tuple[int, str, str]], since: int, until: int) -> int | None:
        """Return when the last outage began; a step is longer than a query is at work without a word."""
        went, before = None, ""
        for now, _, state in line:
            if since <= now < until and state == "down" and (before != "down" or went is None):
                went = now
            before = state
        return went

    def _stops(self, query: tuple[str, str], until: int) -> list[int]:
        return [
            at
            for run in self.runs.get(("query", *query), [])
            for at, status in run.changes
            if at < until and status in ("CANCELED", "FINISHED")
        ]

    def _of_job(self, event: Event) -> Job:
        a = event["attributes"]
        return (a["job_kind"], a["app_name"], a.get("query_name", "") if a["job_kind"] == "query" else "")

    def _runs(self) -> dict[Job, list[OfRun]]:
        """Return the runs of each job."""
        changes: dict[Job, dict[str, list[tuple[int, int, str, str]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        applications: dict[tuple[Job, str], tuple[str, str, str]] = {}
        queries: dict[tuple[Job, str], str] = {}
        for event in self.events:
            a = event["attributes"]
            if event["eventName"] == "JobStatusChangeEvent" and a["job_kind"] != "job":
                job = self._of_job(event)
                run = a.get("run_id") or str(whose(event))
                status = a["newJobStatus"]
                changes[job][run].append((time(event), ORDER.index(status), event["eventId"], status))
                applications[job, run] = whose(event)
                queries[job, run] = a.get("query_id", "")
        found: dict[Job, list[OfRun]] = {}
        for job, runs in changes.items():
            for run, of_run in runs.items():
                application = applications[job, run]
                # What does not say of which attempt it is may be of each.
                any_attempt = (*application[:2], "")
                heard = max(self.heard.get(each, 0) for each in (application, any_attempt))
                beats = self.beats.get(application, 0) or self.beats.get(any_attempt, 0)
                in_order = [(at, status) for at, _, _, status in sorted(of_run)]
                found.setdefault(job, []).append(
                    OfRun(in_order, application, queries[job, run], heard, beats)
                )
        return found

    def _ends_as(self, job: Job, run: OfRun) -> str:
        """Return the last status of a run, LOST and UNKNOWN among them; else what it was last."""
        if run.changes[-1][1] in ENDED:
            return run.changes[-1][1]
        later = [other for other in self.runs[job] if other.began > run.began]
        if not run.beats:
            return "LOST" if later else run.changes[-1][1]
        following = [other for other in later if other.began == min(each.began for each in later)]
        silent = self.until_ms - run.heard
        if any(other.is_after_end_of(run) for other in following):
            return "LOST"
        if silent >= 10 * run.beats or any(other.began > run.heard for other in later):
            return "LOST"
        return "UNKNOWN" if silent >= 3 * run.beats else run.changes[-1][1]

    def _over(self, job: Job, run: OfRun) -> int:
        """Return when a run that was lost, or may be, was heard of last, as far as it counts."""
        following = [other for other in self.runs[job] if other.began > run.began]
        first = min((other.began for other in following), default=self.until_ms)
        again = any(other.is_after_end_of(run) for other in following if other.began == first)
        heard = run.heard if run.beats and not again else min(run.heard, first)
        return max(run.changes[-1][0], heard)

    def _lost(self, job: Job, run: OfRun) -> int | None:
        return self._over(job, run) if self._ends_as(job, run) == "LOST" else None

    def _state_at(self, job: Job, now: int) -> tuple[str, str]:
        active: set[str] = set()
        ends: list[tuple[int, int, str]] = []
        for run in self.runs[job]:
            fate = self._ends_as(job, run)
            for index, (at, status) in enumerate(run.changes):
                until = run.changes[index + 1][0] if index + 1 < len(run.changes) else self.until_ms + 1
                if status in ENDED:
                    if at <= now:
                        ends.append((at, -ENDED.index(status), status))
                    continue
                if index + 1 == len(run.changes) and fate in ("LOST", "UNKNOWN"):
                    until = self._over(job, run)
                    if until <= now and fate == "LOST":
                        ends.append((until, -ENDED.index("LOST"), "LOST"))
                    elif until <= now:
                        active.add("UNKNOWN")
                if at <= now < until:
                    active.add(status)
        ended = max(ends)[2] if ends else None
        bad = ended in ("FAILED", "LOST")
        batch = self.is_batch(job)
        for status in ACTIVE:
            if status in active:
                if status in ("RUNNING", "CANCELLING", "FAILING"):
                    return status, "up"
                if status == "UNKNOWN":
                    return status, "unknown"
                return status, "down" if bad and not batch else "starting"
        assert ended is not None
        return ended, ("failed" if batch else "down") if bad else "stopped"


def whose(event: Event) -> tuple[str, str, str]:
    """Return the name, the id and the attempt of an event's application."""
    attributes = event["attributes"]
    return attributes["app_name"], attributes["app_id"], attributes.get("app_attempt_id", "")


def time(event: Event) -> int:
    """Return an event's time, in ms since the epoch."""
    return int(event["timeUnixNano"]) // 1_000_000


def owed(event: Event) -> int:
    """Return how long a checkpoint was owed, by its own event, in ms."""
    attributes = event["attributes"]
    return int(attributes.get("owedMs", attributes["durationMs"]))
