"""Stages that make the rows of a DataFrame of what ``createDataFrame`` was given and the driver has sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PYTHON, _OF_DRIVER, _OF_ARROW = "PythonRDD", "ParallelCollectionRDD", "arrow"
_MAKES_FRAME = "applySchemaToPythonRDD at "
_MOST_BETWEEN = 3
"""How many RDDs are between what Python returns and the rows of the DataFrame: two, in all versions."""


def unpacks_objects(stage_info: Mapping[str, Any]) -> bool:
    """Return whether all that a stage does in Python makes DataFrames of objects that the driver has sent.

    Such are those of ``createDataFrame`` of a list. ``sc.parallelize(…).map(…).toDF()`` has the same RDDs:
    nobody knows from them whether the program's own functions are among what Python does.

    Args:
        stage_info: the ``Stage Info`` of its StageCompleted.
    """
    rdds = {int(rdd.get("RDD ID", -1)): rdd for rdd in stage_info.get("RDD Info") or ()}
    read_by: dict[int, list[int]] = {}
    for number, rdd in rdds.items():
        for parent in rdd.get("Parent IDs") or ():
            read_by.setdefault(int(parent), []).append(number)
    in_python = [number for number, rdd in rdds.items() if rdd.get("Name") == _PYTHON]
    return bool(in_python) and all(
        _is_of_driver(rdds, number) and _makes_frame(rdds, read_by, number) for number in in_python
    )


def reads_arrow_batches(stage_info: Mapping[str, Any]) -> bool:
    """Return whether most tasks of a stage read an Arrow batch of ``createDataFrame``: each reads one.

    Args:
        stage_info: the ``Stage Info`` of its StageCompleted.
    """
    batches = sum(
        int(rdd.get("Number of Partitions") or 0)
        for rdd in stage_info.get("RDD Info") or ()
        if rdd.get("Name") == _OF_ARROW
    )
    return batches > 0 and 2 * batches >= int(stage_info.get("Number of Tasks") or 0)


def _is_of_driver(rdds: Mapping[int, Mapping[str, Any]], number: int) -> bool:
    parents = rdds[number].get("Parent IDs") or ()
    return bool(parents) and all(rdds.get(int(each), {}).get("Name") == _OF_DRIVER for each in parents)


def _makes_frame(
    rdds: Mapping[int, Mapping[str, Any]], read_by: Mapping[int, list[int]], number: int
) -> bool:
    for _ in range(_MOST_BETWEEN):
        readers = read_by.get(number, [])
        if len(readers) != 1:
            return False
        (number,) = readers
        if str(rdds[number].get("Callsite") or "").startswith(_MAKES_FRAME):
            return True
    return False
