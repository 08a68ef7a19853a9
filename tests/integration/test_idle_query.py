"""A query whose data stops coming, and which is then continued elsewhere, without any new data."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.applications import App, cli
from tests.support.file_log import Event, file_events, of_name, statuses
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


def start(folder: Path, checkpoints: Path) -> App:
    """Start the query on a checkpoint, with a folder for events and one for Spark's event log."""
    (folder / "logs").mkdir(parents=True)
    (folder.parent / "orders").mkdir(exist_ok=True)
    keys = {
        **reporting(folder / "events"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "logs").as_uri(),
    }
    arguments = (str(folder.parent / "orders"), str(checkpoints), str(folder / "go"))
    return App([sys.executable, str(APPS / "orders_query.py"), *arguments], keys, folder)


def reporting(events: Path) -> dict[str, str]:
    return {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": str(events),
        "spark.events.checkpoint.sla": "5s",
        "spark.events.source.idle-timeout": "12s",  # Spark says after 10 s that it is idle
    }


def feed(folder: Path, order: int) -> None:
    """Give the query a row, at once."""
    written = folder / f"{order}.tmp"
    written.write_text(f'{{"id": {order}}}\n')
    written.rename(folder / "orders" / f"{order}.json")


def replayed(folder: Path) -> list[Event]:
    into = folder / "replayed"
    conf = [part for key, value in reporting(into).items() for part in ("--conf", f"{key}={value}")]
    command = cli("replay", str(folder / "logs"), *conf)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return file_events(into)


def ids(events: list[Event], name: str) -> list[tuple[str, str]]:
    return [(event["eventId"], event["body"]) for event in of_name(events, name)]


@pytest.mark.extended
def test_idle_then_continued_elsewhere(tmp_path: Path) -> None:
    """Idle, it owes no checkpoint; killed and started on a copy of its checkpoint, it is restarted."""
    first, second = tmp_path / "first", tmp_path / "second"
    app = start(first, first / "checkpoints")

    def has(name: str, **attributes: str) -> None:
        app.wait_for(
            lambda: of_name(file_events(first / "events"), name, **attributes), f"{name} {attributes}"
        )

    feed(tmp_path, 0)
    has("CheckpointEvent")
    has("SourceIdleEvent", sourceStatus="IDLE")
    feed(tmp_path, 1)
    has("SourceIdleEvent", sourceStatus="ACTIVE")
    app.kill()
    live = file_events(first / "events")
    again = replayed(first)
    assert of_name(live, "CheckpointOverdueEvent") == of_name(again, "CheckpointOverdueEvent") == []
    assert ids(live, "SourceIdleEvent") == ids(again, "SourceIdleEvent")
    assert len(of_name(live, "SourceIdleEvent")) == 2
    owed = [event["attributes"]["owedMs"] for event in of_name(live, "CheckpointEvent")]
    assert owed == [event["attributes"]["owedMs"] for event in of_name(again, "CheckpointEvent")]
    assert statuses(live, "query") == ["CREATED", "RUNNING"]

    shutil.copytree(first / "checkpoints", tmp_path / "copy")
    app = start(second, tmp_path / "copy")
    app.wait_for(lambda: "RUNNING" in statuses(file_events(second / "events"), "query"), "it is idle")
    (second / "go").touch()
    assert app.end().code == 0
    assert statuses(file_events(second / "events"), "query") == ["RESTARTING", "RUNNING", "CANCELED"]
