"""Makes datasets from what a plan says about a leaf or a command's target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_events.api import (
    ConfigFacet,
    LineageDataset,
    LineageDatasetFacet,
    RenamedFromFacet,
    SchemaFacet,
    SchemaField,
    SymlinksFacet,
    TableLineageDataset,
)
from spark_events.lineage import naming
from spark_events.lineage.naming import Name
from spark_events.lineage.query_tables import tables_of_query
from spark_events.lineage.table_facets import facets_of_table

NAME_PROPERTY, NAMESPACE_PROPERTY = "openlineage.dataset.name", "openlineage.dataset.namespace"
"""Properties by which a table of a connector names itself, as OpenLineage's integration reads them."""
_SHOWN_OPTIONS = frozenset(
    {
        "basepath", "compression", "delimiter", "endingoffsets", "escape", "failondataloss", "fetchsize",
        "header", "inferschema", "maxfilespertrigger", "maxoffsetspertrigger", "mergeschema", "mode",
        "multiline", "overwriteschema", "partitionby", "pathglobfilter", "quote", "recursivefilelookup",
        "replacewhere", "rowspersecond", "sep", "startingoffsets", "startingtimestamp", "subscribe",
        "subscribepattern", "timestampasof", "topic", "versionasof",
    }
)  # fmt: skip
"""Options that tell nobody's secrets."""
_FILE_FORMATS = (
    "parquet", "orc", "csv", "json", "text", "avro", "xml", "binaryfile", "delta", "hudi", "libsvm",
)  # fmt: skip
_NOWHERE = ("console", "memory", "noop", "foreach")
"""What the names of sinks begin with whose data nobody can find."""


@dataclass(frozen=True, slots=True)
class Catalogs:
    """What is needed to name a table identically wherever it is used.

    Attributes:
        metastore: the first of ``hive.metastore.uris``; empty without a Hive metastore.
        warehouse: ``spark.sql.warehouse.dir``, for tables whose warehouse no driver reports.
    """

    metastore: str = ""
    warehouse: str = ""

    def name_of(self, identity: Mapping[str, Any]) -> Name:
        """Return a table's name in its catalog, wherever its data is stored."""
        table = identity["table"]
        qualified = ".".join(str(table[key]) for key in ("database", "table") if table.get(key))
        return self._namespace(str(table.get("catalog") or ""), identity), qualified

    def _namespace(self, catalog: str, identity: Mapping[str, Any]) -> str:
        """Return the namespace in which a table's own name is unique."""
        if catalog not in ("spark_catalog", ""):
            return f"spark://{catalog}"
        if self.metastore:
            return "hive://" + self.metastore.split(",")[0].split("://")[-1]
        # If a driver reported it, the warehouse of the session that used the table.
        warehouse = str(identity.get("warehouse") or self.warehouse or "spark-warehouse")
        namespace, name = naming.of_path(warehouse)
        return f"{namespace}{name}" if namespace != "file" else f"file:{name}"


def catalogs_of(conf: Mapping[str, str]) -> Catalogs:
    """Return what Spark's configuration says about its catalogs."""
    hive = conf.get("spark.sql.catalogImplementation") == "hive"
    metastore = conf.get("spark.hadoop.hive.metastore.uris") or conf.get("hive.metastore.uris") or ""
    return Catalogs(metastore if hive else "", conf.get("spark.sql.warehouse.dir", ""))


def datasets_of(
    identity: Mapping[str, Any], columns: tuple[SchemaField, ...], catalogs: Catalogs
) -> tuple[LineageDataset, ...]:
    """Return what a leaf reads or a command writes; nothing for a nameless target such as the console.

    Args:
        identity: in the form of ``Identities.java``.
        columns: of the relation, as far as known.
        catalogs: gives tables their names.
    """
    names = _names(identity, catalogs)
    facets = _facets(identity, columns, catalogs, names)
    table = identity.get("table")
    if not table:
        return tuple(LineageDataset(name, namespace, facets) for namespace, name in names)
    return tuple(
        TableLineageDataset(
            name,
            namespace,
            facets,
            str(table.get("catalog") or ""),
            str(table.get("database") or ""),
            str(table.get("table") or ""),
            created=not identity.get("provisional"),
        )
        for namespace, name in names
    )


