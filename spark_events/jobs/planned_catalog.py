"""The catalog of an analysis: the tables that SQL files create, without rows, wherever their data is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Any

from spark_events.api import (
    LineageGraph,
    ModifyType,
    RenamedFromFacet,
    SchemaFacet,
    SparkEventsError,
    TableLineageDataset,
    TableSinkLineageVertex,
)
from spark_events.jobs.planned_others import OWN, OtherCatalogs
from spark_events.lineage import lineage_of
from spark_events.spark.sql_statements import QUOTE, without_texts
from spark_events.spark.sql_text import literal, quoted

PROVIDER = "spark-events.provider"
"""The property of a table of this catalog that has the format it is to have."""
_HERE = frozenset({"parquet", "orc", "csv", "json", "text", "xml", "binaryfile"})
"""Formats that Spark knows without a connector or a server."""
_OWN_COLUMNS = {
    "kafka": "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "rate": "timestamp TIMESTAMP, value BIGINT",
    "rate-micro-batch": "timestamp TIMESTAMP, value BIGINT",
    "socket": "value STRING",
}
"""The columns of sources that have the same ones always."""
_OF_CATALOG = re.compile(r"(?:CREATE|REPLACE|DECLARE|ALTER|COMMENT|DROP|USE|SET)\b", re.IGNORECASE)
"""Statements that change the catalog alone, which is of the analysis and ends with it."""
_OF_VIEW = re.compile(r"(?:CREATE|ALTER|DROP)\b.*?(?P<view>\bVIEW\b)", re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(
    r"(?P<replace>CREATE\s+OR\s+REPLACE\s+|REPLACE\s+)?(?:CREATE\s+)?(?:EXTERNAL\s+)?TABLE\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?",
    re.IGNORECASE,
)
_IDENTIFIER = r"(?:`(?:``|[^`])*`|\w+)"
_NAME = re.compile(rf"{_IDENTIFIER}(?:\s*\.\s*{_IDENTIFIER})*")
_RENAME = re.compile(
    rf"ALTER\s+TABLE\s+(?P<before>{_NAME.pattern})\s+RENAME\s+TO\s+(?P<now>{_NAME.pattern})", re.IGNORECASE
)
_CACHED = re.compile(
    rf"CACHE\s+(?:LAZY\s+)?TABLE\s+(?P<name>{_NAME.pattern})(?:\s+OPTIONS\s*\([^()]*\))?\s+(?:AS\b|(?=SELECT\b|WITH\b|\())",
    re.IGNORECASE,
)
"""A query that is cached under a name, as which later statements read it."""
_LOCATION = re.compile(rf"\bLOCATION(?:\s*r?{QUOTE}+)+", re.IGNORECASE)
_MOVES = re.compile(rf"\bSET\s+{_LOCATION.pattern}", re.IGNORECASE)
"""In a statement that gives something that is there another place, and does nothing else."""
_HIVE_FORMAT = re.compile(
    r"\bSTORED\s+(?:AS|BY)\s+[\w\0]+|\bROW\s+FORMAT\b"
    r"(?:(?!\b(?:STORED|LOCATION|TBLPROPERTIES|PARTITIONED|CLUSTERED|OPTIONS|(?<!DEFINED\s)AS)\b).)*",
    re.IGNORECASE | re.DOTALL,
)
_USING = re.compile(rf"\bUSING\s+(?P<provider>[\w.{QUOTE}-]+)", re.IGNORECASE)
_TRANSFORMS = re.compile(
    r"\bPARTITIONED\s+BY\s*\((?:[^()]|\([^()]*\))*\([^()]*\)(?:[^()]|\([^()]*\))*\)", re.I
)
_IN_ORDER = frozenset({"delta", "iceberg"})
"""Formats of tables that keep the order of their columns; Spark's own have those of partitions at the end."""
_PARTITIONED = re.compile(
    rf"\bPARTITIONED\s+BY\s*\(\s*{_IDENTIFIER}(?:\s*,\s*{_IDENTIFIER})*\s*\)", re.IGNORECASE
)
_INTO_PARTITION = re.compile(
    rf"\bINSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?(?P<name>{_NAME.pattern})\s+PARTITION\b", re.IGNORECASE
)
_LIKE = re.compile(r"\bLIKE\b", re.IGNORECASE)


class UnknownColumnsError(SparkEventsError):
    """A table that is created without columns, for which Spark would look into its data."""


