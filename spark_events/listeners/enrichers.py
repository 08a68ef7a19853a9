"""Asks the failure enrichers, each within its time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence

from spark_events.api import ConfigError, Failure, FailureContext, FailureEnricher
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.plugins import installed, load_class
from spark_events.runtime.settings import key_of

ENTRY_POINTS = "spark_events.failure_enrichers"
KEY = key_of(ListenerSettings, "failure_enrichers")
_TIMEOUT_S = 1.0


def load_enrichers(listed: Sequence[str] | None) -> tuple[list[FailureEnricher], list[ConfigError]]:
    """Make the enrichers that are listed, or all that are installed.

    Args:
        listed: names of entry points, or ``module:Class``; None for all.

    Returns:
        The enrichers, and one error for each that is unknown or cannot be made.
    """
    plugins = installed(ENTRY_POINTS)
    names = list(plugins) if listed is None else listed
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
        self._askers = [_Asker(enricher, log) for enricher in enrichers]

    def labels(self, failure: Failure, context: FailureContext) -> dict[str, str]:
        """Return the labels of all enrichers; as in Flink, no value is ``<null>``, none ``<empty>``."""
        labels: dict[str, str] = {}
        for asker in list(self._askers):
            answer = asker.ask(failure, context)
            if answer is None:
                self._askers.remove(asker)
                logger.error(
                    "failure enricher %s took over %s s: it is not asked again", asker.name, _TIMEOUT_S
                )
                continue
            for key, value in answer.items():
                labels[key] = "<null>" if value is None else str(value) or "<empty>"
        return labels

    def close(self) -> None:
        """Ask no more, and let the threads end."""
        for asker in self._askers:
            asker.close()
        self._askers = []


class _Asker:
    """One enricher and its thread, which is there from the start: none can be started while Python ends."""

    def __init__(self, enricher: FailureEnricher, log: OnceLog) -> None:
        self.name = type(enricher).__qualname__
        self._enricher = enricher
        self._log = log
        self._questions: queue.SimpleQueue[tuple[Failure, FailureContext] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Mapping[str, str | None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"spark-events-{self.name}", daemon=True).start()

    def ask(self, failure: Failure, context: FailureContext) -> Mapping[str, str | None] | None:
        """Return the enricher's labels, none where it raises; None where it takes too long."""
        self._questions.put((failure, context))
        try:
            return self._answers.get(timeout=_TIMEOUT_S)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Let the thread end."""
        self._questions.put(None)

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            failure, context = question
            try:
                self._answers.put(dict(self._enricher.process_failure(failure, context)))
            except Exception as error:
                message = f"failure enricher {self.name} raised {error!r}"
                self._log.error(("enricher", self.name), message, error)
                self._answers.put({})
