"""``spark-events why``: of event logs and of stored events, on a terminal, as a page and as JSON."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from spark_events.why.found_issue import issue_of
from spark_events.why.reading.stored_spans import Skipped, application_spans
from tests.support.browser import browser
from tests.support.event_log_sample import SampleLog, line
from tests.support.forked_commands import run_forked
from tests.support.history_story import HOUR, Story, write
from tests.support.slow_log import MARKUP, loop_log, slow_log


def why(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "", "COLUMNS": "100", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return run_forked("why", *options, cwd=folder, env=environment)


def replay(folder: Path, log: str, into: str, kind: str = "events") -> None:
    """Replay a log into files of a folder."""
    reporter = f"spark.{kind}.reporter.f"
    conf = ("--conf", f"{reporter}.factory.class=file_log", "--conf", f"{reporter}.path={into}")
    run_forked("replay", log, *conf, cwd=folder, check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("why")
    (folder / "app-1").write_bytes(slow_log())
    return folder


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    """Without Java: its ``PATH`` is empty."""
    done = why(folder, "app-1", "--html", "page.html", "--json", "why.json")
    assert done.returncode == 0, done.stderr
    return done


def test_on_a_terminal(done: subprocess.CompletedProcess[str]) -> None:
    assert "sample app-20261118120000-0001: 2 min 20 s from" in done.stdout
    assert "driver alone" in done.stdout
    assert f"the {MARKUP} (stage 0.0)" in done.stdout
    assert "1 min 20 s" in done.stdout
    assert (
        "A model: more than its 4 cores would not make this run faster, with the tasks that it has; with 2"
        in done.stdout
    )


def test_no_word_is_cut_on_a_terminal_of_80_columns(folder: Path) -> None:
    environment = {"PATH": "", "COLUMNS": "80", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = run_forked("why", "app-1", cwd=folder, env=environment)

    assert "reading, computing and writing" in done.stdout
    assert "…" not in done.stdout


def test_as_json(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    (explained,) = json.loads((folder / "why.json").read_text())["applications"]
    issue, other = explained["issues"]

    assert other["issue"] == "idle-cores"
    assert explained["ended_ms"] - explained["begun_ms"] == sum(explained["parts"].values()) == 140_000
    assert explained["parts"]["driver alone"] + explained["parts"]["driver within a query"] == 50_000
    assert sum(explained["core_ms"].values()) == 4 * 140_000
    assert explained["critical_path_ms"] == 50_000 + 90_000
    assert (issue["issue"], issue["severity"]) == ("straggler", "WARN")
    assert issue["lost_ms"] == 79_888
    assert issue["evidence"]["task.runTimeMs"] == 90_000


def test_of_stored_events(folder: Path) -> None:
    """Those of a replay have the same issue; only what costs 30 s or more is stored."""
    replay(folder, "app-1", "stored")
    done = why(folder, "stored", "--json", "stored.json")
    of_log = why(folder, "app-1", "--json", "log.json", "--conf", "spark.events.issue.min-duration=30s")
    (stored,), (logged,) = (
        json.loads((folder / name).read_text())["applications"] for name in ("stored.json", "log.json")
    )

    assert (done.returncode, of_log.returncode) == (0, 0), done.stderr
    assert stored["parts"] is None
    for name in ("begun_ms", "ended_ms", "ended"):
        assert stored[name] == logged[name]
    assert "2 min 20 s from" in done.stdout
    (mine,), (theirs,) = stored["issues"], logged["issues"]
    for name in ("issue", "about", "sentence", "advice", "lost_ms", "lost_bytes"):
        assert mine[name] == theirs[name]


def test_of_stored_spans(folder: Path) -> None:
    """They say where the time went, as the log does; without an issue, too, and whoever wrote them."""
    replay(folder, "app-1", "spans", "traces")
    (spans,) = (folder / "spans").glob("*.spans.*")
    exported = folder / "exported"
    exported.mkdir()
    (exported / "traces.json").write_text(
        "".join(f"{json.dumps(otlp_request(json.loads(line)))}\n" for line in spans.read_text().splitlines())
    )
    (exported / "half.json").write_text('{"resourceSpans":[{"timeUseMs.driver')
    (exported / "odd.json").write_text(
        '["timeUseMs.driver"]\n{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"timeUseMs.x"}]}]}]}]}\n'
    )
    shutil.copytree(folder / "stored", folder / "both")
    shutil.copy(spans, folder / "both")
    assert why(folder, "app-1", "--json", "log.json").returncode == 0
    (logged,) = json.loads((folder / "log.json").read_text())["applications"]

    for stored, issues, code in (("both", 1, 0), ("exported", 0, 1)):
        done = why(folder, stored, "--json", "stored.json")
        assert done.returncode == code, done.stderr
        assert ("2 skipped: lines that are not JSON" in done.stderr) == (code == 1)
        (explained,) = json.loads((folder / "stored.json").read_text())["applications"]
        assert len(explained["issues"]) == issues
        for name in ("app_name", "app_id", "begun_ms", "ended_ms", "parts", "critical_path_ms", "estimates"):
            assert explained[name] == logged[name], name


def test_a_stored_line_that_cannot_be_read(folder: Path) -> None:
    """Such as one with a byte-order mark before it: an issue may be missing, and that is said."""
    replay(folder, "app-1", "marked")
    (file,) = (folder / "marked").iterdir()
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(b"\xef\xbb\xbf" * (b"PerformanceIssue" in line) + line for line in lines))
    done = why(folder, "marked", "--json", "marked.json")

    (explained,) = json.loads((folder / "marked.json").read_text())["applications"]
    assert explained["issues"] == []
    assert done.returncode == 1
    assert "1 skipped: lines that are not JSON, or not events (one is in" in done.stderr


STATUS = {
    "eventName": "JobStatusChangeEvent",
    "eventId": "1",
    "timeUnixNano": "1764081000000000000",
    "attributes": {"app_name": "a", "app_id": "a-1", "job_kind": "application", "newJobStatus": "RUNNING"},
}
_PACKED = zstandard.compress(json.dumps(STATUS).encode() * 100)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.events.000001.jsonl.gz", gzip.compress(json.dumps(STATUS).encode() + b"\n")[:-9]),
        ("b.events.000001.jsonl.zst", _PACKED[:-9]),
        ("b.events.000001.jsonl.zst", _PACKED[:30] + bytes(30) + _PACKED[60:]),
        ("b.spans.000001.jsonl.zst", _PACKED[:-9]),
        ("b.spans.000001.jsonl.zst", _PACKED[:30] + bytes(30) + _PACKED[60:]),
        ("b.parquet", b""),
    ],
    ids=["gzip", "cut", "torn", "cut spans", "torn spans", "parquet"],
)
def test_stored_files_that_are_damaged(tmp_path: Path, name: str, content: bytes) -> None:
    """The others are explained, and it is said that there was one."""
    (tmp_path / "a.events.000001.jsonl").write_text(json.dumps(STATUS) + "\n")
    (tmp_path / name).write_bytes(content)
    done = why(tmp_path, ".", "--json", "why.json")

    assert done.returncode == 1, done.stderr[-2_000:]
    assert "1 skipped: files that cannot be read to their end (one is" in done.stderr
    assert name in done.stderr
    (explained,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    assert explained["app_name"] == "a"


def test_stored_lines_that_are_odd(tmp_path: Path) -> None:
    """Of an attribute that is there twice, the first counts; very long lines are read, or skipped."""
    twice = json.dumps(STATUS).replace('"app_name": "a"', '"app_name": "a", "app_name": "b"')
    long = json.dumps({**STATUS, "eventId": "2", "body": "x" * (33 << 20)})
    (tmp_path / "a.events.000001.jsonl").write_text(f"{twice}\n{long}\n")
    done = why(tmp_path, ".", "--json", "why.json")

    (explained,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    assert explained["app_name"] == "a"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("attributes", [None, 5, [], "x"])
def test_stored_events_whose_attributes_are_none(tmp_path: Path, attributes: Any) -> None:
    """They are skipped, and that is said; no application comes of them."""
    good = {"app_name": "a", "app_id": "a-1", "job_kind": "application", "newJobStatus": "RUNNING"}
    with (tmp_path / "a.events.000001.jsonl").open("w") as file:
        for number, given in enumerate((good, attributes, attributes)):
            name = "PerformanceIssueEvent" if number == 2 else "JobStatusChangeEvent"
            event = {"eventName": name, "eventId": str(number), "timeUnixNano": "1764081000000000000"}
            file.write(json.dumps({**event, "attributes": given}) + "\n")
    done = why(tmp_path, ".", "--json", "why.json")

    assert done.returncode == 1, done.stderr[-2_000:]
    assert "2 skipped: lines that are not JSON, or not events (one is in" in done.stderr
    (explained,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    assert explained["app_name"] == "a"


def test_a_span_behind_a_byte_order_mark(tmp_path: Path) -> None:
    """It is read."""
    attributes = {"app_name": "a", "app_id": "1", "timeUseMs.driver": 5}
    span = {"name": "Application", "startTimeUnixNano": 1, "endTimeUnixNano": 9, "attributes": attributes}
    file = tmp_path / "a.spans.000001.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(span).encode() + b"\n")
    assert len(list(application_spans([str(file)], Skipped(Counter(), Counter(), [])))) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"startTimeUnixNano": [1]},
        {"endTimeUnixNano": 1e300},
        {"attributes": {"timeUseMs.driver": "x"}},
        {"attributes": {"timeUseMs.driver": 1, "estimatedCores": [[]], "estimatedMs": [1]}},
        {"attributes": {"timeUseMs.driver": 1, "criticalPathMs": {}}},
        {"attributes": ["timeUseMs.driver"]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [None, "timeUseMs.driver"]}]}]}]},
        {"resourceSpans": ["timeUseMs.driver"]},
    ],
    ids=str,
)
def test_a_stored_span_that_is_not_as_it_was_written(tmp_path: Path, odd: dict[str, Any]) -> None:
    """It costs itself alone, and is counted."""
    attributes = {"app_name": "a", "app_id": "1", "timeUseMs.driver": 5}
    span = {"name": "Application", "startTimeUnixNano": 1, "endTimeUnixNano": 9, "attributes": attributes}
    file = tmp_path / "a.spans.000001.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in (span, {**span, **odd}, span)))
    skipped = Skipped(Counter(), Counter(), [])
    assert [each.parts["driver alone"] for each in application_spans([str(file)], skipped)] == [5, 5]
    assert skipped == ({}, {str(file): 1}, [])


def test_a_line_that_never_ends(tmp_path: Path) -> None:
    """A small archive may have gigabytes of it; memory has a part of it at most."""
    file = tmp_path / "a.spans.000001.jsonl.gz"
    with gzip.open(file, "wb", compresslevel=1) as writer:
        for _ in range(150):
            writer.write(b" " * (1 << 20))
    skipped = Skipped(Counter(), Counter(), [])
    tracemalloc.start()
    assert not list(application_spans([str(file)], skipped))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 << 20
    assert skipped == ({str(file): 1}, {}, [])


@pytest.mark.parametrize("odd", ["", "x", "1" * 5_000, "-1", "NaN", "1e999", [1], None])
def test_a_number_of_a_stored_issue_that_is_none(odd: Any) -> None:
    """It is not known; the issue is told all the same."""
    issue = issue_of({"issue": "skew", "lostMs": odd, "lostBytes": "5"})
    assert (issue.kind, issue.lost_ms, issue.lost_bytes) == ("skew", None, 5)


def otlp_request(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span of a file log as a collector's file exporter writes it."""
    attributes = [{"key": key, "value": otlp_value(value)} for key, value in span["attributes"].items()]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": attributes}]}]}]}


def otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(each) for each in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def test_against_another_run(folder: Path) -> None:
    """What has grown, and what was configured otherwise; values of settings may be secrets."""
    (folder / "before").write_bytes(
        slow_log((10, 10, 10, 10)).replace(
            b'"Spark Properties":{', b'"Spark Properties":{"spark.mine":"s3cret",'
        )
    )
    done = why(folder, "app-1", "--against", "before", "--json", "both.json", "--html", "both.html")
    against = json.loads((folder / "both.json").read_text())["against"]

    assert done.returncode == 0, done.stderr
    assert against["figures"]["all"] == [60_000, 140_000]
    assert against["figures"]["run time of tasks"] == [40_000, 120_000]
    assert against["figures"]["tasks"] == [4, 4]
    assert against["settings"] == ["spark.mine"]
    assert "2.33 times" in done.stdout
    for shown in (done.stdout, (folder / "both.html").read_text()):
        assert "spark.mine" in shown
        assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (4, ("nowhere",), "nowhere: no such file or folder"),
        (4, ("bare",), "no event log at bare"),
        (4, ("app-1", "--app", "other"), "no application named other at app-1"),
        (2, ("app-1", "app-1", "--against", "app-1"), "--against compares one run with one other; at app-1"),
        (
            2,
            ("app-1", "--html", "no/page.html"),
            "--html no/page.html: cannot be written; give a file in a folder that exists",
        ),
        (
            3,
            ("app-1", "--conf", "spark.events.issue.min-ratio=2"),
            "spark.events.issue.min-ratio: '2' is not valid",
        ),
    ],
)
def test_what_is_wrong(folder: Path, code: int, options: tuple[str, ...], message: str) -> None:
    (folder / "bare").mkdir(exist_ok=True)
    done = why(folder, *options)
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())


