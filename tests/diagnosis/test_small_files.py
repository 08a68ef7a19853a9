"""The rule about small files: many, and small; what has no size is not a measurement."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.writes.small_files import small_files
from tests.support.plans import Plan, executed

MIB = 1 << 20
NO_PLAN = EndedExecution(0, 60_000, 4, (), {})


def sentences(**files: int) -> list[str]:
    named = {name.replace("_", " "): number for name, number in files.items()}
    return [issue.sentence for issue in small_files(named, NO_PLAN, Thresholds())]


def test_many_small_files() -> None:
    (issue,) = small_files({"Read": 500, "Read Bytes": 500 * MIB}, NO_PLAN, Thresholds())
    assert issue.kind == "small-files"
    assert issue.lost_bytes == (500 - 4) * 4 * MIB
    assert issue.sentence == "reads 500 files, of 1 MiB each on average; 4 would do"


def test_both_ways() -> None:
    assert sentences(Read=500, Read_Bytes=MIB, Written=200, Written_Bytes=MIB) == [
        "reads 500 files, of 2 KiB each on average; 1 would do",
        "writes 200 files, of 5.1 KiB each on average; 1 would do",
    ]


def test_a_table_with_partitions_needs_a_file_for_each() -> None:
    issue = written(1_200, 30, "Execute InsertIntoHadoopFsRelationCommand file:/out/by_store")
    assert (
        issue.sentence
        == "writes 1,200 files of file:/out/by_store, of 85.3 KiB each on average; 30 would do, "
        "one for each partition"
    )
    assert issue.advice.startswith("Repartition by the columns of partitionBy")


def test_partitions_that_need_several_files_each() -> None:
    """Three partitions of 3 GiB: a task for each would write one file that is far too large."""
    plan = Plan()(
        0, "Execute InsertIntoHadoopFsRelationCommand file:/out/t", 1, number_of_written_files=4_000
    )
    files = {"Written": 4_000, "Written Bytes": 9_216 * MIB, "Written Parts": 3}
    (issue,) = small_files(files, executed(plan, s1=(0, 30)), Thresholds())
    assert issue.sentence.endswith("; 72 would do")
    assert issue.advice.startswith("Write fewer files: coalesce() or repartition()")


def test_partitions_that_are_small_themselves() -> None:
    """One file for each leaves many small files."""
    issue = written(1_200, 400, "Execute InsertIntoHadoopFsRelationCommand file:/out/by_store")
    assert issue.sentence.endswith("; 400 would do, one for each partition")
    assert issue.advice.startswith("Repartition by the columns of partitionBy")
    assert "The 400 partitions hold only 256 KiB each, too" in issue.advice


def test_small_partitions_that_cost_as_much_as_their_second_files() -> None:
    """What has two files in each of many small folders is as slow to write with one."""
    command = (
        "Execute InsertIntoHadoopFsRelationCommand file:/out/t, false, [employee_id#0L], Parquet, "
        '[__partition_columns=["employee_id"], path=file:/out/t], Overwrite, [employee_id, day]'
    )
    issue = written(1_200, 600, command)
    assert issue.sentence.endswith("; 1 would do without these partitions")
    assert issue.advice.startswith("These are 600 partitions, with 2 files each. Unless readers need")
    assert "leave employee_id out of partitionBy" in issue.advice
    assert issue.advice.endswith("then one task writes each.")
    assert written(150, 75, command).sentence.endswith("; 75 would do, one for each partition")  # of 1.3 MiB
    several = written(1_200, 600, command.replace("employee_id#0L", "day#1, employee_id#0L"))
    assert "leave the column that has so many out of partitionBy" in several.advice


def test_a_table_of_large_files_beside_one_of_small_files() -> None:
    """Their mean says nothing of either."""
    plan = Plan()(0, "SortMergeJoin [a#1], [b#2], Inner", 1, rows=9)
    for table, files, mib in (("calls", 8, 40), ("cells", 289, 2)):
        plan(1, f"Scan parquet db.{table} [a#1]", 1, number_of_files_read=files, size_of_files_read=mib * MIB)
    execution = executed(plan, s1=(0, 30))
    (issue,) = small_files({"Read": 297, "Read Bytes": 42 * MIB}, execution, Thresholds())
    assert issue.sentence == "reads 289 files of db.cells, of 7.1 KiB each on average; 1 would do"
    assert issue.evidence["files"] == 289


@pytest.mark.parametrize("top", ["Execute InsertIntoHadoopFsRelationCommand file:/out/t", "Project [id#1L]"])
def test_a_table_with_a_partition_for_each_file(top: str) -> None:
    """Fewer tasks write no fewer files; the sink of a streaming query is in no plan."""
    issue = written(1_200, 1_100, top)
    assert issue.sentence.endswith("; 1 would do without these partitions")
    assert issue.advice.startswith("These are 1,100 partitions, with a file or two each. Unless readers need")
    assert issue.lost_ms == 30_000 * 95 // 100
    assert issue.stages == {1}


def test_what_files_take_at_most() -> None:
    """A stage of 30 s that also writes 150 files takes that long for something else."""
    assert written(150, 0, "Project [id#1L]").lost_ms == 149 * 100


def written(number: int, partitions: int, top: str) -> Issue:
    """Return what is told of so many files in a table's partitions, written in a stage of 30 s."""
    plan = Plan()(0, top, 1, **({"number_of_written_files": number} if "Insert" in top else {"rows": 9}))
    files = {"Written": number, "Written Bytes": 100 * MIB, "Written Parts": partitions}
    (issue,) = small_files(files, executed(plan, lasted_ms=30_000, s1=(0, 30)), Thresholds())
    return issue


