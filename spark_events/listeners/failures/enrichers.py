"""Asks the failure enrichers, each with a time limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from spark_events.api import ConfigError, Failure, FailureContext, FailureEnricher
from spark_events.api.toolkit.daemon_executor import DaemonExecutor, call_within
from spark_events.api.toolkit.own_process import OwnProcess
from spark_events.listeners.settings import ListenerSettings
from spark_events.runtime.foreign_errors import wants_out, with_type
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.plugins import installed, load_class
from spark_events.runtime.settings import key_of

ENTRY_POINTS = "spark_events.failure_enrichers"
KEY = key_of(ListenerSettings, "failure_enrichers")
_TIMEOUT_S = 1.0
_MOST_LABELS, _LONGEST = 50, 1_024
"""How many labels an enricher may give, and how long a name or a value may be, in characters."""


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
        except BaseException as error:  # its module may be a program, which exits
            if wants_out(error):
                raise
            errors.append(ConfigError(f"{KEY}: {name!r} raised {with_type(error)}"))
    return enrichers, errors


class Enrichers:
    """Asks each enricher on a thread of its own; one that takes too long is not asked again.

    Args:
        log: takes what they raise.
        keep_threads: whether the threads are kept from now on; otherwise each call has a new one.
    """

    def __init__(self, enrichers: Sequence[FailureEnricher], log: OnceLog, keep_threads: bool = True) -> None:
        self._asked = [_AskedEnricher(enricher, log, keep_threads) for enricher in enrichers]

    def labels(self, failure: Failure, context: FailureContext) -> dict[str, str]:
        """Return the labels of all enrichers; as in Flink, None becomes ``<null>`` and "" ``<empty>``."""
        labels: dict[str, str] = {}
        for enricher in list(self._asked):
            try:
                given = enricher.labels(failure, context)
            except TimeoutError:
                self._asked.remove(enricher)
                enricher.close()
                message = "failure enricher %s took more than %s s: it is not called again"
                logger.error(message, enricher.name, _TIMEOUT_S)
                continue
            labels.update(given)
        return labels

    def close(self) -> None:
        """Stop asking, and let the threads end."""
        for enricher in self._asked:
            enricher.close()
        self._asked = []


class _AskedEnricher:
    """One enricher and its thread."""

    def __init__(self, enricher: FailureEnricher, log: OnceLog, keep_thread: bool) -> None:
        self.name = type(enricher).__qualname__
        self._enricher = enricher
        self._log = log
        self._executor: DaemonExecutor | None = None
        if keep_thread:
            self._executor = DaemonExecutor(1, f"spark-events-{self.name}")
            self._executor.submit(lambda: None)  # starts it now: no thread can be started at interpreter exit

    def labels(self, failure: Failure, context: FailureContext) -> Mapping[str, str]:
        """Return the enricher's labels as texts, but for those that raise; none if it raises itself.

        Raises:
            TimeoutError: it takes too long.
        """

        def ask() -> Mapping[str, str]:
            texts: dict[str, str] = {}
            try:
                with OwnProcess():
                    labels = dict(self._enricher.process_failure(failure, context))
                if len(labels) > _MOST_LABELS:
                    self._say("many", f"gave {len(labels):,} labels, of which {_MOST_LABELS} are reported")
                for name, value in islice(labels.items(), _MOST_LABELS):
                    self._add(texts, name, value)
            except BaseException as error:
                self._say("", f"raised {with_type(error)[:_LONGEST]}", error)
            return texts

        return call_within(_TIMEOUT_S, ask, self._executor)

    def _add(self, texts: dict[str, str], name: object, value: object) -> None:
        try:
            text = "<null>" if value is None else str(value) or "<empty>"
            texts[str(name)[:_LONGEST]] = text[:_LONGEST]
        except BaseException as error:
            self._say("label", f"gave a label that raised {with_type(error)[:_LONGEST]}", error)

    def _say(self, what: str, message: str, error: BaseException | None = None) -> None:
        self._log.error(("enricher", self.name, what), f"failure enricher {self.name} {message}", error)

    def close(self) -> None:
        """End the thread."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
