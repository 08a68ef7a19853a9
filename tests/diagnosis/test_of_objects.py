"""Whether all that a stage does in Python makes a DataFrame of a list: the RDDs are those of real stages."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.rdds.of_objects import reads_arrow_batches, unpacks_objects

Rdd = tuple[str, str, list[int]]
SENT: Rdd = ("ParallelCollectionRDD", "readRDDFromFile at PythonRDD.scala:326", [])
MADE: Rdd = ("MapPartitionsRDD", "applySchemaToPythonRDD at NativeMethodAccessorImpl.java:0", [3])


def python(*parents: int) -> Rdd:
    return "PythonRDD", "RDD at PythonRDD.scala:59", list(parents)


def unpacked(after: int) -> Rdd:
    return "MapPartitionsRDD", "mapPartitions at SerDeUtil.scala:119", [after]


def planned(*parents: int) -> Rdd:
    return "MapPartitionsRDD", "save at NativeMethodAccessorImpl.java:0", list(parents)


OF_LIST = [SENT, python(0), unpacked(1), unpacked(2), MADE, planned(4)]


def info(rdds: list[Rdd]) -> dict[str, Any]:
    of_rdds = [
        {"RDD ID": number, "Name": name, "Callsite": place, "Parent IDs": parents}
        for number, (name, place, parents) in enumerate(rdds)
    ]
    return {"RDD Info": of_rdds[::-1]}


def test_a_frame_of_a_list() -> None:
    assert unpacks_objects(info(OF_LIST))


@pytest.mark.parametrize(
    "rdds",
    [
        [],
        [planned()],
        [("HadoopRDD", "textFile at a.py:1", []), *OF_LIST[1:]],
        [("ShuffledRDD", "partitionBy at a.py:1", []), *OF_LIST[1:]],
        [("MapPartitionsRDD", "javaToPython at a.py:1", []), *OF_LIST[1:]],
        [SENT, python(0)],
        [SENT, python(0), unpacked(1), unpacked(2), planned(3)],
        [*OF_LIST, python(5)],
        [*OF_LIST, python(0)],
        [*OF_LIST[1:], SENT],
    ],
    ids=[
        "no RDDs",
        "no Python",
        "a text file",
        "a shuffle",
        "rows of a DataFrame",
        "an RDD that makes no DataFrame",
        "nor one of another kind",
        "functions of its rows",
        "another RDD of the list",
        "other parents",
    ],
)
def test_what_is_more_than_that(rdds: list[Rdd]) -> None:
    assert not unpacks_objects(info(rdds))


@pytest.mark.parametrize(
    ("tasks", "rdds", "are_read"),
    [
        (60, [("MapPartitionsRDD", 60), ("arrow", 60), ("ParallelCollectionRDD", 60)], True),
        (1_060, [("UnionRDD", 1_060), ("arrow", 60), ("FileScanRDD", 1_000)], False),
        (60, [("MapPartitionsRDD", 60), ("ParallelCollectionRDD", 60)], False),
    ],
    ids=["of pandas", "beside many files", "of a list"],
)
def test_arrow_batches(tasks: int, rdds: list[tuple[str, int]], are_read: bool) -> None:
    """Larger batches make tasks fewer only where most of these read one."""
    infos = [{"Name": name, "Number of Partitions": number} for name, number in rdds]
    assert reads_arrow_batches({"Number of Tasks": tasks, "RDD Info": infos}) is are_read