@dataclass(frozen=True, slots=True)
class _TableText:
    """A statement that creates a table, as this catalog takes it.

    Attributes:
        text: the statement.
        name: of the table.
        provider: the format that the table is to have, where it has another one here; else empty.
        replaces: whether the table may exist.
    """

    text: str
    name: str
    provider: str
    replaces: bool


@dataclass(frozen=True, slots=True)
class CurrentDatabase:
    """Where statements find tables whose names have no database: a catalog, and a database in it, quoted."""

    catalog: str
    database: str


class PlannedCatalog:
    """Analyzes statements; those that change a catalog change one of its own, and none that writes rows runs.

    Args:
        spark: a session whose catalogs are used for nothing else.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._others = OtherCatalogs(spark)
        self._by_partition: set[str] = set()

    def expect(self, texts: Iterable[str]) -> None:
        """Make room for the catalogs that statements name, before any of these is analyzed."""
        texts = list(texts)
        self._others.register(texts)
        inserted = (match["name"] for text in texts for match in _INTO_PARTITION.finditer(text))
        self._by_partition.update(map(_last_part, inserted))

    def new_session(self) -> Any:
        """Return a session that has the tables and views of all catalogs."""
        from pyspark.sql import SparkSession

        session = SparkSession(self._spark.sparkContext, self._spark._jsparkSession.cloneSession())
        self._others.share(session)
        return session

    def graph_of(self, text: str) -> LineageGraph:
        """Return what a statement would read and write; later ones find what it creates.

        Raises:
            PySparkException, Py4JError: it cannot be analyzed.
            UnknownColumnsError: it creates a table without columns.
        """
        if (cached := _CACHED.match(text)) is not None:
            text = f"CREATE OR REPLACE TEMPORARY VIEW {cached['name']} AS {text[cached.end() :]}"
        if not _OF_CATALOG.match(text):
            return lineage_of(self._spark, text)
        text = self._without_view(text)
        created = _created_table(text, self._by_partition)
        if created is None:
            graph = lineage_of(self._spark, text)
            bare = without_texts(text)
            # What is dropped or renamed later takes its files along.
            if not _MOVES.search(bare):
                self._spark.sql(_without_location(text, bare))
            renamed = _RENAME.match(text)
            return self._under_new_name(graph, renamed) if renamed else graph
        if created.replaces:
            self._spark.sql(f"DROP TABLE IF EXISTS {created.name}")
        graph = lineage_of(self._spark, created.text)
        self._create(created, graph)
        return graph

    def _under_new_name(self, graph: LineageGraph, statement: re.Match[str]) -> LineageGraph:
        """Return the graph of a table's renaming, with the table as it is now and the name that it had."""
        before, now = (re.findall(_IDENTIFIER, statement[name]) for name in ("before", "now"))
        name = ".".join(now if len(now) > 1 else [*before[:-1], *now])
        probed = lineage_of(self._spark, f"ALTER TABLE {name} SET TBLPROPERTIES ('renamed' = '')")
        old = [dataset.key for vertex in graph.sinks for dataset in vertex.datasets]
        sinks = [
            TableSinkLineageVertex(
                tuple(
                    replace(of, facets={**of.facets, RenamedFromFacet.name: RenamedFromFacet(key)})
                    for of, key in zip(vertex.datasets, old, strict=False)
                ),
                ModifyType.RENAME,
            )
            for vertex in probed.sinks
        ]
        return replace(graph, sinks=tuple(sinks))

    def _without_view(self, text: str) -> str:
        """Return a statement that makes, alters or drops a table where it would a view of another catalog.

        Spark has views in its own catalog alone; a table of the same columns feeds the same data.
        """
        match = _OF_VIEW.match(without_texts(text))
        if match is None:
            return text
        names = self._others.names_of(text)
        if names.dropped and self._is_of_other(names.dropped):
            return f"DROP TABLE IF EXISTS {quoted(names.dropped)}"
        if names.altered and self._is_of_other(names.altered):
            return _changed(text, [(match.span("view"), "TABLE")])
        if names.view is None or not self._is_of_other(names.view.name):
            return text
        if names.view.replaces:
            exists = "" if names.view.must_exist else "IF EXISTS "
            self._spark.sql(f"DROP TABLE {exists}{quoted(names.view.name)}")
        return names.view.as_table(text)

    def _is_of_other(self, name: list[str]) -> bool:
        """Return whether a name is of another catalog than Spark's own: its first part or the current one."""
        return name[0] in self._others if len(name) > 1 else self.place.catalog != OWN

    @property
    def place(self) -> CurrentDatabase:
        """The current catalog and database."""
        catalog = self._spark.catalog
        return CurrentDatabase(str(catalog.currentCatalog()), str(catalog.currentDatabase()))

    def use(self, place: CurrentDatabase) -> None:
        """Make a catalog and a database current, unless they are: they may have been dropped.

        Raises:
            PySparkException: there is none of that name.
        """
        now = self.place
        if place.catalog != now.catalog:
            self._spark.catalog.setCurrentCatalog(place.catalog)
        if place != now and place.database:
            self._spark.catalog.setCurrentDatabase(place.database)

    def has(self, place: CurrentDatabase) -> bool:
        """Return whether there is such a database."""
        name = f"{quoted([place.catalog])}.{place.database}"
        return not place.database or bool(self._spark.catalog.databaseExists(name))

    def _create(self, created: _TableText, graph: LineageGraph) -> None:
        """Create a table without rows."""
        sinks = [vertex for vertex in graph.sinks if isinstance(vertex, TableSinkLineageVertex)]
        selected = [vertex for vertex in sinks if vertex.modify_type is ModifyType.CTAS]
        creates = any(vertex.modify_type is ModifyType.CREATE for vertex in sinks)
        has_columns = any("schema" in dataset.facets for vertex in sinks for dataset in vertex.datasets)
        if creates and not has_columns and not _LIKE.search(without_texts(created.text)):
            raise UnknownColumnsError(
                "CREATE TABLE without columns, which Spark would read from the table's data: write them down"
            )
        for vertex in selected:
            for dataset in vertex.datasets:
                if isinstance(dataset, TableLineageDataset):
                    self._spark.sql(_empty_table(created.name, dataset))
        if not selected:
            self._spark.sql(created.text)
        if created.provider:
            properties = f"{literal(PROVIDER)} = {literal(created.provider)}"
            self._spark.sql(f"ALTER TABLE {created.name} SET TBLPROPERTIES ({properties})")


