"""``spark-events replay`` as its users call it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pyspark
import pytest
import zstandard

from tests.support.applications import on_a_terminal
from tests.support.collector import Collector
from tests.support.event_log_reading import read_bytes
from tests.support.event_log_sample import SampleLog, small_log
from tests.support.file_log import file_events
from tests.support.forked_commands import run_forked
from tests.support.paths import REPO
from tests.support.waiting import free_port, wait_until

FILE = "spark.events.reporter.file."


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_forked("replay", *arguments, env={**os.environ, "PYTHONPATH": str(REPO), **environment})


def conf(**keys: str) -> list[str]:
    found = {f"spark.events.{key.replace('__', '.').replace('_', '-')}": value for key, value in keys.items()}
    return [part for key, value in found.items() for part in ("--conf", f"{key}={value}")]


def to_file(folder: Path) -> list[str]:
    return conf(reporter__file__factory__class="file_log", reporter__file__path=str(folder))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Three logs, one of them cut and with rubbish in it, and a file that is none."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "app-1").write_bytes(small_log())
    other = [*SampleLog("app-2").begin(), *SampleLog("app-2").job(5)]
    (folder / "app-2.inprogress").write_bytes(b"".join(other)[:-200])
    (folder / "app-3").write_bytes(
        b"\x00\x01\x02\n" + b"".join([*SampleLog("app-3").begin(), *SampleLog("app-3").end()])
    )
    (folder / "README.md").write_text("# Logs\nThese are logs.\n")
    return folder


def test_summary_and_notes(logs: Path, tmp_path: Path) -> None:
    """What was read and sent, what was skipped and why, and which log has no end."""
    done = run(str(logs), *to_file(tmp_path / "out"))

    assert done.returncode == 0, done.stderr
    assert "3 applications in 3 event logs, Spark 4.3.0" in done.stdout
    sent = len(file_events(tmp_path / "out"))
    assert f"event reporter 'file': {sent} sent" in done.stdout
    assert re.search(
        r"skipped 2 records:\s+1 cut off at the end of a file\s+1 not JSON in UTF-8", done.stdout
    )
    assert "app-2.inprogress: it has no SparkListenerApplicationEnd record: it still runs" in done.stdout
    assert "or it died; its last record is of 2026-11-18T11:" in done.stdout
    assert "README.md: not an event log" in done.stdout
    failed = "failed 2026-11-18T11:06:42Z app-20261118120000-0001 query 'orders' failed:"
    assert f"{failed} RuntimeException: boom\n" in done.stdout


def test_without_a_reporter(logs: Path) -> None:
    """A look at logs needs no configuration; what a replay has no use for is said."""
    done = run(str(logs / "app-1"), "--conf", "spark.metrics.reporter.p.factory.class=prometheus")
    assert done.returncode == 0
    assert "metric reporters are left out (p)" in done.stderr
    assert "nothing is sent" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["/nowhere"], 4, "/nowhere: no such file or folder"),
        (
            ["{logs}", "--conf", "spark.events.reporter.x.factory.class=nope"],
            3,
            "unknown event reporter 'nope'",
        ),
        (
            ["{logs}", "--conf", FILE + "factory.class=file_log", "--conf", FILE + "path=/proc/x"],
            3,
            FILE + "path",
        ),
        (["{logs}/README.md"], 4, "no event log at"),
        (["{logs}", "--on-spark"], 2, "--on-spark and --output need each other"),
        (["{logs}", "--conf", "spark.events.event-log.stall-timeout=x"], 3, "event-log.stall-timeout"),
    ],
)
def test_what_is_wrong(logs: Path, arguments: list[str], code: int, said: str) -> None:
    done = run(*(argument.format(logs=logs) for argument in arguments))
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_log_that_cannot_be_read_to_its_end(logs: Path) -> None:
    """The other logs are reported, what came before is as well, and the exit code tells."""
    broken = logs / "eventlog_v2_app-9"
    broken.mkdir()
    (broken / "events_1_app-9").write_bytes(zstandard.compress(small_log()) + b"\0" * 100)
    done = run(str(logs))
    assert done.returncode == 1
    assert "3 applications in 4 event logs" in done.stdout
    assert "events_1_app-9: cannot be read from about byte" in done.stdout


def test_a_log_without_one_of_its_parts(tmp_path: Path) -> None:
    """What is there is reported, and the exit code tells."""
    lines = small_log().splitlines(keepends=True)
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for name, part in (("events_1_app-1", lines[:4]), ("events_3_app-1", lines[-4:])):
        (folder / name).write_bytes(b"".join(part))
    done = run(str(folder))
    assert done.returncode == 1
    assert "1 application in 1 event log" in done.stdout
    assert "eventlog_v2_app-1: its part 2 is missing" in done.stdout


def test_records_that_cannot_be_processed(tmp_path: Path) -> None:
    """The others are reported, and the exit code tells that something is missing."""
    lines = small_log().splitlines(keepends=True)
    (job,) = (line for line in lines if b"SparkListenerJobEnd" in line)
    beyond = re.sub(rb'"Completion Time":\d+', b'"Completion Time":253402300827557', job)
    assert beyond != job
    (tmp_path / "app-1").write_bytes(b"".join(lines).replace(job, beyond))
    done = run(str(tmp_path / "app-1"))

    assert done.returncode == 1
    assert "1 a record that a listener could not process" in done.stdout
    assert "1 application in 1 event log" in done.stdout


@pytest.mark.extended
@pytest.mark.spark
def test_an_application_without_python(tmp_path: Path, java: str) -> None:
    """Spark's SQL shell: nothing of ours is in its process."""
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": tmp_path.as_uri(),
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    statements = "SELECT count(*) FROM range(100); SELECT raise_error('no customer')"
    shell = subprocess.run(
        [str(home / "bin" / "spark-sql"), *options, "-e", statements],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert shell.returncode != 0  # Spark 4 ends with it at the error
    done = run(str(tmp_path / "[el]*"))
    assert done.returncode == 0, done.stderr
    assert "1 application in 1 event log, Spark " in done.stdout
    assert re.search(r"failed \S+ local-\d+ job \d+ failed: SparkRuntimeException: no customer", done.stdout)


@pytest.mark.collector
def test_to_the_real_collector(own_collector: Callable[..., Collector], tmp_path: Path) -> None:
    """All ids arrive; again, and they are the same."""
    collector = own_collector()
    collector.start()
    (tmp_path / "app-1").write_bytes(small_log())
    to = conf(reporter__otlp__factory__class="otlp", reporter__otlp__exporter__endpoint=collector.grpc)
    whole = read_bytes(small_log(), tmp_path).ids
    for times in (1, 2):
        done = run(str(tmp_path / "app-1"), *to)
        assert done.returncode == 0, done.stderr
        assert f"event reporter 'otlp': {len(whole)} sent" in done.stdout
        wait_until(lambda times=times: len(collector.ids()) == times * len(whole), "all have arrived")
    assert set(collector.ids()) == set(whole)


def test_while_the_destination_is_away(tmp_path: Path) -> None:
    """It waits, and gives up in the end; with a journal nothing is lost, and that is said."""
    (tmp_path / "app-1").write_bytes(small_log())
    to = conf(
        reporter__otlp__factory__class="otlp",
        reporter__otlp__exporter__endpoint=f"http://127.0.0.1:{free_port()}",
        event_log__stall_timeout="1s",
        close__timeout="1s",
    )
    done = run(str(tmp_path / "app-1"), *to)
    assert done.returncode == 1
    assert "event reporter 'otlp': accepted nothing for 1 s; undelivered: 15" in done.stderr
    assert "lost event reporter 'otlp': 15 items lost" in done.stdout

    journal = conf(reporter__otlp__journal__dir=str(tmp_path / "journal"))
    done = run(str(tmp_path / "app-1"), *to, *journal)
    assert done.returncode == 1
    assert "0 sent, 15 waiting in its journal" in done.stdout


def test_nothing_is_lost_to_a_full_queue(tmp_path: Path) -> None:
    """A replay is faster than most reporters: it waits for room."""
    log = SampleLog()
    lines = [*log.begin()]
    for _ in range(300):
        lines += log.job(1)
    (tmp_path / "app-1").write_bytes(b"".join([*lines, *log.end()]))
    slow = conf(
        reporter__x__factory__class="tests.support.plugins:SlowFactory", reporter__x__queue__max_items="600"
    )
    done = run(str(tmp_path / "app-1"), *slow)
    assert done.returncode == 0, done.stdout
    assert f"event reporter 'x': {300 * 4 + 4:,} sent" in done.stdout


def test_restarts_are_not_counted_twice(tmp_path: Path) -> None:
    """``spark.events.state.dir`` is for drivers: a second replay tells what the first did."""
    (tmp_path / "app-1").write_bytes(small_log())
    state = conf(state__dir=str(tmp_path / "state"))
    for name in ("one", "two"):
        assert run(str(tmp_path / "app-1"), *state, *to_file(tmp_path / name)).returncode == 0
    one, two = ([event["eventId"] for event in file_events(tmp_path / name)] for name in ("one", "two"))
    assert one == two


def test_ctrl_c(tmp_path: Path) -> None:
    """What was read so far is delivered or said to be lost; no traceback."""
    log = SampleLog()
    with (tmp_path / "app-1").open("wb") as file:
        file.writelines(log.begin())
        for _ in range(5_000):
            file.writelines(log.job(1, stages=1))
    slow = conf(
        reporter__slow__factory__class="tests.support.plugins:SlowFactory",
        reporter__slow__queue__max_items="600",
    )
    process = subprocess.Popen(
        on_a_terminal("replay", str(tmp_path / "app-1"), *to_file(tmp_path / "out"), *slow),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )
    wait_until(lambda: file_events(tmp_path / "out"), "it has begun")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=280)
    assert process.returncode == 130
    assert "interrupted; run it again" in err
    assert "1 application in 1 event log" in out
    assert "Traceback" not in err


