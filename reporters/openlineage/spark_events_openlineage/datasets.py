"""Makes OpenLineage's datasets and their facets of a lineage graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from attr import evolve
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    catalog_dataset,
    column_lineage_dataset,
    data_quality_metrics_dataset,
    data_quality_metrics_input_dataset,
    dataset_version_dataset,
    datasource_dataset,
    input_statistics_input_dataset,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    ownership_dataset,
    schema_dataset,
    symlinks_dataset,
    tags_dataset,
)

from spark_events.api import (
    ConfigFacet,
    DataRead,
    DataWritten,
    LineageDataset,
    LineageGraph,
    LineageVertex,
    ModifyType,
    OwnershipFacet,
    RenamedFromFacet,
    SchemaFacet,
    SourceColumn,
    SymlinksFacet,
    TableLineageDataset,
    TableLineageEdge,
    TableSinkLineageVertex,
    TagsFacet,
    Transformation,
)
from spark_events_openlineage.data_facets import column_metrics, commit_report, scan_report
from spark_events_openlineage.producer import PRODUCER

_MAKING = (Transformation.TRANSFORMATION.value, Transformation.AGGREGATION.value)
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
    of_input: dict[str, Any] = {}
    if read is not None and read.version:
        facets["version"] = _version(read.version)
    if read is not None and (read.rows, read.bytes, read.files) != (None, None, None):
        of_input["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=read.rows, size=read.bytes, fileCount=read.files, producer=PRODUCER
        )
    if read is not None and read.report:
        of_input["icebergScanReport"] = scan_report(read.report)
    if read is not None and read.observed is not None:
        of_input["dataQualityMetrics"] = (
            data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
                columnMetrics=column_metrics(read.observed, data_quality_metrics_input_dataset.ColumnMetrics),
                rowCount=read.observed.rows,
                producer=PRODUCER,
            )
        )
    return InputDataset(namespace=dataset.namespace, name=dataset.name, facets=facets, inputFacets=of_input)


def _version(version: str) -> dataset_version_dataset.DatasetVersionDatasetFacet:
    return dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=version, producer=PRODUCER)


def outputs_of(
    graph: LineageGraph,
    ended: bool,
    written: Mapping[str, int],
    made: Sequence[DataWritten],
    with_columns: bool,
) -> list[OutputDataset]:
    """Return the data that a job writes, each once.

    A table whose location is unknown until it exists is left out until then.

    Args:
        graph: the job's.
        ended: whether the job has finished, so that its tables have been created and replaced.
        written: what it has written, by ``rows``, ``bytes`` and ``files``.
        made: what it has made of each, as far as known.
        with_columns: whether to say which columns make which.
    """
    statistics = _statistics(written) if len(graph.sinks) == 1 else {}
    made_of = {(data.namespace, data.name): data for data in made}
    outputs: dict[tuple[str, str], OutputDataset] = {}
    for vertex in graph.sinks:
        facets_of_sink: dict[str, Any] = {}
        if with_columns and (lineage := _column_lineage(graph, vertex)) is not None:
            facets_of_sink["columnLineage"] = lineage
        if ended and (change := _lifecycle_change(vertex)) is not None:
            facets_of_sink["lifecycleStateChange"] = change
        for dataset in vertex.datasets:
            if not isinstance(dataset, TableLineageDataset) or dataset.created:
                facets, of_output = _facets_of_made(made_of.get(dataset.key))
                outputs[dataset.key] = OutputDataset(
                    namespace=dataset.namespace,
                    name=dataset.name,
                    facets={**_facets(dataset), **facets_of_sink, **facets},
                    outputFacets={**statistics, **of_output},
                )
    return list(outputs.values())


def _facets_of_made(made: DataWritten | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facets of a dataset, and of an output, by what a job has made of it."""
    facets: dict[str, Any] = {}
    if made is None:
        return facets, {}
    if made.version:
        facets["version"] = _version(made.version)
    if made.observed is not None:
        facets["dataQualityMetrics"] = data_quality_metrics_dataset.DataQualityMetricsDatasetFacet(
            columnMetrics=column_metrics(made.observed, data_quality_metrics_dataset.ColumnMetrics),
            rowCount=made.observed.rows,
            producer=PRODUCER,
        )
    return facets, {"icebergCommitReport": commit_report(made.report)} if made.report else {}


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
        elif isinstance(facet, OwnershipFacet):
            facets["ownership"] = _ownership(facet)
        elif isinstance(facet, TagsFacet):
            facets["tags"] = _tags(facet)
    if isinstance(dataset, TableLineageDataset):
        facets["catalog"] = _catalog(dataset)
    return facets


def _ownership(facet: OwnershipFacet) -> ownership_dataset.OwnershipDatasetFacet:
    owners = [ownership_dataset.Owner(name=owner.name, type=owner.type or None) for owner in facet.owners]
    return ownership_dataset.OwnershipDatasetFacet(owners=owners, producer=PRODUCER)


def _tags(facet: TagsFacet) -> tags_dataset.TagsDatasetFacet:
    return tags_dataset.TagsDatasetFacet(
        tags=[
            tags_dataset.TagsDatasetFacetFields(
                tag.key, tag.value, source=tag.source or None, field=tag.column or None
            )
            for tag in facet.tags
        ],
        producer=PRODUCER,
    )


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
    texts = graph.expressions(sink)
    fields = {
        column: column_lineage_dataset.Fields(
            inputFields=[_input_field(source, texts.get(column, "")) for source in sources]
        )
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


def _input_field(source: SourceColumn, text: str = "") -> column_lineage_dataset.InputField:
    kinds = [_transformation(kind, source.masking) for kind in source.transformations]
    if text:
        # It is the text of the value, and not of what decides which value or which rows there are.
        kinds = [evolve(kind, description=text) if kind.subtype in _MAKING else kind for kind in kinds]
    return column_lineage_dataset.InputField(
        namespace=source.dataset.namespace,
        name=source.dataset.name,
        field=source.column,
        transformations=kinds,
    )


@cache
def _transformation(kind: Transformation, masking: bool) -> column_lineage_dataset.Transformation:
    return column_lineage_dataset.Transformation(
        type="DIRECT" if kind.direct else "INDIRECT", subtype=kind.value, masking=masking
    )
