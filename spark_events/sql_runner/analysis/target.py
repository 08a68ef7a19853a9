"""The table that takes the rows of a query: whether they fit, and how they get there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from spark_events.spark.sql_errors import error_summary
from spark_events.spark.sql_text import quoted
from spark_events.sql_runner.analysis.jvm import entry_of
from spark_events.sql_runner.analysis.query_data import table_name
from spark_events.sql_runner.analysis.query_error import QueryError
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import Meta

METADATA_COLUMNS = {
    "__create_timestamp": "TIMESTAMP",
    "__query_name": "STRING",
    "__query_description": "STRING",
    "__query_id": "STRING",
    "__query_version": "INT",
    "__query_create_timestamp": "TIMESTAMP",
}
_KAFKA = "kafka"
_KAFKA_COLUMNS = ("key", "value", "topic", "partition", "headers")


@dataclass(frozen=True)
class TargetTable:
    """A table.

    Attributes:
        provider: the format, if the table is in Spark's session catalog; empty for other catalogs.
        location: its folder; empty if it has none.
        options: of the table, as in its definition.
        partitions: the columns that its folders are named after.
        columns: by name, the type of each column in Spark's DDL; empty if it takes any columns.
    """

    name: str
    provider: str
    location: str
    options: dict[str, str]
    partitions: tuple[str, ...]
    columns: dict[str, str]

    @property
    def has_file_sink(self) -> bool:
        """Whether Spark's file sink writes it."""
        return self.provider in ("parquet", "orc", "json", "csv", "text", "avro")

    @classmethod
    def find(cls, session: Any, name: str) -> TargetTable:
        """Look a table up.

        Raises:
            QueryError: it does not exist, is a view, or cannot be read.
        """
        entry = entry_of(session)
        try:
            table = entry.table(name)
        except Exception as error:
            raise _not_read(entry, name, error) from error
        if table_name(session, list(entry.nameParts(name))) is None:
            raise QueryError(f"target-table {name}: is a view; expected a table", of_target=True)
        return cls(
            name,
            str(table["provider"] or "").lower(),
            str(table["location"] or ""),
            {str(key): str(value) for key, value in dict(table["options"]).items()},
            tuple(map(str, table["partitions"])),
            {field.name: field.dataType.simpleString() for field in session.table(name).schema.fields}
            if table["provider"] != _KAFKA
            else {},
        )


def _not_read(entry: Any, name: str, error: Exception) -> QueryError:
    """Return what is wrong with a target that Spark has refused to read."""
    reason = error_summary(error)
    try:
        entry.source(name)
    except Exception:  # the reason is why it was refused first
        what = f"not found: {reason}; define it in a file of --table-definition-path, or in the catalog"
    else:
        what = f"exists, but Spark cannot read it: {reason}; expected a table that it reads and writes"
    return QueryError(f"target-table {name}: {what}", of_target=True)


def folder_identity(location: str, warehouse: str) -> str:
    """Return a location in the one form that it has for all who write it.

    Spark writes the same folder in several ways, and an analyst's warehouse is another one than that of the
    application that runs the query.
    """
    return re.sub("^" + re.escape(_plain(warehouse)) + "(?=/|$)", "warehouse:", _plain(location))


def _plain(path: str) -> str:
    return re.sub("^s3n?:", "s3a:", re.sub("^file:/+", "/", path)).rstrip("/")


def make_folder(session: Any, location: str) -> bool:
    """Make the folder of a table of files, as Hive's catalog does; return whether it was missing.

    Raises:
        Py4JJavaError: its file system refuses.
    """
    path = session.sparkContext._gateway.jvm.org.apache.hadoop.fs.Path(location)
    files = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    return not files.exists(path) and bool(files.mkdirs(path))


def with_metadata(data: Any, manifest: Manifest, meta: Meta | None) -> Any:
    """Return rows with the metadata columns, which name their query; ``meta`` is None for analysis only."""
    from pyspark.sql import functions as f

    if not manifest.include_query_metadata:
        return data
    values = {
        "__create_timestamp": f.current_timestamp(),
        "__query_name": f.lit(manifest.name),
        "__query_description": f.lit(manifest.description),
        "__query_id": f.lit(meta.query_id if meta else ""),
        "__query_version": f.lit(meta.query_version if meta else 0),
        "__query_create_timestamp": f.lit(f"{meta.query_create_timestamp}Z" if meta else None),
    }
    columns = [value.cast(METADATA_COLUMNS[name].lower()).alias(name) for name, value in values.items()]
    return data.select("*", *columns)


def fitted(data: Any, target: TargetTable) -> Any:
    """Return rows in the order and the types of a table's columns, or packed as messages for Kafka.

    Raises:
        QueryError: a column is missing, unknown to the table, or of a type that does not fit.
    """
    if target.provider == _KAFKA:
        return _messages(data)
    given = {name.lower(): field for name, field in _fields(data).items()}
    wanted = {name.lower(): (name, ddl) for name, ddl in target.columns.items()}
    problems = [f"{name} is missing in the query" for key, (name, _) in wanted.items() if key not in given]
    problems += [_unknown(field.name) for key, field in given.items() if key not in wanted]
    entry = entry_of(data.sparkSession)
    for key, (name, ddl) in wanted.items():
        if key in given and not entry.fits(given[key].dataType.json(), ddl):
            type_ = given[key].dataType.simpleString()
            problems.append(
                f"{name} is {ddl} in the table, but {type_} in the query: CAST({name} AS {ddl.upper()})"
            )
    if problems:
        raise QueryError(
            f"target-table {target.name}: the columns do not fit: " + "; ".join(problems), of_target=True
        )
    return data.select(
        *(data[quoted([given[key].name])].cast(ddl).alias(name) for key, (name, ddl) in wanted.items())
    )


def _unknown(name: str) -> str:
    if name in METADATA_COLUMNS:
        return (
            f"{name} is missing in the table: add {name} {METADATA_COLUMNS[name]}, or set "
            "include-query-metadata: false"
        )
    return f"{name} is not a column of the table"


def _fields(data: Any) -> dict[str, Any]:
    names = [name.lower() for name in data.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise QueryError(f"gives two columns the same name: {', '.join(twice)}; name them with AS")
    return {field.name: field for field in data.schema.fields}


def _messages(data: Any) -> Any:
    """Return rows in the form Kafka takes: as JSON in ``value``, unless the query itself makes a value.

    The metadata columns are part of the JSON, or in the headers if the query makes the value.
    """
    from pyspark.sql import functions as f

    fields = _fields(data)
    if "value" not in fields:
        kept = [name for name in _KAFKA_COLUMNS if name in fields]
        packed = [data[quoted([name])] for name in fields if name not in kept]
        return data.select(*kept, f.to_json(f.struct(*packed)).alias("value"))
    metadata = [name for name in METADATA_COLUMNS if name in fields]
    if not metadata:
        return data
    rest = [data[name] for name in _KAFKA_COLUMNS if name in fields and name != "headers"]
    headers = f.array(
        *(
            f.struct(f.lit(name).alias("key"), data[name].cast("string").cast("binary").alias("value"))
            for name in metadata
        )
    )
    if "headers" in fields:
        headers = f.concat(data["headers"], headers)
    return data.select(*rest, headers.alias("headers"))
