"""Names, units and labels as Prometheus wants them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import lru_cache

from spark_events.api import Metric, MetricGroup, snake_case

_LONGEST = 1_024
_TAKEN = ("le", "quantile")
logger = logging.getLogger("spark_events.prometheus")


def metric_name(group: MetricGroup, name: str, metric: Metric) -> str:
    """Return ``spark_query_status_age_seconds`` and the like; a counter's ``_total`` is not in it."""
    base = "_".join(snake_case(part) for part in (*group.logical_scope, name))
    unit = metric.shown_in.suffix
    return base if not unit or base.endswith(f"_{unit}") else f"{base}_{unit}"


def labels(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables as labels; an empty value is the same as none.

    A label of several variables has all of their values, as OpenTelemetry's rules for Prometheus ask for.
    """
    given = {key: bounded_text(value) for key, value in variables.items() if value != ""}
    by_label = {_label(key): value for key, value in given.items()}
    return by_label if len(by_label) == len(given) else _joined(given)


def _joined(given: Mapping[str, str]) -> dict[str, str]:
    names: dict[str, list[str]] = {}
    for key in sorted(given):
        names.setdefault(_label(key), []).append(key)
    for label, keys in names.items():
        if len(keys) > 1:
            _say_joined(label, tuple(keys))
    return {label: ";".join(given[key] for key in keys) for label, keys in names.items()}


@lru_cache(1_024)
def _say_joined(label: str, keys: tuple[str, ...]) -> None:
    """Log it once, however many series have these variables."""
    logger.warning(
        "the variables %s are one label of Prometheus: %s has their values, joined with ';'",
        ", ".join(map(repr, keys)),
        label,
    )


def _label(name: str) -> str:
    cleaned = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    if cleaned in _TAKEN:
        return f"{cleaned}_"
    # Two underscores are Prometheus' own, and a digit cannot be first.
    return cleaned if re.match(r"[a-zA-Z]", cleaned) else f"_{cleaned.lstrip('_')}"


def bounded_text(value: str) -> str:
    """Return a text for a scrape: a lone surrogate would cost all of it."""
    if len(value) <= _LONGEST and value.isascii():
        return value  # of thousands of series, the same text, and not a copy for each
    return value[:_LONGEST].encode("utf-8", "replace").decode()
