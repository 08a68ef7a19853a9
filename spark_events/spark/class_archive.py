"""An archive of the classes that Spark loads: with one, a JVM starts in about half the time.

Java reads the classes from the archive, parsed and verified, instead of from 300 jars (JEP 310 and 350). An
archive holds for one Java and one class path, so its name says for which. The first command that starts a
Spark has one made by a process in the background; later commands start with it. Whatever goes wrong with
it, Spark starts as it always did.

Environment:
    SPARK_EVENTS_CLASS_ARCHIVE: the folder of archives, or ``off``; by default, the user's cache folder.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_events.spark.java_runtime import java_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "SPARK_EVENTS_CLASS_ARCHIVE"
JVM_OPTIONS = "SPARK_SUBMIT_OPTS"
_LOG = logging.getLogger(__name__)
# Java would write to standard output which classes it leaves out, and why it leaves an archive unused.
_QUIET = "-Xlog:cds*=off -Xlog:class+path=off"
_FOLDERS_OF_CLASS_PATH = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
_MADE_WITHIN_S = 600.0


def archive_of(folder: Path) -> Path:
    """Return where the archive for this Java and this PySpark is, or would be.

    Args:
        folder: of all archives.
    """
    import pyspark

    java = Path(java_command() or "java").resolve()
    release = java.parent.parent / "release"  # a Java that is updated in place changes it
    facts = (
        str(java),
        release.read_text() if release.is_file() else "",
        pyspark.__file__,
        pyspark.__version__,
        os.environ.get("SPARK_HOME", ""),
        os.environ.get("SPARK_DIST_CLASSPATH", ""),
        platform.platform(),
    )
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return folder / f"spark-{pyspark.__version__}-{key}.jsa"


def options_with(archive: Path) -> str:
    """Return the options of a JVM that uses an archive."""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def options_for_command() -> str:
    """Return the options of a JVM that a command starts; without an archive, have one made for the next.

    Empty where there is none yet, where none can be used, and where the setting is ``off``.
    """
    folder = _folder()
    if folder is None or _has_folder_in_class_path() or "SharedArchive" in os.environ.get(JVM_OPTIONS, ""):
        return ""
    try:
        archive = archive_of(folder)
        if archive.is_file():
            return options_with(archive)
        _make_in_background(archive)
    except OSError as error:
        _LOG.debug("no archive of classes in %s: %s", folder, error)
    return ""


def make(archive: Path, conf: Mapping[str, str] | None = None) -> None:
    """Run a small Spark application, and archive the classes that it loads.

    Args:
        archive: the file to make, about 200 MB.
        conf: more of Spark's keys for that application.

    Raises:
        OSError: the file cannot be written.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(f".{os.getpid()}.new")
    os.environ[JVM_OPTIONS] = (
        f"-XX:ArchiveClassesAtExit={unfinished} {_QUIET} {os.environ.get(JVM_OPTIONS, '')}"
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            jvm = _run_application(Path(folder), conf or {})
            jvm.stdin.close()  # PySpark's JVM ends with its standard input, and writes the archive then
            jvm.wait()
        unfinished.replace(archive)
    finally:
        unfinished.unlink(missing_ok=True)


def _folder() -> Path | None:
    given = os.environ.get(SETTING)
    if given == "off":
        return None
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-events"


def _has_folder_in_class_path() -> bool:
    """Return whether the class path has a folder with files: Java leaves an archive unused then."""
    given = (os.environ.get(name) for name in _FOLDERS_OF_CLASS_PATH)
    home = os.environ.get("SPARK_HOME")
    folders = [*filter(None, given), *([f"{home}/conf"] if home else [])]
    return any(os.path.isdir(folder) and os.listdir(folder) for folder in folders)


def _make_in_background(archive: Path) -> None:
    """Start a process that makes it, unless one has been started lately.

    Raises:
        OSError: the folder cannot be written.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    begun = archive.with_suffix(".begun")
    if begun.exists() and time.time() - begun.stat().st_mtime < _MADE_WITHIN_S:
        return
    begun.touch()
    subprocess.Popen(
        [sys.executable, "-m", __name__, str(archive)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=begun.open("w"),
        start_new_session=True,
        cwd=archive.parent,
    )


def _run_application(folder: Path, conf: Mapping[str, str]) -> Any:
    """Run statements and a streaming query, of the kinds that most applications have; return its JVM."""
    from pyspark import SparkContext

    from spark_events.spark.session import LOOPBACK, QUIET, start_session

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
