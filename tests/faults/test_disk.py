"""What a disk can do: be full and free again, take no writes at all, or be shared."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_events.api import ApplicationInfo, Event
from spark_events.runtime.journal import claim
from spark_events.runtime.registry import Registry
from spark_events.runtime.setup import read_all_setups
from tests.support.fault_reporting import Reporting
from tests.support.file_log import file_events
from tests.support.otlp_backend import Answer, Backend
from tests.support.waiting import free_port, wait_until


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Leave no byte free."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4_096))
        except OSError:
            pass
    return ballast


def test_journal_on_a_full_disk(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Records wait in memory while the disk is full, go on being sent, and in order."""
    backend = Backend(lambda request: Answer(503))
    reporting = Reporting(backend.grpc, small_disk / "journal")
    ids = reporting.emit(200)
    reporting.stored()
    ballast = fill(small_disk)
    ids += reporting.emit(500, body="x" * 500)
    reporting.stored()
    spool = reporting.worker.delivery.spool  # type: ignore[union-attr]
    assert spool.in_memory
    assert not spool.durable
    backend.behave = lambda request: Answer()
    reporting.delivered(700)
    ballast.unlink()
    ids += reporting.emit(100)
    reporting.delivered(800)
    wait_until(lambda: spool.durable, "the journal is used again")
    reporting.close()
    backend.close()

    assert backend.taken == ids
    assert reporting.balance() == {"reported": 800, "queued": 0}
    assert "records wait in memory: No space left on device" in caplog.text
    assert "the journal accepts records again" in caplog.text


def test_journal_on_a_disk_that_is_free_again(small_disk: Path) -> None:
    """What waited in memory goes to the journal as soon as it can, and survives from then on."""
    endpoint = f"http://127.0.0.1:{free_port()}"
    reporting = Reporting(endpoint, small_disk / "journal")
    ids = reporting.emit(10)
    reporting.stored()
    ballast = fill(small_disk)
    ids += reporting.emit(1_000)
    reporting.stored()
    ballast.unlink()
    spool = reporting.worker.delivery.spool  # type: ignore[union-attr]
    wait_until(lambda: not spool.in_memory, "all is on disk")
    reporting.close(1_000)
    backend = Backend()
    again = Reporting(backend.grpc, small_disk / "journal")
    again.delivered(len(ids))
    again.close()
    backend.close()

    assert backend.taken == ids


