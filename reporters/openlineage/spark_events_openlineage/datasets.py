"""Makes OpenLineage's datasets and their facets of a lineage graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from importlib_metadata import version
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    catalog_dataset,
    column_lineage_dataset,
    dataset_version_dataset,
    datasource_dataset,
    input_statistics_input_dataset,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    schema_dataset,
    symlinks_dataset,
)

from spark_events.api import (
    ConfigFacet,
    DataRead,
    LineageDataset,
    LineageGraph,
    LineageVertex,
    ModifyType,
    RenamedFromFacet,
    SchemaFacet,
    SourceColumn,
    SymlinksFacet,
    TableLineageDataset,
    TableLineageEdge,
    TableSinkLineageVertex,
    Transformation,
)

VERSION = version("spark-events")
PRODUCER = f"urn:spark-events:{VERSION}"
_Change = lifecycle_state_change_dataset.LifecycleStateChange
_CHANGES = {
    ModifyType.CTAS: _Change.CREATE,
    ModifyType.OVERWRITE: _Change.OVERWRITE,
    ModifyType.CREATE: _Change.CREATE,
    ModifyType.DROP: _Change.DROP,
    ModifyType.TRUNCATE: _Change.TRUNCATE,
    ModifyType.ALTER: _Change.ALTER,
    ModifyType.RENAME: _Change.RENAME,
    ModifyType.ANALYZE: _Change.ALTER,
}
"""Statistics, which ANALYZE computes, are properties of a table."""


def inputs_of(graph: LineageGraph, read: Sequence[DataRead]) -> list[InputDataset]:
    """Return the data that a job reads, each once.

    Args:
        graph: the job's.
        read: how much it has read of each, as far as known.
    """
    datasets = {dataset.key: dataset for vertex in graph.sources for dataset in vertex.datasets}
    reads = {(data.namespace, data.name): data for data in read}
    return [_input(dataset, reads.get(dataset.key)) for dataset in datasets.values()]


def _input(dataset: LineageDataset, read: DataRead | None) -> InputDataset:
    facets = _facets(dataset)
    statistics: dict[str, Any] = {}
    if read is not None and read.version:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=read.version, producer=PRODUCER
        )
    if read is not None and (read.rows, read.bytes, read.files) != (None, None, None):
        statistics["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=read.rows, size=read.bytes, fileCount=read.files, producer=PRODUCER
        )
    return InputDataset(namespace=dataset.namespace, name=dataset.name, facets=facets, inputFacets=statistics)


def outputs_of(
    graph: LineageGraph, ended: bool, written: Mapping[str, int], with_columns: bool
) -> list[OutputDataset]:
    """Return the data that a job writes, each once.

    A table whose location is unknown until it exists is left out until then.

    Args:
        graph: the job's.
        ended: whether the job has finished, so that its tables have been created and replaced.
        written: what it has written, by ``rows``, ``bytes`` and ``files``.
        with_columns: whether to say which columns make which.
    """
    statistics = _statistics(written) if len(graph.sinks) == 1 else {}
    outputs: dict[tuple[str, str], OutputDataset] = {}
    for vertex in graph.sinks:
        facets_of_sink: dict[str, Any] = {}
        if with_columns and (lineage := _column_lineage(graph, vertex)) is not None:
            facets_of_sink["columnLineage"] = lineage
        if ended and (change := _lifecycle_change(vertex)) is not None:
            facets_of_sink["lifecycleStateChange"] = change
        for dataset in vertex.datasets:
            if not isinstance(dataset, TableLineageDataset) or dataset.created:
                outputs[dataset.key] = OutputDataset(
                    namespace=dataset.namespace,
                    name=dataset.name,
                    facets={**_facets(dataset), **facets_of_sink},
                    outputFacets=statistics,
                )
    return list(outputs.values())


def _lifecycle_change(
    sink: LineageVertex,
) -> lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet | None:
    change = _CHANGES.get(sink.modify_type) if isinstance(sink, TableSinkLineageVertex) else None
    if change is None:
        return None
    renamed = next((dataset.facets.get("renamedFrom") for dataset in sink.datasets), None)
    previous = None
    if isinstance(renamed, RenamedFromFacet):
        namespace, name = renamed.previous
        previous = lifecycle_state_change_dataset.PreviousIdentifier(name=name, namespace=namespace)
    return lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
        change, previousIdentifier=previous, producer=PRODUCER
    )


def _facets(dataset: LineageDataset) -> dict[str, Any]:
    facets: dict[str, Any] = {
        "dataSource": datasource_dataset.DatasourceDatasetFacet(
            name=dataset.namespace, uri=dataset.namespace, producer=PRODUCER
        )
    }
    for facet in dataset.facets.values():
        if isinstance(facet, SchemaFacet):
            facets["schema"] = schema_dataset.SchemaDatasetFacet(
                fields=[
                    schema_dataset.SchemaDatasetFacetFields(name=column.name, type=column.type)
                    for column in facet.fields
                ],
                producer=PRODUCER,
            )
        elif isinstance(facet, SymlinksFacet):
            facets["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(
                identifiers=[
                    symlinks_dataset.Identifier(namespace=namespace, name=name, type="TABLE")
                    for namespace, name in facet.identifiers
                ],
                producer=PRODUCER,
            )
    if isinstance(dataset, TableLineageDataset):
        facets["catalog"] = _catalog(dataset)
    return facets


def _catalog(dataset: TableLineageDataset) -> catalog_dataset.CatalogDatasetFacet:
    config, symlinks = dataset.facets.get("config"), dataset.facets.get("symlinks")
    framework = config.config.get("format", "spark") if isinstance(config, ConfigFacet) else "spark"
    identifiers = symlinks.identifiers if isinstance(symlinks, SymlinksFacet) else ()
    metastore = identifiers[0][0] if identifiers else ""
    return catalog_dataset.CatalogDatasetFacet(
        framework=framework,
        type="hive" if metastore.startswith("hive://") else framework,
        name=dataset.catalog,
        metadataUri=metastore or None,
        source="spark",
        producer=PRODUCER,
    )


def _statistics(written: Mapping[str, int]) -> dict[str, Any]:
    if not written:
        return {}
    facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=written.get("rows"),
        size=written.get("bytes"),
        fileCount=written.get("files"),
        producer=PRODUCER,
    )
    return {"outputStatistics": facet}


def _column_lineage(
    graph: LineageGraph, sink: LineageVertex
) -> column_lineage_dataset.ColumnLineageDatasetFacet | None:
    fields = {
        column: column_lineage_dataset.Fields(inputFields=[_input_field(source) for source in sources])
        for column, sources in graph.column_edges(sink).items()
    }
    influences = [
        _input_field(source)
        for edge in graph.relations
        if isinstance(edge, TableLineageEdge) and edge.sink == sink
        for source in edge.influences
    ]
    if not fields and not influences:
        return None
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        fields=fields, dataset=influences, producer=PRODUCER
    )


def _input_field(source: SourceColumn) -> column_lineage_dataset.InputField:
    return column_lineage_dataset.InputField(
        namespace=source.dataset.namespace,
        name=source.dataset.name,
        field=source.column,
        transformations=list(_transformations(source.transformations, source.masking)),
    )


@cache
def _transformations(
    kinds: tuple[Transformation, ...], masking: bool
) -> tuple[column_lineage_dataset.Transformation, ...]:
    return tuple(
        column_lineage_dataset.Transformation(
            type="DIRECT" if kind.direct else "INDIRECT", subtype=kind.value, masking=masking
        )
        for kind in kinds
    )