def renamed(
    datasets: tuple[LineageDataset, ...], before: Mapping[str, Any], catalogs: Catalogs
) -> tuple[LineageDataset, ...]:
    """Return a table's datasets with the name that it had before.

    Args:
        datasets: of the table under its new name.
        before: its identity until then.
        catalogs: gives tables their names.
    """
    keys = {dataset.key for dataset in datasets}
    # A table that stays where it is was renamed in its catalog alone.
    previous = [name for name in _names(before, catalogs) if name not in keys] or [catalogs.name_of(before)]
    facet = RenamedFromFacet(previous[0])
    return tuple(replace(of, facets={**of.facets, facet.name: facet}) for of in datasets)


def _names(identity: Mapping[str, Any], catalogs: Catalogs) -> list[Name]:
    options = {str(key).lower(): str(value) for key, value in (identity.get("options") or {}).items()}
    properties = identity.get("properties") or {}
    if NAME_PROPERTY in properties:
        return [(str(properties.get(NAMESPACE_PROPERTY) or "spark"), str(properties[NAME_PROPERTY]))]
    kind = str(identity.get("format") or "").lower()
    if options.get("url", "").startswith("jdbc:") or kind == "jdbc":
        return _jdbc_names(options)
    if "kafka.bootstrap.servers" in options or "kafka" in kind:
        topics = naming.kafka_topics(options) or [str(topic) for topic in identity.get("topics") or ()]
        return naming.of_topics(options.get("kafka.bootstrap.servers", ""), topics)
    if paths := identity.get("paths"):
        return naming.of_paths([options["basepath"]] if "basepath" in options else map(str, paths))
    if "path" in options:
        return naming.of_paths([options["path"]])
    if identity.get("table"):
        return [catalogs.name_of(identity)]
    return _other_names(kind, options, str(identity.get("tableName") or ""))


def _jdbc_names(options: Mapping[str, str]) -> list[Name]:
    url, table = options.get("url", ""), options.get("dbtable") or options.get("query") or ""
    if "query" in options or naming.is_query(table):
        return [naming.of_jdbc(url, name) for name in tables_of_query(table)]
    return [naming.of_jdbc(url, table)]


def _other_names(kind: str, options: Mapping[str, str], table_name: str) -> list[Name]:
    short = short_format(kind)
    if short.startswith(_NOWHERE) or not kind:
        return []
    if "socket" in short and "host" in options:
        return [(f"socket://{options['host']}:{options.get('port', '')}", "stream")]
    if "rate" in short:
        return [("spark", "rate")]
    return [(f"spark:{short}", table_name or short)]


def _facets(
    identity: Mapping[str, Any], columns: tuple[SchemaField, ...], catalogs: Catalogs, names: list[Name]
) -> Mapping[str, LineageDatasetFacet]:
    facets: list[LineageDatasetFacet] = []
    if columns:
        facets.append(SchemaFacet(columns))
    config = {
        key: str(value)
        for key, value in (identity.get("options") or {}).items()
        if key.lower() in _SHOWN_OPTIONS
    }
    if identity.get("format"):
        config["format"] = short_format(str(identity["format"]))
    if config:
        facets.append(ConfigFacet(config))
    if identity.get("table"):
        symlink = catalogs.name_of(identity)
        if symlink not in names:
            facets.append(SymlinksFacet((symlink,)))
    facets += facets_of_table(identity)
    return {facet.name: facet for facet in facets}


def short_format(name: str) -> str:
    """Return ``parquet`` for ``org.apache.…ParquetFileFormat``, as a reader's ``format`` has it."""
    short = name.rstrip("$").rsplit(".", 1)[-1].rsplit("$", 1)[-1].lower()
    return next((known for known in _FILE_FORMATS if short.startswith(known)), short)
