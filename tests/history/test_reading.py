"""What a history is read from: three forms of stored events, and what does not fit."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import zstandard

from spark_events.api import ConfigError
from spark_events.history.history import MOST_DAYS, read_history
from spark_events.history.options import ReportOptions, Sla
from spark_events.history.reading.database import Database
from spark_events.history.reading.facts import COLUMNS, Fact
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.reading.packed_ends import gzip_has_no_end, zstandard_has_no_end
from spark_events.history.reading.plausible import EARLIEST_MS
from spark_events.history.run import make_report
from spark_events.history.selection import Selection
from spark_events.history.store.store import HistoryStore
from spark_events.history.table import How
from spark_events.history.tables.all_tables import TABLES
from spark_events.runtime import event_names
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, write, write_otlp
from tests.support.hostile_texts import TIMES_MS
from tests.support.s3_server import running_s3
from tests.support.story_told import EXPECTED, figures, read, read_texts, told
from tests.support.told_by_report import busy


def test_file_log(database: Database, tmp_path: Path) -> None:
    """Its spans and its lineage lie in the same folder, and are not read."""
    folder = write(tmp_path / "log", told())
    for kind in ("spans", "lineage"):
        (folder / f"shop__app-1.{kind}.000001.jsonl").write_text("no JSON, but nobody looks\n")
    assert figures(database, folder) == EXPECTED


@pytest.mark.parametrize("name", ["team::shop", "s3:", "50%", "a b"])
def test_a_folder_of_any_name(duckdb: DuckDb, tmp_path: Path, name: str) -> None:
    """Such as one that fsspec would take for two URLs."""
    assert figures(duckdb, write(tmp_path / name, told())) == EXPECTED


def test_collector(database: Database, facts: list[str], tmp_path: Path) -> None:
    """Requests with many records a line; metrics beside them are passed over."""
    assert read(database, write_otlp(tmp_path / "otlp", told())) == (facts, 0, {})


def test_compressed(duckdb: DuckDb, facts: list[str], tmp_path: Path) -> None:
    """Files that somebody compressed, below folders, by a glob."""
    folder = write(tmp_path / "log" / "deeper", told())
    (file,) = folder.glob("*.jsonl")
    (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    assert read(duckdb, tmp_path / "l*") == (facts, 0, {})


def torn(packed: bytes) -> bytes:
    """Return a file with other bytes in its middle."""
    return packed[: len(packed) // 2] + bytes(20) + packed[len(packed) // 2 + 20 :]


DAMAGED = {
    "b.events.000001.jsonl.gz": lambda packed: gzip.compress(zstandard.decompress(packed))[:-200],
    "torn.events.000001.jsonl.gz": lambda packed: torn(gzip.compress(zstandard.decompress(packed))),
    "b.events.000001.jsonl.zst": lambda packed: packed[: len(packed) // 2],
    "torn.events.000001.jsonl.zst": lambda packed: packed[:200] + bytes(200) + packed[400:],
    "empty.parquet": lambda _: b"",
    "torn.parquet": lambda _: b"PAR1" + bytes(100) + b"PAR1",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(duckdb: DuckDb, facts: list[str], tmp_path: Path, name: str) -> None:
    """The others are read, and it is said that there was one."""
    folder = write(tmp_path / "log", told())
    (whole,) = folder.iterdir()
    packed = zstandard.compress(whole.read_bytes().replace(b'"eventId":"', b'"eventId":"other-'))
    (folder / name).write_bytes(DAMAGED[name](packed))
    _, reading = read_history(duckdb, [str(folder)])
    report = make_report(duckdb, ReportOptions((str(folder),)))

    assert reading.problems["cut"] == 1
    assert reading.examples["cut"] == str(folder / name)
    assert read(duckdb, whole) == (facts, 0, {})
    assert f"1 skipped: files that cannot be read to their end (one is {folder / name})" in report.notes


def test_damaged_files_alone(duckdb: DuckDb, tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(ConfigError, match=r"empty\.parquet: cannot be read") as raised:
        read_history(duckdb, [str(tmp_path)])
    assert "make a new store" not in str(raised.value)  # for they are of none


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_cut_file_without_a_whole_event(duckdb: DuckDb, tmp_path: Path, kind: str) -> None:
    """Not only is there nothing in it: it is said why."""
    folder = write(tmp_path / "log", told())
    (whole,) = folder.iterdir()
    pack = gzip.compress if kind == "gz" else zstandard.compress
    (folder / f"{whole.name}.{kind}").write_bytes(pack(whole.read_bytes())[:60])
    whole.unlink()
    with pytest.raises(
        ConfigError, match=r"no event that could be used; .*cannot be read to their end|cannot be read"
    ):
        read_history(duckdb, [str(folder)])


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("padding", [b"", bytes(100_000)])
def test_whole_files_of_gzip(
    duckdb: DuckDb, facts: list[str], tmp_path: Path, members: int, padding: bytes
) -> None:
    folder = write(tmp_path / "log", told())
    (file,) = folder.iterdir()
    lines = file.read_bytes().splitlines(keepends=True)
    parts = [b"".join(lines[begin::members]) for begin in range(members)]
    with (folder / f"{file.name}.gz").open("wb") as packed:
        packed.write(b"".join(map(gzip.compress, parts)) + padding)
    with (folder / f"{file.name}.gz").open("rb") as packed:
        assert not gzip_has_no_end(packed)
    if not padding:  # DuckDB refuses it
        file.unlink()
        assert read(duckdb, folder) == (facts, 0, {})


@pytest.mark.parametrize("removed", [1, 4, 9])
def test_files_that_are_removed_meanwhile(
    duckdb: DuckDb, facts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: int
) -> None:
    """A writer keeps a number of files: what it removes between finding and reading them is looked for again."""
    folder = write(tmp_path / "log", told())
    gone = [folder / f"old.events.{number:06d}.jsonl" for number in range(removed)]
    for path in gone:
        path.write_text("{}\n")
    usual = DuckDb._read_long_lines_too

    def reading(self: DuckDb, *arguments: Any) -> Any:
        if gone:
            gone.pop().unlink()
        return usual(self, *arguments)

    monkeypatch.setattr(DuckDb, "_read_long_lines_too", reading)
    if removed > 5:
        with pytest.raises(ConfigError, match="cannot be read"):
            read(duckdb, folder)
    else:
        assert read(duckdb, folder)[0] == facts


def test_whole_files_of_zstandard(duckdb: DuckDb, facts: list[str], tmp_path: Path) -> None:
    """In frames of any kind: each is known to be whole, and what is cut off anywhere is not."""
    folder = write(tmp_path / "log", told())
    (file,) = folder.iterdir()
    content = file.read_bytes()
    streamed = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    half = len(content) // 2
    skippable = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"
    of_zeros = zstandard.ZstdCompressor().compress(b"\n" * 300_000)
    first = streamed.compress(content[:half]) + streamed.flush()
    packed = first + skippable + zstandard.compress(content[half:]) + of_zeros
    ends = {0, len(first), len(first + skippable), len(packed) - len(of_zeros), len(packed)}
    cut = {end for end in range(len(packed) + 1) if zstandard_has_no_end(io.BytesIO(packed[:end]))}
    assert cut == set(range(len(packed) + 1)) - ends

    (folder / f"{file.name}.zst").write_bytes(first + zstandard.compress(content[half:]) + of_zeros)
    file.unlink()
    assert read(duckdb, folder) == (facts, 0, {})


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_replay_on_spark(spark: Any, database: Database, facts: list[str], tmp_path: Path, form: str) -> None:
    """What ``replay --on-spark`` writes: rows, partitioned by day."""
    from datetime import datetime, timezone

    from spark_events.sources.event_log.on_spark import SCHEMA

    rows = []
    for event in told().events:
        time = datetime.fromtimestamp(int(event["timeUnixNano"]) / 1e9, timezone.utc)
        attributes = {key: str(value) for key, value in event["attributes"].items()}
        names = (None, "", "scope", "", "shop", "app-1", None, "4.3.0")
        rows.append((event["eventId"], event["eventName"], time, *names[1:], attributes, time.date()))
    frame = spark.createDataFrame(rows, SCHEMA)
    frame.write.partitionBy("date").format(form).save(str(tmp_path / "fleet"))
    assert read(database, tmp_path / "fleet") == (facts, 0, {})


def test_all_forms_at_once(duckdb: DuckDb, facts: list[str], tmp_path: Path) -> None:
    """The same events from two places count once."""
    both = write(tmp_path / "log", told()), write_otlp(tmp_path / "otlp", told())
    assert read(duckdb, *both) == (facts, 10, {})


def test_what_does_not_fit(database: Database, tmp_path: Path) -> None:
    """It is left out and counted, with a file as an example; the rest stays right."""
    folder = write(tmp_path / "log", told())
    event = json.dumps(told().events[0])

    def changed(**attributes: Any) -> str:
        whole = json.loads(event)
        whole["attributes"] = {**whole["attributes"], **attributes}
        return json.dumps({**whole, "eventId": json.dumps(attributes)})

    bad = [
        "this is not JSON",
        event[:100],
        "[1, 2]",
        '{"other": "json"}',
        json.dumps({**json.loads(event), "attributes": "a text"}),
        json.dumps({**json.loads(event), "eventName": "NewEvent2030"}),
        json.dumps({**json.loads(event), "eventId": None}),
        json.dumps({**json.loads(event), "timeUnixNano": "yesterday"}),
        changed(app_name=None),
        changed(newJobStatus="DREAMING"),
        changed(newJobStatus=None),
    ]
    checkpoint = {**told().events[3], "eventId": "odd"}
    checkpoint["attributes"] = {**checkpoint["attributes"], "durationMs": "long"}
    kept = {**told().events[3], "eventId": "kept"}
    kept["attributes"] = {**kept["attributes"], "fullSize": "big", "anotherOne": [1, {"x": 2}]}
    (folder / "bad.events.000001.jsonl").write_text(
        "\n".join([*bad, json.dumps(checkpoint), json.dumps(kept)])
    )

    history, reading = read_history(database, [str(folder)])
    assert reading.problems == {
        "unreadable": 5,
        "no_id": 1,
        "no_time": 1,
        "no_job": 1,
        "status": 2,
        "duration": 1,
    }
    assert all(path.endswith("bad.events.000001.jsonl") for path in reading.examples.values())
    assert reading.records == len(told().events) + len(bad) + 2
    assert (reading.odd_numbers, reading.own) == (2, 1)
    (sla,) = history.tables().checkpoint_sla
    assert sla["completed"] == 3


def test_losses_are_told(duckdb: DuckDb, tmp_path: Path) -> None:
    """What reporters dropped is missing in the history, and it says so."""
    from spark_events.history.report import notes_on

    story = told().event(HOUR, "RecordsDroppedEvent", cause="queue_full", count=7, total=7)
    for kind, count in (("traces", 5), ("metrics", 2), ("events", 3)):
        story.event(HOUR, "RecordsDroppedEvent", cause="close", count=count, reporter_kind=kind)
    story.event(HOUR, "RecordsDroppedEvent", cause="metric", count=12, total=12)
    story.event(HOUR, "RecordsDroppedEvent", cause="malformed", count=1, total=1)
    history, reading = read_history(duckdb, [str(write(tmp_path / "log", story))])
    assert sorted(notes_on([reading], history.losses())) == [
        "12 values of your own metrics, events and spans could not be reported (metric)",
        "3 events were dropped by reporters (close): the history may lack them",
        "7 events were dropped by reporters (queue_full): the history may lack them",
        "the driver refused 1 report of tasks or executors (malformed)",
    ]


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_s3(duckdb: DuckDb, facts: list[str], tmp_path: Path, scheme: str) -> None:
    """Without Hadoop; the name that Hadoop has for it is understood, too."""
    import s3fs

    (log,) = write(tmp_path / "log", told()).iterdir()
    with running_s3("history"):
        s3fs.S3FileSystem(skip_instance_cache=True).put(str(log), f"history/{scheme}/day/{log.name}")
        url = f"{scheme}://history/{scheme}"
        assert read_texts(duckdb, url) == (facts, 0, {})
        assert read_texts(duckdb, f"{url}/*/*.jsonl") == (facts, 0, {})


def test_names_that_look_like_patterns(duckdb: DuckDb, facts: list[str], tmp_path: Path) -> None:
    """A folder may be called ``[prod]``, a file ``a*b``."""
    folder = write(tmp_path / "[prod]", told(), name="a*b?.events.000001.jsonl")
    assert read(duckdb, folder) == (facts, 0, {})


def test_file_logs_that_begin_with_an_underscore(
    database: Database, facts: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As earlier versions wrote them: they are read, or, where Spark hides them, counted in a warning."""
    write(tmp_path / "log", told())
    for name in ("__x__app-2.events.000001.jsonl", "_x__app-1.events.000001.jsonl"):
        write(tmp_path / "log", told(), name=name)
    for name in ("_tmp.jsonl", "_temporary/a__b.events.000001.jsonl", ".x__a.events.000001.jsonl"):
        (tmp_path / "log" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "log" / name).write_text("nothing\n")
    found = read(database, tmp_path / "log")

    assert (found[0], found[2]) == (facts, {})
    assert bool(found[1]) is isinstance(database, DuckDb)  # as duplicates
    assert ("2 or more files of file logs are left out" in caplog.text) is not bool(found[1])