@pytest.mark.parametrize("accepts", [True, False])
def test_a_journal_that_can_be_opened_later(
    small_disk: Path, accepts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What waited in memory, and what a driver before left behind, is as safe as ever once there is room."""
    backend = Backend(lambda request: Answer(503))
    folder = small_disk / "journal"
    before = Reporting(backend.grpc, folder)
    ids = before.emit(10)
    before.close(1_000)
    parked = folder.rename(small_disk / "elsewhere")
    ballast = fill(small_disk)
    reporting = Reporting(backend.grpc, folder)
    ids += reporting.emit(100)
    reporting.stored()
    spool = reporting.worker.delivery.spool  # type: ignore[union-attr]
    assert spool.in_memory == spool.pending == 100
    ballast.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    parked.rename(folder)
    wait_until(lambda: spool.durable, "the journal is used")
    assert spool.pending == 110
    backend.behave = lambda request: Answer() if accepts else Answer(400)
    reporting.close()
    backend.close()

    assert caplog.text.count("cannot be used") == 1  # it is said once, however often it is tried
    assert "No space left on device" in caplog.text
    assert "can be used now" in caplog.text
    if accepts:
        assert backend.taken == ids
    else:
        [letters] = small_disk.rglob("refused.jsonl")
        assert letters.read_text().count("\n") == 110


def test_each_try_to_open_a_journal_leaves_nothing_behind(small_disk: Path) -> None:
    """No descriptor, and no count: what is damaged is counted once, when it is opened."""
    folder = small_disk / "journal"
    nobody = f"http://127.0.0.1:{free_port()}"
    before = Reporting(nobody, folder)
    before.emit(10)
    before.stored()
    before.close(1_000)
    (journal,) = folder.rglob("*.journal")
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 0xFF
    journal.write_bytes(content)
    (cursor,) = folder.rglob("cursor")
    cursor.unlink()  # it is written anew, for which there is no room
    ballast = fill(small_disk)
    reporting = Reporting(nobody, folder)
    reporting.emit(1)
    reporting.stored()
    delivery = reporting.worker.delivery
    assert delivery is not None
    gc.collect()  # what other tests have left may close meanwhile
    open_before = os.listdir("/proc/self/fd")
    for _ in range(5):
        assert delivery._open_journals() == []
    assert len(os.listdir("/proc/self/fd")) == len(open_before)
    assert "dropped.journal_damaged" not in reporting.balance()
    ballast.unlink()
    wait_until(lambda: delivery.spool.durable, "the journal is used")
    balance = reporting.balance()
    reporting.close(1_000)
    assert balance == {"dropped.journal_damaged": 1, "queued": 10}


def test_a_folder_that_cannot_be_claimed_holds_no_other(tmp_path: Path) -> None:
    """The first one is let go of, so that the next try, or another driver, has it."""
    first = claim(tmp_path, "otel", "app").own
    (first.folder / "1.journal").touch()
    first.release()
    second = first.folder.with_name("2")
    second.mkdir(mode=0o700)
    second.chmod(0o777)
    with pytest.raises(OSError, match="so any user can remove or forge records"):
        claim(tmp_path, "otel", "app")
    second.chmod(0o700)
    claimed = claim(tmp_path, "otel", "app")
    assert (claimed.own.folder.name, claimed.busy) == ("1", 0)
    claimed.own.release()


def test_file_log_on_a_full_disk(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Lines wait until the disk is free again; none is lost, and none is half."""
    prefix = "spark.events.reporter.file."
    conf = {f"{prefix}factory.class": "file_log", f"{prefix}path": str(small_disk / "events")}
    setups, errors = read_all_setups(conf, ApplicationInfo("app", "app-1"))
    assert not errors
    registry = Registry(setups)
    registry.start()

    def emit(first: int, last: int) -> None:
        for number in range(first, last):
            registry.root.add_event(Event.builder("test", "MyEvent").set_id(str(number)).set_body("x" * 300))

    emit(0, 100)
    wait_until(lambda: registry.workers[0].stats.reported.count == 100, "the first are written")
    ballast = fill(small_disk)
    emit(100, 400)
    wait_until(lambda: "could not send" in caplog.text, "the disk is found full")
    for path in (small_disk / "events").iterdir():
        assert all(json.loads(line) for line in path.read_text().splitlines())
        assert path.read_bytes().endswith(b"\n")
    ballast.unlink()
    registry.close(10_000)

    assert [event["eventId"] for event in file_events(small_disk / "events")] == [str(n) for n in range(400)]
    assert "No space left on device" in caplog.text
    assert "delivers again" in caplog.text


@pytest.mark.parametrize("how", ["below-a-file", "read-only"])
def test_journal_that_cannot_be_written(
    tmp_path: Path, how: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """One error names the key, the folder and what to do; events are delivered all the same."""
    if how == "read-only":
        folder = request.getfixturevalue("small_disk")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    else:
        folder = tmp_path / "file"
        folder.touch()
    backend = Backend()
    reporting = Reporting(backend.grpc, folder / "journal")
    ids = reporting.emit(10)
    reporting.delivered(10)
    reporting.close()
    backend.close()
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]

    assert backend.taken == ids
    assert len(errors) == 1
    assert f"spark.events.reporter.otel.journal.dir: '{folder}/journal' cannot be used" in errors[0]
    assert "wait in memory" in errors[0]


def test_a_journal_that_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By a cleaner of old files, say: what was in it is written again, and reaches the next start."""
    folder = tmp_path / "journal"
    reporting = Reporting("http://127.0.0.1:9", folder)
    ids = reporting.emit(50)
    reporting.stored()
    shutil.rmtree(folder)
    ids += reporting.emit(50)
    reporting.stored()
    reporting.close()
    backend = Backend()
    after = Reporting(backend.grpc, folder)
    after.delivered(100)
    after.close()
    backend.close()

    assert backend.taken == ids
    assert "leaves 100 items" in caplog.text
    assert after.balance() == {"reported": 100, "queued": 0}


def test_a_journal_that_cannot_be_opened_lets_go_of_its_folder(tmp_path: Path) -> None:
    """Whoever mends it while this driver runs can have it; this one goes on from memory."""
    (tmp_path / "events-otel" / "app" / "1" / "cursor").mkdir(parents=True)
    backend = Backend()
    reporting = Reporting(backend.grpc, tmp_path)
    ids = reporting.emit(5)
    reporting.delivered(5)
    again = claim(tmp_path, "events-otel", "app")
    again.own.release()
    reporting.close()
    backend.close()

    assert backend.taken == ids
    assert again.own.folder.name == "1"


def test_two_drivers_with_one_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The second has a folder of its own; the next driver sends what either of them left, each with its run."""
    nobody = f"http://127.0.0.1:{free_port()}"
    first, second = (Reporting(nobody, tmp_path, service__version=version) for version in ("1", "2"))
    ids = first.emit(5)
    first.stored()
    second.next = 5
    ids += second.emit(5)
    second.stored()
    first.close(500)
    second.close(500)
    backend = Backend()
    third = Reporting(backend.grpc, tmp_path)
    third.delivered(10)
    third.close()
    backend.close()

    assert "1 other journal of this application in use" in caplog.text
    assert sorted(backend.taken) == ids
    assert len(backend.requests) == 2


def test_totals_outlive_the_process(tmp_path: Path) -> None:
    """What was reported and dropped counts on in the next driver, so that a figure over weeks is right."""
    backend = Backend()
    first = Reporting(backend.grpc, tmp_path)
    first.emit(10)
    first.delivered(10)
    first.close()
    second = Reporting(backend.grpc, tmp_path)
    second.emit(5)
    second.delivered(15)
    second.close()
    backend.close()

    assert second.balance() == {"reported": 15, "queued": 0}


def test_a_full_journal_without_anybody(tmp_path: Path) -> None:
    """The oldest go, counted by cause; the disk never has more than it may, and what is left is delivered."""
    nobody = f"http://127.0.0.1:{free_port()}"
    reporting = Reporting(nobody, tmp_path, journal__max_bytes="256k")
    ids = []
    for _ in range(20):
        ids += reporting.emit(100, body="x" * 200)
        reporting.stored()
        assert sum(path.stat().st_size for path in tmp_path.rglob("*.journal")) <= 256 << 10
    reporting.close(500)
    balance = reporting.balance()
    backend = Backend()
    again = Reporting(backend.grpc, tmp_path)
    again.delivered(balance["queued"])
    again.close()
    backend.close()

    assert balance["dropped.journal_full"] + balance["queued"] == 2_000
    assert backend.taken == ids[-balance["queued"] :]


def test_files_are_nobody_elses_business(tmp_path: Path) -> None:
    """Journals hold what events hold: nobody else on the machine may read them."""
    reporting = Reporting(f"http://127.0.0.1:{free_port()}", tmp_path / "journal")
    reporting.emit(1)
    reporting.stored()
    reporting.close(500)
    found = [path for path in (tmp_path / "journal").rglob("*") if path.is_file()]

    assert len(found) == 3
    assert {os.stat(path).st_mode & 0o077 for path in found} == {0}
