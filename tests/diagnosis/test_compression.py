"""Files that are compressed at a high level."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.writes.compression import heavy_compression
from tests.support.plans import Plan, executed

S = 1_000
LEVEL = "spark.hadoop.parquet.compression.codec.zstd.level"
CODEC = "spark.sql.parquet.compression.codec"
OF_ORC = "spark.hadoop.orc.compression.zstd.level"


def told(conf: Mapping[str, str], options: str = "", of_format: str = "Parquet") -> list[Issue]:
    """Return what is told of a write whose stage takes 60 s, 12 of them to read."""
    command = (
        f"Execute InsertIntoHadoopFsRelationCommand file:/out, false, {of_format}, [path=file:/out{options}]"
    )
    plan = Plan()(0, f"{command}, Overwrite, [a]", 1, written_output=9 << 20)
    plan(1, "WriteFiles", 1)(2, "Scan parquet db.t [a#1]", 1, rows=100, scan_time=4 * 12 * S)
    return list(heavy_compression(executed(plan, s1=(0, 60)), conf))


@pytest.mark.parametrize(
    ("conf", "options", "of_format"),
    [
        ({LEVEL: "19", CODEC: "zstd"}, "", "Parquet"),
        ({LEVEL: "19"}, ", compression=zstd", "Parquet"),
        ({CODEC: "zstd"}, ", parquet.compression.codec.zstd.level=12", "Parquet"),
        ({OF_ORC: "22"}, "", "ORC"),
    ],
    ids=["by the configuration", "the codec by an option", "the level by an option", "ORC"],
)
def test_a_high_level(conf: dict[str, str], options: str, of_format: str) -> None:
    (issue,) = told(conf, options, of_format)
    assert (issue.lost_ms, issue.share_ms) == (None, pytest.approx(48 * S, rel=0.01))
    assert "tasks compress 9 MiB for file:/out with zstd at level" in issue.sentence


def test_orc_has_no_levels_before_spark_4() -> None:
    plan = Plan()(
        0, "Execute InsertIntoHadoopFsRelationCommand file:/out, false, ORC, [path=file:/out]", 1, rows=1
    )
    assert list(heavy_compression(executed(plan, s1=(0, 60)), {OF_ORC: "22"}))
    assert not list(heavy_compression(executed(plan, s1=(0, 60)), {OF_ORC: "22"}, levels_of_orc=False))


@pytest.mark.parametrize(
    ("conf", "options", "of_format"),
    [
        ({LEVEL: "19"}, "", "Parquet"),
        ({LEVEL: "19", CODEC: "zstd"}, ", compression=snappy", "Parquet"),
        ({LEVEL: "9", CODEC: "zstd"}, "", "Parquet"),
        ({LEVEL: "19", CODEC: "zstd"}, ", parquet.compression.codec.zstd.level=3", "Parquet"),
        ({LEVEL: "19", CODEC: "zstd"}, "", "CSV"),
        ({LEVEL: "high", CODEC: "zstd"}, "", "Parquet"),
        ({CODEC: "zstd"}, "", "Parquet"),
    ],
    ids=["snappy", "snappy by an option", "9", "3 by an option", "another format", "no number", "no level"],
)
def test_what_is_no_issue(conf: dict[str, str], options: str, of_format: str) -> None:
    assert told(conf, options, of_format) == []
