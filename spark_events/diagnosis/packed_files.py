"""Files that one task reads as a whole, because they are packed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PACKED = (".gz", ".gzip", ".zip", ".zst", ".snappy", ".xz")
MORE_FILES = (
    "Write it in many files, or in a format that can be split (Parquet, or text without gzip); "
    "repartition() after reading spreads what comes after it."
)
"""What to do about them."""


def packed_ending(name: str) -> str:
    """Return what the name of a packed file, or of several, ends with; empty of others."""
    return next((ending for ending in _PACKED if name.endswith(ending)), "")


def packed_rdd(info: Mapping[str, Any]) -> str:
    """Return the packed file that an RDD of a stage reads, by the stage's info; empty if there is none."""
    names = (str(rdd.get("Name") or "") for rdd in info.get("RDD Info") or ())
    return next(filter(packed_ending, names), "")


def cannot_be_split(files: str) -> str:
    """Return why packed files have few tasks, as a sentence."""
    return f"{files} cannot be split: {packed_ending(files)} is unpacked from its beginning"
