"""Runs as many tests as there is time for: ``SPARK_EVENTS_UNTIL``, in s since the epoch, says when it is over.

Each run takes the modules in another order, so that over some runs each has its turn.
"""

from __future__ import annotations

import os
import random
import time

import pytest

_UNTIL = os.environ.get("SPARK_EVENTS_UNTIL", "")


def shuffle(items: list[pytest.Item]) -> None:
    """Put the modules into an order that is the same for all workers of a run."""
    if _UNTIL:
        places = random.Random(_UNTIL)
        names = sorted({item.nodeid.partition("::")[0] for item in items})
        order = {name: places.random() for name in names}
        items.sort(key=lambda item: order[item.nodeid.partition("::")[0]])


def skip_if_over() -> None:
    """Skip the test that is about to run if the time is over."""
    if _UNTIL and time.time() > float(_UNTIL):
        pytest.skip("left out: the time for these tests is over")
