"""The names of a session: its temporary views and functions, and its current catalog and database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_events.spark.sql_text import quoted


@dataclass(frozen=True)
class SessionNames:
    """The names of a session at one time.

    Attributes:
        views, functions: the names of those that are temporary.
        catalog, database: the current ones.
    """

    views: frozenset[str]
    functions: frozenset[str]
    catalog: str
    database: str

    @classmethod
    def of(cls, session: Any) -> SessionNames:
        """Return those that a session, not one of Spark Connect, has now."""
        catalog = session._jsparkSession.sessionState().catalog()
        views, functions = catalog.listLocalTempViews("*"), catalog.listTemporaryFunctions()
        return cls(
            frozenset(views.apply(index).table() for index in range(views.size())),
            frozenset(functions.apply(index).funcName() for index in range(functions.size())),
            session.catalog.currentCatalog(),
            session.catalog.currentDatabase(),
        )

    def restore(self, session: Any) -> None:
        """Remove what has come to a session since then; what was replaced or dropped stays so."""
        now = SessionNames.of(session)
        for view in now.views - self.views:
            session.catalog.dropTempView(view)
        for function in now.functions - self.functions:
            session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quoted([function])}")
        if (now.catalog, now.database) != (self.catalog, self.database):
            session.catalog.setCurrentCatalog(self.catalog)
            session.catalog.setCurrentDatabase(self.database)
