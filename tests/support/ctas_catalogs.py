"""The catalogs that transactions are tried in, as configuration of an application."""

from __future__ import annotations

from pathlib import Path

from tests.support.servers import PostgreSql, jars

DATABASE = "spark.sql.catalog.db"
_JDBC = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
_DELTA = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def configuration(catalog: str, folder: Path, server: PostgreSql | None = None) -> dict[str, str]:
    """Return what gives an application a catalog."""
    metastore = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    conf = {
        "spark.master": "local[6]",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.events.ctas.lease.duration": "2s",
        "spark.events.ctas.replaced-files.retention": "0s",
    }
    if catalog in ("hive", "delta"):
        conf |= {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        }
    if catalog == "postgresql":
        assert server is not None
        conf |= {
            "spark.jars": ",".join(map(str, jars("postgresql"))),
            DATABASE: _JDBC,
            f"{DATABASE}.url": server.url,
            f"{DATABASE}.driver": "org.postgresql.Driver",
            f"{DATABASE}.user": "postgres",
        }
    if catalog == "delta":
        conf |= {
            "spark.jars": ",".join(map(str, jars("lakehouse"))),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": _DELTA,
            # Delta reads its log with fifty tasks, which is for large ones.
            "spark.databricks.delta.snapshotPartitions": "1",
        }
    return conf
