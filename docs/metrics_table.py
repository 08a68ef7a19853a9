"""Writes docs/metrics-list.md from what drivers serve: ``python -m docs.metrics_table FILE…`` in a clone.

Each FILE is what ``/metrics`` of a driver has answered: names, types, labels and meanings come from the code
that registers the metrics. Metrics that are on the page and in none of the files stay, and so do labels. To
drop a metric or a label, delete its row first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

PAGE = Path(__file__).with_name("metrics-list.md")
_HEAD = (
    "# Metrics by name\n\n"
    "Name, type, labels and meaning, as the code that registers each metric declares them. "
    "`python -m docs.metrics_table FILE` writes this page from what an application of the tests serves. "
    "[Metrics](metrics.md) explains them, and has those that only appear elsewhere: of journals, of lost "
    "executors, in containers. "
    "Metrics of your own code, under the [names of the Collector's receiver]"
    "(apachesparkreceiver.md) and of [Spark's own metrics system]"
    "(executor-metrics.md) are left out. Those of RocksDB are Spark 4's. "
    "Every metric also has the label "
    "`app_name`.\n\n"
    "| metric | type | labels | meaning |\n"
    "| --- | --- | --- | --- |\n"
)
_LEFT_OUT = re.compile(r"spark_(task_(?!dropped|reports|udf)|driver_)")
_OF_SPARK = "of Spark's metrics system."
_OWN_LABELS = ("app_name", "le", "team", "env", "instance", "job")
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", re.M)


class Row(NamedTuple):
    """A metric."""

    name: str
    type: str
    labels: str
    meaning: str


def rows_of(text: str) -> dict[str, Row]:
    """Return the metrics of an answer of ``/metrics``, by name."""
    rows = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        is_ours = name.startswith("spark_") and not family.documentation.endswith(_OF_SPARK)
        if not is_ours or _LEFT_OUT.match(name):
            continue
        labels = {label for sample in family.samples for label in sample.labels} - {*_OWN_LABELS}
        meaning = " ".join(family.documentation.split()).replace("|", "\\|")
        rows[name] = Row(name, family.type, ", ".join(sorted(labels)), meaning)
    return rows


def rows_of_page() -> dict[str, Row]:
    """Return the metrics that are on the page, by name."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {name: Row(name, *rest) for name, *rest in _ROW.findall(text)}


def together(listed: dict[str, Row], served: dict[str, Row]) -> dict[str, Row]:
    """Return the metrics of both, each as it is served now, with the labels that it has in either."""
    both = {**listed, **served}
    for name in listed.keys() & served.keys():
        labels = {*listed[name].labels.split(", "), *served[name].labels.split(", ")} - {""}
        both[name] = served[name]._replace(labels=", ".join(sorted(labels)))
    return both


def page(rows: Iterable[Row]) -> str:
    """Return the page of some metrics."""
    lines = [f"| `{row.name}` | {row.type} | {row.labels} | {row.meaning} |" for row in sorted(rows)]
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    known = rows_of_page()
    for file in sys.argv[1:]:
        known = together(known, rows_of(Path(file).read_text(encoding="utf-8")))
    PAGE.write_text(page(known.values()), encoding="utf-8")
