"""What stored events look like, whichever database reads them."""

from __future__ import annotations

SPANS = r"\.spans\.\d+\.jsonl"
"""Spans of a file log lie beside its events."""
NOTHING = (
    "there are no stored events; give files or folders of a file log, of replay --on-spark or of a "
    "collector's file exporter"
)
"""What is said of a path where nothing is."""
