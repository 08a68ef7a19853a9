"""The command ``paths``."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from spark_events.api import ConfigError
from spark_events.cli.console import say

_CLONE = Path(__file__).parents[2]
_INSTALLED = Path(sysconfig.get_path("data")) / "share" / "spark-events"


def paths() -> None:
    """Print where the example configurations and the dashboards are."""
    for name in ("conf", "grafana"):
        folder = next((root / name for root in (_CLONE, _INSTALLED) if (root / name).is_dir()), None)
        if folder is None:
            raise ConfigError(
                f"{name}: not installed with spark-events; reinstall spark-events from its wheel"
            )
        say(f"{name}: {folder}")
