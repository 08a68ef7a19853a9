"""The file log: whole lines, rotation, retention, and what cannot be written."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from spark_events_file_log.factory import FileLogEventReporterFactory, FileLogSpanReporterFactory
from spark_events_file_log.files import RotatedFile, Rotation
from spark_events_file_log.reporter import FileLogEventReporter

from spark_events.api import ApplicationInfo, ConfigError, Event, ReporterConfig, RetryLater, Severity, Span
from spark_events.history.reading.local_files import stored_files


def config(folder: Path | str, app_id: str = "app-1", name: str = "my app", **options: str) -> ReporterConfig:
    values = {
        "path": str(folder),
        **{key.replace("__", ".").replace("_", "-"): value for key, value in options.items()},
    }
    return ReporterConfig("spark.events.reporter.file.", values, ApplicationInfo(name, app_id))


def opened(folder: Path, app_id: str = "app-1", **options: str) -> FileLogEventReporter:
    reporter = FileLogEventReporterFactory().create(config(folder, app_id, **options))
    reporter.open()
    return reporter


def event(number: int = 0, **attributes: str) -> Event:
    return Event(
        f"id-{number}", "MyEvent", "scope", 1_700_000_000_123, Severity.WARN, "body", attributes, {"v": "w"}
    )


def add(reporter: FileLogEventReporter, item: Event) -> None:
    """Write one event, as the runtime would."""
    reporter.notify_of_added_event(item)
    reporter.flush()


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def test_a_line(tmp_path: Path) -> None:
    """One object a line, with OTLP's names, and times in ns as text."""
    reporter = opened(tmp_path)
    add(reporter, event(attribute="a\nb"))
    (line,) = lines(tmp_path)

    observed = line.pop("observedTimeUnixNano")
    assert isinstance(observed, str)
    assert line == {
        "eventName": "MyEvent",
        "eventId": "id-0",
        "timeUnixNano": "1700000000123000000",
        "severityNumber": 13,
        "severityText": "WARN",
        "scope": "scope",
        "body": "body",
        "attributes": {"v": "w", "attribute": "a\nb"},
    }
    assert reporter.destination == str(next(tmp_path.iterdir()))
    reporter.close()
    reporter.close()


def test_lines_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tails the file never sees half a line: a batch is one write of whole lines."""
    reporter = opened(tmp_path)
    written: list[bytes] = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: written.append(data) or write(fd, data))
    for number in range(3):
        reporter.notify_of_added_event(event(number))
    reporter.flush()

    assert len(written) == 1
    assert written[0].endswith(b"\n")
    assert written[0].count(b"\n") == 3


@pytest.mark.parametrize(
    ("tail", "kept"), [(b'{"eventId": "id-9", "at', ["id-0"]), (b'{"eventId": "id-9"}', ["id-0", "id-9"])]
)
def test_half_a_line_is_repaired(
    tmp_path: Path, tail: bytes, kept: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """What a crash left is cut off, or ended, at the next start of the application; another's is left alone."""
    first = opened(tmp_path)
    add(first, event(0))
    first.close()
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(tail)
    other = tmp_path / "other__app-1.events.000001.jsonl"
    other.write_bytes(tail)
    opened(tmp_path, app_id="app-2").close()

    assert [json.loads(line)["eventId"] for line in path.read_bytes().split(b"\n")[:-1]] == kept
    assert str(path) in caplog.text
    assert other.read_bytes() == tail


def test_a_file_that_another_driver_writes_to_is_not_repaired(tmp_path: Path) -> None:
    """Its last line may be on its way."""
    first = opened(tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(b'{"half')
    opened(tmp_path, app_id="app-2").close()
    first.close()

    assert path.read_bytes() == b'{"half'


@pytest.mark.parametrize("what", ["link", "hard link", "folder", "pipe"])
def test_what_is_no_file_of_the_reporter(tmp_path: Path, what: str) -> None:
    """Files of such a name are neither cut nor removed, nor counted among those that are kept."""
    victim = tmp_path / "victim.csv"
    victim.write_bytes(b"id\n1\nlast")
    folder = tmp_path / "log"
    folder.mkdir()
    make: dict[str, Callable[[Path], object]] = {
        "link": lambda path: path.symlink_to(victim),
        "hard link": lambda path: path.hardlink_to(victim),
        "folder": Path.mkdir,
        "pipe": os.mkfifo,
    }
    foreign = [folder / f"my_app__app-0.events.{number:06d}.jsonl" for number in range(1, 4)]
    for path in foreign:
        make[what](path)
    reporter = opened(folder, retention__max_files="2")
    add(reporter, event(0))
    reporter.close()
    with_second = opened(folder, app_id="app-2", retention__max_files="2")
    add(with_second, event(1))
    with_second.close()

    assert victim.read_bytes() == b"id\n1\nlast"
    assert all(os.path.lexists(path) for path in foreign)
    written = [path for path in sorted(folder.iterdir()) if path not in foreign]
    assert [json.loads(path.read_bytes())["eventId"] for path in written] == ["id-0", "id-1"]


def test_a_resting_file_becomes_a_pipe(tmp_path: Path) -> None:
    """It is not waited for: a new file follows."""
    reporter = opened(tmp_path)
    add(reporter, event(0))
    reporter.rest()
    (path,) = tmp_path.iterdir()
    path.unlink()
    os.mkfifo(path)
    add(reporter, event(1))
    reporter.close()

    path.unlink()
    assert [line["eventId"] for line in lines(tmp_path)] == ["id-1"]


def test_a_deleted_file_is_noticed(tmp_path: Path) -> None:
    """What somebody deletes under the writer is followed by a new file."""
    reporter = opened(tmp_path)
    add(reporter, event(0))
    for path in tmp_path.iterdir():
        path.unlink()
    add(reporter, event(1))

    assert [line["eventId"] for line in lines(tmp_path)] == ["id-1"]


@pytest.mark.parametrize(("fsync", "syncs"), [("always", 4), ("interval", 2), ("never", 0)])
def test_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: str, syncs: int) -> None:
    """The disk is asked after each flush, or each second and at the end, or never."""
    calls: list[int] = []
    monkeypatch.setattr(os, "fdatasync", calls.append)
    reporter = opened(tmp_path, fsync=fsync)
    for number in range(4):
        add(reporter, event(number))
    reporter.close()

    assert len(calls) == syncs


