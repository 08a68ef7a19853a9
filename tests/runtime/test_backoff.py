"""The pauses between tries, and who decides how long they are."""

from __future__ import annotations

import pytest

from spark_events.runtime.workers.reporter_calls import Backoff


@pytest.mark.parametrize("asked_ms", [None, 0, -5_000, 1])
def test_a_destination_cannot_ask_for_no_pause(asked_ms: int | None) -> None:
    """After some tries the pause is about 10 s, whether the destination asks for less or for nothing."""
    backoff = Backoff()
    for _ in range(10):
        backoff.failed()

    assert next(backoff.pause(asked_ms)) > 5


@pytest.mark.parametrize(("asked_ms", "least_s", "most_s"), [(60_000, 50, 70), (2**70, 800, 1_000)])
def test_it_may_ask_for_a_longer_one_within_a_bound(asked_ms: int, least_s: float, most_s: float) -> None:
    backoff = Backoff()
    backoff.failed()

    assert least_s < next(backoff.pause(asked_ms)) < most_s
