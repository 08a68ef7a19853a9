"""How much memory an executor is given, by Spark's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import AttributeValue
from spark_events.listeners.record_types import ResourceProfileAddedRecord

_MIB = 1 << 20
_SIZE = re.compile(r"(\d+)\s*([bkmgtp]?)b?", re.IGNORECASE)
_UNITS = {"b": 1, "k": 1 << 10, "m": _MIB, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_LEAST_OVERHEAD = "384m"
MASTER = "spark.master"
KEYS = (
    MASTER,
    "spark.driver.memory",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor",
    "spark.executor.minMemoryOverhead",
    "spark.executor.pyspark.memory",
    "spark.kubernetes.memoryOverheadFactor",
    "spark.kubernetes.resource.type",
    "spark.memory.offHeap.enabled",
    "spark.memory.offHeap.size",
)
"""The settings that it depends on."""
_OF_PROFILE = {
    "memory": "spark.executor.memory",
    "memoryOverhead": "spark.executor.memoryOverhead",
    "pyspark.memory": "spark.executor.pyspark.memory",
    "offHeap": "spark.memory.offHeap.size",
}
"""The setting that each resource of a profile takes the place of."""


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """What an executor may use, in bytes; None where there is no such limit.

    Attributes:
        heap: of the JVM (``spark.executor.memory``; in local mode, the driver's).
        overhead: what its container has besides, for native memory and for Python.
        python: of Python workers (``spark.executor.pyspark.memory``).
        container: all of it, which YARN and Kubernetes enforce.
    """

    heap: int
    overhead: int | None
    python: int | None
    container: int | None

    @property
    def attributes(self) -> dict[str, AttributeValue | None]:
        """They, as attributes of an event."""
        return {
            "memoryLimit.heap": self.heap,
            "memoryLimit.overhead": self.overhead,
            "memoryLimit.python": self.python,
            "memoryLimit.container": self.container,
        }


def memory_limits(conf: Mapping[str, str]) -> MemoryLimits:
    """Return the limits that a configuration sets, with Spark's defaults."""
    master = conf.get(MASTER, "")
    if master.startswith("local") and not master.startswith("local-cluster"):
        return MemoryLimits(_bytes(conf.get("spark.driver.memory"), "1g", _MIB), None, None, None)
    heap = _bytes(conf.get("spark.executor.memory"), "1g", _MIB)
    python = _bytes(conf.get("spark.executor.pyspark.memory"), "0", _MIB) or None
    if not master.startswith(("yarn", "k8s")):
        return MemoryLimits(heap, None, python, None)
    overhead = _bytes(conf.get("spark.executor.memoryOverhead"), "0", _MIB) or max(
        int(heap * _overhead_factor(conf)),
        _bytes(conf.get("spark.executor.minMemoryOverhead"), _LEAST_OVERHEAD, _MIB),
    )
    off_heap = conf.get("spark.memory.offHeap.enabled", "").lower() == "true"
    native = _bytes(conf.get("spark.memory.offHeap.size"), "0", 1) if off_heap else 0
    return MemoryLimits(heap, overhead, python, heap + overhead + native + (python or 0))


def settings_of_profile(record: ResourceProfileAddedRecord) -> dict[str, str]:
    """Return a resource profile as the settings that it takes the place of.

    Args:
        record: ResourceProfileAddedRecord (Spark's ``ResourceProfile``, for stage-level scheduling).

    Returns:
        The settings, of those that ``memory_limits`` reads; the others stay as they are.
    """
    requests = record.get("Executor Resource Requests") or {}
    settings = {
        key: f"{int(requests[name]['Amount'])}m" for name, key in _OF_PROFILE.items() if name in requests
    }
    if int((requests.get("offHeap") or {}).get("Amount") or 0):
        settings["spark.memory.offHeap.enabled"] = "true"
    return settings


def _overhead_factor(conf: Mapping[str, str]) -> float:
    """Return which part of the heap comes on top; Spark gives Python on Kubernetes more, unless it is set."""
    of_kubernetes = conf.get(MASTER, "").startswith("k8s")
    keys = ("spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
    for key in keys[: 1 + of_kubernetes]:
        try:
            return float(conf[key])
        except (KeyError, ValueError):
            continue
    return 0.4 if of_kubernetes and conf.get("spark.kubernetes.resource.type", "python") != "java" else 0.1


def _bytes(text: str | None, default: str, unit: int) -> int:
    """Return a size as Spark reads it, in bytes; the unit is that of a number without a letter."""
    match = _SIZE.fullmatch((text or default).strip()) or _SIZE.fullmatch(default)
    assert match is not None
    number, letter = match.groups()
    return int(number) * (_UNITS[letter.lower()] if letter else unit)
