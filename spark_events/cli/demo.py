"""The command ``demo``."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from typing import Annotated

import typer

from spark_events.cli.reports.report import run_report
from spark_events.cli.terminal.console import INTERRUPTED, err, out, plain, say
from spark_events.cli.terminal.options import duration_of
from spark_events.demo.demonstration import LOGS, SHORT, DemoOptions, demo_folder, report_of_demo, run_demo


def demo(
    out_folder: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Keep the files in this folder.")
    ] = None,
    otlp_endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="Also send to a collector at this URL.")
    ] = None,
    otlp_protocol: Annotated[str, typer.Option(metavar="PROTOCOL", help="grpc or http.")] = "grpc",
    prometheus_port: Annotated[
        str, typer.Option(metavar="PORTS", help="Port, or range of ports, of the metrics endpoint.")
    ] = "9249-9260",
    sla: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a query may go without committing.")
    ] = "5s",
) -> None:
    """Run a batch job, a skewed join and a query that fails once on local Spark, and show what happened."""
    # As for Ctrl-C: the session is stopped, and what happened so far is delivered and shown.
    signal.signal(signal.SIGTERM, _interrupt)
    # Py4J's own account of calls that Ctrl-C cut off says nothing to a person. It logs the first by the root,
    # which would get a handler for that and for everything after.
    logging.getLogger().addHandler(logging.NullHandler())
    duration_of("--sla", sla)  # before Spark starts
    options = DemoOptions(otlp_endpoint, otlp_protocol, prometheus_port, sla)
    try:
        with demo_folder(out_folder) as folder:
            try:
                run_demo(options, folder, say)
            finally:
                for path in sorted((folder / "events").glob("*.jsonl")) if out_folder else ():
                    say(f"events: {path}")
            say("\n[bold]What happened[/] (spark-events report):")
            asked = report_of_demo(options, folder, keep=out_folder is not None)
            run_report(asked)
            say("\n[bold]Why it was slow[/] (spark-events why, from Spark's event log):")
            _explain(folder)
            if out_folder is None:
                kept = f" The HTML report is kept: {plain(str(asked.html))}" if asked.html else ""
                say(
                    "\nThe demo's events and logs have been removed. To keep them, run: "
                    f"[bold]spark-events demo --output DIR[/].{kept}"
                )
    except KeyboardInterrupt:
        say("interrupted", err)
        raise typer.Exit(INTERRUPTED) from None


def _explain(folder: Path) -> None:
    from spark_events.cli.why.tables import print_explanation
    from spark_events.why.reading.read_logs import explain_logs

    explanations, _ = explain_logs([str(folder / LOGS)], SHORT)
    for explanation in explanations:
        print_explanation(explanation, out)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
