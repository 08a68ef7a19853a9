"""Says what holds instead of a part of a configuration that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spark_events.api import ConfigError
from spark_events.listeners.scopes import ScopeFormat
from spark_events.listeners.settings import declared_settings
from spark_events.runtime.plugins import KINDS
from spark_events.runtime.settings import Declared
from spark_events.runtime.setup import ReporterSetup

_TIMES = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))
_SIZES = (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10), ("b", 1))


def default_text(declared: Declared) -> str:
    """Return a default as a person would write it; empty where there is none."""
    default: Any = declared.option.default
    if isinstance(default, ScopeFormat):
        return ".".join(default.parts)
    if isinstance(default, tuple):
        return ",".join(default)
    if isinstance(default, bool):
        return str(default).lower()
    units = {"duration": _TIMES, "size": _SIZES}.get(declared.option.type.name)
    if units is not None and default:
        unit, size = next((unit, size) for unit, size in units if default % size == 0)
        return f"{default // size}{unit}"
    return "" if default in (None, "", {}) else f"{default:g}" if isinstance(default, float) else str(default)


def instead_of_settings(errors: Iterable[ConfigError]) -> Iterator[tuple[str, str]]:
    """Yield each problem of the framework's settings, and what holds instead."""
    declared = {each.option.name: each for each in declared_settings()}
    for problem in _problems_of(errors):
        known = declared.get(problem.partition(": ")[0])
        if known is None or known.placeholder:
            yield problem, "it counts as absent"  # a key that exists many times
        elif default := default_text(known) or known.default_text:
            yield problem, f"the default holds: {default}"
        else:
            yield problem, "the default holds: none"


def instead_of_reporters(
    conf: Mapping[str, str], errors: Iterable[ConfigError], setups: Iterable[ReporterSetup]
) -> Iterator[tuple[str, str]]:
    """Yield each problem of which a reporter or listener is left out, and that it is."""
    started = {setup.config.prefix for setup in setups}
    left_out = {
        f"{kind.prefix}{name}.": kind.title
        for kind in KINDS
        for key in conf
        if key.startswith(kind.prefix) and (name := key.removeprefix(kind.prefix).partition(".")[0])
    }
    for problem in _problems_of(errors):
        for prefix, title in left_out.items():
            if problem.startswith(prefix) and prefix not in started:
                yield problem, f"this {title} is left out"


def instead_of_enrichers(errors: Iterable[ConfigError]) -> Iterator[tuple[str, str]]:
    """Yield each problem of which a failure enricher is left out, and that it is."""
    for problem in _problems_of(errors):
        yield problem, "this enricher is left out"


def _problems_of(errors: Iterable[ConfigError]) -> Iterator[str]:
    return (problem for error in errors for problem in error.problems)
