"""The driver bridge's queue in a real JVM: bounded, in order, and what tells of an end stays."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.applications import App
from tests.support.paths import APPS

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("java")]


@pytest.mark.extended
def test_full(tmp_path: Path) -> None:
    """Routine records are dropped, the oldest of them, and counted."""
    run = App([sys.executable, str(APPS / "bridge_queue.py")], {}, tmp_path).end()
    assert run.code == 0, run.err[-3000:]
    left = json.loads(run.out.splitlines()[-1])

    assert left["dropped"] > 0
    assert left["bytes"] < 80_000  # JSON is written a little wider here
    assert left["names"].count("QueryStartedEvent") == 1
    assert left["names"].count("QueryTerminatedEvent") == 1
    assert left["own_jobs"] == sorted(left["own_jobs"])
    assert left["times"] == sorted(left["times"])
    assert 0 not in left["jobs"]
    assert "QueryTerminatedEvent" in left["names"][-4:]
