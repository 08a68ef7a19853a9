"""The start-up that all sources share: from a configuration to open reporters and their listeners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from spark_events.api import ApplicationInfo, ConfigError, Counter, Event
from spark_events.api.wrong_values import KINDS, counts
from spark_events.jobs.handlers import job_handlers
from spark_events.listeners.scopes import variables_of
from spark_events.listeners.settings import ListenerSettings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.plugins import METRICS
from spark_events.runtime.redaction import redact_logs
from spark_events.runtime.registry import Registry
from spark_events.runtime.workers.turns import Lanes
from spark_events.sources.configuration import Configuration, read_configuration


@dataclass(frozen=True, slots=True)
class StartUp:
    """What is specific to the start-up of one source.

    Attributes:
        open_within_ms: how long the reporters may take to open, in ms; None does not wait for them.
        close_within_ms: how long closing them may take if one of them does not open, in ms.
        with_plans: whether a driver sends the plans of statements.
        spark_version: of the application; empty if its records give it.
        tap: receives all events, whether or not a reporter wants them.
        shared_metrics: holds the metric reporters that applications share; None if each has its own.
        lanes: the threads that reporters of all applications share; None if each has its own.
        before_metrics: waits, on the thread of a metric reporter, until it may open; None if it may at once.
    """

    open_within_ms: int | None = None
    close_within_ms: int = 0
    with_plans: bool = False
    spark_version: str = ""
    tap: Callable[[Event], None] | None = None
    shared_metrics: Registry | None = None
    lanes: Lanes | None = None
    before_metrics: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that handles the records of one application, and the configuration it was made from."""

    conf: Mapping[str, str]
    registry: Registry
    listeners: SparkListeners
    settings: ListenerSettings

    def close(self) -> None:
        """Close the reporters, within the configured time, and release what the listeners hold."""
        self.registry.close(self.settings.close_timeout_ms)
        self.listeners.close()


def read_checked(
    conf: Mapping[str, str], application: ApplicationInfo | None = None, strict: bool = True
) -> Configuration:
    """Read a configuration, and keep its secrets out of the logs from now on.

    Args:
        conf: Spark's configuration.
        application: the one to report on; None if each event log names its own.
        strict: raise if something is wrong with it; otherwise the problems are left to the caller.

    Raises:
        ConfigError: it has problems; the error lists all of them.
    """
    configuration = read_configuration(conf, application)
    redact_logs(configuration.redactor)
    if strict and configuration.problems:
        raise ConfigError.of_all(configuration.problems)
    return configuration


def for_event_logs(configuration: Configuration) -> Configuration:
    """Return the part of a configuration that one application of an event log uses.

    It has no metric reporters, which report the present, and no state across drivers: only the log itself
    counts, so that every replay reports the same.
    """
    return replace(
        configuration,
        setups=[setup for setup in configuration.setups if setup.kind is not METRICS],
        settings=replace(configuration.settings, state_dir=None),
    )


def assemble(
    conf: Mapping[str, str], application: ApplicationInfo, configuration: Configuration, start_up: StartUp
) -> Assembly:
    """Start the reporters of an application, and make its listeners.

    Raises:
        ConfigError: a reporter cannot be opened; all of them are closed by then.
    """
    settings = configuration.settings
    registry = Registry(
        configuration.setups,
        configuration.redactor,
        settings.scopes.driver.render(variables_of(application)),
        start_up.tap,
        start_up.shared_metrics,
        # Applications that share metric reporters may have the same name, so add the id.
        {"app_id": application.id} if start_up.shared_metrics is not None else None,
        application,
        start_up.lanes,
        start_up.before_metrics,
    )
    start_reporters(registry, start_up.open_within_ms, start_up.close_within_ms)
    try:
        listeners = SparkListeners(
            registry,
            settings,
            configuration.enrichers,
            start_up.spark_version,
            job_handlers(conf, registry, start_up.with_plans),
        )
        return Assembly(conf, registry, listeners, settings)
    except BaseException:
        registry.close(start_up.close_within_ms)
        raise


def start_reporters(registry: Registry, open_within_ms: int | None, close_within_ms: int) -> None:
    """Start all reporters of a registry, and close them again if one does not open.

    Args:
        open_within_ms: how long they may take to open, in ms; None does not wait for them.
        close_within_ms: how long closing them may take, in ms.

    Raises:
        ConfigError: one or more cannot be opened.
    """
    try:
        registry.start()
        if open_within_ms is None:
            return
        if unopened := registry.wait_opened(open_within_ms):
            raise ConfigError.of_all(unopened)
    except BaseException:  # including Ctrl-C while a reporter is slow to open
        registry.close(close_within_ms)
        raise


class _Dropped(Counter):
    """How many values of a kind were dropped in this process since it was made."""

    def __init__(self, kind: str) -> None:
        super().__init__("{value}", "Values of metrics, events and spans that cannot be reported.")
        self._kind = kind
        self._before = counts()[kind]

    @property
    def count(self) -> int:
        """The count so far."""
        return counts()[self._kind] - self._before


def watch_wrong_values(registry: Registry, app_name: str) -> None:
    """Report them as a metric, and as what was dropped, from now on."""
    of_kinds = {kind: _Dropped(kind) for kind in KINDS}
    for kind, counter in of_kinds.items():
        labels = {"app_name": app_name, "kind": kind}
        registry.driver.child("values", ("values", kind), labels).register("dropped", counter)
    registry.losses.watch(
        "your own metrics and events",
        registry.driver,
        lambda: {kind: counter.count for kind, counter in of_kinds.items()},
        KINDS,
    )
