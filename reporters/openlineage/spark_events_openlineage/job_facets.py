"""Facets of a job, and of what its run belongs to and depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openlineage.client.facet_v2 import (
    job_dependencies_run,
    job_type_job,
    ownership_job,
    parent_run,
    sql_job,
    tags_job,
)

from spark_events.api import ExecutionMode, JobCreatedEvent
from spark_events_openlineage.parents import Dependency, ParentRun
from spark_events_openlineage.producer import PRODUCER

_JOB_TYPES = {
    "application": "APPLICATION",
    "query": "STREAMING_QUERY",
    "statement": "SQL_EXECUTION",
    "rdd_job": "RDD_JOB",
}


def job_facets(created: JobCreatedEvent, owners: Sequence[str], tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the facets of a job.

    Args:
        created: its creation.
        owners: of all jobs.
        tags: of all jobs.
    """
    streaming = created.execution_mode is ExecutionMode.STREAMING
    facets: dict[str, Any] = {
        "jobType": job_type_job.JobTypeJobFacet(
            processingType="STREAMING" if streaming else "BATCH",
            integration="SPARK",
            jobType=_JOB_TYPES.get(created.job_kind),
            producer=PRODUCER,
        )
    }
    if created.statement and created.is_sql:
        facets["sql"] = sql_job.SQLJobFacet(query=created.statement, dialect="spark", producer=PRODUCER)
    if owners:
        facets["ownership"] = ownership_job.OwnershipJobFacet(
            owners=[ownership_job.Owner(name=name) for name in owners], producer=PRODUCER
        )
    if tags:
        facets["tags"] = tags_job.TagsJobFacet(
            tags=[tags_job.TagsJobFacetFields(key, value, "USER") for key, value in tags.items()],
            producer=PRODUCER,
        )
    return facets


def dependencies(upstream: Sequence[Dependency]) -> job_dependencies_run.JobDependenciesRunFacet:
    """Return the facet of what has to complete first."""
    return job_dependencies_run.JobDependenciesRunFacet(
        upstream=[
            job_dependencies_run.JobDependency(
                job=job_dependencies_run.JobIdentifier(each.namespace, each.name),
                run=job_dependencies_run.RunIdentifier(each.run_id) if each.run_id else None,
            )
            for each in upstream
        ],
        producer=PRODUCER,
    )


def parent_facet(parent: ParentRun, root: ParentRun | None) -> parent_run.ParentRunFacet:
    """Return the facet of the run that a run is part of, and of the outermost one."""
    root = root or parent
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=parent.run_id),
        job=parent_run.Job(namespace=parent.namespace, name=parent.name),
        root=parent_run.Root(
            run=parent_run.RootRun(runId=root.run_id),
            job=parent_run.RootJob(namespace=root.namespace, name=root.name),
        ),
        producer=PRODUCER,
    )
