"""Logs that grow, poll by poll: what is reported when, once, and across restarts of the follower."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import re
import resource
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.api import ConfigError
from spark_events.api.event import now_ms
from spark_events.sources.event_log import absent_logs, ended_series, follow, followed_application
from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.followed_application import FollowedApplication, steady_ms
from spark_events.sources.event_log.pace import Pace
from spark_events.sources.event_log.reading.log_positions import DEAD, ENDED, FOLLOWED, PASSED, LogPositions
from tests.support import spark_records as r
from tests.support.event_log_reading import read_bytes
from tests.support.event_log_sample import SampleLog, small_log
from tests.support.file_log import file_events
from tests.support.plugins import Collecting, CollectingMetricsFactory
from tests.support.spark_records import new_statuses
from tests.support.waiting import free_port, wait_until

LOG_START = {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}
LINES = small_log().splitlines(keepends=True)


class Following:
    """A follower of one folder, and what came out of all followers of it so far."""

    def __init__(self, folder: Path, **conf: str) -> None:
        self.logs, self.state = folder / "logs", folder / "state.sqlite"
        self.logs.mkdir(exist_ok=True)
        self.conf = {
            "spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory",
            "spark.events.event-log.idle-timeout": "1h",
            **{
                f"spark.events.{key.replace('__', '.').replace('_', '-')}": value
                for key, value in conf.items()
            },
        }
        self.complete_too = False
        self._before = len(Collecting.instances)
        self.start()

    def start(self) -> None:
        self.follower = Follower(str(self.logs), self.conf, LogPositions(self.state), self.complete_too)

    def stop(self) -> None:
        """As SIGTERM does."""
        self.follower.stop()
        self.follower.run()

    def kill(self) -> None:
        """As a crash does: nothing is closed, and nothing more is written down."""
        self.follower._positions.close()

    def poll(self) -> None:
        """Look at the logs until there is nothing more to read, and all of it is delivered."""
        for _ in range(500):
            more = self.follower.poll()
            waiting = [f.registry for f in self.follower._followed.values() if f.registry]
            if not more and not any(registry.undelivered for registry in waiting):
                self.follower.poll()  # and again, for what waits for a delivery
                return
            time.sleep(0.01)
        raise AssertionError("never at rest")

    def write(self, name: str, *lines: bytes) -> Path:
        path = self.logs / name
        with path.open("ab") as file:
            file.writelines(lines)
        return path

    @property
    def events(self) -> list[Any]:
        return [event for reporter in Collecting.instances[self._before :] for event in reporter.events]

    @property
    def ids(self) -> list[str]:
        return [event.id for event in self.events]

    def state_of(self, name: str) -> str | None:
        position = self.follower._positions[name]
        return position.state if position else None


@pytest.fixture
def following(tmp_path: Path) -> Following:
    return Following(tmp_path)


def set_clock(monkeypatch: pytest.MonkeyPatch, later_ms: int) -> None:
    """Let the wall clock be ahead."""
    for module in (follow, followed_application):
        monkeypatch.setattr(module, "now_ms", lambda: now_ms() + later_ms)


def pass_time(monkeypatch: pytest.MonkeyPatch, later_ms: int) -> None:
    """Let both clocks be ahead, as they are later."""
    set_clock(monkeypatch, later_ms)
    for module in (follow, followed_application, ended_series):
        monkeypatch.setattr(module, "steady_ms", lambda: steady_ms() + later_ms)


def test_a_log_that_grows(following: Following, tmp_path: Path) -> None:
    """Line by line, and in pieces of lines; its end is seen, and its name may change with it."""
    whole = read_bytes(small_log(), tmp_path).ids
    path = following.logs / "app-1.inprogress"
    data, step, seen = small_log(), 700, set()
    for start in range(0, len(data), step):
        with path.open("ab") as file:
            file.write(data[start : start + step])
        following.poll()
        seen.add(len(following.ids))
        assert following.ids == whole[: len(following.ids)]
    assert len(seen) > 8
    path.rename(following.logs / "app-1")
    following.poll()

    assert following.ids == whole
    assert following.state_of("app-1") == ENDED
    following.poll()
    assert following.ids == whole


def test_several_applications(following: Following) -> None:
    """New ones are picked up; each has reporters of its own."""
    following.write("a.inprogress", *SampleLog("a").begin())
    following.poll()
    following.write("b.inprogress", *SampleLog("b").begin())
    following.write("a.inprogress", *SampleLog("a").end())
    following.poll()
    by_app = {event.variables["app_id"] for event in following.events}
    assert by_app == {"a", "b"}
    assert new_statuses(following.events, "application").count("FINISHED") == 1


def test_a_log_that_nothing_can_read(
    following: Following, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once; those that are listed after it are followed, and so is it once it can be read."""
    read = FollowedApplication.read

    def fails(followed: FollowedApplication, log: Any, listed_ms: int) -> bool:
        if log.name == "a":
            raise UnicodeError("odd bytes")
        return read(followed, log, listed_ms)

    for name in ("a", "b"):
        following.write(f"{name}.inprogress", *SampleLog(name).begin())
    with monkeypatch.context() as odd:
        odd.setattr(FollowedApplication, "read", fails)
        following.poll()
        following.poll()
    assert {event.variables["app_id"] for event in following.events} == {"b"}
    assert caplog.text.count("a.inprogress: cannot be read (UnicodeError: odd bytes); trying again") == 1
    following.poll()
    assert {event.variables["app_id"] for event in following.events} == {"a", "b"}


