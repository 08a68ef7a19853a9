"""A store: days are added to it, in any order, and what is there already is not read again."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

from spark_events.api import ConfigError
from spark_events.history.figures.day_sums import SUMS
from spark_events.history.options import Sla
from spark_events.history.reading.local_files import LocalFiles, stored_files
from spark_events.history.reading.on_duckdb import DuckDb
from spark_events.history.selection import Selection
from spark_events.history.store import store_index
from spark_events.history.store.store import HistoryStore
from spark_events.history.store.store_index import StoreIndex, new_folder
from tests.support.history_story import DAY, HOUR, MIN, T0, Story, write


def day(number: int) -> Story:
    """One checkpoint an hour, the first of them slow."""
    story = Story()
    if number == 0:
        story.query(0, "CREATED").query(MIN, "RUNNING")
    for hour in range(3):
        story.checkpoint(number * DAY + hour * HOUR + MIN, 40_000 if hour == 0 else 1_000)
    return story


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_only_the_days_that_are_touched_are_written(duckdb: DuckDb, tmp_path: Path) -> None:
    """Also where the raw events of other days are gone."""
    store = tmp_path / "store"
    first = write(tmp_path / "0", day(0))
    HistoryStore(duckdb, str(store)).add([str(first)])
    before = files(store)
    for path in first.iterdir():
        path.unlink()
    HistoryStore(duckdb, str(store)).add([str(write(tmp_path / "1", day(1)))])

    again = HistoryStore(duckdb, str(store))
    assert again.days == ["2026-11-20", "2026-11-21"]
    assert before.items() <= files(store).items()
    per_day = again.history(Sla(30_000)).tables().checkpoint_sla_per_day
    assert [(row["completed"], row["late_by_duration"]) for row in per_day] == [(3, 1), (3, 1)]


def test_added_twice_counts_once(duckdb: DuckDb, tmp_path: Path) -> None:
    """A day that is added again changes nothing."""
    store = HistoryStore(duckdb, str(tmp_path / "store"))
    folder = str(write(tmp_path / "0", day(0)))
    assert store.add([folder]).duplicates == 0
    assert store.add([folder]).duplicates == 5
    (row,) = store.history().tables().checkpoint_sla
    assert row["completed"] == 3


def test_nothing_that_can_be_used(duckdb: DuckDb, tmp_path: Path) -> None:
    """Of a clock that is years ahead, say: the store stays as it is."""
    store = HistoryStore(duckdb, str(tmp_path / "store"))
    store.add([str(write(tmp_path / "0", day(0)))])
    reading = store.add([str(write(tmp_path / "1", day(5_000)))])
    assert reading.problems == {"time": 3}
    assert store.days == ["2026-11-20"]


@pytest.mark.parametrize("sla", [Sla(), Sla(60_000), Sla(by_query={"orders": 60_000})])
def test_sums_have_the_types_that_are_declared(duckdb: DuckDb, tmp_path: Path, sla: Sla) -> None:
    """Spark 3.5 reads no other; an SLA that is given is a literal in SQL."""
    store = tmp_path / "store"
    HistoryStore(duckdb, str(store)).add([str(write(tmp_path / "0", day(0)))], sla)
    (file,) = store.glob("*/sums/**/*.parquet")
    types = {"int64": "BIGINT", "string": "STRING"}
    fields = parquet.read_schema(file)
    assert {field.name: types.get(str(field.type)) for field in fields if field.name != "date"} == SUMS


def test_another_sla_and_a_window(duckdb: DuckDb, tmp_path: Path) -> None:
    """Sums of another SLA are made anew from the facts; a window may begin within a day."""
    store = HistoryStore(duckdb, str(tmp_path / "store"))
    store.add([str(write(tmp_path / "0", day(0), day(1)))], Sla(60_000))

    def figures(sla: Sla, span_ms: int | None = None) -> tuple[int, int]:
        (row,) = store.history(sla, Selection(span_ms=span_ms)).tables().checkpoint_sla
        return row["completed"], row["late_by_duration"]

    assert figures(Sla(60_000)) == (6, 0)
    assert figures(Sla(30_000)) == (6, 2)
    assert figures(Sla(60_000, {"orders": 500})) == (6, 6)
    assert figures(Sla(30_000), span_ms=HOUR) == (2, 0)
    assert figures(Sla(30_000), span_ms=DAY + HOUR) == (5, 1)
    assert store.history(Sla(), Selection(span_ms=HOUR)).period.since_ms == T0 + DAY + HOUR + MIN


def test_cut_off(duckdb: DuckDb, tmp_path: Path) -> None:
    """What a run left behind that was cut off before the end is not seen, and removed a day later."""
    folder = tmp_path / "store"
    StoreIndex(LocalFiles(str(folder)), str(folder)).begin()
    left = write(folder / f"part-1795000000000-{'c' * 32}" / "facts", Story()).parent
    others = write(folder / new_folder() / "facts", Story()).parent
    store = HistoryStore(duckdb, str(folder))
    with pytest.raises(ConfigError, match="the store is empty; give paths"):
        store.history()
    store.add([str(write(tmp_path / "0", day(0)))])
    assert not left.exists()
    assert others.exists()  # of a process that may be adding now
    assert json.loads((folder / "store-00000001.json").read_text())["version"] == 4


def test_a_store_whose_index_is_gone(duckdb: DuckDb, tmp_path: Path) -> None:
    """It is not taken for an empty one, for all that is in it would be lost."""
    store = _of_two_days(duckdb, tmp_path)
    for index in store.glob("store-*.json"):
        index.unlink()
    for part in store.glob("part-*"):
        part.rename(store / re.sub(r"-\d+-", "-1795000000000-", part.name))
    left = sorted(path.name for path in store.iterdir())
    with pytest.raises(ConfigError, match=r"of a store, but no index, store-<number>\.json: restore that"):
        HistoryStore(duckdb, str(store)).add([str(tmp_path / "1")])
    assert sorted(path.name for path in store.iterdir()) == left


NOT_OURS = ["part-00000-8f8c-c000.snappy.parquet", "part-1/x.parquet", "part-00001-old/x.parquet"]


@pytest.mark.parametrize("name", NOT_OURS)
def test_a_folder_of_spark(duckdb: DuckDb, tmp_path: Path, name: str) -> None:
    """Its files have names like those of a store's folders; they are no store, and nobody removes them."""
    (file := tmp_path / "table" / name).parent.mkdir(parents=True)
    file.write_bytes(b"rows")
    with pytest.raises(ConfigError, match=r"has no store-<number>\.json but part-.*: not a store"):
        HistoryStore(duckdb, str(tmp_path / "table"))
    assert file.exists()


