"""The statements by which Spark looks for the columns of CSV files: it reads the head of one of them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spark_events.api import (
    LineageDataset,
    LineageDatasetFacet,
    LineageGraph,
    LineageVertex,
    SchemaFacet,
)

_OF_READER = re.compile(r"[\w.]{1,100}\.DataFrameReader\.\w{1,100}\(")
"""The method that was called: a reader runs nothing else. Others are of a DataFrame or a session."""
_OF_MANY = re.compile(r".*\d.*\.\w+", re.ASCII)
"""A file's name that has a number, or a day, is seldom that of all there is."""


def with_folder(graph: LineageGraph, record: Mapping[str, Any]) -> LineageGraph:
    """Return the graph of a statement; of one that looks for columns, with the folder instead of its files.

    Which files these are changes from day to day, and so would the names of the job and of its data.

    Args:
        graph: of the statement.
        record: of its beginning, with Spark's ``details``, the stack of its caller, or their first line as
            ``call``. Its description may be the user's own.
    """
    if graph.sinks or not _OF_READER.match(str(record.get("call") or record.get("details") or "")):
        return graph
    return replace(graph, sources=tuple(_of_folders(source) for source in graph.sources))


def _of_folders(source: LineageVertex) -> LineageVertex:
    files_in = Counter(posixpath.dirname(dataset.name) for dataset in source.datasets)
    folders = {
        (dataset.namespace, name): replace(dataset, name=name, facets=_without_schema(dataset))
        for dataset in source.datasets
        for name in [_name_of(dataset, files_in)]
    }
    return replace(source, datasets=tuple(folders.values()))


def _name_of(dataset: LineageDataset, files_in: Counter[str]) -> str:
    folder, file = posixpath.split(dataset.name)
    is_one_of_many = files_in[folder] > 1 or _OF_MANY.fullmatch(file)
    return folder if folder.strip("/") and is_one_of_many else dataset.name


def _without_schema(dataset: LineageDataset) -> Mapping[str, LineageDatasetFacet]:
    """Return the facets without columns: Spark reads lines of text here, and the data has other columns."""
    return {name: facet for name, facet in dataset.facets.items() if name != SchemaFacet.name}
