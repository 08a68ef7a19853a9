"""Logs that were cut, and logs with rubbish in them: never a crash, and nothing is left out unsaid."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import re
import threading
import tracemalloc
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest
import zstandard

from spark_events.sources.event_log.reading.lines import LONGEST_LINE, LineSplitter
from spark_events.sources.event_log.records import (
    CUT,
    MALFORMED,
    NO_RECORD,
    NOT_JSON,
    TOO_LONG,
    is_whole_record,
)
from tests.support.event_log_reading import read, read_bytes
from tests.support.event_log_sample import small_log
from tests.support.waiting import wait_until

SMALL = small_log()


def check_prefix(data: bytes, whole: list[str], folder: Path) -> int:
    """Check a cut log, and return how many events it gave."""
    cut = read_bytes(data, folder)
    assert cut.ids == whole[: len(cut.ids)]
    if not cut.log.ended:
        assert any("no SparkListenerApplication" in note for note in cut.log.notes), cut.log.notes
    assert set(cut.log.counts.skipped) <= {CUT}
    return len(cut.ids)


each_stride = pytest.mark.parametrize(
    "stride",
    [53, pytest.param(11, marks=pytest.mark.extended), pytest.param(1, marks=pytest.mark.thorough)],
)


@each_stride
def test_cut_at_every_byte(tmp_path: Path, stride: int) -> None:
    """The events of a cut log are the first ones of the whole."""
    whole = read_bytes(SMALL, tmp_path).ids
    assert len(whole) == 15
    sizes = {*range(1, len(SMALL), stride), len(SMALL) - 1}
    found = {check_prefix(SMALL[:size], whole, tmp_path) for size in sizes}
    assert len(found) > 10  # some events come together
    assert max(found) == len(whole)  # the last line is whole without its end, too


@each_stride
def test_cut_at_every_byte_of_a_compressed_log(tmp_path: Path, stride: int) -> None:
    """As Spark writes it: a frame ends with each flush."""
    lines = SMALL.splitlines(keepends=True)
    frames = [zstandard.compress(b"".join(lines[first : first + 4])) for first in range(0, len(lines), 4)]
    packed, whole = b"".join(frames), read_bytes(SMALL, tmp_path).ids
    assert read_bytes(packed, tmp_path).ids == whole
    for size in range(1, len(packed), stride):
        check_prefix(packed[:size], whole, tmp_path)


@pytest.mark.parametrize("name", ["local-1596020211915", "app-20200706201101-0003"])
def test_cut_at_random_bytes_of_real_logs(event_logs: Path, name: str, tmp_path: Path) -> None:
    data = (event_logs / name).read_bytes()
    whole = read(event_logs / name).ids
    chosen = random.Random(name)
    for _ in range(60):
        check_prefix(data[: chosen.randrange(1, len(data))], whole, tmp_path)


def test_rubbish_between_the_lines(tmp_path: Path) -> None:
    """Each kind is skipped and counted under its reason; the events are those of the log without it."""
    lines = SMALL.splitlines(keepends=True)
    rubbish = [
        bytes(range(14, 256)) + b"\n",
        b'{"Event":"SparkListenerJobStart","Job ID":\xff}\n',
        b'{"Event":"SparkListenerTaskEnd","Stage ID":0,"Stage\n',
        b'["a","list"]\n',
        b'{"Timestamp":1}\n',
        b'{"Event":"com.acme.Sold","order":1}\n',
        b'{"Event":"SparkListenerStageSubmitted","Stage Info":null}\n',
        b"\n",
        b'{"Event":"org.apache.spark.sql.NotYetThought"}\n',
    ]
    mixed = b"".join([*lines[:6], *rubbish, *lines[6:]])
    found = read_bytes(mixed, tmp_path)

    assert found.ids == read_bytes(SMALL, tmp_path).ids
    assert found.log.counts.skipped == {NOT_JSON: 3, NO_RECORD: 2, MALFORMED: 1}
    assert found.log.counts.unknown == {"com.acme.Sold": 1}
    assert found.log.counts.read == len(lines) + len(rubbish) - 1  # but for the empty line


def test_a_line_of_100_mb(tmp_path: Path) -> None:
    """Skipped and counted, without being held in memory; what follows it is read."""
    lines = SMALL.splitlines(keepends=True)
    path = tmp_path / "app-1"
    with path.open("wb") as file:
        file.writelines(lines[:6])
        file.write(b'{"Event":"SparkListenerJobStart","x":[0')
        for _ in range(100):
            file.write(b",1" * (1 << 19))
        file.write(b"]}\n")
        file.writelines(lines[6:])
    tracemalloc.start()
    found = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found.ids == read_bytes(SMALL, tmp_path, "app-2").ids
    assert found.log.counts.skipped == {TOO_LONG: 1}
    assert peak < 6 * LONGEST_LINE


def test_a_line_of_100_mb_that_compresses_well(tmp_path: Path) -> None:
    """A few KB on disk must not become 100 MB in memory either."""
    lines = SMALL.splitlines(keepends=True)
    path = tmp_path / "app-1.zstd"
    with zstandard.open(path, "wb") as file:
        file.write(b"".join(lines[:6]))
        file.write(b'{"Event":"x","x":"')
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n')
        file.write(b"".join(lines[6:]))
    tracemalloc.start()
    found = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert not found.log.counts.skipped
    assert found.log.counts.unknown == {"x": 1}  # it was read, with its text cut
    assert found.log.ended
    assert peak < 6 * LONGEST_LINE


def test_a_byte_order_mark(tmp_path: Path) -> None:
    """As some editors put before a text: the first line is read all the same, were it the only one."""
    whole = read_bytes(SMALL, tmp_path)
    marked = read_bytes(BOM_UTF8 + SMALL, tmp_path)
    first, _, _ = SMALL.partition(b"\n")

    assert (marked.ids, marked.log.counts) == (whole.ids, whole.log.counts)
    assert not read_bytes(BOM_UTF8 + first, tmp_path).log.counts.skipped
    assert is_whole_record(BOM_UTF8 + first)


def test_a_listener_that_stumbles_is_counted(tmp_path: Path) -> None:
    """JSON that Spark would never write, under a name that it does: counted, and said in the log."""
    lines = SMALL.splitlines(keepends=True)
    bad = b'{"Event":"SparkListenerJobStart","Job ID":"seven"}\n'
    found = read_bytes(b"".join([*lines[:6], bad, *lines[6:]]), tmp_path)

    assert found.ids == read_bytes(SMALL, tmp_path).ids
    assert sum(found.log.counts.skipped.values()) == 1


@pytest.mark.parametrize("index", [-1, -1_000_000, 1_000_000, 10**30])
def test_a_task_of_an_impossible_number(tmp_path: Path, index: int) -> None:
    """It is none of the stage's; the rest of this log, and of the others, is read."""
    damaged = re.sub(rb'"Index":0,', b'"Index":%d,' % index, SMALL)
    assert damaged != SMALL
    names = {event.name for event in read_bytes(damaged, tmp_path).events}
    assert names | {"AllSubtasksStatusChangeEvent"} == {
        event.name for event in read_bytes(SMALL, tmp_path).events
    }


