"""Real Delta and Iceberg, for applications on Spark 4.1."""

from __future__ import annotations

from pathlib import Path

from tests.support.servers import jars


def lakehouse(folder: Path) -> dict[str, str]:
    """Return the configuration of Delta as the session's catalog, and of Iceberg as ``ice``, below a folder."""
    iceberg = "spark.sql.catalog.ice"
    return {
        "spark.jars": ",".join(map(str, jars("lakehouse"))),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        iceberg: "org.apache.iceberg.spark.SparkCatalog",
        f"{iceberg}.type": "hadoop",
        f"{iceberg}.warehouse": str(folder / "iceberg"),
    }
