"""What the record of an application's start says if it was attached to before."""

from __future__ import annotations

from typing import Any

from spark_events.api.event import now_ms
from spark_events.listeners.spark_records import ATTACHED, ATTACHMENT


def again_of(attachment: int) -> dict[str, Any]:
    """Return the fields of an ApplicationStart for an attachment that is made now; none for the first.

    Args:
        attachment: 2 for the second to its application, and so on.
    """
    return {ATTACHMENT: attachment, ATTACHED: now_ms()} if attachment > 1 else {}
