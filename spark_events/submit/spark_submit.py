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

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError
from spark_events.listeners.settings import read_settings, turned_off
from spark_events.runtime.log_once import logger
from spark_events.sources import driver_log
from spark_events.spark.conf import default_properties_file, read_properties, spark_submit_program
from spark_events.spark.metrics_sink import DRIVER_SINK, first_free, sink_settings

DRIVER_PYTHON = "spark.pyspark.driver.python"
LAUNCHER = "spark-events-python"
_PYTHON = "spark.pyspark.python"
USERS_PYTHON = "SPARK_EVENTS_DRIVER_PYTHON"
"""The environment variable that says which interpreter the user asked for."""
# spark-submit's options that take no value; all others do.
_QUESTIONS = frozenset(("--help", "-h", "--version", "--usage-error"))
_SWITCHES = _QUESTIONS | {"--verbose", "-v", "--supervise"}


HELP = """\
Usage: spark-events run [spark-submit options] app.py [arguments]

Submits a Python application with spark-submit, and attaches the reporters that
its configuration names (spark-defaults.conf, --conf or --properties-file).

This works in client mode. In cluster mode, call spark_events.attach(spark) in
the application. Without one of the two, the settings have no effect.

  spark-events check --connect           check the settings first
  spark-events run --master yarn app.py  run the application

Exits as the application does, or with 2 if the command line is wrong.
"""
"""What ``run`` adds to spark-submit, whose own help comes after it."""


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Return whether the options, those before the application, ask for help."""
    options, _ = _split(arguments)
    return any(option[0] in ("--help", "-h") for option in options)


def submit(arguments: Sequence[str]) -> None:
    """Become the supervisor of spark-submit; return only by raising.

    Args:
        arguments: as for spark-submit: options, the application, its own arguments.

    Raises:
        ConfigError: there is no application, no Spark, or it is no Python application in client mode.
    """
    if not arguments:
        raise UsageError(
            "no application; expected: spark-events run [spark-submit options] app.py [arguments]"
        )
    options, application = _split(arguments)
    off = turned_off(_configuration(options))
    command, environment = plain_command(arguments) if off else submit_command(arguments)
    _refuse_missing_file(application)
    if off:
        driver_log.install()
        logger.warning("nothing is reported: %s turns spark-events off", off)
    elif sys.platform == "linux":  # elsewhere nothing tells the end of a driver that is killed
        command = [sys.executable, "-m", "spark_events.submit.supervisor", *command]
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be run: {error.strerror}") from error


def plain_command(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return spark-submit's command line and environment where everything is turned off.

    Only the interpreter stays the one that ``run`` uses, unless the user names another: an application whose
    packages are installed there would fail without it.
    """
    options, application = _split(arguments)
    conf, environment = _configuration(options), dict(os.environ)
    python: dict[str, str] = {}
    if application and application[0].endswith(".py") and _deploy_mode(options, conf) == "client":
        named = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
        if not any(map(environment.get, named)) and not conf.keys() & {DRIVER_PYTHON, _PYTHON}:
            local = conf.get("spark.master", "local").startswith("local")
            python = {DRIVER_PYTHON: sys.executable, **({_PYTHON: sys.executable} if local else {})}
    ours = [word for key, value in python.items() for word in ("--conf", f"{key}={value}")]
    return [spark_submit_program(), *ours, *arguments], environment


def submit_command(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return spark-submit's command line and environment.

    Raises:
        ConfigError: as for ``submit``.
    """
    options, application = _split(arguments)
    _refuse_other_languages(options, application)
    conf = _configuration(options)
    _refuse_cluster_mode(options, conf)
    environment = dict(os.environ)
    # The user's interpreter would replace ours; the launcher continues in it later.
    theirs = [option for option in options if _conf_of(option)[0] == DRIVER_PYTHON]
    users = _conf_of(theirs[-1])[1] if theirs else None
    users = users or os.environ.get("PYSPARK_DRIVER_PYTHON") or os.environ.get("PYSPARK_PYTHON")
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


def _split(arguments: Sequence[str]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return spark-submit's options, each with its value, and the application with its arguments."""
    options: list[tuple[str, ...]] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        alone = rest[0] in _SWITCHES or "=" in rest[0] or len(rest) == 1
        width = 1 if alone else 2
        options.append(tuple(rest[:width]))
        del rest[:width]
    return options, rest


def _value_of(option: tuple[str, ...], *names: str) -> str | None:
    name, _, inline = option[0].partition("=")
    if name not in names:
        return None
    return option[1] if len(option) == 2 else inline


def _conf_of(option: tuple[str, ...]) -> tuple[str, str]:
    key, _, value = (_value_of(option, "--conf", "-c") or "").partition("=")
    return key, value


def _configuration(options: Sequence[tuple[str, ...]]) -> dict[str, str]:
    """Return the configuration that spark-submit will read from its options and files."""
    files = [Path(path) for option in options if (path := _value_of(option, "--properties-file"))]
    properties = files[-1] if files else default_properties_file()
    conf = dict(read_properties(properties)) if properties else {}
    conf |= {key: value for key, value in map(_conf_of, options) if key}
    masters = [master for option in options if (master := _value_of(option, "--master"))]
    return conf | {"spark.master": masters[-1]} if masters else conf


def _sink_options(conf: Mapping[str, str]) -> list[str]:
    """Return the options that let Spark's own metrics system send to the driver, if that is asked for."""
    settings, _ = read_settings(conf)
    if settings.sink_ports is None or f"{DRIVER_SINK}port" in conf:
        return []
    token = settings.sink_token or secrets.token_hex(8)
    sink = sink_settings(conf, first_free(settings.sink_ports), token)
    return [word for key, value in sink.items() for word in ("--conf", f"{key}={value}")]


def _refuse_cluster_mode(options: Sequence[tuple[str, ...]], conf: Mapping[str, str]) -> None:
    if _deploy_mode(options, conf) == "cluster":
        raise UsageError(
            "deploy mode 'cluster': spark-events run works in client mode; in cluster mode, call "
            "spark_events.attach(spark) in the application"
        )


def _deploy_mode(options: Sequence[tuple[str, ...]], conf: Mapping[str, str]) -> str:
    given = [_value_of(option, "--deploy-mode") for option in options]
    return next(filter(None, (*reversed(given), conf.get("spark.submit.deployMode"))), "client")


def _refuse_missing_file(application: Sequence[str]) -> None:
    named = application[0] if application else ""
    if named.endswith(".py") and "://" not in named and not Path(named).is_file():
        # As Python says it, and with the exit code that Python has for it.
        raise UsageError(f"can't open file {named!r}: there is no such file")


def _refuse_other_languages(options: Sequence[tuple[str, ...]], application: Sequence[str]) -> None:
    asking = any(option[0] in _QUESTIONS for option in options)
    if asking or (application and application[0].endswith(".py")):
        return
    given = repr(application[0]) if application else "nothing"
    raise UsageError(
        f"the application is {given}; expected a Python file (*.py). For jars, Scala, R and SQL, let Spark "
        "write its event log (spark.eventLog.enabled=true)"
    )


def _launcher() -> str:
    beside = Path(sys.executable).with_name(LAUNCHER)
    launcher = str(beside) if beside.is_file() else shutil.which(LAUNCHER)
    if not launcher:
        raise ConfigError(
            f"{LAUNCHER} is not installed next to {sys.executable}: pip install spark-events there"
        )
    return launcher
