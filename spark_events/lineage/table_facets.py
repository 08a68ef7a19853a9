"""Owners and tags that tables have in their catalog, or in properties as OpenLineage for Spark reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spark_events.api import DatasetOwner, DatasetTag, LineageDatasetFacet, OwnershipFacet, TagsFacet
from spark_events.runtime.log_once import logger

_PREFIX = "openlineage.dataset.facets."
_OWNER = "owner"
"""Reserved by Spark for who has created a table."""
_MOST_WARNINGS = 100
_warned_of: set[tuple[str, str]] = set()
"""Table and property of each warning, so that a table that many statements use is told of once."""


def facets_of_table(identity: Mapping[str, Any]) -> Iterator[LineageDatasetFacet]:
    """Yield what a table's properties say about its owners and its tags.

    Args:
        identity: in the form of ``Identities.java``.
    """
    properties: Mapping[str, Any] = identity.get("properties") or {}
    ownership = _parsed("ownership", _ownership, properties, identity)
    if ownership is None and properties.get(_OWNER):
        ownership = OwnershipFacet((DatasetOwner(str(properties[_OWNER])),))
    tags = _parsed("tags", _tags, properties, identity)
    yield from (facet for facet in (ownership, tags) if facet is not None)


def _parsed(
    name: str,
    parse: Callable[[Any], LineageDatasetFacet],
    properties: Mapping[str, Any],
    identity: Mapping[str, Any],
) -> LineageDatasetFacet | None:
    text = properties.get(_PREFIX + name)
    if not text:
        return None
    try:
        return parse(json.loads(str(text)))
    except (ValueError, KeyError, TypeError, AttributeError):
        table = ".".join(str(part) for part in (identity.get("table") or {}).values() if part)
        if (table, name) not in _warned_of and len(_warned_of) < _MOST_WARNINGS:
            _warned_of.add((table, name))
            message = "the property %s%s of the table %s is left out: expected JSON like %s"
            logger.warning(message, _PREFIX, name, table, _ALLOWED[name])
        return None


_ALLOWED = {
    "ownership": '{"owners": [{"name": "team:data", "type": "MAINTAINER"}]}',
    "tags": '{"tags": [{"key": "pii", "value": "true", "field": "email"}]}, with or without a field',
}


def _ownership(facet: Any) -> OwnershipFacet:
    return OwnershipFacet(
        tuple(DatasetOwner(_text(owner["name"]), _text(owner.get("type") or "")) for owner in facet["owners"])
    )


def _tags(facet: Any) -> TagsFacet:
    return TagsFacet(
        tuple(
            DatasetTag(
                _text(tag["key"]),
                _text(tag["value"]),
                _text(tag.get("field") or ""),
                _text(tag.get("source") or ""),
            )
            for tag in facet["tags"]
        )
    )


def _text(value: Any) -> str:
    """Return a text; of a number or a truth value, as JSON has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise TypeError(value)
