"""The factory of the OpenLineage listener."""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from spark_events.api import (
    JOURNAL_OPTIONS,
    ConfigError,
    JobListenerContext,
    JobStatusChangedListenerFactory,
    Option,
    ReporterConfig,
    RetryLater,
    needs_extra,
    option_types,
)
from spark_events_openlineage.parents import (
    Dependency,
    ParentRun,
    parent_of_properties,
    parse_dependency,
    parse_parent,
)
from spark_events_openlineage.secret_values import revealed, with_secrets

if TYPE_CHECKING:
    from spark_events_openlineage.listener import OpenLineageListener
    from spark_events_openlineage.transport import Destination

_EXTRA = ("openlineage", "openlineage-python")
NAMESPACE = Option("namespace", option_types.STRING, "default", "the namespace of jobs")
TRANSPORT = Option.optional(
    "transport.type",
    option_types.STRING,
    "http, file, console, kafka, or another that the client knows; by default what the environment (such as "
    "OPENLINEAGE_URL) or openlineage.yml says",
)
URL = Option.optional("transport.url", option_types.STRING, "http: URL of the catalog")
ENDPOINT = Option.optional("transport.endpoint", option_types.STRING, "http: path of its API")
TIMEOUT = Option(
    "transport.timeout",
    option_types.at_least(1, option_types.DURATION),
    5_000,
    "http: how long one request may take",
)
API_KEY = Option.optional("transport.api-key", option_types.SECRET, "http: sent as a bearer token")
PATH = Option.optional(
    "transport.path", option_types.LOCAL_PATH, "file: the file to which events are appended"
)
TOPIC = Option.optional("transport.topic", option_types.STRING, "kafka: the topic")
KAFKA = Option(
    "transport.config",
    with_secrets(option_types.MAP),
    {},
    "kafka: the producer's configuration, key:value,…; a password may be env:NAME or file:/path",
)
MORE = Option(
    "transport.properties",
    with_secrets(option_types.MAP_OF_PAIRS),
    {},
    "more options of the client for the transport, key=value;…; a password may be env:NAME or file:/path",
)
READS = Option(
    "include-reads",
    option_types.BOOL,
    False,
    "also report statements that write nothing, such as df.show() and df.collect()",
)
APPLICATIONS = Option(
    "include-applications",
    option_types.BOOL,
    True,
    "also report the run of each application, the parent of its jobs",
)
MOST_INPUTS = Option(
    "column-lineage.max-inputs",
    option_types.at_least(0, option_types.INT),
    100_000,
    "how many inputs the columns of one event may have; more are left out, and the event says so",
)
PARENT = Option.optional(
    "parent",
    option_types.STRING,
    "namespace/name/run id of the run that the application belongs to; by default what Spark's properties "
    "spark.openlineage.parentJobNamespace, parentJobName and parentRunId say, or OPENLINEAGE_PARENT_ID",
)
ROOT_PARENT = Option.optional(
    "root-parent",
    option_types.STRING,
    "the same for the outermost run; by default spark.openlineage.rootParentJobNamespace, rootParentJobName "
    "and rootParentRunId, or OPENLINEAGE_ROOT_PARENT_ID",
)
_NO_TAGS: dict[str, str] = {}
OWNERS: Option[tuple[str, ...]] = Option(
    "owners", option_types.LIST, (), "who owns the jobs, such as team:payments,user:jdoe"
)
TAGS = Option("tags", option_types.MAP, _NO_TAGS, "tags of the jobs, key:value,…")
SOURCE_CODE = Option(
    "include-source-code",
    option_types.BOOL,
    True,
    "say where the code of the jobs is: repository, commit and pull request, as the environment of CI tells",
)
DATASET_OWNERS = Option(
    "include-dataset-owners",
    option_types.BOOL,
    True,
    "say who owns each table: what its property says, or else its catalog",
)
UPSTREAM: Option[tuple[str, ...]] = Option(
    "upstream-runs",
    option_types.LIST,
    (),
    "runs that have to complete before the application may begin: namespace/name/run id or namespace/name,…",
)