def test_odd_values(tmp_path: Path) -> None:
    """What JSON or UTF-8 cannot carry costs neither the line nor its neighbours."""
    reporter = opened(tmp_path)
    odd = {"surrogate": "\ud800", "big": 2**70, "nan": float("nan"), "object": object(), "ok": 1}
    add(reporter, Event("i", "n", "s", 1, attributes=odd))  # type: ignore[arg-type]
    (line,) = lines(tmp_path)

    assert isinstance(line["attributes"], dict)
    assert line["attributes"]["ok"] == 1
    assert line["attributes"]["big"] == str(2**70)
    assert line["attributes"]["surrogate"] == "?"
    assert line["attributes"]["nan"] == "NaN"


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    """JSON has none of them; a null would say nothing of what it was."""
    reporter = opened(tmp_path)
    inf = float("inf")
    add(
        reporter,
        Event("i", "n", "s", 1, attributes={"loss": float("nan"), "up": inf, "down": -inf, "ok": 1.5}),
    )
    (line,) = lines(tmp_path)

    assert line["attributes"] == {"loss": "NaN", "up": "Infinity", "down": "-Infinity", "ok": 1.5}


def test_rotation_by_size_and_retention(tmp_path: Path) -> None:
    """A full file is followed by the next; the newest are kept, of this application's name alone."""
    (tmp_path / "my_app_2__app-1.events.000001.jsonl").touch()
    reporter = opened(tmp_path, rotate__max_bytes="1k", retention__max_files="3")
    for number in range(40):
        add(reporter, event(number))
        assert all(path.stat().st_size <= 1024 for path in tmp_path.iterdir())
    numbers = [line["eventId"] for line in lines(tmp_path)]

    assert len(list(tmp_path.glob("my_app__*"))) == 3
    assert len(list(tmp_path.glob("my_app_2__*"))) == 1
    assert numbers == [f"id-{n}" for n in range(40 - len(numbers), 40)]


def test_runs_of_one_process_that_are_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A replay of many nights keeps no more of them than a driver does: it says so, once."""
    for night in range(6):
        reporter = opened(tmp_path, app_id=f"night-{night}", retention__max_files="3")
        add(reporter, event(night))
        reporter.close()

    assert len(lines(tmp_path)) == 3
    assert caplog.text.count("although this process wrote it, and so will be others of its name") == 1
    assert "my_app__night-0.events.000001.jsonl is removed" in caplog.text
    assert "retention.max-files=3 keeps no more files" in caplog.text


def test_retention_where_files_belong_to_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Volumes of NFS or SMB may give the files that a process makes another owner than itself."""
    monkeypatch.setattr("spark_events_file_log.files.os.geteuid", lambda: 4711)
    reporter = opened(tmp_path, rotate__max_bytes="1k", retention__max_files="3")
    for number in range(40):
        add(reporter, event(number))

    assert len(list(tmp_path.iterdir())) == 3


