"""What can be attached to: the SparkContext of this process, or a session of Spark Connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_events.api import ApplicationInfo
from spark_events.api.errors import NothingToAttachToError
from spark_events.listeners.application.application import application_info
from spark_events.sources.assembly import Assembly
from spark_events.sources.connect import ConnectSource, configuration_of, is_connect
from spark_events.sources.driver.source import DriverSource
from spark_events.sources.driver.state import attempt_id

Source = DriverSource | ConnectSource


@dataclass(frozen=True, slots=True)
class AttachTarget:
    """Something that can be attached to; it is not queried before an attachment begins.

    Attributes:
        key: its id: an application has one attachment at a time.
        conf: returns Spark's configuration.
        application: returns the application, from that.
        version: returns Spark's version.
        with_plans: whether plans can be read.
        make_source: returns what feeds the listeners of an attachment.
    """

    key: str
    conf: Callable[[], Mapping[str, str]]
    application: Callable[[Mapping[str, str]], ApplicationInfo]
    version: Callable[[], str]
    with_plans: bool
    make_source: Callable[[ApplicationInfo, Assembly], Source]


def target_of(spark: Any) -> AttachTarget:
    """Return what a SparkSession or a SparkContext is for an attachment.

    Raises:
        NothingToAttachToError: it is neither, or it has been stopped.
    """
    return _connect_session(spark) if is_connect(spark) else _spark_context(spark)


def _connect_session(session: Any) -> AttachTarget:
    return AttachTarget(
        f"session {session.session_id}",
        lambda: configuration_of(session),
        lambda conf: application_info(conf.get("spark.app.name"), conf.get("spark.app.id")),
        lambda: str(session.version),
        False,
        lambda application, assembly: ConnectSource(session, application, assembly),
    )


def _spark_context(spark: Any) -> AttachTarget:
    # Of the class: each name is an attribute of a Column, and the name of one of a DataFrame's.
    context = spark.sparkContext if hasattr(type(spark), "sparkContext") else spark
    if "_jsc" not in getattr(context, "__dict__", ()):
        raise NothingToAttachToError(
            f"attach takes a SparkSession or a SparkContext, and was given: {type(spark).__name__}"
        )
    if context._jsc is None:
        raise NothingToAttachToError("this SparkContext has been stopped; attach to a running one")
    application = application_info(context.appName, context.applicationId, attempt_id(context._jsc.sc()))
    return AttachTarget(
        application.id,
        lambda: dict(context.getConf().getAll()),
        lambda conf: application,
        lambda: str(context.version),
        True,
        lambda application, assembly: DriverSource(context, assembly, application.attachment),
    )
