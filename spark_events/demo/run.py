"""Runs the demo."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from spark_events.api import ConfigError
from spark_events.api.option_types import DURATION
from spark_events.demo.jobs import run_batch_job, run_streaming_query
from spark_events.history.run import ReportOptions, run_report
from spark_events.java import ensure_java
from spark_events.spark_session import start_session

APP_NAME = "spark-events-demo"
_SPARK = {
    "spark.master": "local[2]",
    "spark.app.name": APP_NAME,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    # The demo's failure would fill the screen with Spark's own stack traces.
    "spark.log.level": "OFF",
}


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line asks for.

    Attributes:
        out: the folder that keeps the files; None removes them.
        otlp_endpoint: a collector; None sends nothing.
        otlp_protocol: ``grpc`` or ``http``.
        port: of the Prometheus endpoint, or a range.
        sla: of the demo's query.
    """

    out: Path | None
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
        "spark.events.reporter.screen.filter.includes": "*.application;*.query",
        "spark.events.checkpoint.sla": options.sla,
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


def run_demo(options: DemoOptions, console: Console) -> None:
    """Run the demo and print what happens.

    Raises:
        ConfigError: there is no PySpark or no Java, or an option cannot be used.
    """
    if find_spec("pyspark") is None:
        raise ConfigError("the demo needs PySpark, which is not installed: pip install 'spark-events[spark]'")
    java = ensure_java()
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        _run_in(options.out.resolve(), options, console, java)
        return
    with tempfile.TemporaryDirectory(prefix="spark-events-demo-", ignore_cleanup_errors=True) as folder:
        _run_in(Path(folder), options, console, java)


def _run_in(folder: Path, options: DemoOptions, console: Console, java: str) -> None:
    conf = demo_conf(options, folder)
    console.print(f"[bold]spark-defaults.conf[/] of this run ({java}):")
    for key, value in conf.items():
        console.print(f"  {key}  {value}", highlight=False, soft_wrap=True)
    # Spark would warn of a host name that is a loopback address.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = start_session("demo", {**_SPARK, **conf})
    import spark_events

    interrupted = False
    try:
        attachment = spark_events.attach(spark, strict=True)
        for worker in attachment.registry.workers:
            console.print(f"{worker.title}: {worker.destination}", highlight=False, soft_wrap=True)
        console.print(f"\n[bold]As it happens[/], on Spark {spark.version}:")
        run_batch_job(spark)
        run_streaming_query(spark, folder / "checkpoint")
    except KeyboardInterrupt:
        interrupted = True
    finally:
        spark.stop()
    attachment.wait_closed()
    for path in sorted((folder / "events").glob("*.jsonl")) if options.out else ():
        console.print(f"events: {path}", soft_wrap=True)
    if interrupted:
        raise KeyboardInterrupt
    console.print("\n[bold]What happened[/], by [bold]spark-events report[/] of these events:")
    _report(folder, options, console)


def _report(folder: Path, options: DemoOptions, console: Console) -> None:
    html = None
    if find_spec("jinja2") is not None:
        # It outlives the demo's own files.
        kept = folder if options.out else Path(tempfile.mkdtemp(prefix="spark-events-report-"))
        html = kept / "report.html"
    sla_ms = {"": DURATION.parse(options.sla)}
    paths = (str(folder / "events"),)
    run_report(ReportOptions(paths, sla_ms, html=html, master="local[2]"), console, Console(stderr=True))
