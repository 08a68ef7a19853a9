"""Writes the tables of settings, and those of a report's tables, from where they are declared.

They are in docs/ and in conf/spark-defaults.conf.

``python -m docs.settings_tables`` in a clone; each table stands between two marks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from spark_events.ctas.settings import OF_CTAS
from spark_events.history.table import Table
from spark_events.history.tables.all_tables import TABLES
from spark_events.listeners.scopes import ScopeFormat
from spark_events.runtime.settings import Declared, declared_in
from spark_events.sources.attaching.unknown_keys import OF_REPORTERS, OF_THE_FRAMEWORK
from spark_events.sources.instead import default_text
from spark_events.sql_runner.manifest.properties import QuerySettings

ROOT = Path(__file__).parents[1]
_MARK = re.compile(
    r"(?P<begin>[^\n]*settings: (?P<name>[\w-]+)[^\n]*\n).*?(?P<end>[^\n]*end of settings)", re.DOTALL
)


def table(settings: Iterable[Declared]) -> str:
    """Return a Markdown table: key, default, what it means."""
    return "| key | default | meaning |\n| --- | --- | --- |\n" + "".join(
        _row(declared) for declared in settings
    )


_GROUPS: dict[str, tuple[str, ...]] = {
    "Metrics": ("spark.metrics.",),
    "Traces": ("spark.traces.",),
    "Your own code in tasks": ("spark.events.task.",),
    "Event logs": ("spark.events.event-log.",),
    "Issues": (
        *(f"spark.events.issue.{name}" for name in ("kinds", "min-", "include-")),
        "spark.events.issue.regression.dir",
    ),
}
_ADVANCED: dict[str, tuple[str, ...]] = {
    "Thresholds of issues": ("spark.events.issue.",),
    "Queues and shutdown": ("spark.events.bridge.", "spark.events.close."),
    "Names of metrics": ("spark.metrics.scope.",),
}
_REST = "Applications and queries"
_ADVANCED_HEADING = "\n## Advanced\n\nThe defaults of these are right for nearly all applications.\n"


def grouped(settings: Iterable[Declared]) -> str:
    """Return a Markdown table for each subject, under a heading; what few people need comes last."""
    groups: dict[str, list[Declared]] = {name: [] for name in (_REST, *_GROUPS, *_ADVANCED)}
    for declared in settings:
        groups[_group_of(declared.option.name)].append(declared)
    text = ""
    for name, group in groups.items():
        text += _ADVANCED_HEADING if name == next(iter(_ADVANCED)) else ""
        text += f"\n### {name}\n\n{table(group)}"
    return text


def _group_of(key: str) -> str:
    """Return the subject whose longest prefix a key begins with."""
    fitting = {
        prefix: name
        for name, prefixes in (_GROUPS | _ADVANCED).items()
        for prefix in prefixes
        if key.startswith(prefix)
    }
    return fitting[max(fitting, key=len)] if fitting else _REST


def examples(settings: Iterable[Declared]) -> str:
    """Return a commented line for each key, with its default or an example."""
    lines = [
        (declared.option.name + declared.placeholder.strip("<>").replace(" ", "_"), _example(declared))
        for declared in settings
    ]
    width = max(len(key) for key, _ in lines)
    return "".join(f"# {key:{width}}  {value}\n" for key, value in lines)


def report_tables() -> str:
    """Return two Markdown tables: of the tables of a report, and of the columns that need words."""
    of_columns: dict[tuple[str, str], list[str]] = {}
    for each in TABLES:
        for column in each.columns:
            if column.about:
                of_columns.setdefault((column.name, column.about), []).append(each.name)
    lines = ["| table | one row per | columns |", "| --- | --- | --- |"]
    lines += [f"| {each.name} | {each.per}{_most(each)} | {', '.join(each.types)} |" for each in TABLES]
    lines += ["", "| column | in table | content |", "| --- | --- | --- |"]
    lines += [f"| {name} | {', '.join(of)} | {about} |" for (name, about), of in of_columns.items()]
    return "".join(f"{line}\n" for line in lines)


def _most(of: Table) -> str:
    return "" if of.most is None else f" (in JSON, at most {of.most:,})"


_WRITERS: dict[str, Callable[[], str]] = {
    "of-reporters": lambda: table(OF_REPORTERS),
    "of-the-framework": lambda: grouped(OF_THE_FRAMEWORK),
    "of-queries": lambda: table(declared_in(QuerySettings).values()),
    "of-ctas": lambda: table(OF_CTAS),
    "of-a-report": report_tables,
    "examples": lambda: examples((*OF_THE_FRAMEWORK, *OF_CTAS)),
}
FILES = (
    "docs/configuration.md",
    "docs/ctas.md",
    "docs/sql-runner.md",
    "docs/report-tables.md",
    "conf/spark-defaults.conf",
)


def rewritten(text: str) -> str:
    """Return a file's text with what is between its marks written anew.

    Raises:
        KeyError: a mark names no table.
    """
    return _MARK.sub(lambda mark: mark["begin"] + _WRITERS[mark["name"]]() + mark["end"], text)


def main() -> None:
    """Write the files of the clone that this module lies in."""
    for name in FILES:
        path = ROOT / name
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stdout.write(f"{name}\n")


def _row(declared: Declared) -> str:
    key = declared.option.name + (f"`{declared.placeholder}`" if declared.placeholder else "")
    shown = declared.default_text or default_text(declared)
    if isinstance(declared.option.default, ScopeFormat) or shown in (".", "*"):
        shown = f"`{shown}`"
    return f"| {key} | {shown} | {declared.option.doc} |\n".replace("|  |", "| |")


def _example(declared: Declared) -> str:
    return declared.example or default_text(declared)


if __name__ == "__main__":
    main()
