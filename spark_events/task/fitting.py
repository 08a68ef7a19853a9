"""Keeps the report of a task small, for Spark counts it among what the task returns.

Beyond ``spark.task.maxDirectResultSize`` (1 MiB), each task's result counts with its report against
``spark.driver.maxResultSize``, and beyond that the job fails.
"""

from __future__ import annotations

import pickle
from typing import Any

MOST_BYTES = 512 << 10
"""How much of a task's report Spark carries."""
_KINDS = {"metrics": "series", "spans": "spans", "events": "events"}
"""The parts of a report that grow, and as what it is counted if some of them are left out."""


def cut_to_fit(report: dict[str, Any], most: int = MOST_BYTES) -> None:
    """Leave out the last of the largest part, until the report is small enough; ``dropped`` says how much.

    Of the metrics, those are values of histograms first.

    Args:
        report: the plain values; gets ``bytes``, how large these parts are.
        most: how large they may be, in bytes.
    """
    sizes = {part: _size(report[part]) for part in _KINDS}
    while (total := sum(sizes.values())) > most:
        part = max(sizes, key=lambda name: sizes[name])
        # The others keep what they have, but no part gets less than its third.
        share = max(most - (total - sizes[part]), most // len(_KINDS)) / sizes[part]
        if not (part == "metrics" and _shorten_histograms(report, share)):
            _shorten(report, part, share)
        sizes[part] = _size(report[part])
    report["bytes"] = total


def _size(part: list[Any]) -> int:
    return len(pickle.dumps(part, pickle.HIGHEST_PROTOCOL)) if part else 0


def _shorten(report: dict[str, Any], part: str, share: float) -> None:
    all_of_it = report[part]
    report[part] = all_of_it[: int(len(all_of_it) * share)]
    _count(report, _KINDS[part], len(all_of_it) - len(report[part]))


def _shorten_histograms(report: dict[str, Any], share: float) -> int:
    """Return how many values are left out; 0 if each histogram has only one."""
    dropped, metrics = 0, []
    for kind, name, labels, value in report["metrics"]:
        kept = value
        if kind == "histogram":
            kept = value[: max(1, int(len(value) * share))]
            dropped += len(value) - len(kept)
        metrics.append((kind, name, labels, kept))
    report["metrics"] = metrics
    _count(report, "values", dropped)
    return dropped


def _count(report: dict[str, Any], kind: str, number: int) -> None:
    if number:
        report["dropped"][kind] = report["dropped"].get(kind, 0) + number
