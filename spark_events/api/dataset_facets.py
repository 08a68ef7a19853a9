"""Facets of datasets that say who answers for them, and what they are marked as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spark_events.api.lineage import LineageDatasetFacet


@dataclass(frozen=True, slots=True)
class DatasetOwner:
    """Someone who owns a dataset.

    Attributes:
        name: as the catalog has it, or a name of the form ``team:data`` or ``user:jdoe``.
        type: such as ``MAINTAINER``; may be empty.
    """

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class OwnershipFacet(LineageDatasetFacet):
    """Who owns a dataset: what the table's property says, or else its catalog."""

    name: ClassVar[str] = "ownership"
    owners: tuple[DatasetOwner, ...]


@dataclass(frozen=True, slots=True)
class DatasetTag:
    """A tag of a dataset, or of one of its columns.

    Attributes:
        key: such as ``pii``.
        value: such as ``true``.
        column: the column that has it; empty for the dataset itself.
        source: who has set it, such as ``USER``; may be empty.
    """

    key: str
    value: str
    column: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class TagsFacet(LineageDatasetFacet):
    """What a dataset and its columns are tagged with."""

    name: ClassVar[str] = "tags"
    tags: tuple[DatasetTag, ...]
