"""What a failure says in one line: the class that was thrown, and the first words that are of use."""

from __future__ import annotations

import re

from spark_events.api import Failure

_LONGEST = 1_000
_MOST_LINES = 100
_PYTHON_TRACEBACK = "Traceback (most recent call last):"
_OF_PYSPARK = "pyspark.errors."


def in_one_line(failure: Failure) -> str:
    """Return ``KeyError: 'customer'``: the class, not said twice, and the first line that says anything."""
    said, thrown = _first_words(failure.message), _class_name(failure)
    full = failure.exception_type or ""
    if not thrown or (said and (_begins(said, thrown) or _begins(said, full))):
        return said or "it said nothing"
    return f"{thrown}: {said}" if said else thrown


def _first_words(message: str) -> str:
    """Return the first line that is not blank; after one that ends with a colon, the next one as well."""
    lines = (line.strip() for line in message[:_LONGEST].split("\n", _MOST_LINES))
    said = ""
    for line in filter(None, lines):
        said = f"{said} {line}" if said else line
        if not said.endswith(":"):
            break
    return said


def _class_name(failure: Failure) -> str:
    """Return a class of Java's or PySpark's by its own name alone, others of Python's as tracebacks do."""
    name = failure.exception_type or ""
    if name.startswith(_OF_PYSPARK) or not _is_of_python(name, failure.stacktrace or ""):
        return name.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
    return name


def _is_of_python(name: str, text: str) -> bool:
    _, traceback, raised = text.rpartition(_PYTHON_TRACEBACK)
    return bool(traceback) and re.search(rf"^{re.escape(name)}(?::|\s*$)", raised, re.MULTILINE) is not None


def _begins(said: str, name: str) -> bool:
    return said.startswith(name) and not said[len(name) : len(name) + 1].isalnum()
