"""The list of the tables of a report; a new one is a line here."""

from __future__ import annotations

from collections.abc import Iterable

from spark_events.history.figures.application import Application, Period, known_of
from spark_events.history.options import Sla
from spark_events.history.table import Row, Table
from spark_events.history.tables.checkpoint_sla import CHECKPOINT_SLA, CHECKPOINT_SLA_PER_DAY
from spark_events.history.tables.executors import EXECUTORS
from spark_events.history.tables.failures import FAILURES
from spark_events.history.tables.issues import ISSUES
from spark_events.history.tables.runs import RUNS
from spark_events.history.tables.slower_runs import SLOWER_RUNS
from spark_events.history.tables.task_counters import TASK_COUNTERS
from spark_events.history.tables.uptime import STATUS_INTERVALS, UPTIME, UPTIME_PER_DAY

TABLES: tuple[Table, ...] = (
    STATUS_INTERVALS,
    UPTIME,
    UPTIME_PER_DAY,
    RUNS,
    CHECKPOINT_SLA,
    CHECKPOINT_SLA_PER_DAY,
    FAILURES,
    ISSUES,
    SLOWER_RUNS,
    TASK_COUNTERS,
    EXECUTORS,
)
"""All of them, in the order in which people see them."""
COLUMNS = {table.name: table.types for table in TABLES}
"""The columns of each table, and their types."""


class Tables(dict[str, list[Row]]):
    """The rows of tables, by name: ``tables["uptime"]``, or ``tables.uptime``.

    Times in them are ms since the epoch, days are UTC's: ``2026-11-20``.
    """

    def __getattr__(self, name: str) -> list[Row]:
        """Return the rows of a table."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no table {name!r}, but {', '.join(self)}") from None


def tables_of(applications: Iterable[Application], sla: Sla, period: Period) -> Tables:
    """Return the tables of some applications, whose facts need not be in memory at once."""
    tables = Tables({table.name: [] for table in TABLES})
    for application in applications:
        known = known_of(application, sla, period)
        for table in TABLES:
            tables[table.name].extend(table.rows(known))
    return tables