def _empty_table(name: str, dataset: TableLineageDataset) -> str:
    schema = dataset.facets["schema"]
    fields = schema.fields if isinstance(schema, SchemaFacet) else ()
    columns = ", ".join(f"{quoted([field.name])} {field.type}" for field in fields)
    return f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING parquet"


def _created_table(text: str, by_partition: Set[str] = frozenset()) -> _TableText | None:
    """Return a CREATE TABLE as one of Spark's own format, at no place of its own; None for another statement.

    Neither the table's rows nor their place are of interest, and an analysis would look for them there, with
    a connector that need not be here.

    Args:
        text: the statement.
        by_partition: the last parts of the names of tables of which statements name a partition.
    """
    bare = without_texts(text)
    head = _TABLE.match(bare)
    name = _NAME.match(text, head.end()) if head else None
    if head is None or name is None:
        return None
    changes = [(match.span(), "") for match in (*_LOCATION.finditer(bare), *_HIVE_FORMAT.finditer(bare))]
    if head["replace"]:
        changes.append((head.span("replace"), "CREATE "))
    using = _USING.search(bare, name.end())
    provider = text[slice(*using.span("provider"))].strip("`").lower() if using else ""
    is_foreign = bool(using) and provider not in _HERE
    if using and is_foreign:
        has_columns = text[name.end() : using.start()].strip()
        columns = "" if has_columns else _OWN_COLUMNS.get(provider, "")
        changes.append((using.span(), f"({columns}) USING parquet" if columns else "USING parquet"))
        changes += [(match.span(), "") for match in _TRANSFORMS.finditer(bare)]
        if provider in _IN_ORDER and _last_part(name[0]) not in by_partition:
            changes += [(match.span(), "") for match in _PARTITIONED.finditer(bare)]
    return _TableText(_changed(text, changes), name[0], provider if is_foreign else "", bool(head["replace"]))


def _last_part(name: str) -> str:
    return str(re.findall(_IDENTIFIER, name)[-1]).strip("`").lower()


def _without_location(text: str, bare: str) -> str:
    return _changed(text, [(match.span(), "") for match in _LOCATION.finditer(bare)])


def _changed(text: str, changes: list[tuple[tuple[int, int], str]]) -> str:
    """Return a text with other words in some places, and as many lines as before."""
    for (start, end), words in sorted(changes, reverse=True):
        text = text[:start] + words + "\n" * text.count("\n", start, end) + text[end:]
    return text
