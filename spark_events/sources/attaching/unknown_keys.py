"""Finds keys that nothing reads: misspelled ones, and those in a namespace that is nearly ours."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from spark_events.listeners.settings import declared_settings
from spark_events.runtime.plugins import KINDS
from spark_events.runtime.settings import Declared, declared_in
from spark_events.runtime.setup import ReporterSettings, SharedSettings

OF_REPORTERS = tuple(declared_in(ReporterSettings).values())
"""The options of all reporters, below ``spark.<kind>.reporter.<name>.``."""
OF_THE_FRAMEWORK = (*declared_settings(), *declared_in(SharedSettings).values())

_OF_CTAS = "spark.events.ctas."
"""Only ``spark_events.ctas``, which builds on this package, knows these keys."""
_METRICS = "spark.metrics."
_OURS = (
    "spark.events.",
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


def unknown_keys(conf: Mapping[str, str], settings: Sequence[Declared]) -> list[str]:
    """Return a sentence for each key that looks like ours and is not.

    Args:
        conf: Spark's configuration.
        settings: all that there are, besides those of reporters.
    """
    names_keys = {key for kind in KINDS for key in (kind.names_key, kind.flinks_names_key) if key}
    known = sorted(names_keys | {setting.option.name for setting in settings if not setting.placeholder})
    of_each = {setting.option.name: setting.placeholder for setting in settings if setting.placeholder}
    of_each |= {kind.prefix: "<name>.<option>" for kind in KINDS}
    open_ended = tuple(of_each)
    patterns = [*known, *(prefix + rest for prefix, rest in of_each.items())]
    problems = []
    for key in conf:
        if key in known or key in _SPARKS or key.startswith(open_ended):
            continue
        meant = _meant(key)
        if meant is not None and (meant in known or meant.startswith(open_ended)):
            problems.append(f"{key}: unknown key; did you mean {meant!r}?")
            continue
        close = difflib.get_close_matches(meant or key, known, n=1, cutoff=0.8) or _of_same_end(key, known)
        if close and (meant is not None or key.startswith((*_OURS, _METRICS))):
            problems.append(f"{key}: unknown key; did you mean {close[0]!r}?")
        elif meant is not None or key.startswith(_OURS):
            root = ".".join((meant or key).split(".")[:2]) + "."
            allowed = ", ".join(pattern for pattern in patterns if pattern.startswith(root))
            problems.append(f"{key}: unknown key; allowed: {allowed}")
    return problems


def unknown_keys_of_ours(conf: Mapping[str, str]) -> list[str]:
    """Return a sentence for each key that nothing reads below the prefixes that are ours alone.

    This is for a running application: what it costs where nothing is misspelled is a look at each key.
    """
    common = {setting.option.name for setting in OF_THE_FRAMEWORK if not setting.placeholder}
    others = (*(kind.prefix for kind in KINDS), _OF_CTAS)
    ours = {
        key: value
        for key, value in conf.items()
        if key.startswith(_OURS) and key not in common and not key.startswith(others)
    }
    return unknown_keys(ours, OF_THE_FRAMEWORK) if ours else []


def _of_same_end(key: str, known: Sequence[str]) -> list[str]:
    """Return the one key of ours that ends as this one; none if there are several."""
    same = [each for each in known if each.rpartition(".")[2] == key.rpartition(".")[2]]
    return same if key.startswith(_OURS) and len(same) == 1 else []


def _meant(key: str) -> str | None:
    """Return the key of ours that a key was probably meant to be, judging by its namespace; None if none.

    Near misses are ``spark.event.reporter.file.path`` or ``spark.metrics.reporters.prom.port``, for example,
    and Flink's own keys, without the prefix ``spark.``.
    """
    words = key.split(".")
    if _near(words[0], _ROOTS) and len(words) > 2 and _near(words[1], _PLACES):
        words.insert(0, "spark")
    root = _near(words[1], _ROOTS) if len(words) > 2 and words[0].lower() == "spark" else None
    if root is None:
        return None
    place = _near(words[2], _PLACES) if len(words) > 3 else None
    meant = ".".join(("spark", root, place or words[2], *words[3:]))
    # Keys below spark.metrics. that are not about reporters may be Spark's own.
    is_sparks = root == words[1] == "metrics" and place is None
    return None if is_sparks or meant == key else meant


def _near(word: str, words: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.8)), None)
