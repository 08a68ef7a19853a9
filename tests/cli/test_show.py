"""``spark-events show``: stored events as people read them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spark_events.history.reading.event_lines import EventLines
from tests.support.applications import cli
from tests.support.forked_commands import run_forked
from tests.support.paths import REPO

AT_NS = 1_764_081_000_000_000_000  # 2025-11-25 14:30:00


def event(after_s: int, body: str, **of: Any) -> dict[str, Any]:
    attributes = {"app_name": "shop", "app_id": "app-1", **of.pop("attributes", {})}
    return {
        "eventName": "JobStatusChangeEvent",
        "eventId": f"{after_s}",
        "timeUnixNano": str(AT_NS + after_s * 1_000_000_000),
        "severityText": "INFO",
        "body": body,
        "attributes": attributes,
        **of,
    }


def write(path: Path, *events: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in events)


def show(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_forked("show", *map(str, arguments), cwd=REPO)


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape", "latin-1"])
def test_an_output_that_lacks_characters(tmp_path: Path, encoding: str) -> None:
    """The lines have question marks, but what a program reads says the same."""
    write(tmp_path / "a.events.000001.jsonl", event(1, "gr\u00fcn \u2192 \U0001f600"))
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    texts = [
        subprocess.run(
            cli("show", str(tmp_path), *form), cwd=REPO, capture_output=True, env=environment, check=True
        )
        for form in ([], ["--json"])
    ]

    assert b"n ? ?" in texts[0].stdout
    assert json.loads(texts[1].stdout)["body"] == "gr\u00fcn \u2192 \U0001f600"


def test_a_failure_is_shown_once(tmp_path: Path) -> None:
    """The change of status that goes with it says nothing more; asked for by its name, it is there."""
    of_job = {"attributes": {"job_kind": "job", "job_id": "2", "newJobStatus": "FAILED"}}
    of_next = {"attributes": {**of_job["attributes"], "job_id": "3"}}
    failed = event(1, "job 2 failed: no price", eventName="JobFailureEvent", **of_job)
    started = event(3, "stage 0.0: ALL_RUNNING_OR_FINISHED", eventName="AllSubtasksStatusChangeEvent")
    ceased = event(3, "stage 2.0: NOT_ALL_RUNNING_OR_FINISHED", eventName="AllSubtasksStatusChangeEvent")
    again = event(4, "job 2 RUNNING -> FAILED", **of_job)  # of which no failure tells
    write(
        tmp_path / "a.events.000001.jsonl",
        failed,
        event(2, "job 2 RUNNING -> FAILED", **of_job),
        started,
        ceased,
        again,
        event(6, "job 3 RUNNING -> FAILED", **of_next),
        event(6, "job 3 failed: no rate", eventName="JobFailureEvent", **of_next),
    )
    bodies = [line.split(" INFO  ")[1].split("  ")[0] for line in show(tmp_path).stdout.splitlines()]

    assert bodies == [
        "job 2 failed: no price",
        "stage 0.0: all tasks have started",
        "stage 2.0: not all tasks have started",
        "job 2 RUNNING -> FAILED",
        "job 3 failed: no rate",
    ]
    assert show(tmp_path, "--name", "JobStatusChangeEvent").stdout.count("-> FAILED") == 3


def test_the_place_in_the_users_code(tmp_path: Path) -> None:
    """A failure's is at the end of its line, as in a report; one that the line has already is not repeated."""
    place = {"code.file.path": "/jobs/shop.py", "code.line.number": 12, "code.function.name": "price_of"}
    of_module = {**place, "code.function.name": None}
    failed = {"eventName": "JobFailureEvent", "attributes": place}
    write(
        tmp_path / "a.events.000001.jsonl",
        event(1, "job 2 failed: KeyError: 'price'\nTraceback", **failed),
        event(2, "unnamed (shop.py:12) failed: no price", **{**failed, "attributes": place}),
        event(3, "job 3 failed: no price", **{**failed, "attributes": of_module}),
    )

    assert [line.split(" INFO  ")[1] for line in show(tmp_path).stdout.splitlines()] == [
        "job 2 failed: KeyError: 'price' (/jobs/shop.py:12, in price_of)  (shop)",
        "unnamed (shop.py:12) failed: no price  (shop)",
        "job 3 failed: no price (/jobs/shop.py:12)  (shop)",
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    failed = event(
        20,
        "query 'orders' failed: ValueError: [x]\nTraceback",
        eventName="JobFailureEvent",
        severityText="ERROR",
        attributes={"query_name": "orders"},
    )
    write(tmp_path / "shop__app-1.events.000001.jsonl", event(0, "application shop runs"), failed)
    other = {"app_name": "nightly", "app_id": "app-2"}
    write(tmp_path / "nightly__app-2.events.000001.jsonl", event(10, "job ran", attributes=other))
    write(tmp_path / "shop__app-1.spans.000001.jsonl", {"traceId": "1", "name": "a span"})
    return tmp_path


def test_all_by_time(folder: Path) -> None:
    done = show(folder)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2025-11-25 14:30:00Z INFO  application shop runs  (shop)",
        "2025-11-25 14:30:10Z INFO  job ran  (nightly)",
        "2025-11-25 14:30:20Z ERROR query 'orders' failed: ValueError: [x]  (shop)",
    ]


