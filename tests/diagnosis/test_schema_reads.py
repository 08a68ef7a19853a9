"""Files that are read as a whole to find out what columns they have."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.rdds.schema_reads import SchemaRead, SchemaReads, schema_read
from tests.support.plans import Plan, executed

S = 1_000


@pytest.mark.parametrize(
    ("name", "rdd", "form"),
    [
        ("csv at NativeMethodAccessorImpl.java:0", "FileScanRDD", "csv"),
        ("load at nightly.py:3", "FileScanRDD", ""),
        ("csv at nightly.py:3", "ParallelCollectionRDD", None),
        ("count at nightly.py:3", "FileScanRDD", None),
        ("parquet at nightly.py:3", "FileScanRDD", None),
    ],
    ids=["csv", "load", "rows in the program", "an action", "files with a schema"],
)
def test_which_stages_look_for_a_schema(name: str, rdd: str, form: str | None) -> None:
    read = schema_read({"Stage Name": name, "RDD Info": [{"Name": "MapPartitionsRDD"}, {"Name": rdd}]}, 9, 7)
    assert read == (None if form is None else SchemaRead(form, 9, 7))


MIB, GIB = 1 << 20, 1 << 30


def scans(*files: tuple[str, str, int]) -> EndedExecution:
    """Return an execution that reads these files: of a format, in a folder, so large."""
    plan = Plan()(0, "Union", 1)
    for form, folder, size in files:
        location = {"Location": f"InMemoryFileIndex(1 paths)[{folder}]"}
        plan(1, f"Scan {form} [a#1]", 1, location, rows=9, size_of_files_read=size)
    return executed(plan, s1=(0, 9))


def told(reads: SchemaReads, *files: tuple[str, str, int]) -> dict[object, int | None]:
    """Return what is told of an execution: by the path, what it costs."""
    return {issue.evidence["schema.path"]: issue.lost_ms for issue in reads.execution_ended(scans(*files))}


def waiting(*each: SchemaRead) -> SchemaReads:
    reads = SchemaReads()
    for read in each:
        assert list(reads.take(read)) == []
    return reads


def test_a_later_plan_says_which_files_they_were() -> None:
    reads = waiting(
        SchemaRead("csv", 9 * S, 5 * MIB), SchemaRead("", 4 * S, 7 * MIB), SchemaRead("json", S, MIB)
    )
    assert told(reads, ("parquet", "s3a://lake/a", 5 * MIB)) == {}
    (of_json,) = reads.execution_ended(scans(("json", "s3a://lake/b", 7 * MIB)))
    (of_csv,) = reads.execution_ended(scans(("csv", "s3a://lake/c", 5 * MIB)))
    (rest,) = reads.end()
    assert (of_json.lost_ms, of_csv.lost_ms, rest.lost_ms) == (4 * S, 9 * S, S)
    assert "reads CSV files of s3a://lake/c, 5 MiB, only to find what columns they have" in of_csv.sentence
    assert of_csv.kind == "full-scan"
    assert list(reads.end()) == []


def test_the_same_files_again() -> None:
    """Their costs add up, as one issue."""
    reads = SchemaReads()
    issues = []
    for _ in range(3):
        assert list(reads.take(SchemaRead("csv", 9 * S, MIB))) == []
        issues += reads.execution_ended(scans(("csv", "s3a://lake/c", MIB)))

    assert [issue.lost_ms for issue in issues] == [9 * S, 18 * S, 27 * S]
    assert len({issue.cause for issue in issues}) == 1
    assert "3 times" in issues[-1].sentence


A, B = ("csv", "s3a://lake/a", 5 * MIB), ("csv", "s3a://lake/b", 9 * GIB)
OF_A, OF_B = SchemaRead("csv", 9 * S, 5 * MIB + 100), SchemaRead("csv", 60 * S, 9 * GIB + 4 * MIB, "", 72)


@pytest.mark.parametrize(
    "executions",
    [[[A], [A], [B]], [[B], [A]], [[A, A], [B]], [[A, B]]],
    ids=["one of them twice", "the second one first", "twice in one plan", "both in one plan"],
)
def test_each_is_told_of_the_files_that_are_as_large(executions: list[list[tuple[str, str, int]]]) -> None:
    reads, found = waiting(OF_A, OF_B), {}
    for files in executions:
        found |= told(reads, *files)
    assert found == {"s3a://lake/a": 9 * S, "s3a://lake/b": 60 * S}


@pytest.mark.parametrize(
    ("read", "files"),
    [
        ([SchemaRead("csv", 9 * S, 2 * GIB)], [A]),
        ([SchemaRead("", 9 * S, 2 * GIB)], [A]),
        ([SchemaRead("json", 9 * S, 5 * MIB)], [A]),
        ([SchemaRead("csv", 9 * S, 0)], [A]),
        ([SchemaRead("csv", 9 * S, 0)], [("csv", "s3a://lake/a", 0)]),
        ([OF_A, SchemaRead("csv", 8 * S, 5 * MIB)], [A]),
        ([OF_A], [A, ("csv", "s3a://lake/c", 5 * MIB)]),
    ],
    ids=[
        "files with a schema, after others without",
        "of another format",
        "of another format as large",
        "nobody has measured how much was read",
        "nor how large the files are",
        "two were as large",
        "two are as large",
    ],
)
def test_nobody_knows_which_files_they_were(
    read: list[SchemaRead], files: list[tuple[str, str, int]]
) -> None:
    """Then they are told at the end, without a path."""
    reads = waiting(*read)
    assert told(reads, *files) == {}
    issue = list(reads.end())[-1]
    assert (issue.lost_ms, issue.evidence["schema.path"]) == (sum(each.wall_ms for each in read), "")


@pytest.mark.parametrize(("folder", "is_known"), [("file:/lake/b", True), ("s3a://lake/b", False)])
def test_what_is_read_of_local_files_counts_with_their_checksums(folder: str, is_known: bool) -> None:
    """Of 512 bytes, four."""
    reads = waiting(SchemaRead("csv", 60 * S, 9 * GIB + 72 * MIB, "", 72))
    assert (told(reads, ("csv", folder, 9 * GIB)) == {folder: 60 * S}) == is_known


def test_of_too_many_that_wait_the_first_is_told_without_a_path() -> None:
    reads = waiting(*[OF_A] * 100)
    (issue,) = reads.take(OF_A)
    assert issue.lost_ms == 9 * S


def test_files_with_rows_of_several_lines() -> None:
    """Spark reads each as a whole, by an RDD that it calls by their path."""
    info = {"Stage Name": "load at a.py:3", "RDD Info": [{"Name": "CSVFile: file:/data/x.csv"}]}
    read = schema_read(info, 9 * S, 0)
    assert read is not None
    (issue,) = SchemaReads().take(read)
    assert "Spark reads files of file:/data/x.csv, only to find" in issue.sentence
