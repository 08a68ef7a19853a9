"""One real application that tests look at from all sides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.applications import AppRun
from tests.support.file_log import Event

ADDED = "team:payments,env:prod"
"""The variables that its configuration adds to events."""


@dataclass
class Live:
    """The application, and what came out of it.

    Attributes:
        metrics: when its queries have ended.
        metrics_while_running: when one of them ran.
    """

    run: AppRun
    events: list[Event]
    metrics: str
    folder: Path
    spans: list[dict[str, Any]]
    openmetrics: str
    metrics_while_running: str
