"""Names, units and labels as Prometheus wants them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_events.api import Metric, MetricGroup

# UCUM unit to the base unit's suffix, and the factor to it.
_BASE_UNITS = {"ms": ("_seconds", 0.001), "s": ("_seconds", 1), "By": ("_bytes", 1)}


_LONGEST = 1_024


def metric_name(group: MetricGroup, name: str, metric: Metric) -> str:
    """Return ``spark_query_status_age_seconds`` and the like; a counter's ``_total`` is not in it."""
    base = "_".join(_snake(part) for part in (*group.logical_scope, name))
    suffix = _BASE_UNITS.get(metric.unit, ("", 1))[0]
    return base if base.endswith(suffix) else base + suffix


def scale(metric: Metric) -> float:
    """Return the factor from a metric's unit to Prometheus' base unit."""
    return _BASE_UNITS.get(metric.unit, ("", 1))[1]


def labels(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables as labels; an empty value is the same as none."""
    return {_label(key): _text(value) for key, value in variables.items() if value != ""}


def _snake(name: str) -> str:
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return re.sub(r"[^a-z0-9_]", "_", words)


def _label(name: str) -> str:
    cleaned = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return cleaned if re.match(r"[a-zA-Z_]", cleaned) else f"_{cleaned}"


def _text(value: str) -> str:
    """A lone surrogate in one label would cost the whole scrape; a huge value is in each of them."""
    return value[:_LONGEST].encode("utf-8", "replace").decode()
