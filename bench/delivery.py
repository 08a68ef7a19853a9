"""Delivery to a real collector: through the journal, beside OpenTelemetry's stock processor and exporter.

Each path runs in a process of its own, in turn, on the same records: ``python -m bench.delivery``. Needs
.cache/otelcol (``.ci/build-collector``).
"""

from __future__ import annotations

import importlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.table import ROOT, machine, write
from tests.support.collector import Collector
from tests.support.waiting import free_port

_ROUNDS = 5
_RECORDS = 200_000
_LATE_RECORDS = 1_000_000
_STEP = 1_000
_IMPORTS = {
    "stock": ("opentelemetry.sdk._logs.export", "opentelemetry.exporter.otlp.proto.grpc._log_exporter"),
    "ours": ("spark_events.runtime.registry", "spark_events_otlp.reporter", "spark_events_otlp.over_grpc"),
}


_VARIABLES = {
    "app_name": "bench",
    "app_id": "app-20261121000000-0001",
    "query_name": "orders",
    "query_id": "6d2f0f1c-2c3b-4a9f-9d51-2c2f3a1b4c5d",
    "run_id": "0b1e4a52-9f4e-4a43-8c53-6a2f3a1b4c5d",
}


def records(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ids and attributes as a change of a query's status has them, beside ``_VARIABLES``."""
    for number in range(count):
        attributes = {"newJobStatus": "RUNNING", "oldJobStatus": "CREATED", "job_kind": "query"}
        yield f"{number:032x}", {**attributes, "oldJobStatusMs": number}


def run_stock(endpoint: str, count: int) -> None:
    """Send by the SDK; its queue takes all, for at its default size it drops most of them."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(shutdown_on_exit=False)
    exporter = OTLPLogExporter(endpoint=endpoint, insecure=True)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter, max_queue_size=count))
    logger = provider.get_logger("bench")
    for event_id, attributes in records(count):
        logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                severity_number=SeverityNumber.INFO,
                severity_text="INFO",
                body="query 'orders' CREATED -> RUNNING",
                event_name="JobStatusChangeEvent",
                attributes={"event.id": event_id, **_VARIABLES, **attributes},
            )
        )
    provider.shutdown()


def run_ours(endpoint: str, count: int, away: bool = False) -> None:
    """Send by the registry and the journaled OTLP reporter, until all is acknowledged, or nobody is there."""
    from spark_events.api import ApplicationInfo, Event
    from spark_events.runtime.registry import Registry
    from spark_events.runtime.setup import read_all_setups

    prefix = "spark.events.reporter.otel."
    with tempfile.TemporaryDirectory() as folder:
        conf = {
            f"{prefix}factory.class": "otlp",
            f"{prefix}exporter.endpoint": endpoint,
            f"{prefix}journal.dir": folder,
        }
        setups, errors = read_all_setups(conf, ApplicationInfo("bench", "app-1"))
        assert not errors, errors
        registry = Registry(setups)
        registry.start()
        (worker,) = registry.workers
        query = registry.root.child("query", (), _VARIABLES)
        for number, (event_id, attributes) in enumerate(records(count)):
            event = Event.builder("bench", "JobStatusChangeEvent").set_id(event_id).set_attributes(attributes)
            query.add_event(event.set_body("query 'orders' CREATED -> RUNNING"))
            if number % _STEP == 0:
                while worker.depth - (worker.delivery.spool.pending if worker.delivery else 0) > 5 * _STEP:
                    time.sleep(0.001)  # or the queue in memory would be full, and drop
        while not away and worker.stats.reported.count < count:
            time.sleep(0.005)
        registry.close(5_000)
        assert not worker.stats.totals().get("dropped.queue_full")


def run_away(endpoint: str, count: int) -> None:
    """Fill the journal while nobody is there."""
    run_ours(endpoint, count, away=True)


_PATHS = {"stock": run_stock, "ours": run_ours, "away": run_away}


def child(path: str, endpoint: str, count: int) -> None:
    """Run one path, and print what it took."""
    for module in _IMPORTS.get(path, ()):  # is no part of delivery
        importlib.import_module(module)

    wall, cpu = time.monotonic(), time.process_time()
    _PATHS[path](endpoint, count)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu, "rss_kib": rss}))


def measure(path: str, endpoint: str, count: int) -> dict[str, float]:
    """Run one path in a process of its own."""
    command = [sys.executable, "-m", "bench.delivery", path, endpoint, str(count)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure in turn, and write the table."""
    found: dict[str, list[dict[str, float]]] = {"stock": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        collector = Collector(ROOT / ".cache" / "otelcol", Path(folder))
        collector.start()
        try:
            for _ in range(_ROUNDS):
                for path, results in found.items():
                    results.append(measure(path, collector.grpc, _RECORDS))
            arrived = sum(line.count('"event.id"') for line in (Path(folder) / "logs.jsonl").open())
        finally:
            collector.stop()
    assert arrived == 2 * _ROUNDS * _RECORDS, f"the collector has {arrived} records"
    nobody = f"http://127.0.0.1:{free_port()}"
    early, late = (measure("away", nobody, count)["rss_kib"] for count in (50_000, _LATE_RECORDS))
    write("delivery", _table(found, early, late))


def _table(found: dict[str, list[dict[str, float]]], early: float, late: float) -> list[str]:
    def middle(path: str, key: str) -> float:
        return statistics.median(result[key] for result in found[path])

    def row(title: str, path: str) -> str:
        cpu, wall = middle(path, "cpu") / _RECORDS, middle(path, "wall") / _RECORDS
        return f"| {title} | {cpu * 1e6:.0f} µs | {1 / wall:,.0f} |"

    ratios = [stock["cpu"] / ours["cpu"] for stock, ours in zip(found["stock"], found["ours"], strict=True)]
    return [
        f"{_RECORDS:,} log records to a real collector over gRPC; median of {_ROUNDS} rounds, in turn "
        f"({machine()}; `make bench`):",
        "",
        "| path | CPU per record | records/s |",
        "| --- | --- | --- |",
        row("stock BatchLogRecordProcessor + OTLPLogExporter, in memory", "stock"),
        row("spark-events, journaled and acknowledged", "ours"),
        "",
        f"Records per CPU second: **{statistics.median(ratios):.1f} times the stock path** "
        f"(from {min(ratios):.1f} to {max(ratios):.1f}). While no collector answers, the process takes "
        f"at most {early / 1024:.0f} MiB of memory for 50,000 events and {late / 1024:.0f} MiB "
        f"for {_LATE_RECORDS:,}.",
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