def test_warnings_of_logs_that_are_gone_are_few(following: Following) -> None:
    for number in range(1_500):
        following.follower._warn_once(f"/logs/{number}", "cannot be read", 1)
    assert len(following.follower._last_warnings) == 1_000


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_restarts_repeat_nothing(following: Following, tmp_path: Path, how: str) -> None:
    """At each line the follower is ended and started again: each event comes once, and none is missing."""
    whole = read_bytes(small_log(), tmp_path).ids
    for line in LINES:
        following.write("app-1.inprogress", line)
        following.poll()
        getattr(following, how)()
        following.start()
    following.poll()
    assert following.ids == whole


def test_what_was_not_delivered_comes_again(following: Following, tmp_path: Path) -> None:
    """After a crash in the middle: ids repeat, none is missing."""
    whole = read_bytes(small_log(), tmp_path).ids
    following.write("app-1.inprogress", *LINES[:9])
    following.poll()
    following.write("app-1.inprogress", *LINES[9:])
    following.follower._positions.put = lambda name, position: None  # type: ignore[method-assign]
    following.poll()
    following.kill()
    following.start()
    following.poll()
    assert set(following.ids) == set(whole)
    assert len(following.ids) > len(whole)


def test_what_a_reporter_still_holds_is_not_noted(following: Following) -> None:
    """How far a log was read and delivered is not how far it was read."""
    key = "spark.events.reporter.y."
    following.conf |= {key + "factory.class": "tests.support.plugins:Blocking", key + "in": "event"}
    following.conf["spark.events.close.timeout"] = "100ms"
    following.stop()
    following.start()
    following.write("app-1.inprogress", *LINES[:9])
    for _ in range(3):
        following.follower.poll()
    assert following.state_of("app-1") is None
    following.stop()
    following.start()
    assert following.state_of("app-1") is None


def test_what_is_noted_while_records_keep_coming(following: Following) -> None:
    """Each turn notes what the one before it has read, if that is delivered by now."""
    following.conf["spark.events.reporter.y.factory.class"] = "tests.support.plugins:SlowFactory"
    following.stop()
    following.start()
    noted = []
    for line in LINES:
        following.write("app-1.inprogress", line)
        following.follower.poll()
        position = following.follower._positions["app-1"]
        noted.append(position.read_up_to[1] if position else 0)
        registries = [f.registry for f in following.follower._followed.values() if f.registry]
        wait_until(lambda found=registries: not any(r.at_risk for r in found), "it is delivered")
    assert all(lines >= number for number, lines in enumerate(noted[5:-1], 5))


def test_complete_logs_are_left_to_replay(tmp_path: Path) -> None:
    """Unless they are asked for; what is complete by the next start was missed, and is reported."""
    following = Following(tmp_path)
    following.write("old", *LINES)
    following.poll()
    assert following.events == []
    assert following.state_of("old") == PASSED
    following.stop()
    following.write("meanwhile", *LINES)
    following.start()
    following.poll()
    assert len(following.ids) == 15
    following.stop()

    (tmp_path / "other").mkdir()
    other = Following(tmp_path / "other")
    other.stop()
    other.state.unlink()
    other.complete_too = True
    other.start()
    other.write("old", *LINES)
    other.poll()
    assert len(other.ids) == 15


