"""Logs as Spark itself wrote them: with each codec, rolling, compacted by the History Server, and old ones."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_events.api import ConfigError
from spark_events.sources.event_log.reading.codecs import CorruptLogError, codec_for
from spark_events.sources.event_log.reading.files import LogFiles
from spark_events.why.reading.read_logs import explain_logs
from tests.support.event_log_reading import read, read_bytes, read_one
from tests.support.event_log_sample import SampleLog, small_log
from tests.support.paths import APPS
from tests.support.spark_records import new_statuses

pytestmark = pytest.mark.extended

CODECS = ("zstd", "lz4", "snappy", "lzf")


@pytest.fixture(scope="module")
def written(java: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark wrote."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "source").write_bytes(small_log())
    command = [sys.executable, str(APPS / "write_event_logs.py"), str(folder / "source"), str(folder / "out")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "compacted: SUCCESS" in run.stdout
    return folder / "out"


@pytest.mark.spark
@pytest.mark.parametrize("codec", CODECS)
def test_what_spark_compresses(written: Path, codec: str, tmp_path: Path) -> None:
    """The same events as of the log without compression, whatever the file is called."""
    whole = read_bytes(small_log(), tmp_path).ids
    path = written / f"app-1.{codec}"
    assert read(path).ids == whole
    renamed = tmp_path / "application_1_0001.inprogress"
    renamed.write_bytes(path.read_bytes())
    assert read(renamed).ids == whole


@pytest.mark.spark
@pytest.mark.parametrize("codec", CODECS)
def test_compressed_bytes_in_any_pieces(written: Path, codec: str) -> None:
    """As they come while a log grows."""
    packed = (written / f"app-1.{codec}").read_bytes()
    for size in (1, 7, 1000):
        out = bytearray()
        reading = codec_for(packed[:8], out.extend)
        for start in range(0, len(packed), size):
            reading.feed(packed[start : start + size])
        assert bytes(out) == small_log()
    assert reading.name == codec


@pytest.mark.spark
@pytest.mark.parametrize("codec", ["lz4", "snappy", "lzf"])
def test_damaged_blocks_are_an_error(written: Path, codec: str) -> None:
    """Each damaged byte is noticed, or changes what the bytes say, and never ends in another exception."""
    packed = (written / f"app-1.{codec}").read_bytes()[:2000]
    for position in range(0, len(packed), 3):
        damaged = bytearray(packed)
        damaged[position] ^= 0xFF
        out = bytearray()
        with contextlib.suppress(CorruptLogError):
            codec_for(bytes(damaged[:8]), out.extend).feed(bytes(damaged))


@pytest.mark.spark
def test_rolling_and_compacted(written: Path) -> None:
    """Several parts are one log; of a compacted one the parts before are not read, as in Spark."""
    files = LogFiles(str(written / "rolling"))
    log = next(log for log in files.find() if len(log.parts) > 1)
    whole = read_one(files, log)
    assert new_statuses(whole.events, "job").count("FINISHED") >= 3
    assert new_statuses(whole.events, "application") == ["CREATED", "RUNNING", "FINISHED"]

    (shorter,) = LogFiles(str(written / "compacted")).find()
    assert shorter.parts[0].compacted
    compacted = read(written / "compacted")
    assert set(compacted.ids) < set(whole.ids)
    assert new_statuses(compacted.events, "application") == ["CREATED", "RUNNING", "FINISHED"]
    _, notes = explain_logs([str(written / "compacted")], {})
    for said in (compacted.log.compacted, *notes):
        assert "has compacted what came before part" in said
        assert "the jobs that had ended by then are not in it" in said


def test_a_file_whose_number_is_too_large_is_no_part(tmp_path: Path) -> None:
    """Whoever may write to the folder could else end what follows all of its applications."""
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1.inprogress").touch()
    for number in ("1", "99999999999999999999"):
        (folder / f"events_{number}_app-1").write_text("{}\n")
    (log,) = LogFiles(str(tmp_path)).find()
    assert [part.index for part in log.parts] == [1]


def test_parts_in_their_order(tmp_path: Path) -> None:
    """By number and not by name; a line is never cut between two, and one in progress is told."""
    lines = small_log().splitlines(keepends=True)
    folder = tmp_path / "eventlog_v2_app-7_1"
    folder.mkdir()
    for number in range(1, len(lines) + 1):
        (folder / f"events_{number}_app-7_1").write_bytes(lines[number - 1])
    (folder / "appstatus_app-7_1.inprogress").touch()
    (folder / ".events_1_app-7_1.crc").write_bytes(b"x")

    assert len(lines) > 10
    assert read(folder).ids == read_bytes(small_log(), tmp_path / "..").ids
    (log,) = LogFiles(str(tmp_path)).find()
    assert (log.name, log.in_progress) == ("app-7_1", True)


def test_a_compacted_part_stands_for_those_before_it(tmp_path: Path) -> None:
    """Also while they are still there: Spark removes them after it has written the compacted one."""
    lines = small_log().splitlines(keepends=True)
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for name, part in (("events_1_x", lines[:8]), ("events_2_x", lines[8:12]), ("events_3_x", lines[12:])):
        (folder / name).write_bytes(b"".join(part))
    whole = read(folder)
    (folder / "events_2_x.compact").write_bytes(b"".join(lines[:12]))
    assert read(folder).ids == whole.ids
    assert read(folder).log.counts.read == len(lines)


@pytest.mark.parametrize(
    ("parts", "gaps"),
    [
        (("events_1_x", "events_2_x"), []),
        (("events_1_x", "events_4_x", "events_6_x"), [(2, 3), (5, 5)]),
        (("events_2_x",), [(1, 1)]),
        (("events_3_x.compact", "events_4_x"), []),
        (("events_1_x", "events_3_x.compact", "events_5_x"), [(4, 4)]),
    ],
)
def test_parts_that_are_missing(tmp_path: Path, parts: tuple[str, ...], gaps: list[tuple[int, int]]) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for part in parts:
        (folder / part).write_bytes(small_log())
    (log,) = LogFiles(str(tmp_path)).find()
    assert log.gaps == gaps


def test_folders_of_spark_before_1_3(tmp_path: Path) -> None:
    folder = tmp_path / "app-1422981780767"
    folder.mkdir()
    (folder / "EVENT_LOG_1").write_bytes(b"".join(list(SampleLog().begin())[1:]))
    (folder / "SPARK_VERSION_1.2.0").touch()
    found = read(tmp_path)
    assert found.log.spark_version == "1.2.0"
    assert new_statuses(found.events, "application") == ["CREATED", "RUNNING"]


@pytest.mark.parametrize("name", ["EVENT_LOG_1", "events_1_app-1", "app-1"])
def test_a_pipe_is_no_log(tmp_path: Path, name: str) -> None:
    """Whatever its name: opening it would wait for a writer who never comes."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / name)

    assert LogFiles(str(tmp_path)).find() == []
    assert LogFiles(str(tmp_path / "folder")).find() == []


def test_an_application_without_an_id(tmp_path: Path) -> None:
    """As before Spark 1.1: the log's name is all there is."""
    found = read_bytes(b'{"Event":"SparkListenerApplicationStart","App Name":"x","Timestamp":5}\n', tmp_path)
    assert found.events[0].variables["app_id"] == "app-1"


def test_folders_and_globs(tmp_path: Path) -> None:
    """Hidden and empty files are not logs; others are, by whatever name."""
    for name in ("b", "a.inprogress", ".hidden", "_tmp", "c.lz4"):
        (tmp_path / name).write_bytes(small_log())
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    names = [log.name for log in LogFiles(str(tmp_path)).find()]
    assert names == ["a", "b", "c"]
    assert [log.name for log in LogFiles(str(tmp_path / "*.*")).find()] == ["a", "c"]
    assert [log.name for log in LogFiles(tmp_path.as_uri()).find()] == names


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/nowhere/at/all", "no such file"),
        ("/nowhere/*.log", "nothing matches"),
        ("nope://x", "Protocol not known"),
    ],
)
def test_paths_that_cannot_be_read(path: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        LogFiles(path).find()
    assert path in str(caught.value)
