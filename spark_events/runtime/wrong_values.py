"""Reports what the driver's own metrics, events and spans were given and cannot report."""

from __future__ import annotations

from spark_events.api import Counter
from spark_events.api.wrong_values import KINDS, counts
from spark_events.runtime.registry import Registry


class _Dropped(Counter):
    """How many values of a kind were dropped in this process since it was made."""

    def __init__(self, kind: str) -> None:
        super().__init__("{value}", "Values of metrics, events and spans that cannot be reported.")
        self._kind = kind
        self._before = counts()[kind]

    @property
    def count(self) -> int:
        """The count so far."""
        return counts()[self._kind] - self._before


def watch(registry: Registry, app_name: str) -> None:
    """Report them as a metric, and as what was dropped, from now on."""
    of_kinds = {kind: _Dropped(kind) for kind in KINDS}
    for kind, counter in of_kinds.items():
        labels = {"app_name": app_name, "kind": kind}
        registry.driver.child("values", ("values", kind), labels).register("dropped", counter)
    registry.losses.watch(
        "your own metrics and events",
        registry.driver,
        lambda: {kind: counter.count for kind, counter in of_kinds.items()},
        KINDS,
    )
