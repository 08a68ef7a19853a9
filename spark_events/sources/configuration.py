"""Reads everything in an application's configuration: reporters, settings, failure enrichers."""

from __future__ import annotations

import difflib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_events.api import ApplicationInfo, ConfigError, FailureEnricher, Secret
from spark_events.api import option_types as types
from spark_events.api.option_types import in_clear, tell_of_secrets
from spark_events.listeners.failures.enrichers import load_enrichers
from spark_events.listeners.record_fields import SPARK_PROPERTIES
from spark_events.listeners.scopes import SCOPES
from spark_events.listeners.settings import ListenerSettings, read_settings
from spark_events.runtime.filters import glob
from spark_events.runtime.log_once import logger
from spark_events.runtime.plugins import EVENTS, KINDS, Kind
from spark_events.runtime.redaction import (
    CLEAN,
    KEY_REGEX,
    SHORTEST,
    TEXT_REGEX,
    Redactor,
    read_patterns,
    read_sql_secrets,
    secret_values,
)
from spark_events.runtime.setup import ReporterSetup, common_options, read_all_setups
from spark_events.sources.instead import instead_of_enrichers, instead_of_reporters, instead_of_settings


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a configuration asks for, and what is wrong with it.

    Attributes:
        setups: the reporters that can be created.
        problems: one sentence for each mistake.
        ignored: those of them that stop nothing: keys that are read by nobody.
        warnings: one sentence for each thing that works but should be different.
        instead: of problems, what holds instead in an application that goes on.
        redactor: keeps the configuration's secrets out of messages and reports.
    """

    setups: list[ReporterSetup]
    settings: ListenerSettings
    enrichers: list[FailureEnricher]
    problems: list[str]
    warnings: list[str]
    redactor: Redactor
    ignored: frozenset[str] = frozenset()
    instead: Mapping[str, str] = field(default_factory=dict)

    def log_problems(self) -> None:
        """Log each problem with what holds instead, as an error unless all goes on without it."""
        for problem in self.problems:
            level = logging.WARNING if problem in self.ignored else logging.ERROR
            said = f"{problem}; {self.instead[problem]}" if problem in self.instead else problem
            logger.log(level, "%s", said, extra=CLEAN)  # they are redacted already


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
    sql, wrong_options = read_sql_secrets(conf, keys)
    wrong_patterns += wrong_options
    secrets = [value for setup in setups for value in _secrets_of(setup)]
    redactor = Redactor([*secrets, *secret_values(conf, keys)], texts, sql)
    tell_of_secrets(redactor)
    wrong = (*errors, *wrong_settings, *wrong_enrichers)
    instead = (
        *instead_of_reporters(conf, errors, setups),
        *instead_of_settings(wrong_settings),
        *instead_of_enrichers(wrong_enrichers),
    )
    ignored = [redactor.text(text) for setup in setups for text in setup.ignored]
    return Configuration(
        setups,
        settings,
        enrichers,
        # First what is wrong with a pattern, because that hides the texts of all others.
        [
            *map(str, wrong_patterns),
            *(redactor.text(text) for error in wrong for text in error.problems),
            *ignored,
        ],
        [
            *(sentence for setup in setups for sentence in _secrets_in_clear(setup, keys)),
            *(sentence for setup in setups for sentence in _short_secrets(setup)),
            *map(redactor.text, doubtful_values(conf, setups)),
        ],
        redactor,
        frozenset(ignored),
        {
            **{redactor.text(problem): text for problem, text in instead},
            **{str(error): _instead_of_pattern(error) for error in wrong_patterns},
        },
    )


def _instead_of_pattern(error: ConfigError) -> str:
    """Return what holds until a pattern of secrets is written that can be used."""
    of_texts = str(error).startswith(f"{TEXT_REGEX}:")
    return "until then, all texts are hidden" if of_texts else "until then, Spark's default holds"


def _secrets_of(setup: ReporterSetup) -> Iterator[str]:
    """Yield the values of a reporter's secret options."""
    for option in setup.factory.options or ():
        value = setup.config.get(option) if option.type.secret else None
        secrets = value.values() if isinstance(value, Mapping) else (value,)
        yield from (secret.reveal() for secret in secrets if isinstance(secret, Secret))


def _short_secrets(setup: ReporterSetup) -> Iterator[str]:
    """Yield a warning for each secret that is too short to be found in texts; a header may be no secret."""
    for option in setup.factory.options or ():
        value = setup.config.get(option) if option.type.secret else None
        if isinstance(value, Secret) and len(value.reveal()) < SHORTEST:
            yield (
                f"{setup.config.key(option.name)} has a secret of fewer than {SHORTEST} characters, which is "
                "not replaced in events and logs, because it may be a part of any word: choose a longer one"
            )


