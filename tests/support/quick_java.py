"""A Java whose Spark starts in half the time, for all that the tests start: ``python -m tests.support.quick_java``
makes its archive of classes (some 40 s, once for a PySpark and a Java), and a test run uses it if it is there.
"""

from __future__ import annotations

import os
import sys
import tempfile

from spark_events.spark.class_archive import SETTING, archive_of, can_be_made, options_with
from spark_events.spark.class_archive_maker import make
from spark_events.spark.java_runtime import ensure_java, java_command
from tests.support.paths import REPO

FOLDER = REPO / ".cache" / "classes"
# A JVM that lives for seconds never gains back what it spends on its second compiler.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Java leaves an archive unused where a folder with files stands in the class path. The tests' own
# configurations are such a folder; with nothing in it but spark-defaults.conf, it has no place there.
_JAVA = """#!/usr/bin/env bash
case " $* " in *" org.apache.spark.deploy."* | *" org.apache.spark.executor."*)
  if [ "$1" = -cp ] && [ -n "$SPARK_CONF_DIR" ] && [ "$(ls "$SPARK_CONF_DIR" 2> /dev/null)" = spark-defaults.conf ]; then
    classes="${{2#"$SPARK_CONF_DIR"/:}}"; shift 2; set -- -cp "$classes" "$@"
  fi
  set -- {options} "$@" ;;
esac
exec {java} "$@"
"""


def use() -> None:
    """Let every Spark that is started from here on use the archive; without one, all works as ever."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", SHORT_LIVED)
    os.environ.setdefault(SETTING, "off")  # a command of a test makes none in the background
    java = java_command()
    if java is None or java.startswith(str(FOLDER)):  # a worker has it from the process that started it
        return
    archive = archive_of(FOLDER)
    if not archive.is_file():
        return
    home = archive.with_suffix(".java")
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    unfinished = wrapper.with_name(f"java.{os.getpid()}")
    unfinished.write_text(_JAVA.format(options=options_with(archive), java=java))
    unfinished.chmod(0o755)
    unfinished.replace(wrapper)
    os.environ["JAVA_HOME"] = str(home)


def main() -> None:
    """Make the archive, unless it is there."""
    os.environ["JDK_JAVA_OPTIONS"] = SHORT_LIVED
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    ensure_java()
    archive = archive_of(FOLDER)
    if archive.is_file():
        return
    if not can_be_made():
        sys.exit(f"{java_command()} has no archive of its own classes, on which another could be built")
    with tempfile.TemporaryDirectory() as folder:
        derby = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        make(
            archive,
            {
                "spark.sql.catalogImplementation": "hive",
                "spark.hadoop.javax.jdo.option.ConnectionURL": derby,
            },
        )


if __name__ == "__main__":
    main()
