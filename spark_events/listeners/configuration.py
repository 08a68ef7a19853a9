"""Reads all that an application's configuration says: reporters, settings, failure enrichers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import ApplicationInfo, FailureEnricher
from spark_events.listeners.enrichers import load_enrichers
from spark_events.listeners.settings import ListenerSettings, read_settings
from spark_events.runtime.registry import read_all_setups
from spark_events.runtime.setup import ReporterSetup


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a configuration asks for, and what is wrong with it.

    Attributes:
        setups: the reporters that can be created.
        settings: what is configured for the listeners.
        enrichers: label failures.
        problems: one sentence for each mistake.
    """

    setups: list[ReporterSetup]
    settings: ListenerSettings
    enrichers: list[FailureEnricher]
    problems: list[str]


def read_configuration(conf: Mapping[str, str], application: ApplicationInfo | None = None) -> Configuration:
    """Read a configuration; what is wrong costs itself alone.

    Args:
        conf: Spark's configuration.
        application: whose events will be reported; None while a configuration is only checked.
    """
    setups, errors = read_all_setups(conf, application)
    settings, wrong_settings = read_settings(conf)
    enrichers, wrong_enrichers = load_enrichers(conf)
    wrong = (*errors, *wrong_settings, *wrong_enrichers)
    return Configuration(setups, settings, enrichers, [text for error in wrong for text in error.problems])
