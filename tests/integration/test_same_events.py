"""One application, reported live and from its event log: the same events and spans, id by id."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import cli
from tests.support.file_log import events_and_spans
from tests.support.live_application import ADDED, Live

pytestmark = pytest.mark.spark
# What an event log does not tell, of which ids do not depend.
LOCATION = "checkpointLocation"
"""Where a query keeps its checkpoints: asked of the driver."""
STACK = "exception.stacktrace"
"""Spark adds the caller's frames to a job's exception just when the listeners write it down."""
PLACE = {"code.file.path", "code.line.number", "code.function.name"}
"""Where the driver's Python waited for a job that failed, unless Spark or the exception name a place."""
BEHIND = "stream-behind"
"""On a busy machine, micro-batches take longer than their trigger's interval, which only the driver knows."""
END_OF_QUERY = {"timeUnixNano", "oldJobStatusMs", "durationMs", "sinceLastMs", "owedMs", "slaMs"}
"""When a query ended: Spark's record does not say; live, it is when the record came."""


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    files = sorted(folder.glob(f"*.{kind}.*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def reporters(folder: Path) -> dict[str, str]:
    return {
        **events_and_spans(folder),
        "spark.events.reporter.file.scope.variables.additional": ADDED,
        "spark.traces.checkpoint.span-detail-level": "CHILDREN_SPANS_PER_SUBTASK",
        "spark.events.checkpoint.sla": "1h",
    }


def conf_of(settings: dict[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]


class Both:
    """The application's event log, and both accounts of it."""

    def __init__(self, app: Live, replayed: Path) -> None:
        self.logs, self.live, self.replayed = app.folder / "logs", app.folder / "events", replayed
        self.said = replay(self.logs, self.replayed)


def replay(logs: Path, into: Path) -> str:
    command = cli("replay", str(logs), *conf_of(reporters(into)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def both(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(live, tmp_path_factory.mktemp("replayed"))


def differing(live: dict[str, Any], replayed: dict[str, Any]) -> set[str]:
    """Return in what two accounts of the same thing differ, attributes by their own names."""
    mine, other = live.pop("attributes"), replayed.pop("attributes")
    live.pop("observedTimeUnixNano", None)
    replayed.pop("observedTimeUnixNano", None)
    keys = {key for key in mine.keys() | other.keys() if mine.get(key) != other.get(key)}
    return keys | {key for key in live.keys() | replayed.keys() if live.get(key) != replayed.get(key)}


def in_the_task(stack: str) -> str:
    """Return a job's stack up to where its task began.

    Spark puts the frames of the thread that waits for the job below them, once or more often, in the exception that the
    driver's listeners and the event log read at the same time.
    """
    frames = re.split(r"\tat (java\.base/)?java\.lang\.Thread\.run\(", stack)
    assert len(frames) > 1, stack
    return frames[0]


def is_aligned(span: dict[str, Any], account: dict[str, dict[str, Any]]) -> bool:
    """Tell whether a span ends with one around it, or with a part of it.

    No part ends after the whole, by what was told of first. Spark posts from several threads, each to one queue after
    the other, so the driver's listeners and the event log may meet two ends in either order; and a query's own end,
    and so that of what it left running, is not a time that a log tells.
    """
    around, above = span, []
    while around := account.get(around.get("parentSpanId", ""), {}):
        above.append(around)
    parts = [each for each in account.values() if each.get("parentSpanId") == span["spanId"]]
    return any(each["endTimeUnixNano"] == span["endTimeUnixNano"] for each in above + parts)


def test_events_are_the_same(both: Both) -> None:
    """All ids, names, attributes, bodies and times, but for what a log does not tell."""
    told = [event for event in lines(both.live, "events") if event["eventName"] != "HeartbeatEvent"]
    # On a busy machine, a task may be warned of while it runs, which a log does not repeat.
    told = [event for event in told if not event["attributes"].get("live")]
    live, replayed = (
        {event["eventId"]: event for event in events if event["attributes"].get("issue") != BEHIND}
        for events in (told, lines(both.replayed, "events"))
    )

    assert len(live) > 40
    in_one = live.keys() ^ replayed.keys()
    assert [(key in live, (live | replayed)[key]) for key in in_one] == []
    exact = 0
    for event_id, event in live.items():
        name, attributes = event["eventName"], dict(event["attributes"])
        allowed = set()
        if name == "CheckpointEvent":
            assert LOCATION not in replayed[event_id]["attributes"]
            allowed = {LOCATION}
        if attributes["job_kind"] == "query":
            allowed |= END_OF_QUERY
        if attributes.get("query_name") == "bounded" and attributes.get("newJobStatus") == "FINISHED":
            allowed |= {"newJobStatus", "body"}
        other = replayed[event_id]
        if attributes["job_kind"] == "job" and name == "JobFailureEvent":
            assert in_the_task(attributes[STACK]) == in_the_task(other["attributes"][STACK])
            allowed |= {STACK, *PLACE}
        found = differing(event, other)
        assert found <= allowed, (name, attributes)
        exact += not found
    assert exact > len(live) / 2


def test_spans_are_the_same(both: Both) -> None:
    live = {span["spanId"]: span for span in lines(both.live, "spans")}
    replayed = {span["spanId"]: span for span in lines(both.replayed, "spans")}

    assert len(live) > 40
    assert live.keys() == replayed.keys()
    for span_id, span in live.items():
        allowed = set()
        of_batch = span["attributes"].get("checkpointStatus", "COMPLETED")
        if span["name"] == "Query" or of_batch != "COMPLETED":
            allowed = {"endTimeUnixNano", "jobStatus", "events"}
        if span["name"] == "Application":
            allowed = {"endTimeUnixNano"}  # not before that of its last query
        if is_aligned(span, live) or is_aligned(replayed[span_id], replayed):
            allowed |= {"endTimeUnixNano"}
        if span["name"] == "Job" and span["events"]:
            mine, theirs = (x["events"][0].pop("attributes") for x in (span, replayed[span_id]))
            assert in_the_task(mine.pop(STACK)) == in_the_task(theirs.pop(STACK))
            assert mine == theirs
        assert differing(span, replayed[span_id]) <= allowed, (span, replayed[span_id])


def test_a_second_replay_changes_nothing(both: Both, tmp_path: Path) -> None:
    """Neither does one into the same folder: it appends, and the ids are the same."""
    once = lines(both.replayed, "events")
    assert replay(both.logs, tmp_path).splitlines()[:-1] == both.said.splitlines()[:-1]  # the last is a time
    again = lines(tmp_path, "events")
    for event in once + again:
        del event["observedTimeUnixNano"]
    assert once == again


def test_the_summary(both: Both) -> None:
    """Applications, versions, last statuses by kind, and what was sent."""
    assert "1 application in 1 event log, Spark 4." in both.said or "Spark 3.5" in both.said
    row = {
        cells[0]: cells[1:]
        for cells in (line.split() for line in both.said.replace("│", " ").splitlines())
        if cells
    }
    assert row["application"] == ["0", "0", "1"]
    assert row["query"] == ["1", "2", "0"]
    assert "event reporter 'file': " in both.said
    assert "span reporter 'file': " in both.said
    assert "skipped" not in both.said