class OpenLineageListenerFactory(JobStatusChangedListenerFactory):
    """Creates the OpenLineage listener."""

    shares_threads = True
    options = (
        NAMESPACE,
        TRANSPORT,
        URL,
        ENDPOINT,
        TIMEOUT,
        API_KEY,
        PATH,
        TOPIC,
        KAFKA,
        MORE,
        READS,
        APPLICATIONS,
        MOST_INPUTS,
        PARENT,
        ROOT_PARENT,
        OWNERS,
        TAGS,
        SOURCE_CODE,
        DATASET_OWNERS,
        UPSTREAM,
        *JOURNAL_OPTIONS,
    )

    def create_listener(self, context: JobListenerContext) -> OpenLineageListener:
        """Create the listener; nothing is sent before the first event.

        Raises:
            ConfigError: the transport misses something that it needs.
            MissingExtraError: openlineage-python is not installed.
        """
        config = context.config
        with needs_extra(*_EXTRA):
            from spark_events_openlineage.listener import OpenLineageListener, Settings
            from spark_events_openlineage.source_code import source_code_location
        destination = _destination(config)
        owners, upstream = config.get(OWNERS), config.get(UPSTREAM)
        settings = Settings(
            namespace=config.get(NAMESPACE),
            reads=config.get(READS),
            applications=config.get(APPLICATIONS),
            most_inputs=config.get(MOST_INPUTS),
            parent=parent_run(config, PARENT, "parent", "OPENLINEAGE_PARENT_ID"),
            root=parent_run(config, ROOT_PARENT, "rootParent", "OPENLINEAGE_ROOT_PARENT_ID"),
            owners=owners,
            tags=config.get(TAGS),
            source_code=(
                source_code_location(os.environ)
                if config.get(SOURCE_CODE) and not destination.tells_source_code
                else None
            ),
            dataset_owners=config.get(DATASET_OWNERS),
            upstream=tuple(_dependency(config, text) for text in upstream),
        )
        return OpenLineageListener(settings, destination)

    def probe(self, config: ReporterConfig) -> str:
        """Connect to a catalog over HTTP: it has nothing that could be asked without an event.

        Raises:
            RetryLater: nobody is there.
        """
        destination = _destination(config)
        url = urlsplit(destination.name)
        if url.hostname is None:
            return f"{destination.name} was not probed: it accepts only events"
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            with socket.create_connection((url.hostname, port), config.get(TIMEOUT) / 1000):
                return f"{destination.name} accepts connections"
        except OSError as error:
            reason = error.strerror or error
            raise RetryLater(f"{destination.name} cannot be reached: {reason}; see transport.url") from error


def _destination(config: ReporterConfig) -> Destination:
    with needs_extra(*_EXTRA):
        from spark_events_openlineage.transport import Destination
    return Destination(partial(transport_config, config), config.key(TRANSPORT.name))


def parent_run(
    config: ReporterConfig, option: Option[str | None], role: str, variable: str
) -> ParentRun | None:
    """Return the run that an option names, or else Spark's properties, or else a variable of the environment.

    Args:
        config: the listener's options, and Spark's properties.
        option: of ours.
        role: what the names of Spark's properties begin with, below ``spark.openlineage.``.
        variable: of the environment.

    Returns:
        The run; None where none of them names one.

    Raises:
        ConfigError: it names no run.
    """
    text = config.get(option)
    if not text and (parent := parent_of_properties(config.spark, role)):
        return parent
    text = text or os.environ.get(variable)
    try:
        return parse_parent(text) if text else None
    except ValueError as error:
        raise ConfigError.of_value(config.key(option.name), str(text), str(error)) from None


def _dependency(config: ReporterConfig, text: str) -> Dependency:
    try:
        return parse_dependency(text)
    except ValueError as error:
        raise ConfigError.of_value(config.key(UPSTREAM.name), text, str(error)) from None


def transport_config(config: ReporterConfig) -> dict[str, object] | None:
    """Return the client's configuration of the transport; None leaves it to the client.

    Raises:
        ConfigError: an option is missing that the transport needs.
    """
    kind = config.get(TRANSPORT)
    if kind is None:
        if unused := [name for name in config.values if name.startswith("transport.")]:
            without = f"{config.key(unused[0])} has no effect without it"
            raise ConfigError(f"{config.key(TRANSPORT.name)}: missing; {without}")
        return None
    needed = {"http": URL.name, "file": PATH.name, "kafka": TOPIC.name}.get(kind)
    if needed is not None and needed not in config.values:
        raise ConfigError(f"{config.key(needed)}: missing; transport.type {kind} needs it")
    more, kafka = revealed(config.get(MORE)), revealed(config.get(KAFKA))
    transport: dict[str, object] = {"type": kind, **more}
    if kind == "http":
        # The runtime tries again; the client's own tries would only hold it up.
        transport |= {"url": config.get(URL), "timeout": config.get(TIMEOUT) / 1000}
        transport["retry"] = {"total": 0, "status_forcelist": []}
        if endpoint := config.get(ENDPOINT):
            transport["endpoint"] = endpoint
        if key := config.get(API_KEY):
            transport["auth"] = {"type": "api_key", "api_key": key.reveal()}
    elif kind == "file":
        transport |= {"log_file_path": str(config.get(PATH)), "append": True}
    elif kind == "kafka":
        transport |= {"topic": config.get(TOPIC), "config": kafka, "flush": True}
    return transport