def test_a_dead_application(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAILED with its query, at the time of its last record; and RUNNING again should its log go on."""
    following = Following(tmp_path, event_log__idle_timeout="60s")
    following.write("app-1.inprogress", *LINES[:-3])
    following.poll()
    assert "FAILED" not in new_statuses(following.events, "application")
    pass_time(monkeypatch, 61_000)
    following.poll()

    assert new_statuses(following.events, "application") == ["CREATED", "RUNNING", "FAILED"]
    assert new_statuses(following.events, "query") == ["CREATED", "RUNNING", "FAILED"]
    failed = [event for event in following.events if event.name == "JobFailureEvent"]
    assert "spark.events.event-log.idle-timeout" in failed[-1].attributes["exception.message"]
    assert "is marked FAILED" in caplog.text
    assert following.state_of("app-1") == DEAD
    following.stop()
    following.start()
    following.poll()
    count = len(following.ids)
    assert new_statuses(following.events, "application")[-1] == "FAILED"

    monkeypatch.undo()
    following.write("app-1.inprogress", *LINES[-3:])
    following.poll()
    again = following.events[count:]
    assert new_statuses(again, "application") == ["RUNNING", "FINISHED"]
    assert new_statuses(again, "query") == ["RUNNING", "FAILED"]
    assert len(set(following.ids)) == len(following.ids)


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pause of the machine, an application has as long as ever to go on."""
    following = Following(tmp_path, event_log__idle_timeout="60s")
    following.write("app-1.inprogress", *LINES[:-3])
    following.poll()
    set_clock(monkeypatch, 7_200_000)
    following.poll()
    assert new_statuses(following.events, "application") == ["CREATED", "RUNNING"]

    pass_time(monkeypatch, 7_261_000)
    following.poll()
    assert new_statuses(following.events, "application") == ["CREATED", "RUNNING", "FAILED"]


FIRST, SECOND = "application_1795000000000_0001_1", "application_1795000000000_0001_2"


def attempt(number: str) -> list[bytes]:
    """Return the lines of one attempt of an application of YARN's, with a query that runs, and its end."""
    own = b'"App ID":"application_1795000000000_0001","App Attempt ID":"%s"' % number.encode()
    of_sample = b'"App ID":"app-20261118120000-0001"'
    assert any(of_sample in line for line in LINES)
    return [line.replace(of_sample, own) for line in LINES]


def test_a_start_that_fails_is_not_the_first(tmp_path: Path) -> None:
    """Complete logs are passed over by the first process that looks at them, also after one that could not."""
    (tmp_path / "state.sqlite").touch()  # as of a process that was killed at once
    metrics = {
        "spark.metrics.reporter.p.factory.class": "prometheus",
        "spark.metrics.reporter.p.bind.address": "127.0.0.1",
    }
    following = Following(tmp_path)
    following.write("old", *LINES)
    following.kill()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        following.conf |= {**metrics, "spark.metrics.reporter.p.port": port}
        following.start()
        with pytest.raises(ConfigError, match=port):
            following.follower.run()
        following.kill()
    following.start()
    following.poll()

    assert following.ids == []
    assert following.state_of("old") == PASSED


def test_a_full_disk_below_the_state(following: Following, caplog: pytest.LogCaptureFixture) -> None:
    """All is reported, and the positions are saved once there is room."""
    caplog.set_level(logging.INFO, "spark_events")
    following.write("app-1.inprogress", *LINES[:8])
    following.poll()
    following.write("app-1.inprogress", *LINES[8:])
    following.write("app-2.inprogress", *SampleLog("app-2").begin())
    with full_disk():
        following.poll()
    reported = following.ids
    following.poll()
    following.kill()
    following.start()
    following.poll()

    assert len(following.ids) == len(reported) > 15
    assert caplog.text.count("state.sqlite: cannot be used") == 1
    assert "state.sqlite: the positions are saved again" in caplog.text


def test_a_state_that_is_never_saved(following: Following) -> None:
    """The end tells."""
    following.follower.stop()
    following.write("app-1.inprogress", *LINES[:8])
    with full_disk():
        following.poll()
        with pytest.raises(ConfigError, match=r"1 log\(s\) were read is not saved"):
            following.follower._close()


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process grow beyond a few bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_crash_just_after_complete_logs_are_passed_over(following: Following) -> None:
    """All of them are noted, and what is complete by the next start was missed."""
    following.write("old", *LINES)
    following.write("older", *LINES)
    following.follower._skip_complete_logs(following.follower._list_logs()[0])
    following.kill()
    following.write("meanwhile", *LINES)
    following.start()
    following.poll()

    assert following.state_of("old") == following.state_of("older") == PASSED
    assert len(following.ids) == 15


@pytest.mark.parametrize("rolling", [False, True], ids=["one file", "rolling"])
def test_an_attempt_that_another_one_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rolling: bool
) -> None:
    """It is over as soon as the next one has a log, and not only when its own has not grown for an hour."""
    following = Following(tmp_path)
    following.write(f"{FIRST}.inprogress", *attempt("1")[:-3])
    following.poll()
    pass_time(monkeypatch, 30_000)
    following.poll()
    assert new_statuses(following.events, "application") == ["CREATED", "RUNNING"]

    if rolling:
        folder = following.logs / f"eventlog_v2_{SECOND}"
        folder.mkdir()
        (folder / f"events_1_{SECOND}").write_bytes(b"".join(attempt("2")))
        (folder / f"appstatus_{SECOND}").touch()
    else:
        following.write(SECOND, *attempt("2"))
    following.poll()

    first = [event for event in following.events if event.variables["app_attempt_id"] == "1"]
    assert new_statuses(first, "application") == ["CREATED", "RUNNING", "FAILED"]
    assert new_statuses(first, "query") == ["CREATED", "RUNNING", "FAILED"]
    failed = [event for event in first if event.name == "JobFailureEvent"][-1]
    assert failed.attributes["exception.message"] == (
        "the event log has no end, and attempt 2 of the application has begun"
    )
    assert failed.attributes["canRestart"] == "true"
    changes = [event for event in first if event.attributes.get("newJobStatus") == "FAILED"]
    assert [event.attributes["outcome"] for event in changes] == ["assumed", "assumed"]
    assert following.state_of(FIRST) == DEAD
    second = [event for event in following.events if event.variables["app_attempt_id"] == "2"]
    assert new_statuses(second, "application") == ["CREATED", "RUNNING", "FINISHED"]


