"""Reads Spark's configuration as spark-submit does, without starting Spark."""

from __future__ import annotations

import codecs
import io
import os
import shutil
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import javaproperties

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError, install
from spark_events.api.toolkit.formatting import is_utf8

_MOST_BYTES = 16 << 20
"""How long a properties file may be: with what is longer, such as /dev/zero, memory may be used up."""


def default_properties_file() -> Path | None:
    """Return the ``spark-defaults.conf`` that spark-submit would read; None where there is none."""
    given = os.environ.get("SPARK_CONF_DIR")
    homes = filter(None, (os.environ.get("SPARK_HOME"), _pyspark_home()))
    folders = [Path(given)] if given else [Path(home) / "conf" for home in homes]
    paths = [folder / "spark-defaults.conf" for folder in folders]
    return next((path for path in paths if path.is_file()), None)


def read_properties(path: Path) -> dict[str, str]:
    """Return the ``spark.*`` keys of a properties file.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES >> 20} MiB; give a spark-defaults.conf")
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
        properties: Mapping[str, str] = javaproperties.load(text)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: cannot be read as a properties file ({reason})") from error
    return {key: value.strip() for key, value in properties.items() if key.startswith("spark.")}


def hint_at_byte_order_mark(path: Path | None) -> str:
    """Say that a properties file begins with a byte order mark; empty if it does not."""
    # What is no file, such as a pipe, can be read once.
    if path is None or not path.is_file():
        return ""
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            return ""
    return (
        f"{path}: begins with a byte order mark, which Spark takes for a part of the first line's key, and "
        "so ignores this line; save the file as UTF-8 without one"
    )


def as_texts(conf: Any) -> tuple[dict[str, str], list[str]]:
    """Return a configuration that a program gives, as Spark has it, and a sentence for each wrong part.

    Args:
        conf: a mapping; as with Spark, numbers and booleans may stand for their texts. None is empty.
    """
    if conf is None:
        return {}, []
    if not isinstance(conf, Mapping):
        return {}, [
            f"conf is a {type(conf).__name__}; expected a mapping of keys such as spark.events.task.enabled"
        ]
    texts, problems = {}, []
    for key, value in conf.items():
        if not isinstance(key, str):
            problems.append(f"conf: a key is a {type(key).__name__}; expected a text")
        elif isinstance(value, bool):
            texts[key] = str(value).lower()
        elif isinstance(value, str | int | float | PathLike):
            text = str(value)
            if is_utf8(key) and is_utf8(text):
                texts[key] = text
            else:
                shown = key.encode("utf-8", "backslashreplace").decode()
                problems.append(f"{shown}: has bytes that are no UTF-8; give key and value in UTF-8")
        else:
            problems.append(f"{key}: a {type(value).__name__} is not valid; expected a text")
    return texts, problems


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Return ``key=value`` pairs, as ``--conf`` takes them.

    Raises:
        ConfigError: one has no ``=``, or nothing before it.
    """
    pairs: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (equals and key.strip()):
            raise UsageError(f"--conf {assignment}: expected key=value")
        pairs[key.strip()] = value.strip()
    return pairs


def read_conf(properties_file: Path | None, assignments: Iterable[str]) -> tuple[dict[str, str], Path | None]:
    """Return what a command is configured with, and the file that part of it comes from.

    Args:
        properties_file: as the command line has it; None takes the one that spark-submit would read.
        assignments: ``key=value`` pairs, which win over the file.

    Raises:
        ConfigError: the file cannot be read, or a pair has no ``=``.
    """
    path = properties_file or default_properties_file()
    return {**(read_properties(path) if path else {}), **parse_assignments(assignments)}, path


def spark_home() -> Path | None:
    """Return where Spark is installed: SPARK_HOME, or the PySpark package; None where there is neither."""
    home = os.environ.get("SPARK_HOME") or _pyspark_home()
    return Path(home) if home else None


def spark_submit_program() -> str:
    """Return the path of spark-submit.

    Raises:
        ConfigError: there is no Spark.
    """
    home = spark_home()
    program = str(home / "bin" / "spark-submit") if home else shutil.which("spark-submit")
    if not program or not Path(program).is_file():
        raise ConfigError(f"no Spark found: set SPARK_HOME, or {install('spark')}")
    return program


def _pyspark_home() -> str | None:
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    return str(Path(spec.origin).parent) if spec and spec.origin else None
