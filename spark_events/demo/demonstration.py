"""Runs the demo's jobs with reporters, and makes the options of a report on their events."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spark_events import task
from spark_events.api import ConfigError
from spark_events.api.errors import install
from spark_events.api.option_types import DURATION
from spark_events.history.options import ReportOptions, Sla
from spark_events.listeners.settings import ENABLED
from spark_events.spark.java_runtime import ensure_java
from spark_events.spark.session import LOOPBACK, QUIET, start_session
from spark_events.spark.temporary_folders import temporary_folder

APP_NAME = "spark-events-demo"
LOGS = "event-logs"
"""The folder of Spark's event log, below the demo's."""
_SPARK = {
    **QUIET,
    **LOOPBACK,
    "spark.master": "local[2]",
    "spark.app.name": APP_NAME,
    "spark.sql.shuffle.partitions": "2",
    # The demo's failure would fill the screen with Spark's own stack traces.
    "spark.log.level": "OFF",
    # When a query is stopped in the middle of foreachBatch, Spark matches the error with a regular expression
    # that needs a frame for each character of it.
    "spark.driver.extraJavaOptions": "-Xss8m",
}


_NEEDED = {
    "pyspark": "spark",
    "prometheus_client": "prometheus",
    "cramjam": "eventlog",
    "fsspec": "eventlog",
    "zstandard": "eventlog",
}
"""The packages without which the demo would end halfway, and the extras that bring them."""
_CONF_DIR = "SPARK_CONF_DIR"
_OF_USERS = (_CONF_DIR, ENABLED, "PYSPARK_SUBMIT_ARGS")
"""The variables by which Spark and spark-events are configured."""
SHORT = {"spark.events.issue.min-duration": "500ms", "spark.events.issue.include-description": "true"}
"""The demo's jobs are so short that nobody would ask what made them slow; its texts are no secrets."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of the command line.

    Attributes:
        otlp_endpoint: a collector; None sends nothing.
        otlp_protocol: ``grpc`` or ``http``.
        port: of the Prometheus endpoint, or a range.
        sla: of the demo's query.
    """

    otlp_endpoint: str | None
    otlp_protocol: str
    port: str
    sla: str


def demo_conf(options: DemoOptions, folder: Path) -> Mapping[str, str]:
    """Return the keys of spark-events that the demo runs with."""
    conf = {
        "spark.events.reporter.file.factory.class": "file_log",
        "spark.events.reporter.file.path": (folder / "events").as_uri(),
        "spark.events.reporter.screen.factory.class": "console",
        "spark.events.reporter.screen.stream": "stdout",
        # Each Spark job is an event, too; on the screen they would bury the rest.
        "spark.events.reporter.screen.filter.includes": (
            "*.application;*.query;*.task;*:PerformanceIssueEvent"
        ),
        "spark.events.checkpoint.sla": options.sla,
        **SHORT,
        "spark.metrics.reporter.prom.factory.class": "prometheus",
        "spark.metrics.reporter.prom.port": options.port,
    }
    if options.otlp_endpoint:
        for kind in ("events", "traces"):
            prefix = f"spark.{kind}.reporter.otel."
            conf[prefix + "factory.class"] = "otlp"
            conf[prefix + "exporter.endpoint"] = options.otlp_endpoint
            conf[prefix + "exporter.protocol"] = options.otlp_protocol
    return conf


@contextmanager
def demo_folder(kept: Path | None) -> Iterator[Path]:
    """Give the folder of the demo's files: the one that keeps them, or one that is removed afterwards."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    with temporary_folder("demo") as folder:
        yield folder


@contextmanager
def _without_users_configuration() -> Iterator[None]:
    """Hide the user's configuration of Spark and of spark-events: it may have reporters to real places."""
    with temporary_folder("demo-conf") as nothing:
        before = {name: os.environ.pop(name, None) for name in _OF_USERS}
        os.environ[_CONF_DIR] = str(nothing)  # without it, the one in SPARK_HOME would count
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def run_demo(options: DemoOptions, folder: Path, tell: Callable[[str], None]) -> None:
    """Run the demo's jobs, reported on as the demo is configured, and not as the user's applications are.

    Args:
        tell: called with each line for a person, in rich's markup.

    Raises:
        ConfigError: a package or Java is missing, or an option cannot be used.
        KeyboardInterrupt: somebody interrupted it; the events so far are delivered.
    """
    if missing := sorted({extra for package, extra in _NEEDED.items() if find_spec(package) is None}):
        raise ConfigError(f"the demo needs more than is installed: {install(','.join(missing))}")
    java = ensure_java()
    conf = demo_conf(options, folder)
    tell(f"[bold]spark-defaults.conf[/] of this run ({java}):")
    for key, value in conf.items():
        tell(f"  {key}  {value}")
    # Spark would warn of a host name that is a loopback address.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    (folder / LOGS).mkdir(exist_ok=True)
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (folder / LOGS).as_uri()}
    with _without_users_configuration():
        _run_jobs({**_SPARK, **logged, **conf}, folder, tell)