def test_what_was_due_before_it_was_written(tmp_path: Path) -> None:
    """A commit that does not come is told of after it was due, when later things may have happened."""
    overdue = event(5, "no commit", eventName="CheckpointOverdueEvent", severityText="WARN")
    write(tmp_path / "a.events.000001.jsonl", event(1, "began"), event(7, "failed"), overdue)
    write(tmp_path / "b.events.000001.jsonl", event(4, "other"), event(6, "other ends"))
    bodies = [line[27:].rsplit("  (", 1)[0] for line in show(tmp_path).stdout.splitlines()]

    assert bodies == ["began", "other", "no commit", "other ends", "failed"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--app", "nightly"), ["job ran"]),
        (("--app", "app-2"), ["job ran"]),
        (("--query", "orders"), ["query 'orders' failed: ValueError: [x]"]),
        (("--name", "JobStatusChangeEvent", "--app", "shop"), ["application shop runs"]),
        (("--severity", "warn"), ["query 'orders' failed: ValueError: [x]"]),
        (("--severity", "Error", "--app", "shop"), ["query 'orders' failed: ValueError: [x]"]),
        (
            ("--severity", "info"),
            ["application shop runs", "job ran", "query 'orders' failed: ValueError: [x]"],
        ),
    ],
)
def test_some(folder: Path, options: tuple[str, ...], said: list[str]) -> None:
    lines = show(folder, *options).stdout.splitlines()

    assert [line[27:].rsplit("  (", 1)[0] for line in lines] == said


def test_as_json(folder: Path) -> None:
    (line,) = show(folder, "--name", "JobFailureEvent", "--json").stdout.splitlines()

    assert json.loads(line)["body"] == "query 'orders' failed: ValueError: [x]\nTraceback"


