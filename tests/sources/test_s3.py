"""Logs in S3: a real server that speaks it, through s3fs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_events.sources.event_log.follow import Follower
from spark_events.sources.event_log.reading.files import LogFiles
from spark_events.sources.event_log.reading.log_positions import LogPositions
from tests.support.event_log_reading import read, read_bytes
from tests.support.event_log_sample import small_log
from tests.support.plugins import Collecting
from tests.support.s3_server import running_s3

s3fs = pytest.importorskip("s3fs")


@pytest.fixture
def bucket() -> Iterator[str]:
    """A bucket, in a server of its own."""
    with running_s3("event-logs"):
        yield "event-logs"


def put(path: str, data: bytes) -> None:
    s3fs.S3FileSystem(skip_instance_cache=True).pipe(path, data)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_single_and_rolling(bucket: str, scheme: str, tmp_path: object) -> None:
    """A folder with both; Hadoop's name of the scheme is understood."""
    lines = small_log().splitlines(keepends=True)
    put(f"{bucket}/spark/app-1", small_log())
    put(f"{bucket}/spark/eventlog_v2_app-2/appstatus_app-2", b"")
    put(f"{bucket}/spark/eventlog_v2_app-2/events_1_app-2", b"".join(lines[:9]))
    put(f"{bucket}/spark/eventlog_v2_app-2/events_2_app-2", b"".join(lines[9:]))
    found = LogFiles(f"{scheme}://{bucket}/spark").find()
    assert [(log.name, len(log.parts), log.in_progress) for log in found] == [
        ("app-1", 1, False),
        ("app-2", 2, False),
    ]
    assert all(log.modified_ms for log in found)
    ids = read(f"{scheme}://{bucket}/spark/app-1").ids
    assert len(ids) == 15
    assert read(f"{scheme}://{bucket}/spark/eventlog_v2_*").ids == ids


def test_follow(bucket: str, tmp_path: object) -> None:
    """In S3 a part is there when it is whole: a rolling log comes part by part."""
    from pathlib import Path

    lines, folder = small_log().splitlines(keepends=True), f"{bucket}/spark/eventlog_v2_app-1"
    put(f"{folder}/appstatus_app-1.inprogress", b"")
    put(f"{folder}/events_1_app-1", b"".join(lines[:9]))
    conf = {"spark.events.reporter.x.factory.class": "tests.support.plugins:CollectingFactory"}
    follower = Follower(f"s3://{bucket}/spark", conf, LogPositions(Path(str(tmp_path)) / "state"))
    follower.poll()
    put(f"{folder}/events_2_app-1", b"".join(lines[9:]))
    put(f"{folder}/appstatus_app-1", b"")
    s3fs.S3FileSystem(skip_instance_cache=True).rm(f"{folder}/appstatus_app-1.inprogress")
    follower.poll()
    follower.stop()
    follower.run()
    events = Collecting.instances[-1].events
    assert [event.id for event in events] == read_bytes(small_log(), Path(str(tmp_path))).ids


@pytest.mark.extended
def test_what_cannot_be_reached(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_events.api import ConfigError

    with pytest.raises(ConfigError, match="s3://nope/x: no such file or folder"):
        LogFiles("s3://nope/x").find()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="s3://event-logs: cannot be listed"):
        LogFiles("s3://event-logs").find()
