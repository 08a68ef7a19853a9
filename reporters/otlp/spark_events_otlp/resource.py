"""The resource that all three signals carry."""

from __future__ import annotations

import os

from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.sdk.resources import Resource

from spark_events.api import ReporterConfig
from spark_events_otlp.encode import key_values
from spark_events_otlp.options import RESOURCE_ATTRIBUTES, SERVICE_NAME, SERVICE_VERSION


def resource_from(config: ReporterConfig) -> ResourceMessage:
    """Return the resource: what is configured wins over OTEL_* variables, those over the application."""
    application = config.application
    configured = config.get(RESOURCE_ATTRIBUTES)
    attributes = dict(configured)
    if name := config.get(SERVICE_NAME):
        attributes["service.name"] = name
    elif "service.name" not in attributes and not _named_by_environment():
        attributes["service.name"] = application.name or "spark"
    if version := config.get(SERVICE_VERSION):
        attributes["service.version"] = version
    if application.id:
        instance = "/".join(filter(None, (application.id, application.attempt_id)))
        attributes.setdefault("service.instance.id", instance)
    return ResourceMessage(attributes=key_values(Resource.create(attributes).attributes))


def _named_by_environment() -> bool:
    return "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
