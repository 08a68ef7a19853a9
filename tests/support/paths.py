"""Where things lie."""

from __future__ import annotations

from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
SHARED_DATA = REPO.parent / "shared" / "data" / "event-logs"
APPS = REPO / "tests" / "apps"
