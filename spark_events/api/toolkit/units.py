"""Names and units of metrics in the form that Prometheus and OpenTelemetry share."""

from __future__ import annotations

import re
from typing import NamedTuple


class BaseUnit(NamedTuple):
    """A base unit.

    Attributes:
        ucum: its name in OTLP.
        suffix: the suffix of its metrics' names in Prometheus; empty for none.
        factor: the factor that converts a value to this unit.
    """

    ucum: str
    suffix: str
    factor: float


_BASE = {
    "ns": BaseUnit("s", "seconds", 1e-9),
    "us": BaseUnit("s", "seconds", 1e-6),
    "ms": BaseUnit("s", "seconds", 1e-3),
    "s": BaseUnit("s", "seconds", 1),
    "min": BaseUnit("s", "seconds", 60),
    "h": BaseUnit("s", "seconds", 3_600),
    "d": BaseUnit("s", "seconds", 86_400),
    "By": BaseUnit("By", "bytes", 1),
    "KiBy": BaseUnit("By", "bytes", 1_024),
    "MiBy": BaseUnit("By", "bytes", 1_048_576),
    "1": BaseUnit("1", "ratio", 1),
    "%": BaseUnit("1", "ratio", 0.01),
}


def base_unit(unit: str) -> BaseUnit:
    """Return the base unit of a UCUM unit, or the unit itself if it has none, as ``{row}``."""
    return _BASE.get(unit) or BaseUnit(unit, "per_second" if unit.endswith("/s") else "", 1)


_LONG_NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds"}


def own_unit(unit: str) -> BaseUnit:
    """Return a unit that values stay in, with the suffix that the OpenTelemetry Collector gives it."""
    suffix = "" if "{" in unit else _LONG_NAMES.get(unit) or base_unit(unit).suffix or unit
    return BaseUnit(unit, suffix, 1)


def snake_case(name: str) -> str:
    """Return ``lastCheckpointSize`` as ``last_checkpoint_size``; invalid characters become ``_``."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return re.sub(r"[^a-z0-9_]", "_", words)
