"""Attaches the framework to a running Spark driver."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from typing import Any

from spark_events.api import ApplicationInfo, ConfigError
from spark_events.listeners.configuration import read_configuration
from spark_events.listeners.scopes import variables_of
from spark_events.listeners.translator import SparkListeners
from spark_events.runtime.log_once import logger
from spark_events.runtime.redaction import redact_logs
from spark_events.runtime.registry import Registry
from spark_events.sources.driver import DriverSource
from spark_events.sources.driver_state import attempt_id
from spark_events.sources.process_exit import PROCESS_EXIT

_OPEN_WAIT_MS = 10_000
_lock = threading.Lock()
_attachments: dict[str, Attachment] = {}


class Attachment:
    """The framework at work in one Spark application.

    Attributes:
        registry: the reporters and the root of the scope tree; ``attachment.registry.root`` is where an
            application adds metrics, events and spans of its own.
    """

    def __init__(self, registry: Registry, source: DriverSource) -> None:
        self.registry = registry
        self._source = source

    @property
    def active(self) -> bool:
        """Whether the application is still being followed."""
        return self._source.running

    def wait_closed(self) -> None:
        """After ``spark.stop()``, wait until all is delivered, or the configured time is over."""
        self._source.join()

    def close(self) -> None:
        """Deliver what there is and end; the application counts as ended."""
        self._source.stop()


def attach(spark: Any, *, strict: bool = False) -> Attachment:
    """Report on a Spark application, as its own ``spark.*`` configuration says.

    Calling it again for the same application returns the same attachment. It ends by itself, with
    ``spark.stop()`` or with the process.

    Args:
        spark: a SparkSession or a SparkContext.
        strict: raise on a wrong configuration, and wait until each reporter has opened. Otherwise errors
            are logged, the reporters that are configured well start, and the application goes on.

    Raises:
        TypeError: it is neither, or a Spark Connect session, whose driver is elsewhere.
        ConfigError: only with ``strict``; names each key, its value and what is allowed.
    """
    context = _spark_context(spark)
    application = ApplicationInfo(
        str(context.appName), str(context.applicationId), attempt_id(context._jsc.sc())
    )
    with _lock:
        found = _attachments.get(application.id)
        if found is not None and found.active:
            return found
        try:
            attachment = _start(context, application, strict)
        except ConfigError:
            raise
        except Exception:
            if strict:
                raise
            logger.exception("spark-events could not attach; the application goes on without it")
            return Attachment(Registry(()), _Nothing())  # type: ignore[arg-type]
        for ended in [key for key, other in _attachments.items() if not other.active]:
            del _attachments[ended]
        _attachments[application.id] = attachment
        return attachment


def _start(context: Any, application: ApplicationInfo, strict: bool) -> Attachment:
    conf: Mapping[str, str] = dict(context.getConf().getAll())
    found = read_configuration(conf, application)
    settings = found.settings
    if strict and found.problems:
        raise ConfigError.of_all(found.problems)
    redact_logs(found.redactor)
    for problem in found.problems:
        logger.error("%s", problem)
    for warning in found.warnings:
        logger.warning("%s", warning)
    if not found.setups:
        logger.warning("no reporter is configured: set spark.events.reporter.<name>.factory.class")
    driver_scope = settings.scopes.driver.render(variables_of(application))
    registry = Registry(found.setups, found.redactor, driver_scope)
    registry.start()
    if strict and (unopened := registry.wait_opened(_OPEN_WAIT_MS)):
        registry.close(settings.close_timeout_ms)
        raise ConfigError.of_all(unopened)
    listeners = SparkListeners(registry, settings, found.enrichers, str(context.version))
    source = DriverSource(context, registry, listeners, settings, PROCESS_EXIT)
    source.start()
    PROCESS_EXIT.install()
    return Attachment(registry, source)


class _Nothing:
    """Stands for the source where attaching failed."""

    running = False

    def stop(self) -> None:
        """Do nothing."""

    def join(self) -> None:
        """Do nothing."""


def _spark_context(spark: Any) -> Any:
    # Named by class, so that neither needs to be imported.
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(spark).__mro__}
    if any(name.startswith("pyspark.sql.connect.") for name in names):
        raise TypeError(
            "a Spark Connect session has its driver elsewhere: attach there, or have that driver "
            "write an event log"
        )
    context = getattr(spark, "sparkContext", spark)
    if not hasattr(context, "_jsc"):
        raise TypeError(f"attach takes a SparkSession or a SparkContext, not {type(spark).__name__}")
    if context._jsc is None:
        raise TypeError("this SparkContext has been stopped; attach to a running one")
    return context


def _at_exit(owner: int = os.getpid()) -> None:
    # A forked child inherits this hook, and nothing that it could end.
    if os.getpid() == owner:
        for attachment in list(_attachments.values()):
            attachment.close()


atexit.register(_at_exit)