def test_rotation_by_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is not written to for longer than configured."""
    import time

    reporter = opened(tmp_path, rotate__interval="1s")
    add(reporter, event(0))
    later = time.monotonic() + 1.5
    monkeypatch.setattr("spark_events_file_log.files.time.monotonic", lambda: later)
    add(reporter, event(1))

    assert len(list(tmp_path.iterdir())) == 2


def test_retention_spares_a_file_in_use(tmp_path: Path) -> None:
    """The file that another driver of the same name writes to is not removed."""
    other = opened(tmp_path, app_id="other")
    add(other, event(0))
    for number in range(3):
        reporter = opened(tmp_path, app_id=f"app-{number}", retention__max_files="1")
        add(reporter, event(number))
        reporter.close()
    names = sorted(path.name.split("__")[1].split(".")[0] for path in tmp_path.iterdir())

    assert names == ["app-2", "other"]
    other.close()


def test_a_second_start_begins_a_new_file(tmp_path: Path) -> None:
    """Nothing is appended to a file of an earlier process."""
    for _ in range(2):
        reporter = opened(tmp_path)
        add(reporter, event())
        reporter.close()

    assert [path.name.split(".")[-2] for path in sorted(tmp_path.iterdir())] == ["000001", "000002"]


def test_unwritable_folder(tmp_path: Path) -> None:
    """The error names the key, the folder, why, and what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        opened(tmp_path / "file" / "below")

    assert str(caught.value).startswith("spark.events.reporter.file.path: ")
    assert "cannot be written (Not a directory); give a folder" in str(caught.value)
    with pytest.raises(ConfigError, match="cannot write to folder"):
        FileLogEventReporterFactory().probe(config(tmp_path / "file" / "below"))
    assert FileLogEventReporterFactory().probe(config(tmp_path / "new")).endswith("is writable")


@pytest.mark.parametrize("path", ["s3a://bucket/x", "file://host/x", "hdfs:///x"])
def test_only_local_folders(path: str) -> None:
    """A path of another file system is refused at once."""
    with pytest.raises(ConfigError, match="a local folder such as file:///var/log/spark-reports"):
        FileLogEventReporterFactory().create(config(path))


def test_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """A write that comes short leaves nothing of its line behind, says why, and is tried again later."""
    reporter = opened(tmp_path)
    add(reporter, event(0))
    size = next(tmp_path.iterdir()).stat().st_size
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, old[1]))
    try:
        with pytest.raises(RetryLater, match="File too large"):
            add(reporter, event(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    add(reporter, event(2))

    assert [line["eventId"] for line in lines(tmp_path)] == ["id-0", "id-1", "id-2"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("no", {"code": "ERROR", "message": "no"}),
        ("", {"code": "ERROR", "message": ""}),  # of an assert that says nothing
        (None, {"code": "UNSET"}),
    ],
)
def test_spans(tmp_path: Path, error: str | None, status: dict[str, str]) -> None:
    """Spans have files of their own."""
    reporter = FileLogSpanReporterFactory().create(config(tmp_path))
    reporter.open()
    builder = Span.builder("scope", "Checkpoint").set_times_ms(1, 2)
    span = (builder if error is None else builder.set_error(error)).build({})
    reporter.notify_of_added_span(span)
    reporter.flush()
    reporter.close()
    (path,) = tmp_path.iterdir()
    line = json.loads(path.read_text())

    assert path.name == "my_app__app-1.spans.000001.jsonl"
    assert line["status"] == status
    assert (line["startTimeUnixNano"], line["endTimeUnixNano"]) == ("1000000", "2000000")


@pytest.mark.parametrize(
    "name", ["_daily", "[prod] orders", "日本の注文", "заказы" * 50, "🚀", "a", "", "__"]
)
def test_a_report_finds_the_files_of_each_application(tmp_path: Path, name: str) -> None:
    """Those that begin with an underscore or a dot are hidden from it, and from Spark."""
    reporter = FileLogEventReporterFactory().create(config(tmp_path, name=name))
    reporter.open()
    reporter.notify_of_added_event(event())
    reporter.flush()
    reporter.close()
    assert stored_files([str(tmp_path)]).json == [str(path) for path in tmp_path.iterdir()]


def test_applications_of_other_scripts_keep_their_own_files(tmp_path: Path) -> None:
    """The oldest of each are removed, and not those of another."""
    for name in ("日本", "中国", "🚀", "🛰"):
        for app_id in ("app-1", "app-2", "app-3"):
            reporter = FileLogEventReporterFactory().create(
                config(tmp_path, app_id, name=name, retention__max_files="2")
            )
            reporter.open()
            reporter.notify_of_added_event(event())
            reporter.flush()
            reporter.close()
    assert len(list(tmp_path.iterdir())) == 8


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said of which file, and nothing of it stays."""

    def no_lock(fd: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("spark_events_file_log.files.fcntl.flock", no_lock)
    with pytest.raises(ConfigError, match=r"events\.000001\.jsonl .*it cannot be locked: Function not impl"):
        opened(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_files_that_begin_at_the_same_time(tmp_path: Path) -> None:
    """As of two processes that replay one log, or of short applications with one name."""
    begun = Barrier(4)

    def begin(_: int) -> set[Path]:
        files = [
            RotatedFile(tmp_path, ApplicationInfo("shop", f"app-{n % 2}"), "events", _KEEPS_ALL)
            for n in range(50)
        ]
        begun.wait()
        for file in files:
            file.open()
        paths = {file.path for file in files}
        for file in files:
            file.close()
        return paths

    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(begin, range(4)))
    assert len(set().union(*paths)) == sum(map(len, paths)) == 200


_KEEPS_ALL = Rotation(1 << 20, None, 1_000)
