"""CPU of one scrape of many series: ours against prometheus-client's own registry, in one process.

The same names, labels and values; both are asked for the text format, in turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Gauge as StockGauge
from spark_events_prometheus.reporter import SeriesReporter

from bench.table import machine, write
from spark_events.api import Gauge
from spark_events.runtime.registry import Registry
from spark_events.runtime.scope import ScopeGroup

_SERIES = 100_000
_METRICS = 100
_ROUNDS = 7


def _labels(number: int) -> dict[str, str]:
    return {"app_name": "bench", "query_name": f"query-{number:05d}", "team": "payments"}


def _ours() -> Callable[[], bytes]:
    reporter = SeriesReporter()
    root = Registry(()).root
    for number in range(_SERIES // _METRICS):
        group = ScopeGroup(root._sink, ("spark", "query"), (), _labels(number), {})
        for metric in range(_METRICS):
            gauge = Gauge(lambda value=float(number): value, description="A gauge.")
            reporter.notify_of_added_metric(gauge, f"gauge{metric}", group)
    return reporter.render


def _stock() -> Callable[[], bytes]:
    registry = CollectorRegistry()
    names = tuple(_labels(0))
    gauges = [
        StockGauge(f"spark_query_gauge{metric}", "A gauge.", names, registry=registry)
        for metric in range(_METRICS)
    ]
    # In the order in which a driver makes them: all metrics of one query, and then of the next.
    for number in range(_SERIES // _METRICS):
        for gauge in gauges:
            gauge.labels(*_labels(number).values()).set(float(number))
    return lambda: generate_latest(registry)


def _cpu_s(scrape: Callable[[], bytes]) -> float:
    start = time.process_time()
    scrape()
    return time.process_time() - start


def main() -> None:
    """Measure, and write the table."""
    ours, stock = _ours(), _stock()
    same = set(stock().decode().splitlines()) - set(ours().decode().splitlines())
    assert not same, f"the two do not say the same: {sorted(same)[:3]}"
    rounds = [(_cpu_s(stock), _cpu_s(ours)) for _ in range(_ROUNDS)]
    ratios = [mine / theirs for theirs, mine in rounds]
    theirs, mine = (statistics.median(column) for column in zip(*rounds, strict=True))
    write(
        "scrape",
        [
            f"One scrape of {_SERIES:,} gauges with three labels; median of {_ROUNDS} rounds, in turn "
            f"({machine()}; `make bench`):",
            "",
            "| exposition | CPU |",
            "| --- | --- |",
            f"| prometheus-client, instrumented registry | {theirs:.2f} s |",
            f"| spark-events | {mine:.2f} s |",
            "",
            f"spark-events serves the same lines with **{statistics.median(ratios):.3f} times the CPU** "
            f"(from {min(ratios):.3f} to {max(ratios):.3f}).",
        ],
    )


if __name__ == "__main__":
    main()
