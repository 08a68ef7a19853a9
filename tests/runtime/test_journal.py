"""The journal by itself: order, acknowledgement, bounds, damage."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_events.runtime.journal import Bounds, DeliveryJournal, claim
from spark_events.runtime.journal.cursor import JournalCursor, Position
from spark_events.runtime.journal.folder import Lock
from spark_events.runtime.journal.frame import CONTEXT, MAGIC, RECORD, encode

ALL = 1_000_000


class Opened:
    """A journal, and what it dropped."""

    def __init__(
        self, folder: Path, bounds: Bounds | None = None, context: bytes = b"run", lock: Lock | None = None
    ) -> None:
        self.lost: Counter[str] = Counter()
        self.now = 1_000_000
        self.totals = {"reported": 7}
        self.journal = DeliveryJournal(
            folder,
            bounds or Bounds(),
            context,
            lambda cause, count: self.lost.update({cause: count}),
            lambda _: self.totals,
            lambda: self.now,
            lock,
        )
        self.journal.open()

    def put(self, *records: bytes) -> None:
        self.journal.append(list(records))
        if self.journal.bounds.fsync == "always":
            self.journal.sync()

    def take(self, count: int = ALL, size: int = ALL) -> list[bytes]:
        """Return the next batch without acknowledging it."""
        batch = self.journal.peek(count, size)
        if batch is None:
            return []
        self.journal.release(batch)
        return batch.records

    def drain(self) -> list[bytes]:
        """Acknowledge everything, batch by batch."""
        found = []
        while batch := self.journal.peek(ALL, ALL):
            found += batch.records
            self.journal.acknowledge(batch, len(batch.records))
            self.journal.release(batch)
        return found


@pytest.fixture(autouse=True)
def close_what_crashes(tmp_path: Path) -> Iterator[None]:
    """Close the files of journals that a crash has left open: a process that ends does so."""
    yield
    for number in map(int, os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ()):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{number}").startswith(str(tmp_path)):
                os.close(number)


def test_order_and_acknowledgement(tmp_path: Path) -> None:
    """What is acknowledged does not come again, also after a crash; what is not does, in order."""
    first = Opened(tmp_path)
    first.put(b"a", b"b")
    first.put(b"c", b"d")
    batch = first.journal.peek(3, ALL)
    assert batch is not None
    assert batch.records == [b"a", b"b", b"c"]
    first.journal.acknowledge(batch, 2)
    first.journal.release(batch)
    assert first.journal.pending == 2
    second = Opened(tmp_path)  # no close before it: a crash

    assert second.journal.pending == 2
    assert second.journal.restored == {"reported": 7}
    second.put(b"e")
    assert second.drain() == [b"c", b"d", b"e"]
    assert second.journal.pending == 0
    second.journal.close()
    assert [path.name for path in tmp_path.iterdir()] == ["cursor"]


def test_each_run_keeps_its_context(tmp_path: Path) -> None:
    """A batch has the context of the run that wrote it, and never records of two runs."""
    Opened(tmp_path, context=b"first").put(b"a")
    second = Opened(tmp_path, context=b"second")
    second.put(b"b")
    seen = []
    while batch := second.journal.peek(ALL, ALL):
        seen.append((batch.context, batch.records))
        second.journal.acknowledge(batch, 1)
        second.journal.release(batch)

    assert seen == [(b"first", [b"a"]), (b"second", [b"b"])]


def test_batches_are_bounded(tmp_path: Path) -> None:
    """A batch has no more bytes than asked for, but one record at the least."""
    opened = Opened(tmp_path)
    opened.put(b"x" * 10, b"y" * 10, b"z" * 100)

    assert opened.take(size=25) == [b"x" * 10, b"y" * 10]
    assert opened.take(count=1) == [b"x" * 10]
    assert opened.take(size=1) == [b"x" * 10]


def test_segments_are_deleted_when_acknowledged(tmp_path: Path) -> None:
    """The disk gets back what is delivered."""
    opened = Opened(tmp_path, Bounds(max_bytes=65_536))
    for number in range(40):
        opened.put(b"%04d" % number * 250)
    before = len(list(tmp_path.glob("*.journal")))
    opened.drain()

    assert before > 4
    assert len(list(tmp_path.glob("*.journal"))) == 1


@pytest.mark.parametrize("drop_oldest", [True, False])
def test_a_full_journal(tmp_path: Path, drop_oldest: bool) -> None:
    """It never has more bytes than it may, and counts what it drops: the oldest, or the newest."""
    opened = Opened(tmp_path, Bounds(max_bytes=65_536, drop_oldest=drop_oldest))
    records = [b"%04d" % number * 250 for number in range(200)]
    for record in records:
        opened.put(record)
        assert sum(path.stat().st_size for path in tmp_path.glob("*.journal")) <= 65_536
    kept = opened.drain()

    assert opened.lost == {"journal_full": len(records) - len(kept)}
    assert 40 < len(kept) < 65
    assert kept == (records[-len(kept) :] if drop_oldest else records[: len(kept)])


def test_a_record_larger_than_the_journal(tmp_path: Path) -> None:
    """It is dropped and counted, and drops nothing else."""
    opened = Opened(tmp_path, Bounds(max_bytes=65_536))
    opened.put(b"small")
    opened.put(b"x" * 70_000)

    assert opened.drain() == [b"small"]
    assert opened.lost == {"journal_full": 1}


@pytest.mark.parametrize("delivered", [True, False])
def test_dropped_while_being_sent_counts_once(tmp_path: Path, delivered: bool) -> None:
    """A record in flight whose segment is dropped counts as delivered, or as dropped, by what becomes of it."""
    opened = Opened(tmp_path, Bounds(max_bytes=65_536))
    opened.put(b"0000" * 250)
    batch = opened.journal.peek(ALL, ALL)
    assert batch is not None
    for number in range(1, 200):
        opened.put(b"%04d" % number * 250)
    if delivered:
        opened.journal.acknowledge(batch, 1)
    opened.journal.release(batch)
    kept = opened.drain()

    assert opened.lost == {"journal_full": 200 - len(kept) - delivered}
    assert opened.journal.pending == 0


def test_old_records_are_dropped(tmp_path: Path) -> None:
    """What is older than its age is dropped and counted; a clock that was set back drops nothing."""
    opened = Opened(tmp_path, Bounds(max_age_ms=1_000))
    opened.put(b"a")
    opened.now += 600
    opened.put(b"b")
    opened.now += 500
    assert opened.take() == [b"b"]
    assert opened.lost == {"journal_age": 1}
    opened.now -= 3_600_000
    opened.put(b"c")

    assert opened.drain() == [b"b", b"c"]
    assert opened.lost == {"journal_age": 1}


def test_torn_tail(tmp_path: Path) -> None:
    """Half a record at the end, as a crash leaves it, is cut off, counted, and costs nothing else."""
    Opened(tmp_path).put(b"a", b"b", b"c")
    (segment,) = tmp_path.glob("*.journal")
    whole = segment.read_bytes()
    for cut in range(1, 21):
        segment.write_bytes(whole[:-cut])
        again = Opened(tmp_path)
        assert again.take() == [b"a", b"b"]
        assert again.lost == {"journal_damaged": 1}
        assert again.journal.torn == 21 - cut
        assert Opened(tmp_path).lost == {}


@pytest.mark.parametrize("left", [0, 10, 60, 100])
def test_a_segment_that_is_cut_while_it_is_read(tmp_path: Path, left: int) -> None:
    """As by who needs room on a full disk: what was in it is counted, and what comes later arrives."""
    opened = Opened(tmp_path)
    opened.put(*[b"first %d" % number for number in range(5)])
    assert opened.take(1) == [b"first 0"]
    (segment,) = tmp_path.glob("*.journal")
    os.truncate(segment, left)
    opened.put(*[b"later %d" % number for number in range(5)])
    arrived = opened.drain()
    assert arrived[-5:] == [b"later %d" % number for number in range(5)]
    assert opened.lost["journal_damaged"] == 10 - len(arrived)
    assert opened.journal.pending == 0


@pytest.mark.parametrize("more", [b"\n", b"x" * 300])
def test_a_segment_that_somebody_adds_to_while_it_is_written(tmp_path: Path, more: bytes) -> None:
    opened = Opened(tmp_path)
    opened.put(b"first")
    (segment,) = tmp_path.glob("*.journal")
    with segment.open("ab") as file:
        file.write(more)
    for number in range(5):
        opened.put(b"later %d" % number)
    assert opened.drain() == [b"first", *(b"later %d" % number for number in range(5))]
    assert opened.lost == {}
    assert opened.journal.pending == 0


def test_a_segment_that_is_replaced_by_a_copy(tmp_path: Path) -> None:
    """As ``sed -i`` and ``rsync`` do: what is open counts, and goes on to be stored."""
    opened = Opened(tmp_path)
    opened.put(b"first")
    (segment,) = tmp_path.glob("*.journal")
    copy = tmp_path / "copy"
    copy.write_bytes(segment.read_bytes())
    copy.replace(segment)
    opened.put(b"later")
    opened.put(b"last")
    segment.with_suffix(".again").write_bytes(b"half of it")  # as after a kill in the middle of it
    again = Opened(tmp_path)
    assert again.drain() == [b"first", b"later", b"last"]
    assert again.lost == {}
    again.journal.close()
    assert [path.name for path in tmp_path.iterdir()] == ["cursor"]


def test_a_frame_inside_a_record_is_no_record(tmp_path: Path) -> None:
    """Bytes inside a record that look like a record are none, also where the record around them is damaged."""
    inner = encode(RECORD, 0, 1, b"invented") + encode(CONTEXT, 0, 1, b"invented")
    Opened(tmp_path).put(b"first", inner + MAGIC * 3, b"last")
    (segment,) = tmp_path.glob("*.journal")
    data = bytearray(segment.read_bytes())
    data[data.index(inner) - 1] ^= 1
    segment.write_bytes(data)
    again = Opened(tmp_path)

    assert again.drain() == [b"first", b"last"]
    assert again.lost == {"journal_damaged": 1}


RECORDS = st.lists(
    st.binary(min_size=1, max_size=200) | st.just(MAGIC + b"r" + bytes(20)), min_size=1, max_size=12
)
DAMAGE = st.lists(st.tuples(st.floats(0, 0.999999), st.integers(1, 255)), max_size=6)


@pytest.mark.parametrize("examples", [300, pytest.param(2_000, marks=pytest.mark.thorough)])
def test_fuzzed_damage(examples: int) -> None:
    """Whatever is flipped or cut off: no crash, no invented record, and each intact record, in order."""
    check = settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])(
        given(records=RECORDS, damage=DAMAGE, cut=st.floats(0, 1), split=st.integers(0, 12))(_read_damaged)
    )
    check()


def _read_damaged(records: list[bytes], damage: list[tuple[float, int]], cut: float, split: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        opened = Opened(folder)
        opened.put(*records[:split]) if records[:split] else None
        opened.put(*records[split:]) if records[split:] else None
        (path,) = folder.glob("*.journal")
        salt = int(path.name[13:21], 16)
        data = bytearray(path.read_bytes())
        frames = [encode(RECORD, salt, opened.now, record) for record in records]
        starts = [len(data) - sum(map(len, frames[index:])) for index in range(len(frames))]
        flipped = set()
        for where, mask in damage:
            offset = int(where * len(data))
            data[offset] ^= mask
            flipped.add(offset)
        end = len(data) if cut > 0.5 else int(len(data) * cut * 2)
        path.write_bytes(data[:end])
        intact = [
            record
            for record, frame, start in zip(records, frames, starts, strict=True)
            if start + len(frame) <= end and data[start : start + len(frame)] == frame
        ]
        again = Opened(folder)

        assert again.journal.pending == len(intact)
        assert again.drain() == intact
        opened.journal.close()
        again.journal.close()
        if flipped and len(intact) < len(records) and end == len(data):
            assert again.lost["journal_damaged"] > 0


@settings(max_examples=500, deadline=None)
@given(data=st.binary(max_size=3_000), name=st.sampled_from(["cursor", "000000000001-00000000.journal"]))
def test_fuzzed_files(data: bytes, name: str) -> None:
    """Any bytes at all in a segment or a cursor: no crash, and nothing comes out of them."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        opened = Opened(Path(folder))

        assert opened.drain() == []
        opened.put(b"new")
        assert opened.drain() == [b"new"]
        opened.journal.close()