def test_an_attempt_that_writes_although_another_one_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node may have been lost to YARN alone: it is RUNNING again, and over once it has rested longer."""
    following = Following(tmp_path)
    following.write(f"{FIRST}.inprogress", *attempt("1")[:-5])
    following.write(f"{SECOND}.inprogress", *attempt("2")[:-3])
    pass_time(monkeypatch, 30_000)
    following.poll()
    assert following.state_of(FIRST) == DEAD

    following.write(f"{FIRST}.inprogress", *attempt("1")[-5:-3])
    following.poll()
    of_first = [event for event in following.events if event.variables["app_attempt_id"] == "1"]
    assert new_statuses(of_first, "application")[-1] == "RUNNING"

    pass_time(monkeypatch, 120_000)
    following.poll()
    of_first = [event for event in following.events if event.variables["app_attempt_id"] == "1"]
    assert new_statuses(of_first, "application")[-1] == "FAILED"
    of_second = [event for event in following.events if event.variables["app_attempt_id"] == "2"]
    assert new_statuses(of_second, "application") == ["CREATED", "RUNNING"]
    assert len(set(following.ids)) == len(following.ids)


def test_a_finished_folder_in_which_something_else_changes(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked into once, and not in each poll from then on."""
    folder = following.logs / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "events_1_app-1").write_bytes(small_log())
    (folder / "appstatus_app-1").touch()
    following.poll()
    assert following.state_of("app-1") == PASSED
    os.utime(folder, (1, 1))
    looked_into: list[str] = []
    look_into = following.follower.files._list
    monkeypatch.setattr(
        following.follower.files, "_list", lambda path: (looked_into.append(path), look_into(path))[1]
    )
    for _ in range(3):
        following.follower.poll()
    assert looked_into.count(str(folder)) == 1


def test_a_rolling_log_that_is_compacted_meanwhile(following: Following, tmp_path: Path) -> None:
    """Parts come, and the first ones go: Spark's History Server makes one of them."""
    folder = following.logs / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1.inprogress").touch()
    (folder / "events_1_app-1").write_bytes(b"".join(LINES[:8]))
    following.poll()
    (folder / "events_2_app-1").write_bytes(b"".join(LINES[8:12]))
    following.poll()
    (folder / "events_3_app-1").write_bytes(b"".join(LINES[12:14]))
    following.poll()
    (folder / "events_1_app-1").unlink()
    (folder / "events_2_app-1").rename(folder / "events_2_app-1.compact")
    with (folder / "events_3_app-1").open("ab") as file:
        file.writelines(LINES[14:])
    (folder / "appstatus_app-1.inprogress").rename(folder / "appstatus_app-1")
    following.poll()
    assert following.ids == read_bytes(small_log(), tmp_path).ids
    assert following.state_of("app-1") == ENDED


@pytest.mark.parametrize("way", ["at once", "behind", "away"])
def test_what_a_compacted_part_keeps_is_not_told_again(following: Following, way: str) -> None:
    """Spark's compactor keeps each start and end of a query, however long ago, and runs that have failed."""
    folder = following.logs / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1.inprogress").touch()
    begun, failed = r.query_started(1_000), r.terminated(exception="java.lang.RuntimeException: boom")
    again = r.query_started(9_000, run="run-2")
    parts = [
        [LOG_START, r.application_start(), begun, r.progress(2_000, 0), failed],
        [again, r.progress(10_000, 1, run="run-2")],
        [r.progress(20_000, 2, run="run-2")],
    ]
    for number, part in enumerate(parts[: 1 if way == "behind" else 2], 1):
        (folder / f"events_{number}_app-1").write_bytes(_lines(part))
        following.poll()
    if way == "away":
        following.stop()
    for path in folder.glob("events_*"):
        path.unlink()
    kept = [LOG_START, r.application_start(), begun, failed, again]
    (folder / "events_2_app-1.compact").write_bytes(_lines(kept))
    (folder / "events_3_app-1").write_bytes(_lines(parts[2]))
    if way == "away":
        following.start()
    following.poll()

    of_query = [event for event in following.events if event.attributes.get("job_kind") == "query"]
    # That it runs may be told again, as the same event.
    told = {
        event.id: event.attributes["newJobStatus"]
        for event in of_query
        if event.name == "JobStatusChangeEvent"
    }
    more = ["RUNNING"] if way == "behind" else ["RESTARTING", "RUNNING"]
    assert list(told.values()) == ["CREATED", "RUNNING", "FAILED", *more]
    assert [event.name for event in of_query].count("JobFailureEvent") == 1
    batches = [event.attributes["checkpointId"] for event in of_query if event.name == "CheckpointEvent"]
    assert batches == ([0, 2] if way == "behind" else [0, 1, 2])


