"""Checks a configuration before a job is submitted with it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import ConfigError, probe_folder
from spark_events.api.sending import JOURNAL_DIR
from spark_events.api.time_limit import call_within
from spark_events.ctas import settings as ctas
from spark_events.listeners.configuration import read_configuration
from spark_events.listeners.settings import METRICS_PREFIX, OPTIONS, PREFIX, SLA_OF_QUERY
from spark_events.runtime.account import describe
from spark_events.runtime.kinds import EVENTS, KINDS
from spark_events.runtime.setup import FACTORY, ReporterSetup

_PROBE_S = 15.0
_OURS = (
    PREFIX,
    *(f"spark.{root}." for root in ("traces", "metrics.scope", "metrics.job", "job-status-changed")),
    "spark.metrics.report",
)
_ROOTS = ("events", "traces", "metrics", "job-status-changed")
_PLACES = ("reporter", "listener")
_SPARKS = (
    "spark.metrics.conf",
    "spark.metrics.namespace",
    "spark.metrics.staticSources.enabled",
    "spark.metrics.appStatusSource.enabled",
    "spark.metrics.executorMetricsSource.enabled",
)


@dataclass(frozen=True, slots=True)
class CheckedReporter:
    """One reporter that is configured well.

    Attributes:
        kind: ``events``, ``traces`` or ``metrics``.
        name: as configured.
        factory: as configured.
        reached: what a probe reached; empty where none was asked for.
    """

    kind: str
    name: str
    factory: str
    reached: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found.

    Attributes:
        reporters: those that would start.
        problems: one sentence for each mistake; empty where all is well.
        warnings: one sentence for each thing that works, and had better be different.
    """

    reporters: list[CheckedReporter]
    problems: list[str]
    warnings: list[str]


def check(conf: Mapping[str, str], connect: bool) -> CheckResult:
    """Check a configuration, as ``attach`` would read it.

    Args:
        conf: Spark's configuration.
        connect: also try what the reporters would reach.
    """
    found = read_configuration(conf)
    problems = [*found.problems, *ctas.problems_of(conf), *_unknown_keys(conf)]
    reporters: list[CheckedReporter] = []
    for setup in found.setups:
        _check_one(setup, conf, connect, reporters, problems)
    if not found.setups and not problems:
        problems.append(
            f"no reporter is configured; set {EVENTS.prefix}<name>.{FACTORY.name}, as the file "
            "conf/spark-defaults.conf does (see spark-events paths)"
        )
    return CheckResult(reporters, [found.redactor.text(problem) for problem in problems], found.warnings)


def _check_one(
    setup: ReporterSetup,
    conf: Mapping[str, str],
    connect: bool,
    reporters: list[CheckedReporter],
    problems: list[str],
) -> None:
    title = f"{setup.kind.prefix}{setup.name}"
    try:
        # What create finds wrong, a missing package say, shows only there.
        call_within(_PROBE_S, lambda: setup.factory.create(setup.config))
        reached = call_within(_PROBE_S, lambda: _probe(setup)) if connect else ""
    except Exception as error:
        text = describe(error)
        problems.append(text if text.startswith("spark.") else f"{title}: {text}")
        return
    factory = conf.get(f"{title}.{FACTORY.name}", setup.name)
    reporters.append(CheckedReporter(setup.kind.name, setup.name, factory, str(reached)))


def _probe(setup: ReporterSetup) -> str:
    reached = setup.factory.probe(setup.config)
    if setup.journal_dir is None:
        return reached
    try:
        return f"{reached}; {probe_folder(setup.journal_dir)}"
    except OSError as error:
        raise ConfigError(f"{setup.config.key(JOURNAL_DIR.name)}: {error}") from error


def _unknown_keys(conf: Mapping[str, str]) -> list[str]:
    """Find keys that look like ours and are not; ``spark.metrics.`` is shared with Spark."""
    known = [prefix + option.name for prefix, options in OPTIONS.items() for option in options]
    known += [ctas.PREFIX + option.name for option in ctas.OPTIONS]
    known += [key for kind in KINDS for key in (kind.names_key, kind.flinks_names_key) if key]
    known = sorted(set(known))
    open_ended = (PREFIX + SLA_OF_QUERY, *(kind.prefix for kind in KINDS))
    patterns = [*known, f"{PREFIX}{SLA_OF_QUERY}<query>", *(f"{k.prefix}<name>.<option>" for k in KINDS)]
    problems = []
    for key in conf:
        if key in known or key in _SPARKS or key.startswith(open_ended):
            continue
        meant = _meant(key)
        if meant is not None and (meant in known or meant.startswith(open_ended)):
            problems.append(f"{key}: unknown key; did you mean {meant!r}?")
            continue
        close = difflib.get_close_matches(meant or key, known, n=1, cutoff=0.8)
        if meant is not None or key.startswith(_OURS) or (key.startswith(METRICS_PREFIX) and close):
            hint = f"did you mean {close[0]!r}? " if close else ""
            root = ".".join((meant or key).split(".")[:2]) + "."
            allowed = ", ".join(pattern for pattern in patterns if pattern.startswith(root))
            problems.append(f"{key}: unknown key; {hint}allowed: {allowed}")
    return problems


def _meant(key: str) -> str | None:
    """Return the key of ours that one nearly is, as far as the namespace goes; None where it is no near miss.

    Such as ``spark.event.reporter.file.path`` or ``spark.metrics.reporters.prom.port``, and Flink's keys as
    they are, without ``spark.`` before them.
    """
    words = key.split(".")
    if _near(words[0], _ROOTS) and len(words) > 2 and _near(words[1], _PLACES):
        words.insert(0, "spark")
    root = _near(words[1], _ROOTS) if len(words) > 2 and words[0].lower() == "spark" else None
    if root is None:
        return None
    place = _near(words[2], _PLACES) if len(words) > 3 else None
    meant = ".".join(("spark", root, place or words[2], *words[3:]))
    # What is not about reporters, below spark.metrics., may be Spark's own.
    is_sparks = root == words[1] == "metrics" and place is None
    return None if is_sparks or meant == key else meant


def _near(word: str, words: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.8)), None)
