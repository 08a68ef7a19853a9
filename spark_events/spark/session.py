"""Starts a Spark session for a command of ours."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_events.api import ConfigError
from spark_events.api.errors import install
from spark_events.spark.archive_check import remove
from spark_events.spark.class_archive import JVM_OPTIONS, archive_for_command, options_with
from spark_events.spark.java_runtime import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
"""For a session that a command starts for itself: nobody watches it, and only errors are worth a line."""
LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For a session on this machine alone."""
_LOG_LEVEL = "spark.log.level"
_CRASHES = frozenset((signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV))
_DIES_WITHIN_S = 5.0
logger = logging.getLogger("spark_events")


def start_session(command: str, conf: Mapping[str, str]) -> SparkSession:
    """Start a session. Ctrl-C ends what waits for it, without a word of PySpark's or Py4J's.

    Args:
        command: what needs it, for the error and the application's name.
        conf: Spark's configuration; without ``spark.master``, Spark's own default holds. With
            ``spark.log.level``, Spark says nothing below it from its first line on.

    Raises:
        ConfigError: there is no PySpark or no Java, or Spark cannot be started so.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise ConfigError(f"{command} needs PySpark: {install('spark')}") from error
    ensure_java()
    level = conf.get(_LOG_LEVEL)
    builder = SparkSession.builder.appName(f"spark-events {command}")
    for key, value in conf.items():
        if key != _LOG_LEVEL:
            builder = builder.config(key, value)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError

    if str(conf.get("spark.master", "local")).startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with _interrupted_quietly():
            session = _created(builder, level)
    except Py4JJavaError as error:
        raise ConfigError(f"Spark could not be started: {error.java_exception.toString()}") from error
    except PySparkRuntimeError as error:  # the JVM ended at once, and has said why on stderr
        raise ConfigError(f"Spark could not be started: {error}") from error
    if level:  # where a JVM ran already
        session.sparkContext.setLogLevel(level.upper())
    return session


@contextmanager
def _interrupted_quietly() -> Iterator[None]:
    """Have Ctrl-C handled as before the session that is made meanwhile.

    PySpark's handler cancels all jobs, in the middle of whatever call Ctrl-C comes in; the two break each
    other. A command stops its session as it ends, which cancels the jobs, too.
    """
    for logs in (None, "py4j.clientserver"):
        logging.getLogger(logs).addFilter(_is_no_interrupted_call)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)


def _is_no_interrupted_call(record: logging.LogRecord) -> bool:
    """Return whether a record is another one than those, with tracebacks, that Py4J logs at Ctrl-C."""
    error = record.exc_info[1] if record.exc_info else None
    is_interrupted = False
    while error is not None:
        is_broken = isinstance(error, RuntimeError) and "reentrant call" in str(error)
        is_interrupted = is_interrupted or is_broken or isinstance(error, KeyboardInterrupt)
        error = error.__cause__ or error.__context__
    return not (is_interrupted and "py4j" in Path(record.pathname).parts)


def _created(builder: Any, level: str | None) -> SparkSession:
    """Return the session; if the JVM dies while it uses an archive of classes, another's."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError

    archive = archive_for_command() if SparkContext._gateway is None else None
    try:
        with _jvm_options(level, archive), _no_jvm_is_left_behind():
            session: SparkSession = builder.getOrCreate()
    except (Py4JError, PySparkRuntimeError, OSError):
        if archive is None or not _jvm_has_died():
            raise
        logger.warning(
            "the JVM has died, maybe of its class archive; Spark is started again without %s", archive
        )
        SparkContext._gateway = SparkContext._jvm = None
        with _jvm_options(level, None), _no_jvm_is_left_behind():
            session = builder.getOrCreate()
        remove(archive)  # only now: nothing else has changed
        return session
    if archive is not None:
        atexit.register(_remove_if_it_crashed, SparkContext._gateway.proc, archive)
    return session


@contextmanager
def _no_jvm_is_left_behind() -> Iterator[None]:
    """End the JVM that is started meanwhile if its start is given up, as by Ctrl-C.

    PySpark knows a JVM only once that has answered. One that is given up before then never hears that its
    driver is gone, and would run for good.
    """
    from pyspark import SparkContext, java_gateway

    begun: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **more: Any) -> None:
            begun.append(self)
            super().__init__(*arguments, **more)

    module: Any = java_gateway
    module.Popen = Noted
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:
            for jvm in begun:
                _end(jvm)
        raise
    finally:
        module.Popen = subprocess.Popen


def _end(jvm: subprocess.Popen[bytes]) -> None:
    if getattr(jvm, "pid", None) is None or jvm.poll() is not None:
        return
    jvm.terminate()  # so that it removes its folders
    try:
        jvm.wait(_DIES_WITHIN_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def _jvm_has_died() -> bool:
    """Return whether the JVM that this process has started is no more, or has never begun to answer."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return True
    try:
        gateway.proc.wait(_DIES_WITHIN_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _remove_if_it_crashed(jvm: subprocess.Popen[bytes], archive: Path) -> None:
    """Called when this process ends: a JVM that crashed later may have done so by a damaged class."""
    status = jvm.poll()
    if status is not None and (-status in _CRASHES or status - 128 in _CRASHES):
        remove(archive)


@contextmanager
def _jvm_options(level: str | None, archive: Path | None) -> Iterator[None]:
    """Let a JVM that is started meanwhile begin with an archive of classes, if there is one.

    With a level, it logs from that on: Spark takes its own only after twenty lines.
    """
    before = os.environ.get(JVM_OPTIONS)
    ours = [options_with(archive)] if archive is not None else []
    if level:
        file = Path(__file__).with_name("quiet-log4j2.properties").as_uri()
        ours.append(f"-Dlog4j2.configurationFile={file} -Dspark-events.log.level={level.upper()}")
    os.environ[JVM_OPTIONS] = " ".join((*ours, before or ""))
    try:
        yield
    finally:
        if before is not None:
            os.environ[JVM_OPTIONS] = before
        else:
            os.environ.pop(JVM_OPTIONS, None)
