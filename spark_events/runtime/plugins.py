"""The kinds of plugin as data, and how one is found; loading, filtering and dispatch are written once."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import importlib_metadata

from spark_events.api import (
    ConfigError,
    EventReporter,
    EventReporterFactory,
    JobStatusChangedListener,
    JobStatusChangedListenerFactory,
    MetricReporter,
    MetricReporterFactory,
    MissingExtraError,
    Reporter,
    ReporterConfig,
    ReporterFactory,
    SpanReporter,
    SpanReporterFactory,
)
from spark_events.runtime.foreign_errors import describe, wants_out


# Each kind exists once, so identity is enough: a hash over all fields would slow down every event.
@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of reporter, or the listeners of jobs.

    Attributes:
        name: its name in ``spark-events plugins`` and in metrics.
        title: its name in sentences.
        prefix: the prefix of its plugins' keys.
        names_key: the key of the list of plugins to start.
        entry_points: the entry-point group of its factories.
        factory: the base class of its factories.
        reporter: the base class of what these factories make.
        typed: whether its filters have a type part.
        scoped: whether it has filters, variables and names in the scope tree at all.
        flinks_names_key: Flink's own name for that key; empty if it is the same as ``names_key``.
    """

    name: str
    title: str
    prefix: str
    names_key: str
    entry_points: str
    factory: type[ReporterFactory]
    reporter: type[Reporter]
    typed: bool = False
    scoped: bool = True
    flinks_names_key: str = ""


def _reporters(
    name: str, singular: str, factory: type[ReporterFactory], reporter: type[Reporter], typed: bool = False
) -> Kind:
    return Kind(
        name,
        f"{singular} reporter",
        f"spark.{name}.reporter.",
        f"spark.{name}.reporters",
        f"spark_events.{singular}_reporters",
        factory,
        reporter,
        typed,
    )


EVENTS = _reporters("events", "event", EventReporterFactory, EventReporter)
SPANS = _reporters("traces", "span", SpanReporterFactory, SpanReporter)
METRICS = _reporters("metrics", "metric", MetricReporterFactory, MetricReporter, typed=True)
JOB_LISTENERS = Kind(
    "job-status-changed",
    "job status listener",
    "spark.job-status-changed.listener.",
    "spark.job-status-changed.listeners",
    "spark_events.job_listeners",
    JobStatusChangedListenerFactory,
    JobStatusChangedListener,
    scoped=False,
    flinks_names_key="spark.execution.job-status-changed-listeners",
)
KINDS = (EVENTS, SPANS, METRICS, JOB_LISTENERS)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed plugin, not yet imported.

    Attributes:
        name: the entry point's name, which a configuration uses.
        target: ``module:Class``.
        distribution: the package that provides it; empty if unknown.
        version: that package's version.
    """

    name: str
    target: str
    distribution: str = ""
    version: str = ""


@cache
def installed(group: str) -> Mapping[str, Plugin]:
    """Return the plugins of an entry-point group by name, without importing them."""
    plugins: dict[str, Plugin] = {}
    for point in importlib_metadata.entry_points(group=group):
        dist = point.dist
        plugins.setdefault(
            point.name,
            Plugin(point.name, point.value, dist.name if dist else "", dist.version if dist else ""),
        )
    return dict(sorted(plugins.items()))


def load_class(target: str, base: type[T], key: str) -> type[T]:
    """Import ``module:Class`` and return the class; error messages name the key that asks for it.

    Raises:
        ConfigError: it cannot be imported, or is not a subclass of ``base``.
    """
    module_name, _, class_name = target.partition(":")
    try:
        loaded: object = importlib.import_module(module_name)
        for part in class_name.split("."):
            loaded = getattr(loaded, part)
    except BaseException as error:  # a plugin's module may raise anything at all, or be a program that exits
        if wants_out(error):
            raise
        raise ConfigError(f"{key}: {target!r} cannot be imported ({describe(error)})") from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ConfigError(f"{key}: {target!r} is not a subclass of {base.__module__}.{base.__qualname__}")
    return loaded


def load_factory(kind: Kind, name: str, key: str) -> ReporterFactory:
    """Make the factory that a configuration names: an entry point, or ``module:Class``.

    Raises:
        ConfigError: there is no such factory (the message lists those that exist), or it cannot be made.
    """
    plugin = installed(kind.entry_points).get(name)
    if plugin is None and ":" not in name:
        raise ConfigError(_unknown_factory(kind, name, key))
    factory = load_class(plugin.target if plugin else name, kind.factory, key)
    try:
        return factory()
    except MissingExtraError:
        raise
    except BaseException as error:
        if wants_out(error):
            raise
        raise ConfigError(f"{key}: {name!r} raised {describe(error)}") from error


def create_reporter(kind: Kind, factory: ReporterFactory, config: ReporterConfig) -> Reporter:
    """Let a factory create a reporter.

    Raises:
        ConfigError: it created something else.
        BaseException: what it raises.
    """
    reporter = factory.create(config)
    if not isinstance(reporter, kind.reporter):
        made_by = f"{type(factory).__module__}:{type(factory).__qualname__}"
        raise ConfigError(
            f"its factory {made_by} created {type(reporter).__name__}; expected {kind.reporter.__name__}"
        )
    return reporter


def _unknown_factory(kind: Kind, name: str, key: str) -> str:
    others = [other for other in KINDS if name in installed(other.entry_points)]
    if others:
        keys = " or ".join(f"{other.prefix}<name>.factory.class" for other in others)
        return f"{key}: {name!r} is not one of the {kind.title}s; configure it as {keys}"
    known = installed(kind.entry_points)
    close = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(known) or "none"
    return f"{key}: unknown {kind.title} {name!r}; {hint}installed: {listed}; or give module:Class"
