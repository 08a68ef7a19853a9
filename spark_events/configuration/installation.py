"""Describes an installation for a bug report: versions, extras, configuration, and what can be reached."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from importlib_metadata import PackageNotFoundError, distribution, version

from spark_events import __version__
from spark_events.configuration.check import check
from spark_events.configuration.first_lines import hint_at_unread_file
from spark_events.spark.conf import default_properties_file, hint_at_byte_order_mark, read_conf
from spark_events.spark.java_runtime import found_java

_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(\[.*\])?[^;]*;.*extra == ['\"]([\w-]+)['\"]")
_SET_BY_USERS = ("SPARK_HOME", "SPARK_CONF_DIR", "JAVA_HOME", "PYSPARK_PYTHON", "SPARK_EVENTS_ENABLED")
_NONE = "none"


def describe_installation(properties_file: Path | None, assignments: Iterable[str]) -> dict[str, Any]:
    """Return what is installed, which configuration is found, and what a check with it finds.

    Args:
        properties_file: the configuration; by default the one that spark-submit reads.
        assignments: more, as ``key=value``.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    conf, path = read_conf(properties_file, assignments)
    checked = check(conf, connect=True)
    hint = hint_at_byte_order_mark(path) if path else hint_at_unread_file()
    return {
        "versions": {
            "spark-events": __version__,
            "Python": f"{platform.python_version()} ({platform.python_implementation()})",
            "PySpark": _version("pyspark") or _version("pyspark-client") or _NONE,
            "Java": found_java() or _NONE,
            "system": platform.platform(),
        },
        "extras": extras(),
        "configuration": {
            "file": str(path or default_properties_file() or _NONE),
            **{name: os.environ.get(name, "not set") for name in _SET_BY_USERS},
        },
        "reporters": {
            f"{each.kind} {each.name}": f"{each.factory}: {each.reached}" for each in checked.reporters
        },
        "problems": checked.problems,
        "warnings": [*checked.warnings, *filter(None, (hint,))],
    }


def _missing(extra: str, names: str) -> str:
    return f"not all installed (missing {names})" if extra == "all" else f"missing: {names}"


def extras() -> dict[str, str]:
    """Return for each extra ``installed``, or the packages that are missing."""
    packages: dict[str, list[str]] = {}
    try:
        required = distribution("spark-events").requires or ()
    except PackageNotFoundError:  # run from a clone that was never installed
        required = ()
    for requirement in required:
        match = _REQUIREMENT.match(requirement)
        if match and match[1] != "spark-events":
            packages.setdefault(match[3], []).append(match[1])
    return {
        extra: "installed"
        if not (missing := [name for name in names if not _version(name)])
        else _missing(extra, ", ".join(missing))
        for extra, names in sorted(packages.items())
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