def test_a_log_that_is_compacted_while_it_is_read_again(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart, part of it could not be read again yet: nothing is told twice, and nothing is missed."""
    folder = following.logs / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1.inprogress").touch()
    first, second = folder / "events_1_app-1", folder / "events_2_app-1"
    begun, failed = r.query_started(1_000), r.terminated(exception="java.lang.RuntimeException: boom")
    again, committed = r.query_started(9_000, run="run-2"), r.progress(10_000, 1, run="run-2")
    first.write_bytes(_lines([LOG_START, r.application_start(), begun, r.progress(2_000, 0), failed]))
    second.write_bytes(_lines([again]))
    (folder / "events_3_app-1").write_bytes(_lines([committed]))
    following.poll()
    following.stop()
    following.start()
    files = following.follower.files
    blocks = files.blocks

    def away(part: Any, position: int) -> Iterator[bytes]:
        if part.index == 2:
            raise OSError("it is away")
        yield from blocks(part, position)

    with monkeypatch.context() as patch:
        patch.setattr(files, "blocks", away)
        following.poll()
    first.unlink()
    second.unlink()
    kept = [LOG_START, r.application_start(), begun, failed, again]
    (folder / "events_2_app-1.compact").write_bytes(_lines(kept))
    with (folder / "events_3_app-1").open("ab") as file:
        file.write(_lines([r.progress(20_000, 2, run="run-2")]))
    following.poll()

    of_query = [event for event in following.events if event.attributes.get("job_kind") == "query"]
    told = [event.attributes["newJobStatus"] for event in of_query if event.name == "JobStatusChangeEvent"]
    assert told == ["CREATED", "RUNNING", "FAILED", "RESTARTING", "RUNNING"]
    batches = [event.attributes["checkpointId"] for event in of_query if event.name == "CheckpointEvent"]
    assert batches == [0, 1, 2]


def _lines(records: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def test_a_log_that_is_written_anew(following: Following, caplog: pytest.LogCaptureFixture) -> None:
    """Shorter than it was: another one under the same name."""
    following.write("app-1.inprogress", *LINES[:12])
    following.poll()
    (following.logs / "app-1.inprogress").write_bytes(b"".join(SampleLog("app-2").begin()))
    following.poll()
    assert "reading it again from its beginning" in caplog.text
    assert following.events[-1].variables["app_id"] == "app-2"


def test_positions_of_logs_that_are_gone(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaner removes old logs; what is known of them goes, too, when they cannot come back any more."""
    path = following.write("app-1", *LINES)
    folder = following.logs / "eventlog_v2_app-2"
    folder.mkdir()
    (folder / "events_1_app-2").write_bytes(small_log())
    (folder / "appstatus_app-2").touch()
    following.poll()
    assert (following.state_of("app-1"), following.state_of("app-2")) == (PASSED, PASSED)
    path.unlink()
    following.poll()
    pass_time(monkeypatch, 3_500_000)
    following.poll()
    assert (following.state_of("app-1"), following.state_of("app-2")) == (PASSED, PASSED)
    pass_time(monkeypatch, 3_601_000)
    following.poll()
    assert (following.state_of("app-1"), following.state_of("app-2")) == (None, PASSED)


def test_only_so_many_absent_logs_are_known(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than that, the first to go are forgotten."""
    monkeypatch.setattr(absent_logs, "_MOST_ABSENT", 1)
    paths = [following.write(name, *LINES) for name in ("a", "b", "c")]
    following.poll()
    for path in paths[:2]:
        path.unlink()
        following.poll()
    assert [following.state_of(name) for name in ("a", "b", "c")] == [None, PASSED, PASSED]


def test_a_folder_that_is_empty_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a mount point is whose mount has dropped: said once, and no application is told again."""
    following = Following(tmp_path, event_log__idle_timeout="1d")
    following.write("passed", *LINES)
    following.poll()
    following.write("ended", *SampleLog("ended").begin(), *SampleLog("ended").end())
    following.write("running.inprogress", *LINES[:12])
    following.poll()
    reported = following.ids
    away = tmp_path / "away"
    following.logs.rename(away)
    following.logs.mkdir()
    for _ in range(3):
        following.poll()
    assert caplog.text.count("is empty now, as if a mount had dropped; what is known of 3 logs is kept") == 1
    pass_time(monkeypatch, 7_200_000)
    following.poll()
    assert "removed before it ended" in caplog.text  # not followed for ever, but not forgotten either
    following.logs.rmdir()
    away.rename(following.logs)
    following.poll()
    assert following.ids == reported
    following.write("running.inprogress", *LINES[12:])
    following.poll()
    assert len(following.ids) == len(set(following.ids)) > len(reported)
    assert new_statuses(following.events, "application").count("FINISHED") == 2


def test_logs_that_go_away_and_come_back(following: Following, tmp_path: Path) -> None:
    """Another log stays all the while; each goes on from where it was, and an ended one is not told again."""
    following.write("other.inprogress", *SampleLog("other").begin())
    passed = following.write("passed", *LINES)
    following.poll()
    running = following.write("running.inprogress", *LINES[:12])
    following.poll()
    reported = following.ids
    for path in (passed, running):
        path.rename(tmp_path / path.name)
    following.poll()
    for path in (passed, running):
        (tmp_path / path.name).rename(path)
    following.poll()
    assert (following.ids, following.state_of("passed")) == (reported, PASSED)
    following.write("running.inprogress", *LINES[12:])
    following.poll()
    assert len(following.ids) == len(set(following.ids)) > len(reported)
    assert following.state_of("running") == ENDED


def test_another_log_in_place_of_one_that_was_removed(following: Following) -> None:
    """It is shorter, and is told from its beginning."""
    following.write("other.inprogress", *SampleLog("other").begin())
    path = following.write("app-1.inprogress", *LINES[:12])
    following.poll()
    path.unlink()
    following.poll()
    following.write("app-1.inprogress", *SampleLog("app-2").begin())
    following.poll()
    assert following.events[-1].variables["app_id"] == "app-2"


def test_a_name_that_is_no_text(following: Following) -> None:
    """Anybody who may write a log can give it one; all applications are followed, also after a restart."""
    following.complete_too = True
    following.write(os.fsdecode(b"app-\xff"), *LINES)
    following.write("app-2", *LINES)
    following.stop()
    following.start()
    following.poll()
    reported = following.ids
    following.stop()
    following.start()
    following.poll()

    assert new_statuses(following.events, "application").count("FINISHED") == 2
    assert following.ids == reported


def test_a_log_that_goes_away(
    following: Following, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.write("other.inprogress", *SampleLog("other").begin())
    following.write("app-1.inprogress", *LINES[:12]).unlink()
    following.poll()
    following.write("app-1.inprogress", *LINES[:12])
    following.poll()
    (following.logs / "app-1.inprogress").unlink()
    following.poll()
    assert "removed before it ended" in caplog.text
    pass_time(monkeypatch, 3_601_000)
    following.poll()
    assert following.state_of("app-1") is None


def test_metrics_of_all_applications_in_one_place(tmp_path: Path) -> None:
    """Under their ids; they stay for a while after the end, and go then."""
    following = Following(tmp_path)
    following.conf["spark.metrics.reporter.m.factory.class"] = (
        "tests.support.plugins:CollectingMetricsFactory"
    )
    following.conf["spark.metrics.ended.retention"] = "1h"
    following.conf["spark.metrics.scope.application"] = "<app_name>.<app_id>"
    following.stop()
    following.start()
    following.follower._metrics.start()
    following.follower._metrics.wait_opened(5_000)
    for app_id in ("a", "b"):
        following.write(f"{app_id}.inprogress", *SampleLog(app_id).begin())
    following.poll()
    metrics = CollectingMetricsFactory.last

    def apps(name: str) -> set[str]:
        return {labels["app_id"] for found, labels in _series(metrics) if found == name}

    wait_until(lambda: apps("uptime") == {"a", "b"}, "both have series")
    following.write("a.inprogress", *SampleLog("a").end())
    following.poll()
    assert apps("uptime") == {"a", "b"}
    following.follower._settings = dataclasses.replace(following.follower._settings, retention_ms=0)
    following.poll()
    wait_until(lambda: apps("uptime") == {"b"}, "the series of what has ended are gone")


@pytest.mark.parametrize("but", [3, 10, 13])
def test_nothing_stays_of_an_application_that_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, but: int
) -> None:
    """Whenever it does: its queries, executors, jobs and stages have series of their own."""
    following = Following(tmp_path)
    following.conf["spark.metrics.reporter.m.factory.class"] = (
        "tests.support.plugins:CollectingMetricsFactory"
    )
    following.conf["spark.metrics.job.min-duration"] = "0s"
    following.stop()
    following.start()
    following.follower._metrics.start()
    following.follower._metrics.wait_opened(5_000)
    following.write("a.inprogress", *LINES[:-but])
    following.poll()
    metrics = CollectingMetricsFactory.last
    wait_until(lambda: any(name == "uptime" for name, _ in _series(metrics)), "its series")
    pass_time(monkeypatch, 3_600_001)
    following.poll()
    pass_time(monkeypatch, 7_200_000)
    following.poll()
    wait_until(lambda: not [labels for _, labels in _series(metrics) if "app_id" in labels], "none")


@pytest.mark.parametrize("died", [False, True], ids=["not yet known to be over", "known to be over"])
def test_the_metrics_of_an_attempt_are_those_of_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, died: bool
) -> None:
    """The attempts of an application have the same labels; the end of the earlier ones is an event alone."""
    following = Following(tmp_path)
    following.conf["spark.metrics.reporter.m.factory.class"] = "prometheus"
    following.conf["spark.metrics.reporter.m.port"] = str(port := free_port())
    following.conf["spark.metrics.ended.retention"] = "1h"
    following.stop()
    following.start()
    following.follower._metrics.start()
    following.follower._metrics.wait_opened(5_000)

    def statuses() -> set[tuple[str, str]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            page = answer.read().decode()
        found = re.findall(r"^spark_(\w+)_status{.*status=\"(\w+)\"} 1.0", page, re.MULTILINE)
        return {(kind, status) for kind, status in found if kind in ("application", "query")}

    following.write(f"{FIRST}.inprogress", *attempt("1")[:-3])
    following.poll()
    wait_until(lambda: statuses() == {("application", "RUNNING"), ("query", "RUNNING")}, "the first")
    if died:
        following.write(f"{SECOND}.inprogress", attempt("2")[0])
        pass_time(monkeypatch, 30_000)
        following.poll()
        wait_until(lambda: ("application", "FAILED") in statuses(), "it is over")
    following.write(f"{SECOND}.inprogress", *attempt("2")[died:-3])
    following.poll()
    running = {("application", "RUNNING"), ("query", "RUNNING")}
    wait_until(lambda: statuses() == running, "those of the second")
    pass_time(monkeypatch, 60_000)
    following.poll()
    first = [event for event in following.events if event.variables["app_attempt_id"] == "1"]
    assert new_statuses(first, "application") == ["CREATED", "RUNNING", "FAILED"]
    assert statuses() == running

    # It was not over; but there are no metrics of it any more.
    following.write(f"{FIRST}.inprogress", *attempt("1")[-3:-2])
    following.poll()
    first = [event for event in following.events if event.variables["app_attempt_id"] == "1"]
    assert "RUNNING" in new_statuses(first, "application")[3:]
    assert statuses() == running
    pass_time(monkeypatch, 4_000_000)  # beyond the retention of the first's
    following.poll()
    assert {kind for kind, _ in statuses()} == {"application", "query"}
    assert "not served" not in caplog.text


def test_a_reporter_that_cannot_be_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said once, and tried again after a while; nothing of the application is missing then."""
    following = Following(tmp_path)
    key = "spark.events.reporter.y."
    following.conf |= {key + "factory.class": "file_log", key + "path": str(tmp_path / "file" / "events")}
    (tmp_path / "file").touch()
    following.stop()
    following.start()
    following.write("app-1.inprogress", *LINES)
    for _ in range(3):
        following.poll()
    assert caplog.text.count("trying again every 30 s") == 1
    (tmp_path / "file").unlink()
    set_clock(monkeypatch, -3_600_000)  # not by a clock that may be set back
    monkeypatch.setattr(follow, "steady_ms", lambda: steady_ms() + 31_000)
    following.poll()
    assert len(file_events(tmp_path / "file" / "events")) == 15


class Freezing:
    """What stops a follower after three polls, and freezes its process within or after the second one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, follower: Follower, within: str) -> None:
        self.polls = 0
        self._freeze = lambda: pass_time(monkeypatch, 7_200_000) if self.polls == 2 else None
        monkeypatch.setattr(follower, "_stopping", self)
        find = follower.files.find

        def find_slowly(*arguments: Any) -> Any:
            self.polls += 1
            if within == "before the listing":
                self._freeze()
            logs = find(*arguments)
            if within == "after the listing":
                self._freeze()
            return logs

        monkeypatch.setattr(follower.files, "find", find_slowly)
        self._freezes_in_wait = within == "wait"

    def is_set(self) -> bool:
        return self.polls == 3

    def wait(self, _seconds: float) -> None:
        if self._freezes_in_wait:
            self._freeze()


@pytest.mark.parametrize("within", ["before the listing", "after the listing", "wait"])
def test_a_follower_that_was_frozen_with_the_applications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str
) -> None:
    """By SIGSTOP, or as containers are paused: they are not dead because nothing was written meanwhile."""
    following = Following(tmp_path, event_log__idle_timeout="60s")
    following.write("app-1.inprogress", *LINES[:-3])
    freezing = Freezing(monkeypatch, following.follower, within)
    following.follower.run()

    assert freezing.polls == 3
    assert following.state_of("app-1") == FOLLOWED
    assert "FAILED" not in new_statuses(following.events, "application")


