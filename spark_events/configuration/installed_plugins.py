"""The installed plugins and their options, as ``spark-events plugins`` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_events.api import ConfigError, Option, ReporterFactory
from spark_events.listeners.failures.enrichers import ENTRY_POINTS as ENRICHERS
from spark_events.runtime.plugins import KINDS, Plugin, installed, load_class

_UNITS = {"duration": "ms", "size": "bytes"}


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """One plugin.

    Attributes:
        kind: such as ``event reporter``; the rest is as in ``Plugin``.
        options: each with its name, type, default, whether it is required, and what it does.
        problem: why it cannot be loaded; empty where it can.
    """

    name: str
    kind: str
    distribution: str
    version: str
    target: str
    options: list[dict[str, Any]]
    problem: str


def installed_plugins() -> Iterator[InstalledPlugin]:
    """Return all plugins, kind by kind."""
    for kind in KINDS:
        for plugin in installed(kind.entry_points).values():
            yield _plugin(kind.title, plugin, kind.factory)
    for plugin in installed(ENRICHERS).values():
        yield _plugin("failure enricher", plugin)


def describe_option(option: Option[Any]) -> dict[str, Any]:
    """Return an option as JSON has it."""
    return {
        "name": option.name,
        "type": option.type.name,
        "default": _default(option),
        "required": option.required,
        "doc": option.doc,
    }


def _plugin(kind: str, plugin: Plugin, factory: type[ReporterFactory] | None = None) -> InstalledPlugin:
    options, problem = [], ""
    try:
        if factory is not None:
            declared = load_class(plugin.target, factory, plugin.name).options or ()
            options = [describe_option(option) for option in declared]
    except ConfigError as error:
        problem = str(error)
    return InstalledPlugin(
        plugin.name, kind, plugin.distribution, plugin.version, plugin.target, options, problem
    )


def _default(option: Option[Any]) -> str | None:
    default = option.default
    if isinstance(default, range):
        return f"{default[0]}-{default[-1]}"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int):
        return f"{default} {_UNITS[option.type.name]}" if option.type.name in _UNITS else str(default)
    return str(default) if default else None
