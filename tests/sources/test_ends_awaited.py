"""An application that begins while the one before, in the same process, is still being delivered."""

from __future__ import annotations

import threading
from typing import Any

from spark_events.sources.attaching import attachment
from tests.support.waiting import wait_until


class _Former:
    """An attachment that ends when it is let go."""

    def __init__(self) -> None:
        self.ending = True


def test_metrics_wait_for_its_ports(monkeypatch: Any) -> None:
    """Until it has ended, or not much longer than it should take."""
    former: Any = _Former()
    monkeypatch.setattr(attachment, "_ENDS_WAIT_S", 60.0)
    waiting = threading.Thread(target=attachment._await_ends, args=([former],))
    waiting.start()
    assert waiting.is_alive()
    former.ending = False
    wait_until(lambda: not waiting.is_alive(), "it goes on")

    former.ending = True
    monkeypatch.setattr(attachment, "_ENDS_WAIT_S", 0.0)
    attachment._await_ends([former])
