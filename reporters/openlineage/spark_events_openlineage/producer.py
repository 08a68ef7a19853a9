"""Who makes the events."""

from __future__ import annotations

from importlib_metadata import version

VERSION = version("spark-events")
PRODUCER = f"urn:spark-events:{VERSION}"