def test_cursor_survives_half_a_write(tmp_path: Path) -> None:
    """Of its two slots one is always whole: whatever becomes of the newer, the older counts."""
    cursor = JournalCursor(tmp_path / "cursor")
    assert cursor.open() == Position()
    cursor.move(Position(1, 10, {"a": 1}))
    cursor.move(Position(2, 20, {"a": 2}))
    assert JournalCursor(tmp_path / "cursor").open() == Position(2, 20, {"a": 2})
    data = bytearray((tmp_path / "cursor").read_bytes())
    data[3] ^= 1
    (tmp_path / "cursor").write_bytes(data)

    assert JournalCursor(tmp_path / "cursor").open() == Position(1, 10, {"a": 1})


def test_data_that_the_disk_lost(tmp_path: Path) -> None:
    """A machine that crashed may keep the cursor and lose the segment's end: nothing invented, no crash."""
    opened = Opened(tmp_path)
    opened.put(b"a", b"b", b"c")
    batch = opened.journal.peek(2, ALL)
    assert batch is not None
    opened.journal.acknowledge(batch, 2)
    (segment,) = tmp_path.glob("*.journal")
    os.truncate(segment, 30)
    again = Opened(tmp_path)
    again.put(b"d")

    assert again.drain() == [b"d"]


