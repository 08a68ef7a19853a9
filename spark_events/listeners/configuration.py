"""Reads everything in an application's configuration: reporters, settings, failure enrichers."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_events.api import ApplicationInfo, FailureEnricher, Secret
from spark_events.api.option_types import in_clear
from spark_events.listeners.failures.enrichers import load_enrichers
from spark_events.listeners.settings import ListenerSettings, read_settings
from spark_events.runtime.doubtful import doubtful_values
from spark_events.runtime.log_once import logger
from spark_events.runtime.redaction import KEY_REGEX, Redactor, read_patterns, secret_values
from spark_events.runtime.setup import ReporterSetup, read_all_setups


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a configuration asks for, and what is wrong with it.

    Attributes:
        setups: the reporters that can be created.
        problems: one sentence for each mistake.
        ignored: those of them that stop nothing: keys that are read by nobody.
        warnings: one sentence for each thing that works but should be different.
        redactor: keeps the configuration's secrets out of messages and reports.
    """

    setups: list[ReporterSetup]
    settings: ListenerSettings
    enrichers: list[FailureEnricher]
    problems: list[str]
    warnings: list[str]
    redactor: Redactor
    ignored: frozenset[str] = frozenset()

    def log_problems(self) -> None:
        """Log each problem, as an error unless all goes on without it."""
        for problem in self.problems:
            logger.log(logging.WARNING if problem in self.ignored else logging.ERROR, "%s", problem)


def read_configuration(conf: Mapping[str, str], application: ApplicationInfo | None = None) -> Configuration:
    """Read a configuration; an invalid part does not affect the others.

    Args:
        conf: Spark's configuration.
        application: the one to report on; None if the configuration is only checked.
    """
    setups, errors = read_all_setups(conf, application)
    settings, wrong_settings = read_settings(conf)
    enrichers, wrong_enrichers = load_enrichers(settings.failure_enrichers)
    keys, texts, wrong_patterns = read_patterns(conf)
    secrets = [value for setup in setups for value in _secrets_of(setup)]
    redactor = Redactor([*secrets, *secret_values(conf, keys)], texts)
    wrong = (*errors, *wrong_settings, *wrong_enrichers, *wrong_patterns)
    ignored = [redactor.text(text) for setup in setups for text in setup.ignored]
    return Configuration(
        setups,
        settings,
        enrichers,
        [*(redactor.text(text) for error in wrong for text in error.problems), *ignored],
        [
            *(sentence for setup in setups for sentence in _secrets_in_clear(setup, keys)),
            *map(redactor.text, doubtful_values(conf, setups)),
        ],
        redactor,
        frozenset(ignored),
    )


def _secrets_of(setup: ReporterSetup) -> Iterator[str]:
    """Yield the values of a reporter's secret options."""
    for option in setup.factory.options or ():
        value = setup.config.get(option) if option.type.secret else None
        secrets = value.values() if isinstance(value, Mapping) else (value,)
        yield from (secret.reveal() for secret in secrets if isinstance(secret, Secret))


def _secrets_in_clear(setup: ReporterSetup, keys: re.Pattern[str]) -> Iterator[str]:
    """Yield a warning for each secret that everybody who sees Spark's UI or event log can read."""
    for option in setup.factory.options or ():
        key = setup.config.key(option.name)
        if in_clear(option.type, setup.config.values.get(option.name, "")) and not keys.search(key):
            yield (
                f"{key} has a secret in plain text, and Spark shows this key in its UI and its event log: "
                f"write env:NAME or file:/path instead of the value, or make {KEY_REGEX} match the key"
            )
