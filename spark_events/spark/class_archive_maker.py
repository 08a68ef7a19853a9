"""Makes an archive of the classes that Spark loads, in a process of its own: see ``class_archive``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_events.spark.archive_check import keep
from spark_events.spark.class_archive import JVM_OPTIONS, MADE_WITHIN_S, QUIET_ARCHIVE, SETTING, quoted
from spark_events.spark.session import LOOPBACK, QUIET, start_session
from spark_events.spark.temporary_folders import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNFINISHED = ".new"


def make(archive: Path, conf: Mapping[str, str] | None = None) -> None:
    """Run a small Spark application, and archive the classes that it loads.

    Args:
        archive: the file to make, about 200 MB.
        conf: more of Spark's keys for that application.

    Raises:
        OSError: the file cannot be written.
    """
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_unfinished(archive.parent)
    unfinished = archive.with_suffix(f".{os.getpid()}{_UNFINISHED}")
    making = quoted(f"-XX:ArchiveClassesAtExit={unfinished}")
    os.environ[JVM_OPTIONS] = f"{making} {QUIET_ARCHIVE} {os.environ.get(JVM_OPTIONS, '')}"
    os.environ[SETTING] = "off"
    try:
        with temporary_folder("classes") as folder:
            jvm = _run_application(folder, conf or {})
            jvm.stdin.close()  # PySpark's JVM ends with its standard input, and writes the archive then
            status = jvm.wait()
        if status:
            raise OSError(f"the JVM that wrote {unfinished} ended with the status {status}")
        keep(unfinished, archive)
    finally:
        unfinished.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what makers have left that were killed, each time as much as an archive."""
    for left in folder.glob(f"*{_UNFINISHED}"):
        if time.time() - left.stat().st_mtime > MADE_WITHIN_S:
            left.unlink(missing_ok=True)


def _run_application(folder: Path, conf: Mapping[str, str]) -> Any:
    """Run statements and a streaming query, of the kinds that most applications have; return its JVM."""
    from pyspark import SparkContext

    own = {"spark.master": "local[1]", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    logs = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri()}
    session = start_session("class archive", {**QUIET, **LOOPBACK, **own, **logs, **conf})
    gateway: Any = SparkContext._gateway
    _run_statements(session, folder)
    query = session.readStream.format("rate").load().writeStream
    query = query.foreachBatch(lambda rows, _: rows.count()).option("checkpointLocation", str(folder / "c"))
    running = query.trigger(once=True).start()
    running.awaitTermination(60)
    session.stop()
    return gateway.proc


def _run_statements(session: SparkSession, folder: Path) -> None:
    session.sql("CREATE TABLE numbers USING parquet AS SELECT id, id % 3 AS kind FROM range(100)")
    session.sql("SELECT kind, count(*) AS n, max(id) FROM numbers GROUP BY kind ORDER BY n").collect()
    ranked = "row_number() OVER (PARTITION BY a.kind ORDER BY a.id)"
    session.sql(f"SELECT a.kind, {ranked} FROM numbers a JOIN numbers b ON a.id = b.id").collect()
    session.table("numbers").write.json(str(folder / "json"))
    session.read.json(str(folder / "json")).count()


if __name__ == "__main__":
    os.nice(19)
    make(Path(sys.argv[1]))
