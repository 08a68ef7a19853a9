"""Table definitions: SQL files whose statements run before a query is analyzed or started."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import Any

from spark_events.api import ConfigError
from spark_events.spark.sql_errors import error_summary
from spark_events.spark.sql_statements import COMMENT, END, sql_tokens
from spark_events.spark.sql_text import quoted
from spark_events.sql_runner.analysis.jvm import entry_of

_HINT = "/*+"
# Statements that affect only one session, and so have to run in each.
_OF_SESSION = re.compile(
    r"(SET|USE|RESET|CREATE\s+(OR\s+REPLACE\s+)?(GLOBAL\s+)?TEMP(ORARY)?|DECLARE|CACHE)\b", re.I
)


def split_statements(sql: str) -> list[str]:
    """Return the statements of a file without comments, except hints, and those without an end."""
    statements: list[str] = []
    parts: list[str] = []
    for token in sql_tokens(sql):
        text = sql[token.start : token.end]
        if token.kind == END:
            statements.append("".join(parts).strip())
            parts = []
        else:
            parts.append(" " if token.kind == COMMENT and not text.startswith(_HINT) else text)
    statements.append("".join(parts).strip())
    return [statement for statement in statements if statement]


def read_definitions(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the statements of some files, in their order.

    Raises:
        ConfigError: one cannot be read.
    """
    statements: list[str] = []
    for path in paths:
        try:
            statements += split_statements(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--table-definition-path {path}: cannot be read: {error}") from error
    return tuple(statements)


class TableDefinitions:
    """The definitions that one application has run: once each, except those that affect only one session."""

    def __init__(self) -> None:
        self._statements_run: set[str] = set()
        self._statement_of_table: dict[str, str] = {}
        # Of the statements that have been run, or of the queries that count on them.
        self._changed = Condition()
        self._users = 0

    def run(self, session: Any, statements: Sequence[str]) -> None:
        """Run statements in a session.

        Raises:
            ConfigError: one cannot be run; the message says which, and why.
        """
        with self._changed:
            self._run_all(session, statements)

    @contextmanager
    def in_force(self, session: Any, statements: Sequence[str]) -> Iterator[None]:
        """Let a query be analyzed and started while its tables are as its own statements define them.

        Other queries may define the same tables otherwise: as long as the block runs, nobody changes them.

        Args:
            session: the query's, in which all statements have been run before.
            statements: the query's.

        Raises:
            ConfigError: one cannot be run; the message says which, and why.
        """
        shared = [statement for statement in statements if not _OF_SESSION.match(statement)]
        with self._changed:
            self._run_all(session, shared)
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def _run_all(self, session: Any, statements: Sequence[str]) -> None:
        self._changed.wait_for(lambda: not self._users or not self._redefines(session, statements))
        for statement in statements:
            try:
                self._run(session, statement)
            except ConfigError:
                raise
            except Exception as error:  # a catalog's own, too
                raise ConfigError(
                    f"table definition {_shortened(statement)}: {error_summary(error)}"
                ) from error

    def _redefines(self, session: Any, statements: Sequence[str]) -> bool:
        """Return whether statements would define a table otherwise than it is defined now."""
        return any(
            _table(session, statement) in self._statement_of_table
            for statement in statements
            if statement not in self._statements_run and not _OF_SESSION.match(statement)
        )

    def _run(self, session: Any, statement: str) -> None:
        if _OF_SESSION.match(statement):
            session.sql(statement)
            return
        if statement in self._statements_run:
            return
        table = _table(session, statement)
        if table and table in self._statement_of_table:
            self._drop_outdated(session, table)
        session.sql(statement)
        self._statements_run.add(statement)
        if table:
            self._statements_run.discard(self._statement_of_table.get(table, ""))
            self._statement_of_table[table] = statement

    def _drop_outdated(self, session: Any, table: str) -> None:
        """Drop a table of an in-memory catalog whose definition has changed."""
        if session.conf.get("spark.sql.catalogImplementation") != "in-memory":
            return
        if session.catalog.tableExists(table) and session.catalog.getTable(table).tableType == "MANAGED":
            raise ConfigError(
                f"table definition of {table}: has changed, but Spark keeps the rows of this table in its "
                "warehouse; give it a LOCATION, or restart the application"
            )
        session.sql(f"DROP TABLE IF EXISTS {table}")


def _table(session: Any, statement: str) -> str:
    """Return the table that a statement makes; empty for another statement, or one that does not parse."""
    try:
        return quoted(list(entry_of(session).createdTable(statement)))
    except Exception:  # running it says why
        return ""


def _shortened(statement: str) -> str:
    line = " ".join(statement.split())
    return repr(line if len(line) <= 80 else f"{line[:77]}...")
