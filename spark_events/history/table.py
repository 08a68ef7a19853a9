"""What a table of a report is: data that the terminal, the page, the JSON, Parquet and the docs come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any, NamedTuple

from spark_events.history.figures.application import KnownApplication

Row = dict[str, Any]
STRING, BIGINT, DOUBLE, BOOLEAN, DATE = "STRING", "BIGINT", "DOUBLE", "BOOLEAN", "DATE"


class Column(NamedTuple):
    """A column of the rows: as they are in JSON and in Parquet.

    Attributes:
        type: one of SQL's.
        about: what it has; empty where its name says it.
    """

    name: str
    type: str
    about: str = ""


QUERY = (
    Column("app_name", STRING),
    Column("query_name", STRING, "the streaming query; empty if it is not about one"),
)
JOB = (Column("kind", STRING, "`application` or `query`"), *QUERY)
"""The key of a job: names, which outlive a restart."""
DAY = Column("date", DATE, "the day, in UTC")


class How(Enum):
    """How a value is shown, of which a page and a terminal have their own ideas."""

    TEXT = auto()
    COUNT = auto()
    AMOUNT = auto()
    """A count of things that may be very many."""
    DURATION = auto()
    PERCENT = auto()
    SIZE = auto()
    MOMENT = auto()
    SHORT_MOMENT = auto()
    """Without the year."""
    MINUTE = auto()
    CLOCK = auto()
    """Without the day."""
    AGO = auto()
    """How long before the end of the report a moment was: for reports that end now."""


TIMES = (How.MOMENT, How.SHORT_MOMENT, How.MINUTE, How.CLOCK)


class Where(Flag):
    """Where a column is shown."""

    PAGE = auto()
    TERMINAL = auto()
    WIDE = auto()
    """On terminals that are wide."""
    NOW = auto()
    """Only in reports that end now."""
    PAST = auto()
    """Only in reports that end earlier."""


PAGE, TERMINAL, WIDE, NOW, PAST = Where.PAGE, Where.TERMINAL, Where.WIDE, Where.NOW, Where.PAST


class Part(NamedTuple):
    """A part of a text, with a style: a state (``timeline.STATES``, ``failed``), or one of those below."""

    text: str
    style: str = ""


BAD, ADVICE, MESSAGE = "bad", "advice", "message"
"""Styles: what is wrong, the mark of an advice, and a text that may have several lines."""
NEW_LINE = Part("\n")


class Shown(NamedTuple):
    """A column as people see it.

    Attributes:
        heading: a terminal breaks it where it has a line break.
        value: a column of the rows, or what gives the value of a row; of ``How.TEXT``, that may be parts.
        wraps: whether it is as long as sentences are.
        left: whether a page aligns it left; None does so with texts and times.
        is_bad: whether a page marks the whole cell of a row.
    """

    heading: str
    value: str | Callable[[Row], Any]
    how: How = How.TEXT
    where: Where = PAGE | TERMINAL
    wraps: bool = False
    left: bool | None = None
    is_bad: Callable[[Row], bool] = lambda row: False

    def value_of(self, row: Row) -> Any:
        """Return the value of a row."""
        return row[self.value] if isinstance(self.value, str) else self.value(row)

    def parts_of(self, row: Row) -> Sequence[Part]:
        """Return the parts of a text."""
        value = self.value_of(row)
        return (Part(value or ""),) if value is None or isinstance(value, str) else value


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes:
        name: in JSON, Parquet and Python.
        per: what a row is about.
        columns: of the rows, in order.
        rows: makes those of the applications of one name.
        in_order: puts the rows of all applications in the order of a report; it may leave some out.
        most: how many it leaves, None for all; ``cut`` says so, if there are more.
        heading: over what people see; without it, they see nothing of the table.
        first: which rows come first, in words.
        id: of the table on a page.
        shown: what people see of it; nothing on terminals if no column is for them.
        on_page, on_terminal: turn the rows of a report into those that are shown there.
        in_report: whether a report has it; Parquet has all.
    """

    name: str
    per: str
    columns: tuple[Column, ...]
    rows: Callable[[KnownApplication], Iterable[Row]]
    in_order: Callable[[list[Row]], list[Row]] = list
    most: int | None = None
    cut: str = ""
    heading: str = ""
    first: str = ""
    id: str = ""
    shown: tuple[Shown, ...] = ()
    on_page: Callable[[list[Row]], list[Row]] = list
    on_terminal: Callable[[list[Row]], list[Row]] = list
    in_report: bool = True

    @property
    def types(self) -> Mapping[str, str]:
        """The types of the columns, by name."""
        return {column.name: column.type for column in self.columns}

    def shown_at(self, where: Where, until_now: bool) -> list[Shown]:
        """Return the columns that are shown at some of these places, in a report that ends now or earlier."""
        other = PAST if until_now else NOW
        return [column for column in self.shown if column.where & where and other not in column.where]


def job_name(row: Mapping[str, str]) -> str:
    """Return a row's name: the query's, with its application's, or the application's."""
    return f"{row['app_name']} / {row['query_name']}" if row["query_name"] else row["app_name"]


def by_name(row: Row) -> tuple[str, str]:
    """Return the key by which rows are in the order of their names."""
    return row["app_name"], row["query_name"]


def state_of(states: Mapping[str, str], status: str) -> Callable[[Row], Sequence[Part]]:
    """Return what shows a status in the color of its state."""
    return lambda row: (Part(row[status], states.get(row[status], "starting")),)


def latest_first(rows: list[Row]) -> list[Row]:
    """Return rows the other way round, where a report has them by time."""
    return rows[::-1]


def rows_of_query(tables: Mapping[str, Sequence[Row]], query: str) -> dict[str, list[Row]]:
    """Return the rows of tables that belong to the queries of a name.

    What has no query, an executor say, is about the application, and so about each of its queries.
    """
    applications = {
        row["app_name"] for rows in tables.values() for row in rows if row.get("query_name") == query
    }
    return {
        name: [
            row
            for row in rows
            if (row["query_name"] == query if "query_name" in row else row["app_name"] in applications)
        ]
        for name, rows in tables.items()
    }
