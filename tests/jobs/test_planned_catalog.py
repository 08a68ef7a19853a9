"""How a statement that creates a table is analyzed without the table's data, its place and its connector."""

from __future__ import annotations

import pytest

from spark_events.jobs.planned_catalog import _created_table


@pytest.mark.parametrize(
    ("text", "analyzed", "provider"),
    [
        (
            "CREATE TABLE t (a INT) USING delta LOCATION '/x' TBLPROPERTIES ('k' = 'v')",
            "CREATE TABLE t (a INT) USING parquet  TBLPROPERTIES ('k' = 'v')",
            "delta",
        ),
        ("CREATE TABLE t (a INT) USING `iceberg`", "CREATE TABLE t (a INT) USING parquet", "iceberg"),
        (
            "CREATE TABLE t (ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts), bucket(4, ts))",
            "CREATE TABLE t (ts TIMESTAMP) USING parquet ",
            "iceberg",
        ),
        (
            "CREATE TABLE t (a INT, day DATE) USING delta PARTITIONED BY (day)",
            "CREATE TABLE t (a INT, day DATE) USING parquet ",
            "delta",
        ),
        (
            "CREATE TABLE s.`by day` (day DATE, a INT) USING iceberg PARTITIONED BY (`day`)",
            "CREATE TABLE s.`by day` (day DATE, a INT) USING parquet PARTITIONED BY (`day`)",
            "iceberg",
        ),
        (
            "CREATE TABLE t (day DATE, a INT) USING hudi PARTITIONED BY (day)",
            "CREATE TABLE t (day DATE, a INT) USING parquet PARTITIONED BY (day)",
            "hudi",
        ),
        ("CREATE OR REPLACE TABLE t AS SELECT 1 AS a", "CREATE TABLE t AS SELECT 1 AS a", ""),
        (
            "CREATE EXTERNAL TABLE t (a STRING) ROW FORMAT DELIMITED FIELDS TERMINATED BY ','\n"
            "STORED AS TEXTFILE\nLOCATION '/x'",
            "CREATE EXTERNAL TABLE t (a STRING) \n\n",
            "",
        ),
        # Words of columns, texts and joins are not clauses.
        (
            "CREATE TABLE t (location STRING COMMENT 'STORED AS x LOCATION \"y\"') USING json",
            "CREATE TABLE t (location STRING COMMENT 'STORED AS x LOCATION \"y\"') USING json",
            "",
        ),
        (
            "CREATE TABLE t AS SELECT * FROM a JOIN b USING (id)",
            "CREATE TABLE t AS SELECT * FROM a JOIN b USING (id)",
            "",
        ),
    ],
)
def test_a_table_becomes_one_of_sparks_own(text: str, analyzed: str, provider: str) -> None:
    created = _created_table(text, {"by day"})

    assert created is not None
    assert (created.text, created.provider) == (analyzed, provider)
    assert created.text.count("\n") == text.count("\n")


def test_a_source_that_always_has_the_same_columns_gets_them() -> None:
    created = _created_table("CREATE TABLE IF NOT EXISTS `a b`.t USING kafka OPTIONS ('subscribe' = 't')")

    assert created is not None
    assert created.name == "`a b`.t"
    assert "t (key BINARY, value BINARY, topic STRING," in created.text


@pytest.mark.parametrize(
    "text", ["CREATE VIEW v AS SELECT 1", "SELECT 'CREATE TABLE t (a INT)'", "DROP TABLE t"]
)
def test_another_statement_creates_no_table(text: str) -> None:
    assert _created_table(text) is None
