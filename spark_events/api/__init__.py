"""What a plugin author imports, and nothing else."""

from spark_events.api import option_types
from spark_events.api.config import ApplicationInfo, Option, ReporterConfig
from spark_events.api.errors import (
    ConfigError,
    MissingExtraError,
    PartlyRefused,
    Refused,
    RetryLater,
    SparkEventsError,
    needs_extra,
)
from spark_events.api.event import AttributeValue, Event, EventBuilder, Severity
from spark_events.api.exponential import ExponentialSnapshot, at_scale
from spark_events.api.failure import Failure, FailureContext, FailureEnricher
from spark_events.api.local_disk import append_whole, probe_folder
from spark_events.api.metric_group import MetricGroup, ReadOnlyGroup
from spark_events.api.metrics import Counter, Gauge, Histogram, HistogramSnapshot, Meter, Metric, MetricType
from spark_events.api.names import snake_case
from spark_events.api.option_types import OptionType, Secret
from spark_events.api.reporter import (
    EventReporter,
    EventReporterFactory,
    MetricReporter,
    MetricReporterFactory,
    Reporter,
    ReporterFactory,
    Scheduled,
    SpanReporter,
    SpanReporterFactory,
)
from spark_events.api.sending import JOURNAL_OPTIONS, Outbox, SendingReporter
from spark_events.api.span import Span, SpanBuilder, SpanEvent, SpanLink
from spark_events.api.units import BaseUnit, base_unit

__all__ = [
    "JOURNAL_OPTIONS",
    "ApplicationInfo",
    "AttributeValue",
    "BaseUnit",
    "ConfigError",
    "Counter",
    "Event",
    "EventBuilder",
    "EventReporter",
    "EventReporterFactory",
    "ExponentialSnapshot",
    "Failure",
    "FailureContext",
    "FailureEnricher",
    "Gauge",
    "Histogram",
    "HistogramSnapshot",
    "Meter",
    "Metric",
    "MetricGroup",
    "MetricReporter",
    "MetricReporterFactory",
    "MetricType",
    "MissingExtraError",
    "Option",
    "OptionType",
    "Outbox",
    "PartlyRefused",
    "ReadOnlyGroup",
    "Refused",
    "Reporter",
    "ReporterConfig",
    "ReporterFactory",
    "RetryLater",
    "Scheduled",
    "Secret",
    "SendingReporter",
    "Severity",
    "Span",
    "SpanBuilder",
    "SpanEvent",
    "SpanLink",
    "SpanReporter",
    "SpanReporterFactory",
    "SparkEventsError",
    "append_whole",
    "at_scale",
    "base_unit",
    "needs_extra",
    "option_types",
    "probe_folder",
    "snake_case",
]
