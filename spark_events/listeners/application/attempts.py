"""Whether YARN starts an application again that fails: it does, in cluster mode, while attempts are left."""

from __future__ import annotations

from spark_events.listeners.record_fields import SPARK_PROPERTIES
from spark_events.listeners.record_types import EnvironmentUpdateRecord

_MOST_ATTEMPTS = "spark.yarn.maxAppAttempts"
_MOST_OF_YARN = "yarn.resourcemanager.am.max-attempts"
"""No application has more, whatever it asks for."""
_FORGOTTEN_AFTER = "spark.yarn.am.attemptFailuresValidityInterval"
"""With it, YARN forgets failures, so that no attempt need be the last."""


class Attempts:
    """The attempts of one application.

    Args:
        attempt_id: of the one that runs; empty where the cluster has no attempts.
    """

    def __init__(self, attempt_id: str) -> None:
        self._own = int(attempt_id) if attempt_id.isdecimal() else None
        self._most: int | None = None
        self._forgets = False

    @property
    def has_more(self) -> bool | None:
        """Whether another one follows if this fails; None if only YARN's own configuration says it."""
        if self._own is None:
            return False
        if self._most is None:
            return None
        return True if self._own < self._most else None if self._forgets else False

    def on_environment(self, record: EnvironmentUpdateRecord, time_ms: int) -> None:
        """Handle EnvironmentUpdate; the first has Spark's configuration."""
        properties = record.get(SPARK_PROPERTIES) or {}
        of_yarn = (record.get("Hadoop Properties") or {}).get(_MOST_OF_YARN, "")
        wanted = str(properties.get(_MOST_ATTEMPTS, ""))
        if wanted.isdecimal():
            self._most = min(int(most) for most in (wanted, str(of_yarn)) if most.isdecimal())
        self._forgets = self._forgets or _FORGOTTEN_AFTER in properties
