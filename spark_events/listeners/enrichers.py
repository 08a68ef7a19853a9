"""Asks the failure enrichers, each within its time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from spark_events.api import ConfigError, Failure, FailureContext, FailureEnricher
from spark_events.api import option_types as types
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.plugins import installed, load_class

ENTRY_POINTS = "spark_events.failure_enrichers"
KEY = "spark.events.failure.enrichers"
_TIMEOUT_S = 1.0


def load_enrichers(conf: Mapping[str, str]) -> tuple[list[FailureEnricher], list[ConfigError]]:
    """Make the enrichers that ``spark.events.failure.enrichers`` lists, or all that are installed.

    Returns:
        The enrichers, and one error for each that is unknown or cannot be made.
    """
    plugins = installed(ENTRY_POINTS)
    listed = conf.get(KEY)
    names = list(plugins) if listed is None else list(types.LIST.parse(listed))
    enrichers: list[FailureEnricher] = []
    errors: list[ConfigError] = []
    for name in names:
        if name not in plugins and ":" not in name:
            errors.append(ConfigError.of_value(KEY, name, f"one of {', '.join(plugins)}, or module:Class"))
            continue
        try:
            target = plugins[name].target if name in plugins else name
            enrichers.append(load_class(target, FailureEnricher, KEY)())
        except ConfigError as error:
            errors.append(error)
        except Exception as error:
            errors.append(ConfigError(f"{KEY}: {name!r} raised {type(error).__name__}: {error}"))
    return enrichers, errors


class Enrichers:
    """Asks each enricher on a thread of its own; one that takes too long is not asked again."""

    def __init__(self, enrichers: Sequence[FailureEnricher], log: OnceLog) -> None:
        self._enrichers = list(enrichers)
        self._log = log

    def labels(self, failure: Failure, context: FailureContext) -> dict[str, str]:
        """Return the labels of all enrichers; as in Flink, no value is ``<null>``, none ``<empty>``."""
        labels: dict[str, str] = {}
        for enricher in list(self._enrichers):
            for key, value in self._ask(enricher, failure, context).items():
                labels[key] = "<null>" if value is None else str(value) or "<empty>"
        return labels

    def _ask(
        self, enricher: FailureEnricher, failure: Failure, context: FailureContext
    ) -> Mapping[str, str | None]:
        answer: dict[str, str | None] = {}

        def ask() -> None:
            try:
                answer.update(enricher.process_failure(failure, context))
            except Exception as error:
                name = type(enricher).__qualname__
                self._log.error(("enricher", name), f"failure enricher {name} raised {error!r}", error)

        thread = threading.Thread(target=ask, name="spark-events-enricher", daemon=True)
        thread.start()
        thread.join(_TIMEOUT_S)
        if thread.is_alive():
            self._enrichers.remove(enricher)
            logger.error("failure enricher %s took over %s s: it is not asked again", enricher, _TIMEOUT_S)
            return {}
        return answer