@pytest.mark.parametrize("name", NOT_OURS)
def test_files_of_others_beside_a_store(duckdb: DuckDb, tmp_path: Path, name: str) -> None:
    store = _of_two_days(duckdb, tmp_path)
    (file := store / name).parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"rows")
    HistoryStore(duckdb, str(store)).add([str(write(tmp_path / "2", day(2)))])
    assert file.exists()


def test_no_store(duckdb: DuckDb, tmp_path: Path) -> None:
    """A folder of other things is not taken for a store, nor is one of another version."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(
        ConfigError, match=r"has no store-<number>\.json but notes\.txt: not a store of spark-events"
    ):
        HistoryStore(duckdb, str(tmp_path))
    (tmp_path / "store-00000001.json").write_text('{"version": 1}')
    with pytest.raises(ConfigError, match="version 1; 4 is known"):
        HistoryStore(duckdb, str(tmp_path))


def test_a_store_that_is_given_as_events(duckdb: DuckDb, tmp_path: Path) -> None:
    HistoryStore(duckdb, str(tmp_path / "store")).add([str(write(tmp_path / "0", day(0)))])
    with pytest.raises(
        ConfigError, match=r"store-0000000[01]\.json is of a store: give a store with --store"
    ):
        stored_files([str(tmp_path / "store")])


def test_one_of_the_version_before(duckdb: DuckDb, tmp_path: Path) -> None:
    """It is read, and the next change writes the new form."""
    folder = tmp_path / "store"
    HistoryStore(duckdb, str(folder)).add([str(write(tmp_path / "0", day(0)))])
    index = folder / "store-00000001.json"
    content = json.loads(index.read_text())
    (folder / "store.json").write_text(json.dumps({"version": 3, "days": content["days"]}))
    index.unlink()
    store = HistoryStore(duckdb, str(folder))
    assert store.days == ["2026-11-20"]
    store.add([str(write(tmp_path / "1", day(1)))])
    assert not (folder / "store.json").exists()
    assert HistoryStore(duckdb, str(folder)).days == ["2026-11-20", "2026-11-21"]


def test_one_without_the_newest_columns(duckdb: DuckDb, tmp_path: Path) -> None:
    """Columns that did not exist when a day was added are null in it."""
    folder = tmp_path / "store"
    HistoryStore(duckdb, str(folder)).add([str(write(tmp_path / "0", day(0)))])
    _as_of_earlier_versions(folder)
    for file in folder.rglob("facts/**/*.parquet"):
        table = parquet.read_table(file, partitioning=None)
        parquet.write_table(table.drop_columns(["counter", "counted"]), file)
    counted = Story().event(DAY, "TaskCounterEvent", job_kind="application", counter="rows", count=5)
    HistoryStore(duckdb, str(folder)).add([str(write(tmp_path / "1", counted))])

    tables = HistoryStore(duckdb, str(folder)).history().tables()
    assert [row["count"] for row in tables.task_counters] == [5]
    assert [row["completed"] for row in tables.checkpoint_sla] == [3]


def test_two_at_once(duckdb: DuckDb, tmp_path: Path) -> None:
    """Of the same day, too: nothing of either is lost."""
    folder = str(tmp_path / "store")
    first, second = HistoryStore(duckdb, folder), HistoryStore(duckdb, folder)
    first.add([str(write(tmp_path / "0", day(0)))])
    second.add([str(write(tmp_path / "1", day(1), Story().checkpoint(5 * HOUR, 1_000)))])
    again = HistoryStore(duckdb, folder)
    assert again.days == ["2026-11-20", "2026-11-21"]
    (row,) = again.history().tables().checkpoint_sla
    assert row["completed"] == 7


def test_many_processes_at_once(tmp_path: Path) -> None:
    """Each adds one day of a store, and a checkpoint to a day that all of them write."""
    folder, number = tmp_path / "store", 4
    code = (
        "import sys; from spark_events.history.reading.on_duckdb import DuckDb; "
        "from spark_events.history.store.store import HistoryStore; "
        "HistoryStore(DuckDb(), sys.argv[1]).add([sys.argv[2]])"
    )
    adders = []
    for process in range(number):
        shared = Story().checkpoint(10 * HOUR + process * MIN, 1_000, n=process)
        events = write(tmp_path / str(process), day(process), shared)
        adders.append(subprocess.Popen([sys.executable, "-c", code, str(folder), str(events)]))
    assert [adder.wait(120) for adder in adders] == [0] * number
    database = DuckDb()
    (row,) = HistoryStore(database, str(folder)).history().tables().checkpoint_sla
    database.close()
    assert row["completed"] == 3 * number + number


def test_what_is_replaced_stays_for_its_readers(
    duckdb: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And goes some minutes later: the day alone, where other days of its folder are in use."""
    folder = tmp_path / "store"
    store = HistoryStore(duckdb, str(folder))
    store.add([str(write(tmp_path / "0", day(0), day(1)))])
    reader = HistoryStore(duckdb, str(folder)).history()
    before = set(files(folder))
    store.add([str(write(tmp_path / "1", Story().checkpoint(5 * HOUR, 1_000)))])
    assert before < set(files(folder))
    (row,) = reader.tables().checkpoint_sla
    assert row["completed"] == 6
    monkeypatch.setattr(store_index, "READERS_MS", -1)
    store.add([str(write(tmp_path / "2", day(2)))])
    left = {path for path in before if path in files(folder)}
    assert {path for path in before if "date=2026-11-20" in path} == before - left
    (row,) = HistoryStore(duckdb, str(folder)).history().tables().checkpoint_sla
    assert row["completed"] == 10


