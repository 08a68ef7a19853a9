"""Puts the job status listeners beside the other listeners, where somebody listens."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.jobs.job_events import JobListeners
from spark_events.jobs.logged_plans import LoggedPlans
from spark_events.lineage.datasets import catalogs_of
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.translator import Extension, ExtensionHandlers
from spark_events.runtime.kinds import JOB_LISTENERS
from spark_events.runtime.registry import Registry


def job_listeners(conf: Mapping[str, str], registry: Registry, with_plans: bool) -> Extension | None:
    """Return what ``SparkListeners`` takes as its extension; None where nobody listens.

    Args:
        conf: Spark's configuration.
        registry: where the job status listeners are.
        with_plans: whether records of plans come of a driver; otherwise those of an event log are read.
    """
    if not registry.has_reporters(JOB_LISTENERS):
        return None
    catalogs = catalogs_of(conf)

    def extension(context: ListenerContext, own: Registry, spark_version: str) -> ExtensionHandlers:
        jobs = JobListeners(context, own, spark_version, catalogs, with_plans)
        return jobs if with_plans else LoggedPlans(jobs)

    return extension
