"""spark-submit's command line: its options, and the configuration that comes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_events.spark.conf import default_properties_file, read_properties

QUESTIONS = frozenset(("--help", "-h", "--version", "--usage-error"))
# The options that take no value; all others do.
_SWITCHES = QUESTIONS | {"--verbose", "-v", "--supervise", "--load-spark-defaults"}
WITH_VALUES = frozenset(
    ("--master", "--deploy-mode", "--class", "--name", "--jars", "--packages", "--exclude-packages",
     "--repositories", "--py-files", "--files", "--archives", "--conf", "-c", "--properties-file",
     "--driver-memory", "--driver-java-options", "--driver-library-path", "--driver-class-path",
     "--executor-memory", "--proxy-user", "--remote", "--driver-cores", "--kill", "--status",
     "--total-executor-cores", "--executor-cores", "--num-executors", "--principal", "--keytab", "--queue")
)  # fmt: skip
"""The others that ``spark-submit --help`` lists."""
Option = tuple[str, ...]
"""One of its options: a word, or two."""


def split(arguments: Sequence[str]) -> tuple[list[Option], list[str]]:
    """Return spark-submit's options, each with its value, and the application with its arguments."""
    options: list[Option] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        alone = rest[0] in _SWITCHES or "=" in rest[0] or len(rest) == 1
        width = 1 if alone else 2
        options.append(tuple(rest[:width]))
        del rest[:width]
    return options, rest


def conf_of(option: Option) -> tuple[str, str]:
    """Return the key and the value of a ``--conf``; empty for other options."""
    key, _, value = (_value_of(option, "--conf", "-c") or "").partition("=")
    return key, value


def configuration(options: Sequence[Option]) -> dict[str, str]:
    """Return the configuration that spark-submit will read from its options and files."""
    files = [Path(path) for option in options if (path := _value_of(option, "--properties-file"))]
    properties = files[-1] if files else default_properties_file()
    conf = dict(read_properties(properties)) if properties else {}
    conf |= {key: value for key, value in map(conf_of, options) if key}
    masters = [master for option in options if (master := _value_of(option, "--master"))]
    return conf | {"spark.master": masters[-1]} if masters else conf


def deploy_mode(options: Sequence[Option], conf: Mapping[str, str]) -> str:
    """Return ``client`` or ``cluster``, by the options or by the configuration."""
    given = [_value_of(option, "--deploy-mode") for option in options]
    return next(filter(None, (*reversed(given), conf.get("spark.submit.deployMode"))), "client")


def _value_of(option: Option, *names: str) -> str | None:
    name, _, inline = option[0].partition("=")
    if name not in names:
        return None
    return option[1] if len(option) == 2 else inline