def test_days_are_dropped(duckdb: DuckDb, tmp_path: Path) -> None:
    """The query ran before, and nobody says so in the days that are left."""
    store = HistoryStore(duckdb, str(tmp_path / "store"))
    store.add([str(write(tmp_path / "0", *(day(number) for number in range(5))))])
    assert store.retain(3 * DAY) == ["2026-11-20"]
    assert store.retain(DAY) == ["2026-11-21", "2026-11-22"]
    again = HistoryStore(duckdb, str(tmp_path / "store"))
    assert again.days == ["2026-11-23", "2026-11-24"]
    tables = again.history().tables()
    (query,) = [row for row in tables.uptime if row["kind"] == "query"]
    assert (query["status"], query["uptime_percent"]) == ("RUNNING", 100)
    assert query["up_ms"] == DAY + 2 * HOUR + MIN
    assert tables.checkpoint_sla[0]["completed"] == 6
    assert again.retain(DAY) == []
    assert again.retain(0) == ["2026-11-23"]
    (query,) = [row for row in again.history().tables().uptime if row["kind"] == "query"]
    assert query["status"] == "RUNNING"


def test_late_events_of_a_dropped_day(duckdb: DuckDb, tmp_path: Path) -> None:
    """They are left out, and counted: the checkpoint that is kept of that day must not count twice."""
    story = [str(write(tmp_path / "0", *(day(number) for number in range(5))))]
    store = HistoryStore(duckdb, str(tmp_path / "store"))
    store.add(story)
    store.retain(DAY)
    before = store.history().tables()
    reading = HistoryStore(duckdb, str(tmp_path / "store")).add(story)
    again = HistoryStore(duckdb, str(tmp_path / "store"))

    assert reading.problems == {"dropped_day": 11}
    assert again.days == ["2026-11-23", "2026-11-24"]
    assert again.history().tables() == before


