"""Adds the handlers that make job events, if a job status listener wants them."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.jobs.job_events import JobEvents
from spark_events.jobs.logged_plans import LoggedPlans
from spark_events.lineage.datasets import catalogs_of
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.listener import Listener
from spark_events.listeners.spark_listeners import Extension
from spark_events.runtime.plugins import JOB_LISTENERS
from spark_events.runtime.registry import Registry


def job_handlers(conf: Mapping[str, str], registry: Registry, with_plans: bool) -> Extension | None:
    """Return the extension for ``SparkListeners``; None if no job status listener is configured.

    Args:
        conf: Spark's configuration.
        registry: holds the job status listeners.
        with_plans: whether a driver sends records of plans; otherwise they are made from an event log.
    """
    if not registry.has_reporters(JOB_LISTENERS):
        return None
    catalogs = catalogs_of(conf)

    def make_handlers(context: ListenerContext, events: Registry, spark_version: str) -> list[Listener]:
        job_events = JobEvents(context, events, spark_version, catalogs, with_plans)
        return [job_events if with_plans else LoggedPlans(job_events)]

    return make_handlers