def _run_jobs(conf: Mapping[str, str], folder: Path, tell: Callable[[str], None]) -> None:
    spark = start_session("demo", conf)
    import spark_events

    tell(f"\n[bold]As it happens[/], on Spark {spark.version}:")
    try:
        attachment = spark_events.attach(spark, strict=True)
    except BaseException:
        spark.stop()
        raise
    try:
        for worker in attachment.registry.workers:
            tell(f"[dim]{worker.title}: {worker.destination}[/]")
        run_batch_job(spark)
        run_skewed_join(spark)
        run_streaming_query(spark, folder / "checkpoint")
    finally:
        spark.stop()
        attachment.wait_closed()


def report_of_demo(options: DemoOptions, folder: Path, keep: bool) -> ReportOptions:
    """Return the options of a report on the demo's events.

    Args:
        keep: whether the folder of its files stays; the page of the report outlives it in any case.
    """
    html = None
    if find_spec("jinja2") is not None:
        html = (folder if keep else Path(tempfile.mkdtemp(prefix="spark-events-report-"))) / "report.html"
    sla = Sla(DURATION.read("--sla", options.sla))
    conf = {"spark.master": "local[2]"}
    return ReportOptions((str(folder / "events"),), sla, html=html, conf=conf)


QUERY = "orders_per_customer"
_FIRST_ORDER, _POISONED_ORDER = 4_540, 4_711
_RUNS_TO = 7
_DOWN_S = 6.5
_WITHOUT_ADDRESS = 7
_ORDERS, _ONE_IN = 3_000_000, 20


class PoisonedOrderError(ValueError):
    """The error that the demo's query fails with, once."""


def run_batch_job(spark: Any) -> None:
    """Count rows over a shuffle."""
    frame = spark.range(0, 200_000, 1, 4).selectExpr("id % 10 AS customer")
    frame.groupBy("customer").count().write.format("noop").mode("overwrite").save()


def run_skewed_join(spark: Any) -> None:
    """Join orders with customers, of whom one has nearly all the orders, with Spark's own remedies off."""
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "8")
    customers = session.range(0, 1_000, 1, 2).withColumnRenamed("id", "customer")
    orders = session.range(0, _ORDERS, 1, 4).selectExpr(
        "id", f"CASE WHEN id % {_ONE_IN} = 0 THEN id % 1000 ELSE 7 END AS customer"
    )
    receipts = orders.join(customers, "customer").selectExpr("sha2(cast(id AS string), 512) AS receipt")
    spark.sparkContext.setJobDescription("join orders with customers")
    receipts.write.format("noop").mode("overwrite").save()
    spark.sparkContext.setJobDescription(None)


def run_streaming_query(spark: Any, checkpoint: Path) -> None:
    """Run the query until it fails, leave it down, restart it from its checkpoint, and stop it."""
    from pyspark.errors import StreamingQueryException

    query = _start(spark, checkpoint, poisoned=True)
    try:
        query.awaitTermination()
    except StreamingQueryException:
        time.sleep(_DOWN_S)  # the person at 3 a.m. needs a moment, too
    query = _start(spark, checkpoint, poisoned=False)
    while query.isActive and (query.lastProgress or {}).get("batchId", -1) < _RUNS_TO:
        time.sleep(0.1)
    query.stop()


def _start(spark: Any, checkpoint: Path, poisoned: bool) -> Any:
    from pyspark.sql.functions import udf

    bad_orders = task.metrics.counter("bad_orders", reason="no_address")

    def customer_of(order: int) -> int:
        if poisoned and order == _POISONED_ORDER:
            raise PoisonedOrderError(f"order {order} has no customer")
        customer = order % 10
        if customer == _WITHOUT_ADDRESS:
            bad_orders.inc()
        return customer

    customer = udf(customer_of, "long", useArrow=False)

    def sink(frame: Any, batch: int) -> None:
        frame.collect()

    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    orders = rows.selectExpr(f"value + {_FIRST_ORDER} AS order")
    counts = orders.select(customer("order").alias("customer")).groupBy("customer").count()
    return (
        counts.writeStream.queryName(QUERY)
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="1 second")
        .foreachBatch(sink)
        .start()
    )