def test_one_that_is_overtaken_many_times(duckdb: DuckDb, tmp_path: Path) -> None:
    """By so many that the index which it wants to write has come and gone."""
    folder = str(tmp_path / "store")
    HistoryStore(duckdb, folder).add([str(write(tmp_path / "0", day(0)))])
    slow = HistoryStore(duckdb, folder)
    for number in range(1, 8):
        story = Story().checkpoint(number * HOUR + 7, 1_000)
        HistoryStore(duckdb, folder).add([str(write(tmp_path / str(number), story))])
    slow.add([str(write(tmp_path / "8", day(3)))])
    (row,) = HistoryStore(duckdb, folder).history().tables().checkpoint_sla
    assert HistoryStore(duckdb, folder).days == ["2026-11-20", "2026-11-23"]
    assert row["completed"] == 3 + 7 + 3


def test_others_that_build_on_what_is_just_written(
    duckdb: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between writing an index and looking for newer ones: it has succeeded, and its folder is in use."""
    folder = str(tmp_path / "store")
    first = HistoryStore(duckdb, folder)
    create = LocalFiles.create

    def create_and_wait(files: LocalFiles, name: str, content: bytes) -> bool:
        created = create(files, name, content)
        monkeypatch.setattr(LocalFiles, "create", create)
        HistoryStore(duckdb, folder).add([str(write(tmp_path / "1", Story().checkpoint(5 * HOUR, 1_000)))])
        return created

    monkeypatch.setattr(LocalFiles, "create", create_and_wait)
    first.add([str(write(tmp_path / "0", day(0)))])
    (row,) = HistoryStore(duckdb, folder).history().tables().checkpoint_sla
    assert row["completed"] == 4


def test_where_there_are_no_links(duckdb: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some file systems that are mounted from the network."""

    def link(*names: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", link)
    files = LocalFiles(str(tmp_path))
    assert files.create("a", b"first")
    assert not files.create("a", b"second")
    assert (files.read("a"), files.names()) == (b"first", ["a"])


def _of_two_days(duckdb: DuckDb, tmp_path: Path) -> Path:
    store = tmp_path / "store"
    for number in (0, 1):
        HistoryStore(duckdb, str(store)).add([str(write(tmp_path / str(number), day(number)))])
    return store


def test_a_file_in_the_place_of_a_store(duckdb: DuckDb, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(
        ConfigError, match=r"--store .*/store: is not a folder that can be written .*; give a new"
    ):
        _of_two_days(duckdb, tmp_path)


@pytest.mark.parametrize("what", ["part=others", "part=checkpoints", "sums"])
def test_a_file_that_is_missing(duckdb: DuckDb, tmp_path: Path, what: str) -> None:
    """It is named: without it, the report would be too good."""
    store = _of_two_days(duckdb, tmp_path)
    # Sums of the first day are made anew; only that day has facts of other kinds.
    date = "2026-11-20" if what == "part=others" else "2026-11-21"
    gone = next(path for path in store.rglob("*.parquet") if what in str(path) and date in str(path))
    gone.unlink()
    sla = Sla(1) if what == "part=checkpoints" else Sla()
    with pytest.raises(ConfigError, match="has 0 of 1 file") as raised:
        HistoryStore(duckdb, str(store)).history(sla).tables()
    assert str(gone.parent) in str(raised.value)


@pytest.mark.parametrize("part", ["part=others", "part=checkpoints", "sums", "before"])
def test_a_file_with_fewer_rows(duckdb: DuckDb, tmp_path: Path, part: str) -> None:
    """It is not as it was written, which is said: the report would be too good."""
    store = _of_two_days(duckdb, tmp_path)
    if part == "before":
        HistoryStore(duckdb, str(store)).retain(0)
        changed = next(iter(max(store.glob("part-*")).glob("*.parquet")))
    else:
        date = "2026-11-21" if part == "sums" else "2026-11-20"
        changed = next(path for path in store.rglob("*.parquet") if part in str(path) and date in str(path))
    left = f"SELECT * FROM read_parquet('{changed}', hive_partitioning = false) OFFSET 2"
    duckdb.run(f"COPY ({left}) TO '{changed}.new' (FORMAT parquet)")
    Path(f"{changed}.new").replace(changed)

    with pytest.raises(ConfigError, match="are not as they were written; restore them") as raised:
        HistoryStore(duckdb, str(store)).history(Sla() if part == "sums" else Sla(1)).tables()
    assert str(changed.parent) in str(raised.value)


def _as_of_earlier_versions(store: Path) -> None:
    """Take what is known of files out of the index."""
    index = max(store.glob("store-*.json"))
    content = json.loads(index.read_text())
    for entry in content["days"].values():
        del entry["files"], entry["bytes"]
    index.write_text(json.dumps(content))


def test_a_file_that_is_cut_off(duckdb: DuckDb, tmp_path: Path) -> None:
    store = _of_two_days(duckdb, tmp_path)
    _as_of_earlier_versions(store)
    cut = next(path for path in sorted(store.rglob("*.parquet")) if "part=checkpoints" in str(path))
    cut.write_bytes(cut.read_bytes()[:50])
    with pytest.raises(ConfigError, match=f"{cut.name}.*; restore the file, or make a new store"):
        HistoryStore(duckdb, str(store)).history(Sla(1)).tables()


@pytest.mark.parametrize("at", ["head", "middle", "footer"])
def test_a_file_that_is_damaged(duckdb: DuckDb, tmp_path: Path, at: str) -> None:
    """A bad block of a disk: the file has as many bytes as before."""
    store = _of_two_days(duckdb, tmp_path)
    damaged = next(path for path in sorted(store.rglob("*.parquet")) if "part=others" in str(path))
    content = bytearray(damaged.read_bytes())
    begin = {"head": 4, "middle": len(content) // 4, "footer": len(content) - 120}[at]
    content[begin : begin + 100] = random.Random(7).randbytes(100)
    damaged.write_bytes(content)
    with pytest.raises(ConfigError, match=r"restore the file, or make a new store of the events$"):
        HistoryStore(duckdb, str(store)).history(Sla(1)).tables()


@pytest.mark.parametrize("part", ["part=others", "part=checkpoints", "sums"])
@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("SELECT 1 AS x", "has no column"),
        (
            "SELECT * REPLACE ('x' AS app_name, 'x' AS {number}) FROM {file}",
            "has column {number} of another type",
        ),
        ("SELECT * REPLACE (7 AS app_name) FROM {file}", "has column app_name of another type"),
    ],
)
def test_a_file_with_other_columns(
    duckdb: DuckDb, tmp_path: Path, part: str, columns: str, said: str
) -> None:
    """Its rows would be missing, or others."""
    store = _of_two_days(duckdb, tmp_path)
    _as_of_earlier_versions(store)
    # The sums of the first day are made anew.
    date = "2026-11-21" if part == "sums" else "2026-11-20"
    odd = next(path for path in store.rglob("*.parquet") if part in str(path) and date in str(path))
    number = "completed" if part == "sums" else "time_ms"
    statement = columns.format(number=number, file=f"read_parquet('{odd}', hive_partitioning = false)")
    duckdb.run(f"COPY ({statement}) TO '{odd}.new' (FORMAT parquet)")
    Path(f"{odd}.new").replace(odd)

    with pytest.raises(ConfigError, match=f"{odd.name}: {said.format(number=number)}.* restore the file"):
        HistoryStore(duckdb, str(store)).history(Sla() if part == "sums" else Sla(1)).tables()


@pytest.mark.parametrize("left", [0, 50])
def test_an_index_that_is_cut_off(
    duckdb: DuckDb, tmp_path: Path, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The one before serves, which is said; adding goes on, and without any there is a sentence."""
    store = _of_two_days(duckdb, tmp_path)
    newest = store / "store-00000002.json"
    newest.write_bytes(newest.read_bytes()[:left])
    again = HistoryStore(duckdb, str(store))
    assert again.days == ["2026-11-20"]
    assert f"{newest}: cannot be read" in caplog.text
    again.add([str(tmp_path / "1")])
    assert HistoryStore(duckdb, str(store)).days == ["2026-11-20", "2026-11-21"]
    for path in store.glob("store-*.json"):
        path.write_bytes(b"{")
    with pytest.raises(ConfigError, match="there is no older index"):
        HistoryStore(duckdb, str(store))


@pytest.mark.parametrize(
    "odd",
    [
        {"days": []}, {"days": {"2026-11-20": "x"}}, {"days": {"2026-11-20": {"sla": {}}}}, {"before": "x"},
        {"before": {"folder": "part-1", "until": "tomorrow"}}, {"replaced": 5}, {"replaced": [{}]},
        {"days": {"2026-11-20": {"folder": "part-1", "sla": {}, "files": None}}},
        {"days": {"2026-11-20": {"folder": "part-1", "sla": {}, "bytes": {"sums": "x"}}}},
        {"days": {"2026-11-20": {"folder": "part-1/../../x", "sla": {}}}},
    ],
    ids=str,
)  # fmt: skip
def test_an_index_of_another_form(duckdb: DuckDb, tmp_path: Path, odd: dict[str, object]) -> None:
    """It is damaged, like one that is cut off: the one before serves."""
    store = _of_two_days(duckdb, tmp_path)
    newest = store / "store-00000002.json"
    newest.write_text(json.dumps({**json.loads(newest.read_text()), **odd}))
    again = HistoryStore(duckdb, str(store))
    assert again.days == ["2026-11-20"]
    again.history(Sla(1)).tables()


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to nothing"])
def test_an_index_that_is_no_file(duckdb: DuckDb, tmp_path: Path, kind: str) -> None:
    """It is not waited for: the one before serves, and there has to be one."""
    store = _of_two_days(duckdb, tmp_path)
    alone = tmp_path / "alone"
    alone.mkdir()
    make: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "link to nothing": lambda path: path.symlink_to("nothing"),
    }
    make[kind](store / "store-00000099.json")
    make[kind](alone / "store-00000001.json")

    assert (
        LocalFiles(str(store)).exists(HistoryStore(duckdb, str(store))._index._files.names()[-1]) is not None
    )
    with pytest.raises(ConfigError, match=r"store-00000001\.json: cannot be read .*no older index"):
        HistoryStore(duckdb, str(alone))


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nothing")])
def test_rows_that_are_in_no_file(duckdb: DuckDb, tmp_path: Path, make: Callable[[Path], object]) -> None:
    """A pipe in the place of a file is not waited for."""
    store = _of_two_days(duckdb, tmp_path)
    _as_of_earlier_versions(store)
    file = next(store.glob("*/facts/part=checkpoints/*/*.parquet"))
    file.unlink()
    make(file)

    with pytest.raises(ConfigError, match=rf"{file.name}: is not a file"):
        HistoryStore(duckdb, str(store)).history(Sla(1)).tables()


def test_an_index_that_names_folders_elsewhere(duckdb: DuckDb, tmp_path: Path) -> None:
    """Whoever may write to a store has nothing removed that is not in it."""
    store = _of_two_days(duckdb, tmp_path)
    precious = tmp_path / "precious"
    precious.mkdir()
    newest = store / "store-00000002.json"
    content = json.loads(newest.read_text())
    folder = content["days"]["2026-11-21"]["folder"]
    (store / folder / "sums" / "date=x").mkdir()
    content["replaced"] = [{"folder": folder, "day": "x/../../../../precious", "at_ms": 0}]
    newest.write_text(json.dumps(content))
    HistoryStore(duckdb, str(store)).add([str(write(tmp_path / "2", day(2)))])

    assert precious.exists()


def test_nothing_half_written_stays(duckdb: DuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk, whether it is the facts that find no room or the index."""
    store = _of_two_days(duckdb, tmp_path)
    before = sorted(store.iterdir())
    third = str(write(tmp_path / "2", day(2)))

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for method in ("spark_events.history.reading.local_files.LocalFiles.create", "pathlib.Path.mkdir"):
        with monkeypatch.context() as patch:
            patch.setattr(method, full)
            with pytest.raises(ConfigError, match="No space left on device"):
                HistoryStore(duckdb, str(store)).add([third])
        assert sorted(store.iterdir()) == before