def test_a_log_that_is_cut_off(folder: Path) -> None:
    """What there is is shown, and that something is missing is said."""
    (folder / "cut").write_bytes(slow_log()[:-50])
    done = why(folder, "cut")

    assert done.returncode == 1
    assert "so far: no end of it is known" in done.stdout
    assert "cut off at the end of a file" in done.stderr
    assert "straggler" in done.stdout


@pytest.mark.parametrize("what", ["pipe", "."])
def test_a_pipe_is_not_waited_for(tmp_path: Path, what: str) -> None:
    """Alone, or among logs: nobody may ever write to it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sample").write_bytes(slow_log())
    done = why(tmp_path, what)

    assert "driver alone" in done.stdout if what == "." else "no event log at pipe" in done.stderr


def test_a_file_that_is_no_log(folder: Path) -> None:
    """It says what is wrong with it, not only that nothing is in it."""
    (folder / "picture").write_bytes(b"\x89PNG\n\xff\n")
    done = why(folder, "picture")
    assert done.returncode == 4
    assert "it has no SparkListenerApplicationStart record" in done.stderr
    assert "2 lines skipped: not JSON in UTF-8" in done.stderr


def test_a_damaged_record(folder: Path) -> None:
    """It is counted, once, and the rest is shown."""
    damaged = slow_log().replace(b'"Stage Info":{"Stage ID":0,', b'"Stage Info":{"Stage ID":"?",', 1)
    assert damaged != slow_log()
    (folder / "damaged").write_bytes(damaged)
    done = why(folder, "damaged")

    assert done.returncode == 1
    assert "1 line skipped" in " ".join(done.stderr.split())
    assert "Where the time went" in done.stdout


@pytest.fixture(scope="module")
def page(done: subprocess.CompletedProcess[str], folder: Path) -> Iterator[Any]:
    with browser() as open_page:
        yield open_page(folder / "page.html")


def test_the_page(page: Any) -> None:
    """What a person reads off it; a bar is as wide as its share; nothing is fetched or taken as markup."""
    bars, tracks = page.locator(".bar"), page.locator(".track")
    widths = [
        bars.nth(number).bounding_box()["width"] / tracks.nth(number).bounding_box()["width"]
        for number in range(bars.count())
    ]

    assert page.inner_text(".about") == f"the {MARKUP} (stage 0.0)"
    assert page.inner_text(".cost") == "1 min 20 s"
    assert page.inner_text(".share") == "57 % of the run"
    assert page.inner_text(".severity") in ("severe", "warning", "note")
    assert page.inner_text("h1").startswith("Why was ")
    stacked = page.locator(".stack div")
    assert stacked.count() == bars.count()
    assert page.locator(".stack").bounding_box()["width"] == pytest.approx(
        sum(stacked.nth(number).bounding_box()["width"] for number in range(stacked.count())), abs=3
    )
    assert page.locator(".about b").count() == page.locator("script").count() == 0
    assert page.complaints == []
    assert page.locator(".part").all_inner_texts()[0] == "20.0 s"
    assert sum(widths) == pytest.approx(1, abs=0.01)
    assert widths[:2] == pytest.approx([20 / 140, 30 / 140], abs=0.01)
    assert page.inner_text(".answer").startswith(
        "It would take 1 min instead of 2 min 20 s without the late task"
    )


def failed(job: Iterator[bytes], why: str, **properties: str) -> Iterator[bytes]:
    """Yield the records of a job that ends so."""
    for text in job:
        record = json.loads(text)
        if record["Event"] == "SparkListenerJobEnd":
            exception = {"Message": why, "Stack Trace": []}
            record["Job Result"] = {"Result": "JobFailed", "Exception": exception}
        if record["Event"] == "SparkListenerJobStart":
            record["Properties"] |= properties
        yield line(record)


def test_what_failed_is_said_first(tmp_path: Path) -> None:
    """A run that failed did not do all its work, so how long it took is half of the answer."""
    log = SampleLog(cores=4)
    jobs = [*failed(log.job(4), "no such table"), *log.job(4), *failed(log.job(4), "no price")]
    (tmp_path / "failed").write_bytes(b"".join([*log.begin(), *jobs, *log.end()]))
    done = why(tmp_path, "failed", "--html", "page.html", "--json", "why.json")

    assert done.returncode == 0, done.stderr
    assert "2 failures, the last: job 2 failed: no price" in done.stdout
    (explained,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    assert explained["failures"] == ["job 0 failed: no such table", "job 2 failed: no price"]
    assert '<p class="failed">2 failures, the last: job 2' in (tmp_path / "page.html").read_text()

    replay(tmp_path, "failed", "stored")
    stored = why(tmp_path, "stored")
    assert "2 failures, the last: job 2 failed: no price" in stored.stdout, stored.stderr


def test_a_job_that_was_canceled(tmp_path: Path) -> None:
    """The application was stopped while it ran: that is no failure."""
    log = SampleLog(cores=4)
    job = failed(log.job(4), "Job 0 cancelled because SparkContext was shut down")
    (tmp_path / "canceled").write_bytes(b"".join([*log.begin(), *job, *log.end()]))
    replay(tmp_path, "canceled", "stored")

    for path in ("canceled", "stored"):
        done = why(tmp_path, path, "--json", "why.json")
        assert done.returncode == 0, done.stderr
        assert "CANCELED" not in done.stdout
        assert json.loads((tmp_path / "why.json").read_text())["applications"][0]["failures"] == []


def test_a_failure_that_is_told_twice_counts_once(tmp_path: Path) -> None:
    """As in a report: that of the job is that of its application; a copy of an event is no other one."""
    story = Story("nightly").application(0, "RUNNING")
    thrown = {"exception.type": "ValueError", "exception.message": "no price"}
    story.event(HOUR, "JobFailureEvent", job_kind="job", job_id="3", **thrown)
    story.event(HOUR + 60, "JobFailureEvent", job_kind="application", **thrown)
    write(tmp_path / "events" / "one", story)
    write(tmp_path / "events" / "another", story)
    assert why(tmp_path, "events", "--json", "why.json").returncode == 0

    (explained,) = json.loads((tmp_path / "why.json").read_text())["applications"]
    assert explained["failures"] == ["application 'nightly' failed: ValueError: no price"]


def test_an_application_without_an_issue(folder: Path) -> None:
    """Of its log and of its stored events: how long it ran, and from when on something is an issue."""
    (folder / "quick").write_bytes(slow_log((10, 10, 10, 10)))
    replay(folder, "quick", "of-quick")
    of_log = why(folder, "quick", "--conf", "spark.events.issue.min-duration=12s")
    stored = why(folder, "of-quick", "--app", "sample")

    assert (of_log.returncode, stored.returncode) == (0, 0), stored.stderr
    assert "1 min from" in stored.stdout
    assert "no cause known to spark-events cost 12.0 s or more; tasks had a CPU for " in of_log.stdout
    assert "; for smaller ones: --conf" in of_log.stdout
    assert "no performance issue found in the stored events\n" in stored.stdout
    assert "are not stored" not in of_log.stdout


def test_core_time_that_is_not_known(event_logs: Path, tmp_path: Path) -> None:
    """A log of Spark 1 may have no executors: that is not no core time."""
    done = why(tmp_path, str(event_logs / "local-1422981780767"), "--json", "why.json")
    assert "reading, computing and writing" in done.stdout
    assert "core time" not in done.stdout
    assert '"core_ms": null' in (tmp_path / "why.json").read_text()


def test_what_stored_events_do_not_say_is_told_once(tmp_path: Path) -> None:
    stories = [Story(name, name).application(0, "RUNNING") for name in ("nightly", "weekly")]
    write(tmp_path / "events", *stories)
    done = why(tmp_path, "events", "--html", "page.html")

    for said in (" ".join(done.stdout.split()), (tmp_path / "page.html").read_text()):
        assert said.count("spark.events.issue.min-duration (30 s by default), and those of idle cores") == 1
        assert said.count("log (spark.eventLog.enabled), which why reads, or in stored spans") == 1
        assert said.count("spark.traces.reporter.file.factory.class=file_log") == 1


def test_the_model_says_what_it_leaves_out(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert "without the pauses between tasks" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("tasks_s", "conf", "found"),
    [
        ((2, 2, 2, 22), (), {"straggler", "idle-cores"}),
        ((2, 2, 2, 22), ("--conf", "spark.events.issue.min-duration=30s"), set()),
        ((2, 2, 2, 4), (), {"idle-cores"}),  # 5 % of the run are more than the late task costs
        ((600, 600, 600, 600), (), set()),  # longer than ten minutes, 50 s of them without a job
    ],
)
def test_a_short_run_is_looked_at_more_closely(
    folder: Path, tasks_s: tuple[int, ...], conf: tuple[str, ...], found: set[str]
) -> None:
    (folder / "short").write_bytes(slow_log(tasks_s))

    done = why(folder, "short", "--json", "-", *conf)

    (explained,) = json.loads(done.stdout)["applications"]
    assert {issue["issue"] for issue in explained["issues"]} == found


@pytest.mark.parametrize(("turns", "turn_ms"), [(15, 800), (40, 400), (400, 800)])
def test_turns_of_a_loop_that_lose_little_each_are_added_up(folder: Path, turns: int, turn_ms: int) -> None:
    """One task in each, for two cores: half of the loop's time could be had."""
    (folder / "loop").write_bytes(loop_log(turns, turn_ms))

    done = why(folder, "loop", "--json", "-")

    (explained,) = json.loads(done.stdout)["applications"]
    (few,) = [issue for issue in explained["issues"] if issue["issue"] == "task-count"]
    assert few["about"] == f"{turns} stages (sum at app.py:7)"
    assert few["lost_ms"] == pytest.approx(turns * turn_ms / 2, rel=0.05)


@pytest.mark.parametrize("command", ["why", "report", "status"])
def test_an_install_without_extras(tmp_path: Path, command: str) -> None:
    """It names the extra, without a traceback."""
    write(tmp_path / "events", Story("nightly").application(0, "RUNNING"))
    code = (
        "import sys; sys.modules['fsspec'] = None; "
        f"sys.argv = ['spark-events', '{command}', 'events']; from spark_events.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert re.search(r"pip install 'spark-events\[.*report\]'\n", done.stderr)
    assert "Traceback" not in done.stderr


def test_stored_events_need_no_reader_of_logs(tmp_path: Path) -> None:
    """A driver's light install, which has the extra ``report`` alone, asks why of its events."""
    story = Story("nightly").application(0, "RUNNING").application(HOUR, "FAILED")
    write(tmp_path / "events", story)
    code = (
        "import sys; sys.modules['cramjam'] = sys.modules['zstandard'] = None; "
        "sys.argv = ['spark-events', 'why', 'events']; from spark_events.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "nightly" in done.stdout