def test_a_collectors_file_and_a_compressed_one(tmp_path: Path) -> None:
    record = {
        "timeUnixNano": str(AT_NS),
        "severityText": "WARN",
        "body": {"stringValue": "late"},
        "attributes": [
            {"key": "event.name", "value": {"stringValue": "CheckpointOverdueEvent"}},
            {"key": "app_name", "value": {"stringValue": "shop"}},
        ],
    }
    request = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    (tmp_path / "logs.jsonl.gz").write_bytes(gzip.compress(json.dumps(request).encode() + b"\n"))
    done = show(tmp_path, "--name", "CheckpointOverdueEvent")

    assert done.stdout == "2025-11-25 14:30:00Z WARN  late  (shop)\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), 4, "nowhere: no such file or folder\n"),
        (
            (".", "--query", "carts"),
            4,
            "none of 3 events matches --query carts; queries: orders\n",
        ),
        ((".", "--severity", "fatal"), 4, "matches --severity fatal; severities: ERROR, INFO\n"),
        (
            (".", "--from", "2026-01-01"),
            4,
            "matches --from 2026-01-01; they are from 2025-11-25 14:30:00 to 2025-11-25 14:30:20 UTC\n",
        ),
        (
            (".", "--severity", "red"),
            2,
            "--severity red: expected one of trace, debug, info, warn, error, fatal",
        ),
        (("s3://bucket/events",), 2, "show reads files of this machine"),
    ],
)
def test_nothing_to_show(folder: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run_forked("show", *arguments, cwd=folder)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    """There is what comes before, and the other files; it is said that there was more."""
    lines = b"".join(json.dumps(event(number, f"x {number}")).encode() + b"\n" for number in range(2))
    (tmp_path / "logs.jsonl.gz").write_bytes(gzip.compress(lines)[:-9])
    write(tmp_path / "other.jsonl", event(9, "other"))
    done = show(tmp_path)

    assert done.returncode == 0
    assert "x 0" in done.stdout
    assert "other" in done.stdout
    assert f"files that cannot be read to their end: 1 (one is {tmp_path / 'logs.jsonl.gz'})" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_in_a_form_that_is_not_read(folder: Path) -> None:
    """It is left out, and that is said; a folder of such alone has nothing to show."""
    packed = folder / "deeper" / "a.events.000001.jsonl.zst"
    packed.parent.mkdir()
    packed.write_bytes(b"packed")
    done, alone, named = show(folder), show(packed.parent), show(packed)

    assert done.returncode == 0
    assert f"{packed} is left out" in done.stderr
    assert (alone.returncode, named.returncode) == (4, 4)
    assert f"{packed} is packed in a form that show does not read" in alone.stderr
    assert f"{packed} is packed in a form that show does not read" in named.stderr


def test_a_packed_line_that_is_too_long(tmp_path: Path) -> None:
    """Memory has no more than a part of it."""
    with gzip.open(tmp_path / "logs.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b" " * (1 << 20))
        file.write(b"x\n" + json.dumps(event(0, "short")).encode())
    command = cli("show", str(tmp_path))
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 400000; "$@"', "bash", *command],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "short" in done.stdout
    assert "lines that are not events, skipped: " in done.stderr


@pytest.mark.parametrize(("depth", "may_be_too_deep"), [(300, False), (1_000, True)])
def test_attributes_that_are_nested_deep(tmp_path: Path, depth: int, may_be_too_deep: bool) -> None:
    """They are printed as JSON all the same, or else counted; Python 3.13 prints what is too deep before."""
    nested = '{"a":' * depth + "1" + "}" * depth
    line = json.dumps(event(0, "x", attributes={"deep": "NESTED"})).replace('"NESTED"', nested)
    (tmp_path / "a.jsonl").write_text(line + "\n")
    done = show("--json", tmp_path)

    assert done.returncode == 0, done.stderr
    if not may_be_too_deep or done.stdout:
        assert done.stdout.replace(" ", "") == line.replace(" ", "") + "\n"
    else:
        assert "skipped: 1" in done.stderr


@pytest.mark.parametrize("attributes", ["a text", ["app_name"], 5])
def test_attributes_that_are_none(tmp_path: Path, attributes: object) -> None:
    """The event is counted, and the others are shown."""
    write(tmp_path / "a.jsonl", {**event(0, "x"), "attributes": attributes}, event(1, "whole"))
    done = show(tmp_path)

    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    assert "lines that are not events, skipped: 1" in done.stderr


def test_a_failure_of_an_odd_subject(tmp_path: Path) -> None:
    odd = event(0, "failed", attributes={"job_id": [1, {"a": 2}]})
    write(tmp_path / "a.jsonl", {**odd, "eventName": "JobFailureEvent"}, event(1, "whole"))
    done = show(tmp_path)

    assert (done.returncode, done.stdout.count("\n")) == (0, 2), done.stderr


def test_lines_of_something_else_are_counted(folder: Path) -> None:
    with (folder / "shop__app-1.events.000001.jsonl").open("a") as file:
        file.write('half of a li\n{"Event": "SparkListenerLogStart"}\n')
    done = show(folder)

    assert done.returncode == 0
    assert "lines that are not events, skipped: 2" in done.stderr


def test_a_last_line_without_a_line_feed(tmp_path: Path) -> None:
    """Nothing more comes, and other commands read it, too; with --follow, it is yet to be written."""
    path = tmp_path / "events.jsonl"
    write(path, event(1, "begun"), event(2, "ended"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    done = run_forked("show", str(tmp_path))
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 2, "")
    assert "ended" in done.stdout
    growing = EventLines([str(tmp_path)])
    assert len(list(growing.read())) == 1
    with path.open("ab") as file:
        file.write(b"\n")
    assert len(list(growing.read())) == 1


def test_files_that_are_deleted_before_they_are_read(tmp_path: Path) -> None:
    """As by a file log that keeps a few small files, told by the gap in their numbers."""
    lines, name = EventLines([str(tmp_path)]), "shop__app-1.events.{0:06d}.jsonl"
    for number in (3, 4, 5):  # older ones are gone, as always
        write(tmp_path / name.format(number), event(number, f"event {number}"))
    assert (len(list(lines.read())), lines.missed) == (3, 0)
    (tmp_path / name.format(3)).unlink()
    write(tmp_path / name.format(6), event(6, "event 6"))
    assert (len(list(lines.read())), lines.missed) == (1, 0)
    for number in (9, 10):
        write(tmp_path / name.format(number), event(number, f"event {number}"))
    assert (len(list(lines.read())), lines.missed) == (2, 2)
    of_glob = EventLines([f"{tmp_path}/*0.jsonl"])
    assert (len(list(of_glob.read())), of_glob.missed) == (1, 0)
    write(tmp_path / name.format(20), event(20, "event 20"))
    assert (len(list(of_glob.read())), of_glob.missed) == (1, 0)


def test_files_that_are_rotated_by_their_names(tmp_path: Path) -> None:
    """As by a collector, which may also pack the old one: nothing is shown twice, and nothing left out."""
    lines, path, old = EventLines([str(tmp_path)]), tmp_path / "events.jsonl", tmp_path / "events-10-00.jsonl"

    def added() -> list[str]:
        return [each.body for each in lines.read()]

    write(path, *(event(n, f"event {n}") for n in range(5)))
    assert len(added()) == 5
    with path.open("a") as file:
        file.write(json.dumps(event(5, "event 5")) + "\n")
    path.rename(old)
    write(path, event(6, "event 6"))
    assert added() == ["event 5", "event 6"]
    (tmp_path / "events-10-00.jsonl.gz").write_bytes(gzip.compress(old.read_bytes()))
    old.unlink()
    assert added() == []
    write(path, event(8, "the last one"))
    (tmp_path / "events.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert added() == ["the last one"]
    write(path, event(6, "event 6"))
    assert added() == ["event 6"]
    write(path, event(7, "7"))  # emptied, and written again
    assert added() == ["7"]


def test_a_new_file_in_the_place_of_a_removed_one(tmp_path: Path) -> None:
    """The disk gives it the same number."""
    lines, place = EventLines([str(tmp_path)]), tmp_path / "a.jsonl"
    write(place, event(1, "first"))
    assert [each.body for each in lines.read()] == ["first"]
    text = place.read_text().replace("first", "other")
    with place.open("r+") as file:
        file.write(text + json.dumps(event(2, "second")) + "\n")
    place.rename(tmp_path / "b.jsonl")
    assert [each.body for each in lines.read()] == ["other", "second"]


def test_follow(folder: Path) -> None:
    """What is added is shown: to a file, and in a new one, and only when a line is whole."""
    command = cli("show", str(folder), "--follow", "--app", "shop")
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        shown = [process.stdout.readline() for _ in range(2)]
        path = folder / "shop__app-1.events.000001.jsonl"
        text = json.dumps(event(30, "again")) + "\n"
        with path.open("a") as file:
            file.write(text[:20])
        write(folder / "shop__app-1.events.000002.jsonl", event(40, "more"))
        shown.append(process.stdout.readline())
        with path.open("a") as file:
            file.write(text[20:])
        shown.append(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(60)

    assert [line[27:].split("  (")[0] for line in shown[2:]] == ["more", "again"]
    assert code == 130