FILES, ENTRY = "Execute InsertIntoHadoopFsRelationCommand file:/out/t", "AppendData lake.db.t"


@pytest.mark.parametrize(
    ("command", "of_query", "reads_after", "lost_s"),
    [
        (FILES, False, False, 28.5 + 12 * 5_670 / 5_760),
        (FILES, True, False, 28.5),
        (FILES, False, True, 28.5),
        (ENTRY, False, False, 28.5),
    ],
    ids=["a write", "a micro-batch", "a stage after it", "a table with a log of commits"],
)
def test_files_that_the_driver_commits_one_after_the_other(
    command: str, of_query: bool, reads_after: bool, lost_s: float
) -> None:
    """It does so after the last stage: for 12 s, of all files but one for each partition."""
    plan = Plan()(0, command, 1, number_of_written_files=5_760)(1, "Window [n#3]", 1, rows=1_000)
    files = {"Written": 5_760, "Written Bytes": 50_000_000, "Written Parts": 90}
    stages = {"s1": (0, 30), **({"s2": (30, 35)} if reads_after else {})}
    execution = executed(plan, lasted_ms=42_000, **stages)
    (issue,) = small_files(files, execution, Thresholds(), of_query)
    assert issue.lost_ms == pytest.approx(lost_s * 1_000, abs=100)
    commits = not of_query and not reads_after and command == FILES
    assert issue.driver_ms == (pytest.approx(11_812, abs=1) if commits else 0)
    assert issue.driver_span_ms == ((30_000, 42_000) if commits else (0, 0))


@pytest.mark.parametrize(("number", "size"), [(100, MIB), (500, 1_500 * MIB), (500, 0), (0, 0)])
def test_few_large_or_unmeasured(number: int, size: int) -> None:
    assert sentences(Read=number, Read_Bytes=size) == []


@pytest.mark.parametrize(("scans", "told"), [(120, True), (40, False)])
def test_files_of_as_many_scans(scans: int, told: bool) -> None:
    """As of a loop with union(): Spark puts together what one scan reads."""
    plan = Plan()(0, "Union")
    for number in range(scans):
        files = {"number_of_files_read": 120 // scans, "size_of_files_read": 9_000}
        plan(1, f"Scan parquet db.day_{number} [id#1L]", 1, rows=9, **files)
    read = {"Read": 120, "Read Bytes": scans * 9_000}
    (issue,) = small_files(read, executed(plan, s1=(0, 30)), Thresholds())
    assert issue.advice.startswith("They are read by 120 scans") is told
    assert issue.lost_ms
    assert issue.lost_ms > 5_000


@pytest.mark.parametrize(
    ("location", "has_format", "of_stream"),
    [
        ("InMemoryFileIndex(1 paths)[file:/out/t]", False, False),
        ("CatalogFileIndex(1 paths)[file:/out/t]", False, False),
        ("MetadataLogFileIndex(1 paths)[file:/out/t]", False, True),
        ("PreparedDeltaFileIndex(1 paths)[file:/out/t]", True, False),
        ("", True, False),
    ],
)
def test_who_wrote_files_decides_what_to_do(location: str, has_format: bool, of_stream: bool) -> None:
    """OPTIMIZE is for tables that may have it, a larger micro-batches for streaming queries."""
    at = {"Location": location} if location else {}
    plan = Plan()(0, "Project [id#1L]", 1)(1, "Scan parquet [id#1L]", 1, at, number_of_files_read=500)
    (issue,) = small_files({"Read": 500, "Read Bytes": MIB}, executed(plan, s1=(0, 30)), Thresholds())
    assert ("OPTIMIZE" in issue.advice) is has_format
    assert ("larger micro-batches" in issue.advice) is of_stream
    assert issue.evidence.get("fileTables") == ("file:/out/t" if location else None)


@pytest.mark.parametrize("of_query", [True, False])
def test_micro_batches_that_write_small_files_may_be_fewer(of_query: bool) -> None:
    (issue,) = small_files({"Written": 500, "Written Bytes": MIB}, NO_PLAN, Thresholds(), of_query)
    assert ("larger micro-batches" in issue.advice) is of_query


@pytest.mark.parametrize(
    ("condition", "files", "told"),
    [
        ("ts#3 >= 2026-01-01 00:00:00", 232, 0),
        ("ts#3 >= 2026-01-01 00:00:00", 233, 1),
        ("user#4 >= 17", 232, 1),
    ],
    ids=["one or two in each partition", "more in each", "no time"],
)
def test_files_of_partitions_that_should_not_be_read(condition: str, files: int, told: int) -> None:
    """They are told as such; but where partitions have many files, these are small whatever is read."""
    where = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/clicks]", "PartitionFilters": "[]"}
    plan = Plan()(0, f"Filter ({condition})", 1, rows=1_000)
    figures = {"number_of_files_read": files, "number_of_partitions_read": 116, "rows": 1_000}
    plan(1, "Scan json [ts#3,user#4,day#5]", 1, where, **figures)
    read = {"Read": files, "Read Bytes": files * MIB}
    assert len([*small_files(read, executed(plan, s1=(0, 40)), Thresholds())]) == told


