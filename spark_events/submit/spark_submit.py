"""``spark-events run``: spark-submit as it is, with a driver's Python that attaches by itself.

Spark runs a Python application with the interpreter that ``spark.pyspark.driver.python`` names. Giving it
``spark-events-python`` there leaves everything else to spark-submit: its options, the application's name,
exit codes and signals.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from stat import S_ISDIR

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError
from spark_events.listeners.settings import ListenerSettings, read_settings, turned_off
from spark_events.runtime.log_once import logger
from spark_events.runtime.settings import key_of
from spark_events.sources.attaching import driver_log
from spark_events.spark.conf import spark_submit_program
from spark_events.spark.metrics_sink import DRIVER_SINK, first_free, sink_settings
from spark_events.spark.own_python import command_of
from spark_events.spark.submit_options import (
    QUESTIONS,
    WITH_VALUES,
    Option,
    conf_of,
    configuration,
    deploy_mode,
    split,
)
from spark_events.submit.cluster_mode import DRIVER_PYTHON, LAUNCHER, PYTHON, USERS_PYTHON, cluster_settings

HELP = """\
Usage: spark-events run [spark-submit options] app.py [arguments]

Submits a Python application with spark-submit, and attaches the reporters that
its configuration names (spark-defaults.conf, --conf or --properties-file).

In cluster mode, on YARN and Kubernetes, the driver's Python in the container
has to have spark-events, too: in the archive of its environment, or its image.

  spark-events check --connect           check the settings first
  spark-events run --master yarn app.py  run the application

Exits as the application does, or with 2 if the command line is wrong. In
cluster mode on Kubernetes, spark-submit exits with 0 even if the driver failed.
"""
"""What ``run`` adds to spark-submit, whose own help comes after it."""


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Return whether the options, those before the application, ask for help."""
    options, _ = split(arguments)
    return any(option[0] in ("--help", "-h") for option in options)


def submit(arguments: Sequence[str]) -> None:
    """Become the supervisor of spark-submit; return only by raising.

    Args:
        arguments: as for spark-submit: options, the application, its own arguments.

    Raises:
        ConfigError: there is no application, no Spark, or it is not a Python application; or the cluster runs
            no Python drivers.
    """
    if not arguments:
        raise UsageError(
            "no application; expected: spark-events run [spark-submit options] app.py [arguments]"
        )
    options, application = split(arguments)
    conf = configuration(options)
    off = turned_off(conf)
    command, environment = plain_command(arguments) if off else submit_command(arguments)
    _refuse_missing_file(application)
    if off:
        driver_log.install()
        logger.warning("nothing is reported: %s", off)
    elif sys.platform == "linux" and deploy_mode(options, conf) != "cluster":
        # Elsewhere nothing tells the end of a killed driver; in cluster mode, the driver is not a child.
        command = [*command_of("spark_events.submit.supervisor"), *command]
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be run: {error.strerror}") from error


def plain_command(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return spark-submit's command line and environment where everything is turned off.

    Only the interpreter stays the one that ``run`` uses, unless the user names another: an application whose
    packages are installed there would fail without it.
    """
    options, application = split(arguments)
    conf, environment = configuration(options), dict(os.environ)
    python: dict[str, str] = {}
    if application and application[0].endswith(".py") and deploy_mode(options, conf) == "client":
        named = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
        if not any(map(environment.get, named)) and not conf.keys() & {DRIVER_PYTHON, PYTHON}:
            local = conf.get("spark.master", "local").startswith("local")
            python = {DRIVER_PYTHON: sys.executable, **({PYTHON: sys.executable} if local else {})}
    ours = [word for key, value in python.items() for word in ("--conf", f"{key}={value}")]
    return [spark_submit_program(), *ours, *arguments], environment


def submit_command(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return spark-submit's command line and environment.

    Raises:
        ConfigError: as for ``submit``.
    """
    options, application = split(arguments)
    _refuse_other_languages(options, application)
    conf = configuration(options)
    environment = dict(os.environ)
    if deploy_mode(options, conf) == "cluster":
        return _cluster_command(options, application, conf), environment
    # The user's interpreter would replace ours; the launcher continues in it later.
    theirs = [option for option in options if conf_of(option)[0] == DRIVER_PYTHON]
    variables = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
    users = conf.get(DRIVER_PYTHON) or next(filter(None, map(os.environ.get, variables)), None)
    if users:
        environment[USERS_PYTHON] = users
    kept = [word for option in options if option not in theirs for word in option]
    return [
        spark_submit_program(),
        "--conf",
        f"{DRIVER_PYTHON}={_launcher()}",
        *kept,
        *_sink_options(conf),
        *application,
    ], environment


def _cluster_command(
    options: Sequence[Option], application: Sequence[str], conf: Mapping[str, str]
) -> list[str]:
    asking = any(option[0] in QUESTIONS for option in options)
    settings = {} if asking else cluster_settings(conf)
    if read_settings(conf)[0].sink_ports is not None and f"{DRIVER_SINK}port" not in conf:
        driver_log.install()
        logger.warning(
            "%s has no effect in cluster mode: where the driver will run is not known yet; the metrics of "
            "executors' heartbeats are reported all the same",
            key_of(ListenerSettings, "sink_ports"),
        )
    kept = [word for option in options if conf_of(option)[0] not in settings for word in option]
    # After theirs: of several values of a key, the last counts.
    ours = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [spark_submit_program(), *kept, *ours, *application]


def _sink_options(conf: Mapping[str, str]) -> list[str]:
    """Return the options that let Spark's own metrics system send to the driver, if that is asked for."""
    settings, _ = read_settings(conf)
    if settings.sink_ports is None or f"{DRIVER_SINK}port" in conf:
        return []
    sink = sink_settings(conf, first_free(settings.sink_ports), secrets.token_hex(8))
    return [word for key, value in sink.items() for word in ("--conf", f"{key}={value}")]


def _refuse_missing_file(application: Sequence[str]) -> None:
    named = application[0] if application else ""
    if not named.endswith(".py") or "://" in named or Path(named).is_file():
        return
    try:
        why = "it is a folder" if S_ISDIR(Path(named).stat().st_mode) else "it is no file"
    except FileNotFoundError:
        why = "there is no such file"
    except OSError as error:
        why = error.strerror or str(error)
    # As Python says it, and with the exit code that Python has for it.
    raise UsageError(f"can't open file {named!r}: {why}")


def _refuse_other_languages(options: Sequence[Option], application: Sequence[str]) -> None:
    asking = any(option[0] in QUESTIONS for option in options)
    if asking or (application and application[0].endswith(".py")):
        return
    name, value = options[-1] if options and len(options[-1]) == 2 else ("", "")
    if not application and name not in WITH_VALUES and value.endswith(".py"):
        raise UsageError(
            f"{name} takes {value!r} for its value, so there is no application: is {name} an option of "
            "spark-submit? 'spark-submit --help' lists them"
        )
    given = repr(application[0]) if application else "nothing"
    raise UsageError(
        f"the application is {given}; expected a Python file (*.py). Jars, Scala, R and SQL cannot attach: "
        "submit them with spark-submit and spark.eventLog.enabled=true, and report on them with "
        "spark-events follow"
    )


def _launcher() -> str:
    beside = Path(sys.executable).with_name(LAUNCHER)
    launcher = str(beside) if beside.is_file() else shutil.which(LAUNCHER)
    if not launcher:
        raise ConfigError(
            f"{LAUNCHER} is not next to {sys.executable}: install spark-events there again; "
            f"it brings {LAUNCHER}"
        )
    return launcher
