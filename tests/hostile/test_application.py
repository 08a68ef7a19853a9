"""A real application with hostile names and messages: all ends arrive, live and from its event log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.file_log import Event, file_events, of_name, statuses
from tests.support.forked_commands import run_forked
from tests.support.hostile_texts import TEXTS
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java"), pytest.mark.extended]
REPORTER = "spark.events.reporter.file."
CUT = "characters left out"


class Both:
    """The application, and both accounts of it."""

    def __init__(self, folder: Path) -> None:
        (folder / "logs").mkdir()
        conf = {
            f"{REPORTER}factory.class": "file_log",
            f"{REPORTER}path": str(folder / "live"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "logs").as_uri(),
            "spark.driver.memory": "2g",
        }
        name = ("--conf", f"spark.app.name={TEXTS['escape']}{TEXTS['markup']}")
        command = cli("run", "--master", "local[2]", *name, str(APPS / "hostile.py"), str(folder))
        self.run: AppRun = App(command, conf, folder).end()
        assert self.run.code == 0, self.run.err[-3000:]
        into = (
            "--conf",
            f"{REPORTER}factory.class=file_log",
            "--conf",
            f"{REPORTER}path={folder / 'replayed'}",
        )
        self.said = run_forked("replay", str(folder / "logs"), *into, timeout=200)
        self.live = file_events(folder / "live")
        self.replayed = file_events(folder / "replayed")


@pytest.fixture(scope="module")
def both(java: str, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("hostile"))


def test_what_failed_with_megabytes_has_failed(both: Both) -> None:
    """The job of 11 MB, and the query of 12 MB with its job: RUNNING, then FAILED."""
    assert "dropped" not in both.run.err
    for account in (both.live, both.replayed):
        assert len(of_name(account, "JobFailureEvent", job_kind="query")) == 3
        ended = statuses(account, "job")
        assert ended.count("RUNNING") == len(ended) / 2
        assert ended.count("FAILED") == 4
        assert statuses(account, "application") == ["CREATED", "RUNNING", "FINISHED"]
        assert not of_name(account, "RecordsDroppedEvent")


def test_a_long_text_says_how_much_is_left_out(both: Both) -> None:
    """And its event is small."""
    (query,) = [
        event
        for event in of_name(both.live, "JobFailureEvent", job_kind="query")
        if "more characters" in str(event["attributes"]["exception.message"])
    ]
    message = str(query["attributes"]["exception.message"])
    assert message.endswith("more characters)")
    left_out = int(message.rsplit("… (", 1)[1].split()[0])
    assert left_out > 12_000_000
    assert max(len(json.dumps(event)) for event in both.live) < 200_000


def test_both_accounts_are_the_same(both: Both) -> None:
    """Ids, names and texts, though the lines of the log are of up to 20 MB."""
    beats = {event["eventId"] for event in of_name(both.live, "HeartbeatEvent")}
    live, replayed = by_id(both.live), by_id(both.replayed)
    live = {event_id: event for event_id, event in live.items() if event_id not in beats}
    assert live.keys() == replayed.keys()
    for event_id, event in live.items():
        mine, other = event["attributes"], replayed[event_id]["attributes"]
        for key in ("exception.message", "exception.type", "app_name", "query_name", "newJobStatus"):
            assert mine.get(key) == other.get(key), (event["eventName"], key)


def test_the_replay_says_it_without_steering_the_terminal(both: Both) -> None:
    from tests.support.hostile_texts import steering

    assert both.said.returncode == 0, both.said.stderr
    assert "skipped" not in both.said.stdout
    assert not steering(both.said.stdout + both.said.stderr)


def by_id(events: list[Event]) -> dict[str, Any]:
    return {event["eventId"]: event for event in events}
