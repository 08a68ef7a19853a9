"""Where things lie."""

from __future__ import annotations

from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
APPS = REPO / "tests" / "apps"
