"""Which tests run in one worker, where several run at once."""

from __future__ import annotations

from typing import Any

import pytest

_SHARED = ("package", "module")
# Each worker has its own of these; they start in a second.
_OWN = {"collector", "pki", "java", "event_logs", "history_server"}


def group(items: list[pytest.Item]) -> None:
    """Mark the tests that share what takes long to start, a Spark session say, so that one worker runs them."""
    for item in items:
        shared = [
            definition
            for definitions in _definitions(item).values()
            for definition in definitions
            if definition.argname not in _OWN
            and definition.scope in (*_SHARED, "session")
            and definition.baseid
        ]
        if shared and not item.get_closest_marker("xdist_group"):
            widest = min(shared, key=lambda definition: len(definition.baseid))
            item.add_marker(pytest.mark.xdist_group(widest.baseid))


def _definitions(item: pytest.Item) -> dict[str, Any]:
    info = getattr(item, "_fixtureinfo", None)
    return info.name2fixturedefs if info else {}
