"""JSON schemas of OpenLineage's events and facets, out of the classes that its client makes of the published ones.

The schemas themselves are on a site that tests cannot reach. The client's classes are generated from them, name
for name; what is made of them here is stricter in one thing: no facet may have a field that its schema lacks.
"""

from __future__ import annotations

import enum
import types
import typing
from typing import Any

import attr
from jsonschema import Draft202012Validator, FormatChecker
from openlineage.client import event_v2, facet_v2
from openlineage.client.generated import base
from spark_events_openlineage.data_facets import (
    IcebergCommitReportOutputDatasetFacet,
    IcebergScanReportInputDatasetFacet,
)

FACETS = {
    "run": {
        "parent": facet_v2.parent_run.ParentRunFacet,
        "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet,
        "errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet,
        "extractionError": facet_v2.extraction_error_run.ExtractionErrorRunFacet,
        "tags": facet_v2.tags_run.TagsRunFacet,
        "jobDependencies": facet_v2.job_dependencies_run.JobDependenciesRunFacet,
    },
    "job": {
        "jobType": facet_v2.job_type_job.JobTypeJobFacet,
        "sql": facet_v2.sql_job.SQLJobFacet,
        "sourceCodeLocation": facet_v2.source_code_location_job.SourceCodeLocationJobFacet,
        "ownership": facet_v2.ownership_job.OwnershipJobFacet,
        "tags": facet_v2.tags_job.TagsJobFacet,
    },
    "dataset": {
        "schema": facet_v2.schema_dataset.SchemaDatasetFacet,
        "dataSource": facet_v2.datasource_dataset.DatasourceDatasetFacet,
        "symlinks": facet_v2.symlinks_dataset.SymlinksDatasetFacet,
        "ownership": facet_v2.ownership_dataset.OwnershipDatasetFacet,
        "tags": facet_v2.tags_dataset.TagsDatasetFacet,
        "catalog": facet_v2.catalog_dataset.CatalogDatasetFacet,
        "columnLineage": facet_v2.column_lineage_dataset.ColumnLineageDatasetFacet,
        "version": facet_v2.dataset_version_dataset.DatasetVersionDatasetFacet,
        "lifecycleStateChange": facet_v2.lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet,
        "dataQualityMetrics": facet_v2.data_quality_metrics_dataset.DataQualityMetricsDatasetFacet,
    },
    "input": {
        "inputStatistics": facet_v2.input_statistics_input_dataset.InputStatisticsInputDatasetFacet,
        "dataQualityMetrics": (
            facet_v2.data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet
        ),
        "icebergScanReport": IcebergScanReportInputDatasetFacet,
    },
    "output": {
        "outputStatistics": facet_v2.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
        "icebergCommitReport": IcebergCommitReportOutputDatasetFacet,
    },
}
_FORMATS = {
    "runId": "uuid",
    "eventTime": "date-time",
    "producer": "uri",
    "_producer": "uri",
    "_schemaURL": "uri",
}
_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def problems_of(event: dict[str, Any]) -> list[str]:
    """Return what of an event does not conform to the schemas; a facet that is not known here is a problem."""
    found = _problems(event_v2.RunEvent, event, "event")
    found += _facets("run", event["run"].get("facets", {}))
    found += _facets("job", event["job"].get("facets", {}))
    for dataset in (*event["inputs"], *event["outputs"]):
        found += _facets("dataset", dataset.get("facets", {}))
        found += _facets("input", dataset.get("inputFacets", {}))
        found += _facets("output", dataset.get("outputFacets", {}))
    return found


def _facets(kind: str, facets: dict[str, Any]) -> list[str]:
    found = []
    for name, facet in facets.items():
        if name not in FACETS[kind]:
            found.append(f"{name} is no {kind} facet")
            continue
        of_class = FACETS[kind][name]
        found += _problems(of_class, facet, f"{kind} facet {name}")
        if facet.get("_schemaURL") != of_class._get_schema():
            found.append(f"{name} names the schema {facet.get('_schemaURL')}")
    return found


def _problems(of_class: type, value: Any, what: str) -> list[str]:
    validator = Draft202012Validator(schema_of(of_class), format_checker=FormatChecker())
    return [f"{what}: {error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def schema_of(of_class: Any) -> dict[str, Any]:
    """Return the JSON schema of one of the client's classes; those that it refers to are its definitions."""
    definitions: dict[str, Any] = {}
    reference = _define(of_class, definitions)
    return {**reference, "$defs": definitions}


def _define(of_class: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = f"{of_class.__module__.rsplit('.', 1)[-1]}.{of_class.__name__}"
    if name not in definitions:
        definitions[name] = {}  # a class may have fields of its own kind
        hints = typing.get_type_hints(of_class)
        required = [field.name for field in attr.fields(of_class) if field.default is attr.NOTHING]
        if issubclass(of_class, base.BaseFacet):
            required += ["_producer", "_schemaURL"]
        definitions[name] = {
            "type": "object",
            "properties": {
                field.name: {**_schema(hints[field.name], definitions), **_format(field.name)}
                for field in attr.fields(of_class)
            },
            "required": required,
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}


def _format(name: str) -> dict[str, Any]:
    return {"format": _FORMATS[name], "minLength": 1} if name in _FORMATS else {}


def _schema(of_type: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(of_type), typing.get_args(of_type)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(one, definitions) for one in arguments if one is not type(None)]}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is dict:
        # Facets are looked at one by one, by their names.
        of_facets = isinstance(arguments[1], type) and issubclass(arguments[1], base.BaseFacet)
        return {
            "type": "object",
            "additionalProperties": True if of_facets else _schema(arguments[1], definitions),
        }
    if of_type in _SIMPLE:
        return {"type": _SIMPLE[of_type]}
    if isinstance(of_type, type) and issubclass(of_type, enum.Enum):
        return {"enum": [one.value for one in of_type]}
    if attr.has(of_type):
        return _define(of_type, definitions)
    return {}
