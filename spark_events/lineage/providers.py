"""Sources and sinks of one's own, that say themselves what they read or write."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from spark_events.api import LineageVertex, LineageVertexProvider
from spark_events.runtime.log_once import logger

_lock = threading.Lock()
_providers: dict[str, LineageVertexProvider] = {}


def provide(name: str, provider: LineageVertexProvider) -> None:
    """Let a provider say what readers and writers of a format read and write.

    Args:
        name: what ``spark.read.format(…)`` is given: the ``name()`` of a Python data source, or the class
            name of a connector's.
        provider: asked once for each reader and writer of a statement; what it raises is logged, and that
            source or sink is named as if there were no provider.
    """
    with _lock:
        _providers[name.lower()] = provider


def withdraw(name: str) -> None:
    """Take a provider back; one that is not there is no error."""
    with _lock:
        _providers.pop(name.lower(), None)


def provided(identity: Mapping[str, object], is_sink: bool) -> LineageVertex | None:
    """Return what the provider of a format says; None where nobody has registered for it.

    Args:
        identity: as ``Identities.java`` makes it.
        is_sink: whether it is written.
    """
    provider = _providers.get(str(identity.get("format") or "").lower())
    if provider is None:
        return None
    options = identity.get("options")
    try:
        return provider.lineage_vertex(options if isinstance(options, Mapping) else {}, is_sink)
    except Exception:
        logger.exception("the lineage provider of %r cannot say what it reads or writes", identity["format"])
        return None
