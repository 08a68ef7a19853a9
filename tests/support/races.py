"""Two sessions that create the same table at once, by Spark alone or by spark_events.ctas."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

FIRST_ROWS = (0, 100)
_ROWS = 3


def is_corrupt(sessions: tuple[Any, Any], name: str, atomic: bool) -> bool:
    """Let two sessions race for a table, each with rows of its own.

    Args:
        sessions: two SparkSessions of one application.
        name: the table, which is dropped in the end.
        atomic: whether by ``spark_events.ctas``; by Spark alone otherwise.

    Returns:
        Whether the table is something else than the rows of exactly one of them, who was told so.
    """
    together = threading.Barrier(2)

    def one(session: Any, first: int) -> bool:
        from spark_events import ctas

        text = f"CREATE TABLE {name} USING parquet AS SELECT id FROM range({first}, {first + _ROWS}, 1, 2)"
        together.wait(30)
        try:
            ctas.sql(session, text) if atomic else session.sql(text)
        except Exception:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        won = list(pool.map(one, sessions, FIRST_ROWS))
    spark = sessions[0]
    rows = _rows_of_files(spark, name) if any(won) else []
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    whole = [list(range(first, first + _ROWS)) for first, wins in zip(FIRST_ROWS, won, strict=True) if wins]
    return len(whole) != 1 or rows != whole[0]


def _rows_of_files(spark: Any, name: str) -> list[int]:
    """Return what is in the table's folder, which another session would read; this one may have it cached."""
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()
    return sorted(row.id for row in spark.read.parquet(described[0].data_type).collect())