@pytest.mark.parametrize("size", [8 << 20, 4 << 10])
def test_a_folder_that_is_removed_is_made_again(tmp_path: Path, size: int) -> None:
    """With everything that was in it, whether the next record begins a segment or not."""
    (taken := claim(tmp_path / "journals", "otel", "app")).own.release()
    folder = taken.own.folder
    opened = Opened(folder, Bounds(max_bytes=size * 8))
    records = [b"%04d" % number + bytes(500) for number in range(30)]
    opened.put(*records[:7])
    first = opened.journal.peek(2, ALL)
    assert first
    opened.journal.acknowledge(first, 2)
    opened.journal.release(first)
    shutil.rmtree(tmp_path / "journals")
    folder.mkdir(parents=True)  # as the lock does where there is one
    for record in records[7:]:
        opened.put(record)
    opened.journal.close()
    again = Opened(folder)

    assert again.drain() == records[2:]
    assert opened.lost == again.lost == {}


def test_a_folder_that_is_removed_before_the_end(tmp_path: Path) -> None:
    """No record comes any more, and those that are left are there for the next start."""
    own = claim(tmp_path / "journals", "otel", "app").own
    opened = Opened(own.folder, lock=own)
    opened.put(b"1", b"2")
    shutil.rmtree(tmp_path / "journals")
    opened.journal.close()
    own.release()

    assert Opened(own.folder).drain() == [b"1", b"2"]