def test_polls_that_become_slow_are_no_freeze() -> None:
    """Else an application that died would not be FAILED for hours, where there are many logs."""
    pace, time_ms, frozen_ms = Pace(5_000), 0, 0
    for apart_ms in (0, 5_100, 9_000, *[30_000] * 100):
        time_ms += apart_ms
        frozen_ms += pace.frozen_ms(time_ms)
    assert frozen_ms == 30_000 - 2 * 9_000
    assert pace.frozen_ms(time_ms + 7_200_000) == 7_200_000 - 2 * 30_000


def test_two_followers_of_one_state(following: Following) -> None:
    with pytest.raises(ConfigError, match="another spark-events follow"):
        LogPositions(following.state)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        Follower(str(tmp_path / "nope"), {}, LogPositions(tmp_path / "state"))


def test_the_cursor_is_behind_what_is_delivered(following: Following) -> None:
    following.write("app-1.inprogress", *LINES[:12])
    following.poll()
    position = following.follower._positions["app-1"]
    assert position is not None
    assert (position.state, position.read_up_to) == (FOLLOWED, (0, 12))


def _series(metrics: Any) -> list[tuple[str, Any]]:
    return [(name.rpartition(".")[2], labels) for name, (_, labels) in list(metrics.metrics.items())]


def test_a_last_line_without_a_line_feed(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts once nothing comes after it; should its line feed come late, nothing comes twice."""
    path = following.write("app-1.inprogress", *LINES[:-1], LINES[-1].rstrip(b"\n"))
    following.poll()
    assert following.state_of("app-1") == FOLLOWED
    pass_time(monkeypatch, 60_000)
    following.poll()
    assert new_statuses(following.events, "application")[-1] == "FINISHED"
    assert following.state_of("app-1") == ENDED
    ids = following.ids
    with path.open("ab") as file:
        file.write(b"\n")
    following.poll()
    assert following.ids == ids


def test_half_a_line_waits_for_its_rest(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes."""
    half = len(LINES[8]) // 2
    following.write("app-1.inprogress", *LINES[:8], LINES[8][:half])
    pass_time(monkeypatch, 60_000)
    following.poll()
    following.write("app-1.inprogress", LINES[8][half:], *LINES[9:])
    following.poll()
    assert len(following.ids) == 15


def test_many_applications_share_a_few_threads(tmp_path: Path) -> None:
    """Whatever their number; files are closed between writes, and what has ended is let go at once."""
    events = tmp_path / "events"
    following = Following(tmp_path, reporter__f__factory__class="file_log", reporter__f__path=str(events))
    threads_before, names = threading.active_count(), [f"app-{number}" for number in range(60)]
    for name in names:
        following.write(f"{name}.inprogress", *SampleLog(name).begin())
    following.poll()
    assert threading.active_count() - threads_before < 30
    wait_until(lambda: not _open_files(events), "no file is open while nothing is written")
    for name in names:
        following.write(f"{name}.inprogress", *SampleLog(name).end())
    following.poll()
    assert following.follower._followed == {}
    following.stop()
    ended = [event for event in file_events(events) if event["attributes"].get("newJobStatus") == "FINISHED"]
    assert {event["attributes"]["app_id"] for event in ended} >= set(names)
    assert len(list(events.glob("*.jsonl"))) == 60  # none was removed while its application was running


def _open_files(folder: Path) -> list[str]:
    links = [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()]
    return [link for link in links if link.startswith(str(folder))]


def test_series_of_many_applications(tmp_path: Path) -> None:
    """Each may have as many as if it had a driver of its own: those that come late, too."""
    following = Following(tmp_path)
    prefix = "spark.metrics.reporter.m."
    following.conf[prefix + "factory.class"] = "tests.support.plugins:CollectingMetricsFactory"
    following.conf[prefix + "max-series-per-metric"] = "2"
    following.conf["spark.metrics.scope.application"] = "<app_name>.<app_id>"
    following.stop()
    following.start()
    following.follower._metrics.start()
    following.follower._metrics.wait_opened(5_000)
    names = {f"app-{number}" for number in range(5)}
    for name in names:
        following.write(f"{name}.inprogress", *SampleLog(name).begin())
    following.poll()
    metrics = CollectingMetricsFactory.last
    wait_until(
        lambda: {labels["app_id"] for name, labels in _series(metrics) if name == "uptime"} == names, "all"
    )
