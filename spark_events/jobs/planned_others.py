"""The catalogs besides Spark's own that statements name: each is in memory while they are analyzed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from spark_events.jvm.janino import SHARED, JavaUnit, new
from spark_events.spark.sql_text import quoted

_JAVA = JavaUnit(
    "spark_events.jobs",
    "io.sparkevents.planned",
    ("PlannedTable", "PlannedTables", "StatementNames"),
    SHARED,
)
OWN = "spark_catalog"
"""The name of Spark's own catalog."""
CATALOG_KEYS = "spark.sql.catalog."
"""What the keys begin with that configure catalogs."""
_KNOWN = frozenset({OWN, "system", "default"})
"""First parts of names that are no other catalog's."""
_Name = list[str]


@dataclass(frozen=True, slots=True)
class CreatedView:
    """A statement that creates a view, or gives one another query.

    Attributes:
        name: by its parts.
        columns: their names, where the statement gives them.
        query: its text.
        replaces: whether the view may exist, and is another one then.
        may_exist: whether it may, and stays as it is.
        must_exist: whether it has to exist.
    """

    name: _Name
    columns: _Name
    query: str
    replaces: bool
    may_exist: bool
    must_exist: bool

    def as_table(self, text: str) -> str:
        """Return the statement that creates a table of the same columns, with the query on the same lines."""
        columns = f" ({', '.join(quoted([column]) for column in self.columns)})" if self.columns else ""
        begin = text.find(self.query)
        lines = "\n" * text.count("\n", 0, max(begin, 0))
        exists = "IF NOT EXISTS " if self.may_exist else ""
        return (
            f"CREATE TABLE {exists}{quoted(self.name)} AS SELECT * FROM ({lines}{self.query}\n) AS v{columns}"
        )


@dataclass(frozen=True, slots=True)
class StatementNames:
    """What a statement names, each name by its parts, in the form of ``StatementNames.java``.

    Attributes:
        tables: tables and views.
        namespaces: databases.
        created: those of them that it creates.
        catalogs: catalogs that it makes the current one.
        view: that it creates or gives another query; None if it does neither, or if the view is temporary.
        dropped: the view that it drops; None if it drops none.
        altered: the view that it alters in another way; None if it alters none.
    """

    tables: list[_Name] = field(default_factory=list)
    namespaces: list[_Name] = field(default_factory=list)
    created: list[_Name] = field(default_factory=list)
    catalogs: list[str] = field(default_factory=list)
    view: CreatedView | None = None
    dropped: _Name | None = None
    altered: _Name | None = None


class OtherCatalogs:
    """Stands in for each catalog that a statement names, in as many sessions as are to know it.

    Args:
        spark: a session whose catalogs are used for nothing else.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._java: dict[str, Any] = {}
        # A statement that drops a table must not reach a catalog that this machine's Spark is configured for.
        spark.conf.unset(CATALOG_KEYS + OWN)
        keys = (key for key, _ in spark.sparkContext.getConf().getAll())
        configured = {key.removeprefix(CATALOG_KEYS) for key in keys if key.startswith(CATALOG_KEYS)}
        self._add(sorted(name for name in configured if "." not in name and name != OWN))

    def __contains__(self, name: str) -> bool:
        return name in self._java

    def register(self, texts: Iterable[str]) -> None:
        """Make the catalogs that statements name known, before any of these is analyzed."""
        self._add(_catalogs([self.names_of(text) for text in texts]))

    def _add(self, names: Iterable[str]) -> None:
        gateway, jvm = self._spark.sparkContext._gateway, self._spark._jvm
        for name in names:
            if name not in self._java:
                self._java[name] = new(gateway, _JAVA.load(jvm, "PlannedTables"), name)
                self._java[name].register(self._spark._jsparkSession)

    def share(self, session: Any) -> None:
        """Make the catalogs known to another session, too."""
        for java in self._java.values():
            java.register(session._jsparkSession)

    def names_of(self, text: str) -> StatementNames:
        """Return what a statement names; nothing for one that does not parse, which its analysis tells.

        One that is nested too deeply is too much for Spark's parser: Java then has no more stack.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        reader = new(self._spark.sparkContext._gateway, _JAVA.load(self._spark._jvm, "StatementNames"))
        try:
            names = orjson.loads(
                reader.read(self._spark._jsparkSession.sessionState().sqlParser().parsePlan(text))
            )
        except (PySparkException, Py4JError):
            return StatementNames()
        view = names.pop("view")
        return StatementNames(**names, view=CreatedView(**view) if view and view["query"] else None)


def _catalogs(statements: Sequence[StatementNames]) -> Iterator[str]:
    """Yield the first parts of names that can only be catalogs'.

    Databases of Spark's own catalog have one part, and their tables two: names that are longer begin with a
    catalog. But what is a database elsewhere stays one: Iceberg's tables about a table have three parts, too.
    """
    tables = [name for names in statements for name in names.tables]
    namespaces = [name for names in statements for name in names.namespaces]
    chosen = [name for names in statements for name in names.catalogs]
    databases = {name[0] for names in statements for name in names.created if len(name) == 1}
    databases |= {name[0] for name in tables if len(name) == 2}
    named = [name[0] for name in tables if len(name) > 2] + [name[0] for name in namespaces if len(name) > 1]
    catalogs = [*chosen, *(name for name in named if name not in databases)]
    yield from (name for name in dict.fromkeys(catalogs) if name not in _KNOWN)
