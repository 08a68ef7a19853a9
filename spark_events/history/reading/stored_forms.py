"""What stored events look like, whichever database reads them."""

from __future__ import annotations

SPANS = r"\.spans\.\d+\.jsonl"
"""Spans of a file log lie beside its events."""
OWN_NAME = r"^_[^/]*__[^/]+\.(events|spans|lineage)\.\d+\.jsonl"
"""Earlier file logs of an application whose name begins with an underscore; Spark hides such files."""
NOTHING = (
    "there are no stored events; give files or folders of a file log, of replay --on-spark or of a "
    "collector's file exporter"
)
"""What is said of a path where nothing is."""
