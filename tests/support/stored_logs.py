"""The event logs that are stored: Spark's own samples, and recorded ones of this project's test applications."""

from __future__ import annotations

from pathlib import Path

from tests.support.event_log_sample import small_log
from tests.support.paths import REPO
from tests.support.sample_logs import NAMES, unpack_sample_logs

RECORDED = REPO / "tests" / "golden" / "logs"


def recorded_logs(folder: Path) -> dict[str, Path]:
    """Return the logs that need nothing but this repository, by name.

    Args:
        folder: an empty one, for those that are made.
    """
    sample = folder / "app-20261118120000-0001"
    sample.write_bytes(small_log())
    return {"sample": sample, **{path.name.partition(".")[0]: path for path in sorted(RECORDED.iterdir())}}


def stored_logs(folder: Path) -> dict[str, Path]:
    """Return all of them, by name."""
    samples = unpack_sample_logs(folder / "spark") / "spark-events"
    return {**recorded_logs(folder), **{name: samples / name for name in NAMES}}
