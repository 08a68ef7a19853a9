"""What has changed in the configuration of a query, and what of that a restart brings about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.runtime.redaction import DEFAULT_REGEX, REDACTED
from spark_events.sql_runner.deploy.decision import differences
from spark_events.sql_runner.manifest.manifest import Manifest
from spark_events.sql_runner.store.deployed import DeployedQuery

_PROPERTIES = "sparkProperties"
_SECRET = re.compile(DEFAULT_REGEX)


@dataclass(frozen=True, slots=True)
class ConfigurationChanges:
    """What differs between two configurations of a query.

    Attributes:
        effective: the changes that a restart brings about.
        without_effect: those that it does not, because the state has fixed the properties.
    """

    effective: tuple[str, ...]
    without_effect: tuple[str, ...]


def configuration_changes(
    deployed: DeployedQuery, manifest: Manifest, host: str, fixed: Mapping[str, str]
) -> ConfigurationChanges:
    """Compare a deployed configuration with a manifest's.

    Args:
        deployed: the deployed query.
        manifest: its manifest.
        host: the application that is to run it.
        fixed: the properties, with their values, that its state has fixed.
    """
    before, after = deployed.manifest.configuration, manifest.configuration
    changes = differences(_redacted(_without(before, fixed)), _redacted(_without(after, fixed)))
    if _without(before, fixed) != _without(after, fixed) and not changes:
        changes = ("a secret",)
    if deployed.meta.host != host:
        changes += (f"runs in: {deployed.meta.host} -> {host}",)
    given = (_properties(before), _properties(after))
    old, new = ({key: value for key, value in each.items() if key in fixed} for each in given)
    return ConfigurationChanges(changes, differences(old, new, f"{_PROPERTIES}."))


def without_effect(manifest: Manifest, version: int, fixed: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning for each property that has another value in the state of this version."""
    return tuple(
        f"{manifest.name}: {_PROPERTIES}.{key}: {given!r} has no effect on version {version}: Spark has "
        f"fixed {value!r} in its checkpoint; `deploy-one --clean` starts a new version with {given!r}"
        for key, value in fixed.items()
        if (given := manifest.spark_properties.get(key, value)) != value
    )


def _without(configuration: Mapping[str, Any], fixed: Mapping[str, str]) -> dict[str, Any]:
    kept = {key: value for key, value in _properties(configuration).items() if key not in fixed}
    return {**configuration, _PROPERTIES: kept}


def _properties(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = configuration.get(_PROPERTIES, {})
    return properties


def _redacted(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _redacted(value) if isinstance(value, Mapping) else REDACTED if _SECRET.search(key) else value
        for key, value in configuration.items()
    }
