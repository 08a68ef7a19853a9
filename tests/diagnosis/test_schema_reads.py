"""Files that are read as a whole to find out what columns they have."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.schema_reads import SchemaRead, SchemaReads, schema_read
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


def scan(form: str, folder: str) -> EndedExecution:
    location = {"Location": f"InMemoryFileIndex(1 paths)[{folder}]"}
    return executed(Plan()(0, f"Scan {form} [a#1]", 1, location, rows=9), s1=(0, 9))


def test_a_later_plan_says_which_files_they_were() -> None:
    reads = SchemaReads()
    for each in (SchemaRead("csv", 9 * S, 5 << 20), SchemaRead("", 4 * S, 0), SchemaRead("json", S, 0)):
        assert list(reads.take(each)) == []

    assert list(reads.execution_ended(scan("parquet", "s3a://lake/a"))) == []
    (of_json,) = reads.execution_ended(scan("json", "s3a://lake/b"))
    (of_csv,) = reads.execution_ended(scan("csv", "s3a://lake/c"))
    (rest,) = reads.end()
    assert (of_json.lost_ms, of_csv.lost_ms, rest.lost_ms) == (4 * S, 9 * S, S)
    assert "reads CSV files of s3a://lake/c, 5 MiB, only to find what columns they have" in of_csv.sentence
    assert of_csv.kind == "full-scan"
    assert list(reads.end()) == []


def test_the_same_files_again() -> None:
    """Their costs add up, as one issue."""
    reads = SchemaReads()
    told = []
    for _ in range(3):
        assert list(reads.take(SchemaRead("csv", 9 * S, 0))) == []
        told += reads.execution_ended(scan("csv", "s3a://lake/c"))

    assert [issue.lost_ms for issue in told] == [9 * S, 18 * S, 27 * S]
    assert len({issue.cause for issue in told}) == 1
    assert "3 times" in told[-1].sentence


def test_files_with_rows_of_several_lines() -> None:
    """Spark reads each as a whole, by an RDD that it calls by their path."""
    info = {"Stage Name": "load at a.py:3", "RDD Info": [{"Name": "CSVFile: file:/data/x.csv"}]}
    read = schema_read(info, 9 * S, 0)
    assert read is not None
    (issue,) = SchemaReads().take(read)
    assert "Spark reads files of file:/data/x.csv, only to find" in issue.sentence