def test_a_folder_that_is_removed_and_cannot_be_made_again(tmp_path: Path) -> None:
    """What was in it is lost, and counted."""
    own = claim(tmp_path / "journals", "otel", "app").own
    opened = Opened(own.folder, lock=own)
    opened.put(b"1", b"2", b"3")
    first = opened.journal.peek(1, ALL)
    assert first
    opened.journal.acknowledge(first, 1)
    opened.journal.release(first)
    shutil.rmtree(tmp_path / "journals")
    (tmp_path / "journals").write_text("not a folder")
    with pytest.raises(OSError, match="File exists"):
        opened.put(b"4")
    opened.journal.close()

    assert opened.lost == {"journal_damaged": 2}
    assert opened.journal.pending == 0


def test_a_removed_folder_that_another_driver_has_taken(tmp_path: Path) -> None:
    """Two drivers do not write to one folder."""
    own = claim(tmp_path, "otel", "app").own
    opened = Opened(own.folder, lock=own)
    opened.put(b"1")
    shutil.rmtree(own.folder.parent)
    other = claim(tmp_path, "otel", "app").own
    with pytest.raises(OSError, match="another driver has it"):
        opened.put(b"2")
    other.release()
    opened.put(b"2")

    assert other.folder == own.folder
    assert opened.drain() == [b"1", b"2"]


def test_two_drivers_have_a_folder_each(tmp_path: Path) -> None:
    """The second gets a folder of its own; what ended drivers left there is found."""
    first = claim(tmp_path, "events-otel", "my app")
    second = claim(tmp_path, "events-otel", "my app")
    other = claim(tmp_path, "events-otel", "my_app")
    assert first.own.folder != second.own.folder
    assert second.busy == 1
    assert other.own.folder.parent != first.own.folder.parent
    (second.own.folder / "000000000001-00000000.journal").touch()
    second.own.release()
    first.own.release()
    third = claim(tmp_path, "events-otel", "my app")

    assert third.own.folder == first.own.folder
    assert [lock.folder for lock in third.orphans] == [second.own.folder]
    assert first.own.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("level", ["events-otel", "events-otel/app", "events-otel/app/1"])
@pytest.mark.parametrize("trap", ["open", "link"])
def test_a_folder_that_another_user_laid_out(tmp_path: Path, level: str, trap: str) -> None:
    """Whoever can write to a journal could forge its records: such a folder is named, and not used."""
    laid = tmp_path / "journal" / level
    laid.parent.mkdir(mode=0o700, parents=True)
    if trap == "link":
        (tmp_path / "elsewhere").mkdir()
        laid.symlink_to(tmp_path / "elsewhere")
    else:
        laid.mkdir()
        laid.chmod(0o777)
    with pytest.raises(OSError, match=r"remove it") as refused:
        claim(tmp_path / "journal", "events-otel", "app")

    assert str(laid) in str(refused.value)


