"""Custom sources and sinks that declare what they read or write."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from spark_events.api import LineageVertex, LineageVertexProvider
from spark_events.runtime.log_once import logger

_lock = threading.Lock()
_providers: dict[str, LineageVertexProvider] = {}


def provide(name: str, provider: LineageVertexProvider) -> None:
    """Register a provider that says what readers and writers of a format read and write.

    Args:
        name: the argument of ``spark.read.format(…)``: the ``name()`` of a Python data source, or the class
            name of a connector's data source.
        provider: asked once for each reader and writer of a statement; if it raises, that is logged, and
            the source or sink is named as if there were no provider.

    Example::

        class Rates(LineageVertexProvider):
            def lineage_vertex(self, options, is_sink):
                return LineageVertex((LineageDataset(options["table"], "https://rates.example.com"),))

        provide("rates", Rates())  # for spark.read.format("rates")
    """
    with _lock:
        _providers[name.lower()] = provider


def withdraw(name: str) -> None:
    """Unregister a provider; do nothing if there is none.

    Example::

        withdraw("rates")
    """
    with _lock:
        _providers.pop(name.lower(), None)


def provided(identity: Mapping[str, object], is_sink: bool) -> LineageVertex | None:
    """Return what the provider of a format says; None if no provider is registered for it.

    Args:
        identity: in the form of ``Identities.java``.
        is_sink: whether it is written rather than read.
    """
    provider = _providers.get(str(identity.get("format") or "").lower())
    if provider is None:
        return None
    options = identity.get("options")
    try:
        return provider.lineage_vertex(options if isinstance(options, Mapping) else {}, is_sink)
    except Exception:
        logger.exception("the lineage provider of %r raised an error", identity["format"])
        return None