def test_links_and_pipes(
    duckdb: DuckDb, facts: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is behind a link is read once; nobody waits for a pipe."""
    write(tmp_path / "elsewhere" / "log", told())
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "log").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "circle").symlink_to(folder)
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe.jsonl")
    assert read(duckdb, folder)[0] == facts
    assert caplog.text.count("is left out") >= 2


@pytest.mark.parametrize("what", ["missing", "empty", "spans alone", "no events"])
def test_nothing_there(duckdb: DuckDb, tmp_path: Path, what: str) -> None:
    """A path without events is an error that names it."""
    folder = tmp_path / "log"
    if what != "missing":
        folder.mkdir()
    if what == "spans alone":
        (folder / "a.spans.000001.jsonl").write_text("{}\n")
    if what == "no events":
        (folder / "a.jsonl").write_text("nothing\n")
    with pytest.raises(
        ConfigError,
        match=r"no such file or folder|there are no stored events|there is no event that could be used",
    ) as error:
        read_history(duckdb, [str(folder)])
    assert str(folder) in str(error.value)


def test_bad_file_system(duckdb: DuckDb, tmp_path: Path) -> None:
    """So is one on a file system that nobody knows."""
    with pytest.raises(ConfigError, match=r"nofs://x/y: its file system cannot be used: .*nofs"):
        read_history(duckdb, ["nofs://x/y"])


def test_since(duckdb: DuckDb, tmp_path: Path) -> None:
    """A window shows what fell into it; the status that a job came into it with is known."""
    folder = write(tmp_path / "log", told())
    history, _ = read_history(duckdb, [str(folder)], Sla(), Selection(span_ms=DAY - 16 * MIN))
    tables = history.tables()
    (query,) = [row for row in tables.uptime if row["kind"] == "query"]
    assert (query["up_ms"], query["down_ms"]) == (DAY - 17 * MIN, MIN)
    assert (query["failures"], query["restarts"], query["longest_outage_ms"]) == (0, 0, MIN)
    (sla,) = tables.checkpoint_sla
    assert (sla["completed"], sla["late_by_gap"]) == (1, 1)
    assert tables.failures == []
    assert {row["start_ms"] for row in tables.status_intervals} >= {T0 + 16 * MIN}


def test_until_now(duckdb: DuckDb, tmp_path: Path) -> None:
    """What was heard last holds until now, where that is asked for."""
    story = Story().application(0, "CREATED", "RUNNING").query(0, "CREATED", "RUNNING").checkpoint(0, 1)
    story.query(MIN, "FAILED")
    for event in story.events:  # a year earlier: now is later, whatever the clock of this machine says
        event["timeUnixNano"] = str(int(event["timeUnixNano"]) - 365 * DAY * 1_000_000)
    history, _ = read_history(
        duckdb, [str(write(tmp_path / "log", story))], selection=Selection(until_now=True)
    )
    tables = history.tables()
    (query,) = [row for row in tables.uptime if row["kind"] == "query"]
    (sla,) = tables.checkpoint_sla
    assert query["down_ms"] == history.period.until_ms - (T0 - 365 * DAY + MIN)
    assert query["longest_outage_ms"] == query["down_ms"] > 300 * DAY
    assert sla["overdue"]
    assert sla["late_by_gap"] == 1


def test_killed_driver(duckdb: DuckDb, tmp_path: Path) -> None:
    """A driver that was killed said nothing: it was down from its last event until the next one's query ran."""
    story = Story().application(0, "CREATED", "RUNNING").query(0, "CREATED").checkpoint(MIN, 1_000, MIN)
    story.query(MIN, "RUNNING").checkpoint(2 * MIN, 1_000, MIN).job(3 * MIN)
    story.driver("app-2").application(HOUR, "CREATED", "RUNNING").query(HOUR, "CREATED", "RESTARTING")
    story.checkpoint(HOUR + 2 * MIN, 1_000, 2 * MIN).query(HOUR + 2 * MIN, "RUNNING")
    history, _ = read_history(duckdb, [str(write(tmp_path / "log", story))], Sla(30 * MIN))
    tables = history.tables()
    rows = [row for row in tables.status_intervals if row["kind"] == "query"]
    assert [(row["status"], row["state"], (row["start_ms"] - T0) // MIN) for row in rows] == [
        ("CREATED", "starting", 0),
        ("RUNNING", "up", 1),
        ("LOST", "down", 3),
        ("RESTARTING", "down", 60),
        ("RUNNING", "up", 62),
    ]
    (sla,) = tables.checkpoint_sla
    # The event of the second driver knows of two minutes only; the first was idle when it was lost.
    assert (sla["late_by_gap"], sla["worst_gap_ms"], sla["met"]) == (1, 59 * MIN, 2)


def test_facts_are_columns() -> None:
    """A fact, as the tables have it, has columns of the relation, of their types."""
    types = {int: "BIGINT", int | None: "BIGINT", str: "STRING", str | None: "STRING"}
    fields = {name: types[of_type] for name, of_type in get_type_hints(Fact).items()}
    assert fields.items() <= COLUMNS.items()


def test_rows_have_the_columns_of_their_table(duckdb: DuckDb, tmp_path: Path) -> None:
    """In order; what people are shown of a table can be had of each of its rows."""
    tables = read_history(duckdb, [str(write(tmp_path / "log", *busy()))])[0].tables()
    assert list(tables) == [table.name for table in TABLES]
    for table in TABLES:
        rows = tables[table.name]
        assert rows, f"{table.name} is empty: add events for it to busy() in tests/support/told_by_report.py"
        assert {tuple(row) for row in rows} == {tuple(table.types)}, table.name
        assert all(column.parts_of(row) for column in table.shown for row in rows if column.how is How.TEXT)


def test_a_table_that_there_is_not(duckdb: DuckDb, tmp_path: Path) -> None:
    """The error names those that there are."""
    tables = read_history(duckdb, [str(write(tmp_path / "log", told()))])[0].tables()
    with pytest.raises(AttributeError, match="no table 'uptimes', but status_intervals, uptime, "):
        _ = tables.uptimes


def test_clocks_that_are_wrong(duckdb: DuckDb, tmp_path: Path) -> None:
    """41 events whose times cannot be take no place: they are counted, with a file, and the page is small."""
    from spark_events.history.page.page import page
    from spark_events.history.report import collect

    odd = Story("broken", "app-9")
    for number, time_ms in enumerate([*TIMES_MS, *(2**63 - 1 - n for n in range(30))]):
        odd.checkpoint(time_ms - T0, 1, checkpointId=number)
    folder = write(tmp_path / "log", told())
    odd.events.append({**odd.events[0], "eventId": "last ns", "timeUnixNano": str(2**63 - 1)})
    (folder / "odd.events.000001.jsonl").write_text("\n".join(odd.lines()))

    history, reading = read_history(duckdb, [str(folder)])
    assert reading.problems.keys() <= {"time", "no_time"}
    assert sum(reading.problems.values()) == len(odd.events)
    assert reading.examples["time"].endswith("odd.events.000001.jsonl")
    report = collect(history, history.tables(), [reading])
    assert [row["app_name"] for row in report.tables.uptime] == ["shop", "shop"]
    assert any("before 2009-01-01 00:00 or after" in note for note in report.notes)
    assert len(page(report)) < 60_000


def test_very_many_days(duckdb: DuckDb, tmp_path: Path) -> None:
    """A clock that is wrong and could be right makes a long history: by day, there are its last days."""
    from spark_events.history.page.page import page
    from spark_events.history.report import collect

    early = Story("early").application(EARLIEST_MS - T0, "CREATED", "RUNNING")
    folder = write(tmp_path / "log", told(), early)
    history, reading = read_history(duckdb, [str(folder)])
    report = collect(history, history.tables(), [reading])

    assert MOST_DAYS - 1 <= len({row["date"] for row in report.tables.uptime_per_day}) <= MOST_DAYS
    assert f"by day, there are the last {MOST_DAYS} days alone" in report.notes
    assert len(page(report)) < 1_500_000


def test_numbers_that_cannot_be(duckdb: DuckDb, tmp_path: Path) -> None:
    """Their sum would be too large for any table; they are taken as missing."""
    story = told()
    for number in range(3):
        story.checkpoint(HOUR + number, 1, 2**63 - 1, rows=2**63 - 1, fullSize=-5)
    story.event(HOUR, "RecordsDroppedEvent", cause="queue_full", count=2**63 - 1, total=7)
    found = figures(duckdb, write(tmp_path / "log", story))
    history, reading = read_history(duckdb, [str(tmp_path / "log")])

    assert found
    assert history.losses() == {}
    assert reading.odd_numbers == 7


def test_events_that_are_not_the_reports(duckdb: DuckDb, tmp_path: Path) -> None:
    """Tables' transactions are the framework's own; what a user's code reports is counted as theirs."""
    from spark_events.history.report import notes_on

    story = (
        told().event(HOUR, "TableTransactionEvent", transactionStatus="COMMITTED").event(HOUR, "PricesStale")
    )
    _, reading = read_history(duckdb, [str(write(tmp_path / "log", story))])

    assert (reading.problems, reading.own) == ({}, 1)
    assert notes_on([reading], {}) == [
        "1 event of your own code, which only shows that the application was running"
    ]


@pytest.mark.parametrize("name", sorted(event_names.all_names()))
def test_no_event_of_the_framework_is_a_users_own(duckdb: DuckDb, tmp_path: Path, name: str) -> None:
    """Nor is one that reports make nothing of."""
    _, reading = read_history(duckdb, [str(write(tmp_path / "log", told().event(HOUR, name)))])

    assert reading.own == 0


def test_performance_issues(database: Database, tmp_path: Path) -> None:
    """What was slow, what it cost and what to do, the costliest first; they are nobody's own events."""
    story = told()
    for number, lost_ms in enumerate((40_000, 90_000)):
        about = {"issue": "skew", "subject": f"stage {number}.0", "summary": "task 3 reads", "advice": "salt"}
        story.event(HOUR + number, "PerformanceIssueEvent", job_kind="stage", lostMs=lost_ms, **about)
    bytes_lost = {"issue": "spill", "lostBytes": 5 << 30}
    story.event(HOUR, "PerformanceIssueEvent", job_kind="query", query_name="orders", **bytes_lost)
    history, reading = read_history(database, [str(write(tmp_path / "log", story))])
    first, second, third = history.tables().issues

    assert (reading.problems, reading.own) == ({}, 0)
    assert first == {
        "time_ms": T0 + HOUR + 1,
        "app_name": "shop",
        "query_name": "",
        "issue": "skew",
        "subject": "stage 1.0",
        "message": "task 3 reads",
        "advice": "salt",
        "lost_ms": 90_000,
        "lost_bytes": None,
    }
    assert (second["lost_ms"], second["subject"]) == (40_000, "stage 0.0")
    assert (third["issue"], third["query_name"], third["lost_bytes"]) == ("spill", "orders", 5 << 30)


def test_what_tasks_counted(database: Database, tmp_path: Path) -> None:
    """The sum of what was reported, by job, counter and labels."""
    story = told()
    bad = {"counter": "bad_orders", "labels": "reason=no_address, shop=berlin"}
    story.event(HOUR, "TaskCounterEvent", job_kind="query", query_name="orders", count=5, **bad)
    story.event(2 * HOUR, "TaskCounterEvent", job_kind="query", query_name="orders", count=7, **bad)
    story.event(HOUR, "TaskCounterEvent", job_kind="application", count=1, counter="bad_orders")
    history, reading = read_history(database, [str(write(tmp_path / "log", story))])
    in_application, in_query = history.tables().task_counters

    assert (reading.problems, reading.own) == ({}, 0)
    assert in_query == {
        "app_name": "shop",
        "query_name": "orders",
        "counter": "bad_orders",
        "labels": "reason=no_address, shop=berlin",
        "count": 12,
        "last_ms": T0 + 2 * HOUR,
    }
    assert (in_application["query_name"], in_application["labels"], in_application["count"]) == ("", "", 1)


def test_the_place_of_a_failure(database: Database, tmp_path: Path) -> None:
    """Behind a message of whatever length."""
    place = {"code.file.path": "/app/shop.py", "code.line.number": 7, "code.function.name": "price"}
    failed = {"job_kind": "query", "query_name": "orders", "exception.message": "no " * 300, **place}
    story = told().event(HOUR, "JobFailureEvent", **failed)
    history, _ = read_history(database, [str(write(tmp_path / "log", story))])
    (message,) = [row["message"] for row in history.tables().failures if row["message"].startswith("no no")]

    assert message.endswith("no no  (/app/shop.py:7, in price)")


def test_executors_that_were_lost_are_failures(database: Database, tmp_path: Path) -> None:
    """With the reason, and how full the heap was; those that somebody wanted gone are not."""
    attributes = {"job_kind": "executor", "executor_id": "3", "host": "node-7", "lifetimeMs": 5 * MIN}
    memory = {"heapUsed.highest": 900 << 20, "memoryLimit.heap": 1 << 30}
    why = {"reasonMessage": "Command exited with code 137", "exitMeaning": "killed (SIGKILL)"}
    story = told()
    story.event(HOUR, "ExecutorLostEvent", reason="out_of_memory", **attributes, **memory, **why)
    story.event(HOUR + 1, "ExecutorLostEvent", reason="decommissioned", **attributes)
    history, reading = read_history(database, [str(write(tmp_path / "log", story))])
    (row,) = [row for row in history.tables().failures if row["kind"] == "executor"]

    assert (reading.problems, reading.own) == ({}, 0)
    assert (row["app_name"], row["error"], row["count"]) == ("shop", "out_of_memory", 1)
    assert row["message"] == (
        "executor 3 on node-7; Command exited with code 137; killed (SIGKILL); heap 900 MiB of 1 GiB"
    )
    lost, wanted = history.tables().executors
    assert lost == {
        "app_name": "shop",
        "executor_id": "3",
        "host": "node-7",
        "start_ms": T0 + HOUR - 5 * MIN,
        "end_ms": T0 + HOUR,
        "reason": "out_of_memory",
        "expected": False,
        "heap_highest": 900 << 20,
        "heap_limit": 1 << 30,
    }
    assert (wanted["reason"], wanted["expected"], wanted["heap_highest"]) == ("decommissioned", True, None)


def test_paths_without_events(duckdb: DuckDb, tmp_path: Path) -> None:
    """What is not there, what is empty, and what has spans alone."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "spans").mkdir()
    (tmp_path / "spans" / "a.spans.000001.jsonl").write_text("{}")
    for name, said in (
        ("nowhere", "no such file or folder$"),
        ("empty", "empty: there are no stored events"),
        ("spans", "it has spans alone; there are no stored events"),
    ):
        with pytest.raises(ConfigError, match=said):
            read_history(duckdb, [str(tmp_path / name)])
    write(tmp_path / "spans", told())
    with pytest.raises(ConfigError, match="empty: there are no stored events"):  # the spans are of another
        read_history(duckdb, [str(tmp_path / "spans"), str(tmp_path / "empty")])


def test_an_sla_of_no_query(duckdb: DuckDb, tmp_path: Path) -> None:
    from spark_events.history.report import collect

    folder = str(write(tmp_path / "log", told()))
    history, reading = read_history(duckdb, [folder], Sla(60_000, {"orders": 1_000, "ordrs": 5_000}))
    (note,) = [note for note in collect(history, history.tables(), [reading]).notes if "--sla" in note]
    assert note == "--sla ordrs=5s was ignored: no query is named ordrs; there are orders"


def test_the_sla_that_each_application_had(database: Database, tmp_path: Path) -> None:
    """A micro-batch is held against the SLA of its time, unless whoever reads gives one."""
    story = Story().application(0, "RUNNING").query(0, "RUNNING")
    story.checkpoint(10_000, 6_000, 6_000).query(11_000, "CANCELED").application(11_000, "FINISHED")
    story.driver("app-2").application(20_000, "RUNNING").query(20_000, "RUNNING")
    story.checkpoint(30_000, 6_000, 6_000, slaMs=5_000).checkpoint(34_000, 4_000, 4_000, slaMs=5_000)
    story.query(35_000, "CANCELED").application(35_000, "FINISHED")
    story.driver("app-3").application(40_000, "RUNNING").query(40_000, "RUNNING")
    story.checkpoint(50_000, 6_000, 6_000, slaMs=8_000).checkpoint(59_000, 9_000, 9_000, slaMs=8_000)
    folder, store = str(write(tmp_path / "log", story)), HistoryStore(database, str(tmp_path / "store"))
    store.add([folder])
    for given, late, shown_ms in (
        (Sla(), 2, 8_000),
        (Sla(5_000), 4, 5_000),
        (Sla(None, {"orders": 60_000}), 0, 60_000),
        (Sla(None, {"others": 1}), 2, 8_000),
    ):
        for history in (read_history(database, [folder], given)[0], store.history(given)):
            (sla,) = history.tables().checkpoint_sla
            assert (sla["late_by_duration"], sla["met"], sla["sla_ms"]) == (late, 5 - late, shown_ms)


def test_a_note_on_the_sla_that_nobody_set(duckdb: DuckDb, tmp_path: Path) -> None:
    from spark_events.history.report import collect

    def notes_at(folder: str, sla: Sla) -> list[str]:
        history, reading = read_history(duckdb, [folder], sla)
        return [note for note in collect(history, history.tables(), [reading]).notes if "SLA" in note]

    def story() -> Story:
        return Story().application(0, "RUNNING").query(0, "RUNNING")

    unset = str(write(tmp_path / "unset", story().checkpoint(10_000, 6_000, 6_000)))
    said = "SLA: 1 min where the application set none (spark.events.checkpoint.sla); --sla gives another"
    assert notes_at(unset, Sla()) == [said]
    assert notes_at(unset, Sla(60_000)) == notes_at(unset, Sla(None, {"orders": 60_000})) == []
    set_by_it = str(write(tmp_path / "set", story().checkpoint(10_000, 6_000, 6_000, slaMs=5_000)))
    assert notes_at(set_by_it, Sla()) == []


def test_a_query_that_never_committed_has_the_sla_of_its_application(
    database: Database, tmp_path: Path
) -> None:
    story = Story().application(0, "RUNNING").query(0, "RUNNING")
    story.event(5_000, "CheckpointOverdueEvent", "orders", owedMs=5_000, slaMs=5_000)
    story.heartbeats(0, 50_000, 10_000)
    history, _ = read_history(database, [str(write(tmp_path / "log", story))])
    (sla,) = history.tables().checkpoint_sla
    assert (sla["overdue"], sla["sla_ms"]) == (True, 5_000)


def test_what_was_overdue_when_its_query_was_stopped(database: Database, tmp_path: Path) -> None:
    """It never commits, and was late all the same; what is not late is not counted."""
    story = Story().application(0, "RUNNING").query(0, "RUNNING").checkpoint(1_000, 900, 1_000, slaMs=5_000)
    story.query(42_000, "CANCELED", owedMs=41_000, slaMs=5_000)
    story.run("again").query(50_000, "RUNNING").query(53_000, "FINISHED", owedMs=3_000, slaMs=5_000)
    path = str(write(tmp_path / "log", story))

    def sla(given: Sla) -> tuple[Any, ...]:
        report, _ = read_history(database, [path], given)
        (row,) = report.tables().checkpoint_sla
        names = ("completed", "met", "met_percent", "late_by_gap", "stopped_late", "worst_gap_ms", "overdue")
        return tuple(row[name] for name in names)

    assert sla(Sla()) == (1, 1, 50.0, 1, 1, 41_000, False)
    assert sla(Sla(2_000)) == (1, 1, pytest.approx(100 / 3), 2, 2, 41_000, False)
    assert sla(Sla(60_000)) == (1, 1, 100.0, 0, 0, 1_000, False)


@pytest.mark.parametrize(
    ("idle_ms", "owed_ms", "gap_ms"),
    [
        (40_000, 2_044, 2_044),  # idle before it was killed, and after the restart: its own event says all
        (40_000, 40_000, 60_000),  # idle before, at work at once: since it went down
        (5_000, 40_000, 65_000),  # at work when it was killed: since the last checkpoint
        (5_000, 2_044, 2_044),
    ],
)
def test_owed_across_drivers(
    database: Database, tmp_path: Path, idle_ms: int, owed_ms: int, gap_ms: int
) -> None:
    """A first checkpoint is owed since the one before it only as far as there was something to do."""
    killed = 100_000 + idle_ms
    story = Story().application(0, "CREATED", "RUNNING").query(0, "CREATED", "RUNNING")
    story.checkpoint(100_000, 1_000, 1_000).heartbeats(0, killed, 1_000)
    story.driver("app-2").application(killed + 20_000, "CREATED", "RUNNING")
    story.query(killed + 20_000, "RESTARTING")
    # It comes forty seconds after the restart, and sixty after the kill.
    story.checkpoint(killed + 60_000, 1_000, owed_ms).query(killed + 60_000, "RUNNING")
    history, _ = read_history(database, [str(write(tmp_path / "log", story))], Sla(50_000))
    (sla,) = history.tables().checkpoint_sla
    late = int(gap_ms > 50_000)
    assert (sla["late_by_gap"], sla["worst_gap_ms"], sla["met"]) == (late, gap_ms, 2 - late)


@pytest.mark.parametrize("stops", [False, True])
def test_owed_across_drivers_before_any_commit(database: Database, tmp_path: Path, stops: bool) -> None:
    """A query that failed before its first commit owes it since then, unless it was stopped in between."""
    story = Story().query(0, "CREATED").failure(MIN, "BOOM").query(MIN, "FAILED")
    if stops:
        story.run("run-2").query(2 * MIN, "RUNNING").query(3 * MIN, "CANCELED")
    story.driver("app-2").query(11 * MIN, "RESTARTING").query(11 * MIN + 5_000, "RUNNING")
    story.checkpoint(11 * MIN + 5_000, 1_000, 5_000)
    (sla,) = (
        read_history(database, [str(write(tmp_path / "log", story))], Sla(MIN))[0].tables().checkpoint_sla
    )
    gap_ms = 5_000 if stops else 10 * MIN + 5_000
    assert (sla["late_by_gap"], sla["worst_gap_ms"], sla["overdue"]) == (not stops, gap_ms, False)


@pytest.mark.parametrize("written_before", [False, True])
def test_tables_on_a_full_disk(
    duckdb: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_before: bool
) -> None:
    """All tables are written, or none: half a report would look like a whole one."""
    folder, rows = tmp_path / "of" / "tables", {"app_id": "a"}
    columns = {"runs": {"app_id": "VARCHAR"}, "uptime": {"app_id": "VARCHAR"}}
    if written_before:
        duckdb.tables_to_parquet({"runs": [rows], "uptime": [rows]}, columns, str(folder))
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    assert len(before) == (6 if written_before else 0)
    monkeypatch.setattr(duckdb, "to_parquet", _full_at(duckdb.to_parquet, "uptime"))
    with pytest.raises(ConfigError, match="no room"):
        duckdb.tables_to_parquet({"runs": [rows, rows], "uptime": [rows]}, columns, str(folder))

    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["file", "link"])
def test_tables_where_something_else_is(duckdb: DuckDb, tmp_path: Path, kind: str) -> None:
    """It is named, it stays, and no table is written: neither those before it nor those after it."""
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "tables"
    folder.mkdir()
    there = folder / "runs"
    there.touch() if kind == "file" else there.symlink_to(tmp_path / "elsewhere")
    columns = {name: {"app_id": "VARCHAR"} for name in ("issues", "runs", "uptime")}
    with pytest.raises(ConfigError, match=f"{there} is a file or a link; expected a folder, or none"):
        duckdb.tables_to_parquet({name: [{"app_id": "a"}] for name in columns}, columns, str(folder))

    assert list(folder.iterdir()) == [there]
    assert there.is_symlink() == (kind == "link")


def _full_at(write_table: Any, name: str) -> Any:
    def to_parquet(sql: str, folder: str) -> None:
        write_table(sql, folder)
        if folder.endswith(name):
            raise ConfigError("no room")

    return to_parquet


def test_a_name_that_is_no_text(
    duckdb: DuckDb, facts: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out with a warning; the others are read."""
    write(tmp_path, told())
    written = next(tmp_path.iterdir())
    (tmp_path / os.fsdecode(b"b\xff.jsonl")).write_bytes(written.read_bytes())

    assert read(duckdb, tmp_path)[0] == facts
    assert "its name is not UTF-8" in caplog.text


def test_a_name_that_the_locale_does_not_have(tmp_path: Path) -> None:
    """The name is text; the locale of the process that reads it is not UTF-8."""
    write(tmp_path, told())
    (written,) = tmp_path.iterdir()
    written.rename(tmp_path / f"größe-{written.name}")
    done = subprocess.run(
        [sys.executable, "-m", "spark_events", "status", str(tmp_path)],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3
    assert b"its name is UTF-8, but the locale C is not (ascii): set PYTHONUTF8=1" in done.stderr
    assert b"no stored events" not in done.stderr
