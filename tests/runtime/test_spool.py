"""The spool: memory without a journal, and what the disk is asked for."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from spark_events.runtime.journal import Bounds, DeliveryJournal
from spark_events.runtime.sending.spool import MemoryRecords, Spool


class Made:
    """A spool, what it lost, and what it said."""

    def __init__(
        self, folder: Path | None, fsync: str = "interval", max_bytes: int = 100, oldest: bool = True
    ) -> None:
        self.lost: Counter[str] = Counter()
        self.said: list[str] = []
        journals = []
        if folder is not None:
            journals = [DeliveryJournal(folder, Bounds(fsync=fsync), b"run", self.drop)]
            journals[0].open()
        memory = MemoryRecords(max_bytes, oldest, self.drop)
        self.spool = Spool((lambda: journals) if journals else None, memory, b"run", self.said.append)

    def drop(self, cause: str, count: int) -> None:
        self.lost[cause] += count

    def put(self, *records: bytes) -> None:
        for record in records:
            self.spool.put(record)
        self.spool.commit()

    def drain(self) -> list[bytes]:
        self.spool.end()
        found: list[bytes] = []
        while batch := self.spool.next_batch(100, 1_000_000):
            found += batch.records
            self.spool.acknowledge(batch, len(batch.records))
            self.spool.release(batch)
        return found


@pytest.mark.parametrize("oldest", [True, False])
def test_memory_is_bounded(oldest: bool) -> None:
    """Without a journal records wait in memory, within bytes; what is dropped is counted."""
    made = Made(None, oldest=oldest)
    records = [b"%010d" % number for number in range(25)]
    made.put(*records)

    assert made.spool.in_memory == made.spool.pending == 10
    assert made.lost == {"queue_full": 15}
    assert made.drain() == (records[15:] if oldest else records[:10])


@pytest.mark.parametrize("delivered", [0, 3, 5])
def test_dropped_from_memory_while_being_sent(delivered: int) -> None:
    """A record in flight counts once, as delivered or as dropped."""
    made = Made(None)
    made.put(*(b"%020d" % number for number in range(5)))
    batch = made.spool.next_batch(100, 1_000)
    assert batch is not None
    made.put(*(b"%020d" % number for number in range(5, 12)))
    if delivered:
        made.spool.acknowledge(batch, delivered)
    made.spool.release(batch)
    rest = made.drain()

    assert rest == [b"%020d" % number for number in range(7, 12)]
    assert delivered + made.lost["queue_full"] + len(rest) == 12
    assert made.spool.pending == 0


def test_dropped_from_a_journal_while_the_last_request_never_ends(tmp_path: Path) -> None:
    """What is said to be left is what the next driver finds."""
    lost: Counter[str] = Counter()
    bounds = Bounds(max_bytes=65_536)
    journal = DeliveryJournal(tmp_path, bounds, b"run", lambda cause, count: lost.update({cause: count}))
    journal.open()
    spool = Spool(lambda: [journal], MemoryRecords(100, True, lost.subtract), b"run", pytest.fail)
    for number in range(200):
        spool.put(b"%04d" % number * 250)
        spool.commit()
        if not number:
            assert spool.next_batch(100, 1_000_000) is not None
    spool.close()

    following = DeliveryJournal(tmp_path, bounds, b"run", pytest.fail)
    following.open()
    assert spool.pending == following.pending > 0
    assert lost == {"journal_full": 200 - spool.pending}


@pytest.mark.parametrize(("fsync", "syncs"), [("always", 5), ("interval", 1), ("never", 0)])
def test_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: str, syncs: int) -> None:
    """The disk is asked at each commit, or each second and when nothing comes, or never."""
    calls: list[int] = []
    monkeypatch.setattr(os, "fdatasync", calls.append)
    now = [100.0]
    monkeypatch.setattr("spark_events.runtime.sending.spool.time.monotonic", lambda: now[0])
    made = Made(tmp_path, fsync)
    for number in range(5):
        made.put(b"%d" % number)
    assert len(calls) == syncs
    now[0] += 1.1
    made.spool.keep()

    assert len(calls) == syncs + (fsync == "interval")


def test_a_disk_that_does_not_confirm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, once; what was written is there once, and not once more in memory."""

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    made = Made(tmp_path, "always")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        made.put(b"a")
        made.put(b"b")

    assert made.said == ["cannot sync the journal to disk: Input/output error (journal.dir)"]
    assert made.spool.durable
    assert made.drain() == [b"a", b"b"]


def test_memory_waits_behind_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the disk takes nothing, order is kept, and afterwards all is in the journal."""

    def fail(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    made = Made(tmp_path)
    made.put(b"a")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        made.put(b"b")
        assert made.spool.in_memory == 1
        made.put(b"c")
    now = [1e9]
    monkeypatch.setattr("spark_events.runtime.sending.spool.time.monotonic", lambda: now[0])
    made.spool.keep()

    assert made.spool.in_memory == 0
    assert made.said[-1] == "the journal accepts records again"
    made.put(b"d")
    assert made.drain() == [b"a", b"b", b"c", b"d"]
    assert made.lost == {}


@pytest.mark.parametrize("delivered", [True, False])
def test_what_is_new_does_not_overtake_what_is_sent_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivered: bool
) -> None:
    """While a batch of memory is in flight nothing goes to the journal, which is read first."""

    def fail(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    made = Made(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        made.put(b"a", b"b")
    batch = made.spool.next_batch(1, 1_000)
    assert batch is not None
    assert batch.records == [b"a"]
    now = [1e9]
    monkeypatch.setattr("spark_events.runtime.sending.spool.time.monotonic", lambda: now[0])
    made.put(b"c")
    if delivered:
        made.spool.acknowledge(batch, 1)
    made.spool.release(batch)

    assert made.drain() == ([b"b", b"c"] if delivered else [b"a", b"b", b"c"])