# -- on Spark -----------------------------------------------------------------------------------------------


def rows_of(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Read what was written, without Spark."""
    if kind == "parquet":
        rows = pyarrow.parquet.read_table(folder, partitioning="hive").to_pylist()
        return [{**row, "attributes": dict(row["attributes"])} for row in rows]
    return [json.loads(line) for path in folder.rglob("*.json") for line in path.read_text().splitlines()]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "master"),
    [
        pytest.param("parquet", "local-cluster[2,1,1024]", marks=pytest.mark.thorough),
        pytest.param("json", "local[2]", marks=pytest.mark.extended),
    ],
)
def test_on_spark(logs: Path, tmp_path: Path, java: str, kind: str, master: str) -> None:
    """One task a log: the rows are the events of a replay on this machine, in partitions by date."""
    (logs / "README.md").unlink()
    out = tmp_path / "written"
    done = run(str(logs), "--on-spark", "--output", str(out), "--format", kind, "--master", master)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "3 applications in 3 event logs, Spark 4.3.0" in done.stdout
    assert "skipped 2 records" in done.stdout

    assert run(str(logs), *to_file(tmp_path / "local")).returncode == 0
    expected = {event["eventId"]: event for event in file_events(tmp_path / "local")}
    rows = {row["eventId"]: row for row in rows_of(out, kind)}
    assert rows.keys() == expected.keys()
    for event_id, row in rows.items():
        event = expected[event_id]
        assert row["eventName"] == event["eventName"]
        assert row["body"] == event["body"]
        assert row["appId"] == event["attributes"]["app_id"]
        assert row["attributes"] == {key: text(value) for key, value in event["attributes"].items()}
    assert {path.name.split("=")[0] for path in out.iterdir() if path.is_dir()} == {"date"}

    if kind == "json":
        return
    again = run(str(logs), "--on-spark", "--output", str(out), "--format", kind, "--master", master)
    assert again.returncode == 3
    assert "--mode overwrite" in again.stderr
    assert "Traceback" not in again.stderr


@pytest.mark.extended
@pytest.mark.spark
def test_executors_without_the_package(logs: Path, tmp_path: Path, java: str) -> None:
    """One sentence says what is missing there, and what to do."""
    bare = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    done = run(str(logs), "--on-spark", "--output", str(tmp_path / "out"), PYSPARK_PYTHON=str(bare))
    assert done.returncode == 3, done.stderr[-2000:]
    assert "the executors' Python has no " in done.stderr
    assert "spark.archives" in done.stderr


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
