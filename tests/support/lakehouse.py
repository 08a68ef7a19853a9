"""Real Delta, Iceberg and other connectors, for applications on Spark 4.1."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from tests.support.servers import jars

ON_4_1 = pyspark.__version__.startswith("4.1.")
CONNECTORS = pytest.mark.connectors
"""The mark of what needs their jars; ``make connectors`` runs all that bears it."""


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