@pytest.mark.parametrize(("scan_s", "lost_ms"), [(24, 5_700), (0, 57_000)], ids=["measured", "text"])
def test_reading_files_takes_no_longer_than_their_scan(scan_s: int, lost_ms: int) -> None:
    """Files are opened within it: what else the stage does, such as sorting, is not for small files."""
    plan = Plan()(0, "Sort [day#1 ASC]", 1, sort_time=200_000)
    sizes = {"number_of_files_read": 1_000, "size_of_files_read": MIB}
    of_scan = {"scan_time": scan_s * 1_000} if scan_s else {}
    plan(1, "Scan parquet db.curve [day#1]", 1, rows=4_000_000, **sizes, **of_scan)
    files = {"Read": 1_000, "Read Bytes": MIB}
    (issue,) = small_files(files, executed(plan, s1=(0, 60)), Thresholds())
    assert issue.lost_ms == pytest.approx(lost_ms, rel=0.01)


@pytest.mark.parametrize(("rows", "lost_s"), [(3_000_000, 22), (12_000_000, 0), (1_000, 28.5)])
def test_what_rows_need_is_not_for_the_files_that_are_written(rows: int, lost_s: float) -> None:
    """At 10 µs of a task's time for a row, and 25 MB a second; of the rest, all but 5 % at most."""
    command = "Execute InsertIntoHadoopFsRelationCommand file:/out/t"
    plan = Plan()(0, command, 1, number_of_written_files=5_760)(1, "Window [n#3]", 1, rows=rows)
    files = {"Written": 5_760, "Written Bytes": 50_000_000, "Written Parts": 90}
    (issue,) = small_files(files, executed(plan, lasted_ms=30_000, s1=(0, 30)), Thresholds())
    assert issue.lost_ms == pytest.approx(lost_s * 1_000, abs=100)


@pytest.mark.parametrize(
    ("above", "lost_s"),
    [
        ("HashAggregate(keys=[k#1], functions=[partial_count(1)])", 27.4),
        ("Project [sha2(k#1, 256) AS h#2]", 7.6),
        ("BroadcastHashJoin [k#1], [id#3], Inner, BuildRight, false", 27.4),
        ("BroadcastHashJoin [k#1], [id#3], Inner, BuildRight, (a#4 < b#5), false", 7.6),
        ("BroadcastHashJoin [sha2(k#1, 256)], [id#3], Inner, BuildRight, false", 7.6),
    ],
    ids=[
        "tasks that do next to nothing else",
        "a function that may take long",
        "rows are looked up",
        "pairs are compared",
        "keys that may take long",
    ],
)
def test_what_many_tasks_take_besides_opening_files(above: str, lost_s: float) -> None:
    """A task for every few files writes for the shuffle, too."""
    plan = Plan()(0, above, 1, rows=300_000)
    files = {"number_of_files_read": 3_000, "size_of_files_read": 25_000_000, "scan_time": 32_000}
    plan(1, "Scan parquet db.payments [k#1]", 1, rows=360_000, **files)
    (issue,) = small_files(
        {"Read": 3_000, "Read Bytes": 25_000_000}, executed(plan, s1=(0, 30)), Thresholds()
    )
    assert issue.lost_ms == pytest.approx(lost_s * 1_000, abs=300)


@pytest.mark.parametrize(("rows", "lost_ms"), [(150_000, 25_600), (9_000_000, 4_485)])
def test_a_write_in_whose_stage_nothing_is_measured(rows: int, lost_ms: int) -> None:
    """Behind repartition(n), it has no node of its own but the write, and is the last one."""
    command = "Execute InsertIntoHadoopFsRelationCommand file:/out/t"
    plan = Plan()(0, command, None, number_of_written_files=1_500, rows=rows)(1, "Exchange [id#1]", 1, rows=1)
    files = {"Written": 1_500, "Written Bytes": 1_500_000}
    (issue,) = small_files(files, executed(plan, lasted_ms=28_000, s1=(0, 1), s2=(1, 28)), Thresholds())
    assert issue.stages == {2}
    assert issue.lost_ms == pytest.approx(lost_ms, rel=0.01)