def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    """However many logs are read, each with failures that enrichers label."""
    (tmp_path / "app-1").write_bytes(SMALL)
    before = threading.active_count()
    for _ in range(20):
        assert read(tmp_path / "app-1", {}).events[-3].attributes["newJobStatus"]
    wait_until(lambda: threading.active_count() <= before + 1, "the enrichers' threads have ended")


def test_a_corrupt_middle_of_a_compressed_log(tmp_path: Path) -> None:
    """What came before is reported; where it broke is said."""
    lines = SMALL.splitlines(keepends=True)
    frames = [zstandard.compress(b"".join(lines[start::2])) for start in (0, 1)]
    packed = frames[0] + b"\0" * 4 + frames[1][4:]
    found = read_bytes(packed, tmp_path)

    assert found.log.unreadable
    assert any("cannot be read from about byte" in note and "zstd" in note for note in found.log.notes)


@pytest.mark.parametrize("packer", [gzip, bz2, lzma], ids=["gzip", "bzip2", "xz"])
def test_a_log_that_something_else_has_compressed(tmp_path: Path, packer: Any) -> None:
    """It says what, and no line of it is told of."""
    found = read_bytes(packer.compress(SMALL), tmp_path)

    assert found.log.unreadable
    assert [note for note in found.log.notes if "decompress it" in note] == found.log.notes[:1]
    assert not found.log.counts.skipped


def test_a_compressed_log_without_a_whole_block(tmp_path: Path) -> None:
    """That it has no start of an application is not all there is to say."""
    packed = zstandard.compress(SMALL)
    found = read_bytes(packed[: len(packed) // 2], tmp_path)

    assert found.log.unreadable
    assert found.log.notes[0].endswith(": its zstd data are cut off, or have nothing in them")


@pytest.mark.parametrize("time", [b"99999999999999999999999999", b"-1", b'"a"', b"null"])
def test_a_start_without_a_time(tmp_path: Path, time: bytes) -> None:
    """The driver has not worked since 1970."""
    damaged = re.sub(
        rb'("Event":"SparkListener(?:Application|Executor).*?"Timestamp":)\d+', rb"\g<1>" + time, SMALL
    )
    assert damaged != SMALL
    issues = [
        event for event in read_bytes(damaged, tmp_path).events if event.name == "PerformanceIssueEvent"
    ]
    assert issues == []


def test_lines_in_any_pieces() -> None:
    """However the bytes come, the lines are the same; too long ones are left out wherever they are cut."""
    data = b"a\n\nbb\n" + b"c" * 50 + b"\nd\ne"
    for size in range(1, len(data) + 1):
        lines: list[bytes] = []
        long: list[int] = []
        splitter = LineSplitter(lines.extend, lambda long=long: long.append(1), longest=20)  # type: ignore[misc]
        for start in range(0, len(data), size):
            splitter.feed(data[start : start + size])
        # A long line that came whole needs no memory that was not there already.
        assert [each for each in lines if len(each) <= 20] == [b"a\n", b"\n", b"bb\n", b"d\n"]
        assert len(long) + sum(len(each) > 20 for each in lines) == 1
        assert splitter.end() == b"e"
