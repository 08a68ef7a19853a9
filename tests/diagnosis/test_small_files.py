"""The rule about small files: many, and small; what has no size is not a measurement."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.plans.execution import EndedExecution
from spark_events.diagnosis.small_files import small_files
from spark_events.diagnosis.thresholds import Thresholds
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
    metrics = {"number_of_written_files": 1_200, "number_of_dynamic_part": 30}
    plan = Plan()(0, "Execute InsertIntoHadoopFsRelationCommand file:/out/by_store", 1, **metrics)
    (issue,) = small_files(
        {"Written": 1_200, "Written Bytes": 100 * MIB}, executed(plan, s1=(0, 30)), Thresholds()
    )
    assert issue.sentence.endswith("30 would do")


@pytest.mark.parametrize(("number", "size"), [(100, MIB), (500, 1_500 * MIB), (500, 0), (0, 0)])
def test_few_large_or_unmeasured(number: int, size: int) -> None:
    assert sentences(Read=number, Read_Bytes=size) == []
