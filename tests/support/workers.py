"""Which tests run in one worker, where several run at once."""

from __future__ import annotations

import pytest

# Each worker has its own of these; they start in a second or less.
_CHEAP = {"warm", "collector", "pki", "java", "event_logs", "history_server"}
_WITH_THE_WARM_PROCESS = "tests/sql_runner"
"""Most that use it are there; in each worker that starts one, its JVM has to get warm."""


def group(item: pytest.Item) -> None:
    """Mark a test that shares what takes long to start, a Spark session say: one worker runs all that share it."""
    information = getattr(item, "_fixtureinfo", None)
    if information is None or item.get_closest_marker("xdist_group"):
        return
    if "warm" in information.names_closure:
        item.add_marker(pytest.mark.xdist_group(_WITH_THE_WARM_PROCESS))
        return
    shared = [
        definition.baseid or definition.argname
        for definitions in information.name2fixturedefs.values()
        for definition in definitions
        if definition.scope != "function"
        and definition.argname not in _CHEAP
        and definition.func.__module__.startswith("tests.")  # and not pytest's own
    ]
    if shared:
        item.add_marker(pytest.mark.xdist_group(min(shared, key=len)))
