"""What stored events look like, whichever database reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SPANS = r"\.spans\.\d+\.jsonl"
LINEAGE = r"\.lineage\.\d+\.jsonl"
"""Spans of a file log, and its lineage, lie beside its events."""
OWN_NAME = r"^_[^/]*__[^/]+\.(events|spans|lineage)\.\d+\.jsonl"
"""Earlier file logs of an application whose name begins with an underscore; Spark hides such files."""
NOTHING = (
    "there are no stored events; give files or folders of a file log, of replay --on-spark or of a "
    "collector's file exporter"
)
"""What is said of a path where nothing is."""
_OF_OURS = re.compile(OWN_NAME)


def is_hidden(inside: str) -> bool:
    """Return whether Spark would leave out a path below a folder, and it is not one of our own file logs."""
    *folders, name = inside.split("/")
    of_ours = _OF_OURS.search(name) is not None
    return any(part.startswith((".", "_")) for part in (folders if of_ours else (*folders, name)))


def otlp_value(value: Mapping[str, Any]) -> Any:
    """Return the value of an attribute, or of a body, of OTLP's JSON, in which integers are texts.

    Raises:
        ValueError: it has an integer that is none.
    """
    if "arrayValue" in value:
        return [otlp_value(each) for each in value["arrayValue"].get("values") or ()]
    if "intValue" in value:
        return int(value["intValue"])
    return next(iter(value.values()), None)