def _secrets_in_clear(setup: ReporterSetup, keys: re.Pattern[str]) -> Iterator[str]:
    """Yield a warning for each secret that everybody who sees Spark's UI or event log can read."""
    for option in setup.factory.options or ():
        key = setup.config.key(option.name)
        if in_clear(option.type, setup.config.values.get(option.name, "")) and not keys.search(key):
            yield (
                f"{key} has a secret in plain text, and Spark shows this key in its UI and its event log: "
                f"write env:NAME or file:/path instead of the value, or make {KEY_REGEX} match the key"
            )


_OF_REGULAR_EXPRESSIONS = re.compile(r"[][(){}^$\\|?+]")
_FILTERS = ("includes", "excludes")


def doubtful_values(conf: Mapping[str, str], setups: Iterable[ReporterSetup]) -> list[str]:
    """Return a sentence for each: the key, the value and what to do.

    Args:
        conf: Spark's configuration.
        setups: the reporters that it configures.
    """
    of_lists = (sentence for kind in KINDS for sentence in _of_list(conf, kind))
    of_reporters = (sentence for setup in setups for sentence in _of_reporter(conf, setup))
    return [*of_lists, *of_reporters]


def _of_list(conf: Mapping[str, str], kind: Kind) -> Iterator[str]:
    key = kind.names_key if kind.names_key in conf else kind.flinks_names_key
    names = types.LIST.parse(conf.get(key, ""))
    for name in _repeated(names):
        yield f"{key}: '{conf[key]}' has {name!r} more than once, but starts it once; write it once"
    unlisted = {
        name: own
        for own in sorted(conf)
        if own.startswith(kind.prefix) and (name := own.removeprefix(kind.prefix).split(".")[0]) not in names
    }
    if names and unlisted:  # an empty list is meant: nothing is to start
        words = ", ".join(map(repr, unlisted))
        yield (
            f"{next(iter(unlisted.values()))}: no effect, because {key} is '{conf[key]}', without {words}; "
            "add what shall start, or remove its keys"
        )


def _of_reporter(conf: Mapping[str, str], setup: ReporterSetup) -> Iterator[str]:
    prefix, common = f"{setup.kind.prefix}{setup.name}.", common_options(setup.kind)
    for option in (*(setup.factory.options or ()), *common.values()):
        text = conf.get(prefix + option.name, "")
        shown = "******" if option.type.secret else text
        for name in _repeated(types.keys_of_map(option.type, text)):
            yield f"{prefix}{option.name}: '{shown}' has {name!r} more than once; only its last value counts"
    for each in _FILTERS:
        key = prefix + common[each].name if each in common else ""
        text = conf.get(key, "")
        if special := _OF_REGULAR_EXPRESSIONS.search(text):
            yield (
                f"{key}: '{text}' is not a regular expression: {special.group()!r} means itself, "
                "and only * means any text"
            )
        else:
            yield from (f"{key}: '{text}' selects nothing by {scope}" for scope in _unknown_scopes(text))
    if setup.kind is EVENTS:
        yield from _without_identity(prefix, setup)


def _without_identity(prefix: str, setup: ReporterSetup) -> Iterator[str]:
    """Yield a warning for each variable by which stored events are known, if they lack it, or share it."""
    options, settings = common_options(setup.kind), setup.settings
    for option, given, what in (
        (options["excluded_variables"], settings.excluded_variables, "is left out"),
        (options["additional_variables"], settings.additional_variables, "is the same for all"),
    ):
        for name in ("app_name", "app_id"):
            if name in given:
                yield (
                    f"{prefix}{option.name}: {name!r} {what}, so that report, status and show cannot tell "
                    "whose these events are; leave it as it is"
                )


def _unknown_scopes(filters: str) -> Iterator[str]:
    """Yield the scopes of filters that there are not; plugins may have some below those that there are."""
    known = [f"spark.{name}" for name in SCOPES]
    for text in filters.split(";"):
        scope = text.partition(":")[0].strip()
        last = scope.rpartition(".")[2]
        if not scope or any(map(glob(scope).fullmatch, ("spark", *known))):
            continue
        close = difflib.get_close_matches(last, SCOPES, n=1, cutoff=0.8)
        if close or not any(glob(scope).fullmatch(f"{each}.{last}") for each in known):
            meant = f"did you mean '*.{close[0]}'? " if close else ""
            yield f"the scope '{scope}': {meant}the scopes are {', '.join(known)}"


def _repeated(words: Iterable[str]) -> list[str]:
    return [word for word, count in Counter(words).items() if count > 1]


_EXPECTATIONS = ("spark.events.checkpoint.", "spark.events.source.")


def expectations_of(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what an application's own configuration expects of its queries: their SLAs, and that data comes.

    Args:
        records: the first ones of its event log, with its EnvironmentUpdate.
    """
    expected = {}
    for record in records:
        for key, value in dict(record.get(SPARK_PROPERTIES) or {}).items():
            if key.startswith(_EXPECTATIONS):
                expected[key] = str(value)
    return expected