def test_folders_that_mounts_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a volume, a mode that all may write to and an owner that is nobody are named once, and used."""
    made = Path.lstat
    squashed = os.stat_result((*made(tmp_path)[:4], 65_534, *made(tmp_path)[5:]))
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume").chmod(0o777)
    monkeypatch.setattr(Path, "lstat", lambda path: squashed)
    for _ in range(2):
        claim(tmp_path / "volume", "events-otel", "app").own.release()

    warned = [record.getMessage() for record in caplog.records]
    folders = [
        tmp_path / "volume" / below for below in ("", "events-otel", "events-otel/app", "events-otel/app/1")
    ]
    assert [sum(f"folder {folder} " in text for text in warned) for folder in folders] == [1, 1, 1, 1]
    assert "mode 0777" in warned[0]
    assert "65534" in warned[1]


def test_a_file_system_without_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A share that shows one mode for all that is on it can be used, with a warning."""
    (tmp_path / "events-otel").mkdir()
    (tmp_path / "events-otel").chmod(0o777)
    monkeypatch.setattr(tempfile, "mkdtemp", _made_open)
    claim(tmp_path, "events-otel", "app").own.release()

    assert "without modes" in caplog.text


def _made_open(suffix: str | None = None, prefix: str | None = None, dir: Any = None) -> str:  # noqa: A002
    folder = Path(dir, f"{prefix}open")
    folder.mkdir()
    folder.chmod(0o777)
    return str(folder)


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A child that outlives the driver does not stand in the next driver's way."""
    taken = claim(tmp_path, "events-otel", "app")
    read, write = os.pipe()
    alive, says = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.write(says, b".")
        os.read(read, 1)  # lives until the test closes its end
        os._exit(0)
    os.read(alive, 1)
    taken.own.release()
    again = claim(tmp_path, "events-otel", "app")
    os.close(write)
    os.waitpid(child, 0)

    assert again.busy == 0


class Crash(BaseException):
    """The machine stops here."""


def crash_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process end at the so-manieth change of the disk: before it, or after half of a write."""
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Crash

    write, pwrite, truncate, sync, unlink = os.write, os.pwrite, os.ftruncate, os.fdatasync, Path.unlink

    def half_write(fd: int, data: bytes) -> int:
        if left[0] == 0:
            write(fd, data[: len(data) // 2])
        count()
        return write(fd, data)

    def counted(call: Any) -> Any:
        def counting(*args: Any, **named: Any) -> Any:
            count()
            return call(*args, **named)

        return counting

    monkeypatch.setattr(os, "write", half_write)
    for name, call in (("pwrite", pwrite), ("ftruncate", truncate), ("fdatasync", sync)):
        monkeypatch.setattr(os, name, counted(call))
    monkeypatch.setattr(Path, "unlink", counted(unlink))


def test_crash_at_every_step(tmp_path: Path) -> None:
    """Wherever it stops: what was appended and not acknowledged comes again, in order, and nothing else."""
    ended = False
    for step in range(1_000):
        folder = tmp_path / str(step)
        folder.mkdir()
        appended: list[bytes] = []
        acknowledged = 0
        with pytest.MonkeyPatch.context() as patch:
            try:
                crash_at(step, patch)
                opened = Opened(folder, Bounds(max_bytes=65_536, fsync="always"))
                for number in range(30):
                    record = b"%04d" % number * 500
                    opened.put(record)
                    appended.append(record)
                    if number % 3 == 2 and (batch := opened.journal.peek(2, ALL)):
                        opened.journal.acknowledge(batch, len(batch.records))
                        opened.journal.release(batch)
                        acknowledged += len(batch.records)
                opened.journal.close()
                ended = True
            except Crash:
                pass
        came = Opened(folder).drain()
        # What was being acknowledged or appended when it stopped may be there or not.
        least, most = appended[acknowledged + 2 :], [*appended, b"%04d" % len(appended) * 500]
        assert came[-len(least) :] == least or came[-len(least) - 1 : -1] == least or not least
        assert came in (most[-len(came) :], most[-len(came) - 1 : -1]) or not came
        assert len(appended) - acknowledged - 2 <= len(came) <= len(appended) - acknowledged + 1
        if ended:
            return
    raise AssertionError("the scenario never came to its end")
