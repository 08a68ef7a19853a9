"""Names of metrics in the form that Prometheus and OpenTelemetry share."""

from __future__ import annotations

import re


def snake_case(name: str) -> str:
    """Return ``lastCheckpointSize`` as ``last_checkpoint_size``; what no name may have becomes ``_``."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    return re.sub(r"[^a-z0-9_]", "_", words)
