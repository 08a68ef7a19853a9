"""Submits the application that hosts queries, with spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_events.api import ConfigError
from spark_events.spark.conf import spark_submit_program
from spark_events.spark.java_runtime import ensure_java
from spark_events.sql_runner.deploy.placement import Placement

_APPLICATION = Path(__file__).parents[1] / "host" / "application.py"
_DRIVER_PYTHON, _WORKER_PYTHON = "spark.pyspark.driver.python", "spark.pyspark.python"
_PYTHON_VARIABLES = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
_TAIL = 2_000


def submit_command(
    store_url: str, host: str, placement: Placement, conf: Mapping[str, str], *, single: bool
) -> list[str]:
    """Return spark-submit's command line.

    Args:
        store_url: the store's URL.
        host: the application's name for deployers.
        placement: has spark-submit's options and the application's settings.
        conf: Spark's properties for this application, in addition to those of the placement.
        single: whether it ends with its one query.

    Raises:
        ConfigError: there is no Spark, or no Java for it.
    """
    ensure_java()
    options = [*(["--master", placement.master] if placement.master else []), *placement.options]
    conf = {**placement.conf, **conf}
    own = {"spark.scheduler.mode": "FAIR", "spark.app.name": host.partition("-")[2] or host}
    if placement.runs_here and not _has_python(conf, options):
        own |= {_DRIVER_PYTHON: sys.executable, _WORKER_PYTHON: sys.executable}
    properties = [word for key, value in {**own, **conf}.items() for word in ("--conf", f"{key}={value}")]
    settings = ["--poll-ms", str(placement.poll_ms), "--lease-ms", str(placement.lease_ms)]
    kind = ["--single"] if single else []
    application = [str(_APPLICATION), "--store", store_url, "--host", host, *settings, *kind]
    return [spark_submit_program(), *properties, *options, *application]


def submit(
    store_url: str, host: str, placement: Placement, conf: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start the application of one query so that it outlives this process: see ``submit_command``.

    Its output is appended to the log.

    Raises:
        ConfigError: the file cannot be written; there is no Spark, or no Java for it.
    """
    command = submit_command(store_url, host, placement, conf, single=True)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("ab")
    except OSError as error:
        raise ConfigError(f"--log-dir {log.parent}: cannot be written: {error}") from error
    with output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def tail(log: Path) -> str:
    """Return the end of an application's log."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        return file.read(_TAIL).decode(errors="replace")


def _has_python(conf: Mapping[str, str], options: Sequence[str]) -> bool:
    return any(name in os.environ for name in _PYTHON_VARIABLES) or any(
        key in conf or any(key in option for option in options) for key in (_DRIVER_PYTHON, _WORKER_PYTHON)
    )
