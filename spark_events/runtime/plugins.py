"""Finds plugins: by the name of an entry point, or as ``module:Class``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import importlib_metadata

from spark_events.api import ConfigError, MissingExtraError, ReporterFactory
from spark_events.runtime.kinds import KINDS, Kind

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
    except Exception as error:  # a plugin's module may raise anything at all
        raise ConfigError(
            f"{key}: {target!r} cannot be imported ({type(error).__name__}: {error})"
        ) from error
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
    except Exception as error:
        raise ConfigError(f"{key}: {name!r} raised {type(error).__name__}: {error}") from error


def _unknown_factory(kind: Kind, name: str, key: str) -> str:
    others = [other for other in KINDS if name in installed(other.entry_points)]
    if others:
        keys = " or ".join(f"{other.prefix}<name>.factory.class" for other in others)
        return f"{key}: {name!r} is not one of the {kind.title}s; configure it as {keys}"
    known = ", ".join(installed(kind.entry_points)) or "none"
    return f"{key}: unknown {kind.title} {name!r}; installed: {known}; or give module:Class"
