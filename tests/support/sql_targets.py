"""Targets of random sequences: files, Delta, Iceberg and Kafka; and what a Spark needs for the last three."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.query_shop import METADATA
from tests.support.servers import jars

ICE = "spark.sql.catalog.ice"
Rows = list[tuple[int, tuple[str, int]]]


def lakehouse_conf(warehouse: Path, s3: str) -> dict[str, str]:
    """Return Spark's keys for Delta, Iceberg, Kafka, and S3 at an endpoint; they need PySpark 4.1."""
    return {
        "spark.jars": ",".join(map(str, [*jars("lakehouse"), *jars("s3a")])),
        "spark.hadoop.fs.s3a.endpoint": s3,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        ICE: "org.apache.iceberg.spark.SparkCatalog",
        f"{ICE}.type": "hadoop",
        f"{ICE}.warehouse": str(warehouse),
        "spark.databricks.delta.snapshotPartitions": "1",
    }


class FileTarget:
    """Tables of JSON files, in folders of their names."""

    at_least_once = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def tables(self) -> str:
        """The folder of all tables, for a deployer."""
        return str(self._folder)

    def name(self, table: str) -> str:
        """Return a table's name in the catalog."""
        return table

    def definition(self, table: str) -> str:
        """Return the statement that defines a table."""
        return (
            f"CREATE TABLE IF NOT EXISTS {table} (id INT, {METADATA}) USING json "
            f"LOCATION '{self._folder}/{table}'"
        )

    def rows(self, table: str) -> Rows:
        """Return the id of each row that readers of the table see, with the name and version of its query."""
        folder = self._folder / table
        lines = [
            line
            for path in (folder / "_spark_metadata").glob("[0-9]*")
            for line in path.read_text().splitlines()[1:]
        ]
        files = {json.loads(line)["path"].rpartition("/")[2] for line in lines}
        texts = [(folder / file).read_text().splitlines() for file in files]
        rows = [json.loads(line) for lines in texts for line in lines]
        return [(row["id"], (row["__query_name"], row["__query_version"])) for row in rows]


class LakeTarget:
    """Tables of Delta or Iceberg.

    Args:
        spark: reads them.
        kind: ``delta`` or ``iceberg``.
        folder: of Delta's tables, and a name for those of Iceberg.
    """

    tables = ""
    at_least_once = False

    def __init__(self, spark: Any, kind: str, folder: Path) -> None:
        self._spark, self._kind, self._folder = spark, kind, folder

    def name(self, table: str) -> str:
        """Return a table's name in the catalog."""
        return table if self._kind == "delta" else f"ice.{self._folder.name}.{table}"

    def definition(self, table: str) -> str:
        """Return the statement that defines a table."""
        place = f" LOCATION '{self._folder}/{table}'" if self._kind == "delta" else ""
        return f"CREATE TABLE IF NOT EXISTS {self.name(table)} (id INT, {METADATA}) USING {self._kind}{place}"

    def rows(self, table: str) -> Rows:
        """Return the id of each row, with the name and version of its query."""
        if self._kind == "delta":
            data = self._spark.read.format("delta").load(f"{self._folder}/{table}")
        else:
            self._spark.sql(f"REFRESH TABLE {self.name(table)}")
            data = self._spark.table(self.name(table))
        found = data.select("id", "__query_name", "__query_version").collect()
        return [(row["id"], (row["__query_name"], row["__query_version"])) for row in found]


class KafkaTarget:
    """Topics of their tables' names with a prefix.

    Args:
        spark: reads them.
        servers: the broker.
        prefix: of the topics' names.
    """

    tables = ""
    at_least_once = True

    def __init__(self, spark: Any, servers: str, prefix: str) -> None:
        self._spark, self._servers, self._prefix = spark, servers, prefix

    def name(self, table: str) -> str:
        """Return a table's name in the catalog."""
        return table

    def definition(self, table: str) -> str:
        """Return the statement that defines a table."""
        topic = self._prefix + table
        return (
            f"CREATE TABLE IF NOT EXISTS {table} USING kafka OPTIONS ("
            f"'kafka.bootstrap.servers' = '{self._servers}', 'topic' = '{topic}', 'subscribe' = '{topic}')"
        )

    def rows(self, table: str) -> Rows:
        """Return the id of each message, with the name and version of its query."""
        reader = self._spark.read.format("kafka").option("kafka.bootstrap.servers", self._servers)
        found = reader.option("subscribe", self._prefix + table).load().select("value").collect()
        rows = [json.loads(row["value"]) for row in found]
        return [(row["id"], (row["__query_name"], row["__query_version"])) for row in rows]
