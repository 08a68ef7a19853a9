"""The rule about tables that are written as a whole to replace a few of their rows."""

from __future__ import annotations

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.diagnosis.writes.upserts import upserts
from tests.support.plans import Plan, S, executed

WRITE = (
    "Execute InsertIntoHadoopFsRelationCommand file:/lake/new, false, Parquet, [path=/lake/new], Overwrite"
)
ANTI = "BroadcastHashJoin [id#1L], [id#11L], LeftAnti, BuildRight, false, false"
OLD = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/old]"}
CHANGES = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/changes]"}
BLOCKED = {"Location": "InMemoryFileIndex(1 paths)[file:/lake/blocked]"}


def told(
    kept: int = 990_000,
    new: int = 10_000,
    join: str = ANTI,
    keys: dict[str, str] = CHANGES,
    keys_rows: int | None = None,
    made: str = "Project [id#1L, cast(name#2 as string) AS name#5]",
    read: str = "Filter isnotnull(id#1L)",
    above: tuple[str, ...] = ("WriteFiles", "Sort [day#3 ASC NULLS FIRST], false, 0"),
    write: str = WRITE,
) -> list[Issue]:
    """Return what is told of a write in stage 2, 100 s, of an old table without some rows, and of new ones."""
    plan = Plan()(0, write, 2, rows=kept + new)
    for depth, text in enumerate(above, 1):
        plan(depth, text, 2)
    depth = 1 + len(above)
    plan(depth, "Union", 2)(depth + 1, made)(depth + 2, join, 2, rows=kept)
    plan(depth + 3, read, 2, rows=kept + new)
    plan(depth + 4, "Scan parquet [id#1L,name#2]", 2, OLD, rows=kept + new)
    plan(depth + 3, "BroadcastExchange HashedRelationBroadcastMode(…)", 1, data_size=9)
    plan(depth + 4, "Scan parquet [id#11L]", 1, keys, rows=new if keys_rows is None else keys_rows)
    plan(depth + 1, "Project [id#21L, name#22]")(
        depth + 2, "Scan parquet [id#21L,name#22]", 2, CHANGES, rows=new
    )
    return list(upserts(executed(plan, s1=(0, 10), s2=(10, 110)), Thresholds()))


def test_a_few_rows_are_replaced() -> None:
    """99 of 100 rows are written as they were."""
    (issue,) = told()
    assert (issue.kind, issue.lost_ms, issue.share_ms) == ("rewrite-whole-files", None, 99 * S)
    assert issue.sentence == (
        "990,000 rows of file:/lake/old are written again to file:/lake/new as they are, to replace or add 10,000, "
        "by id"
    )
    assert issue.evidence == {
        "rewrite.copiedRows": 990_000,
        "rewrite.changedRows": 10_000,
        "rewrite.table": "file:/lake/new",
    }


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"kept": 95_000}, id="a tenth of them"),
        pytest.param({"kept": 9_900, "new": 100}, id="a small table"),
        pytest.param({"join": ANTI.replace("LeftAnti", "LeftSemi")}, id="others are kept"),
        pytest.param({"keys": BLOCKED}, id="keys of another table are left out"),
        pytest.param({"keys_rows": 20_000}, id="more keys than new rows"),
        pytest.param({"keys_rows": 0}, id="no keys"),
        pytest.param({"above": ("HashAggregate(keys=[day#3], functions=[count(1)])",)}, id="aggregated"),
        pytest.param({"made": "Project [id#1L, sha2(name#2, 256) AS name#5]"}, id="computed anew"),
        pytest.param({"read": "HashAggregate(keys=[id#1L], functions=[])"}, id="made of others"),
        pytest.param({"write": "CollectLimit 20"}, id="shown"),
    ],
)  # fmt: skip
def test_others(options: dict[str, object]) -> None:
    """What replaces a large part, leaves out what is not wanted, or writes something else, is needed."""
    assert not told(**options)  # type: ignore[arg-type]
