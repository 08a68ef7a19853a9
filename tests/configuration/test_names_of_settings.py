"""The names of settings follow the rules of docs/development.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.api import Option
from spark_events.ctas.settings import OF_CTAS
from spark_events.runtime.plugins import KINDS, installed, load_factory
from spark_events.runtime.settings import declared_in
from spark_events.sources.attaching.unknown_keys import OF_REPORTERS, OF_THE_FRAMEWORK
from spark_events.sql_runner.manifest.properties import QuerySettings
from tests.support.paths import REPO

OTHERS = {
    *("factory.class", "interval", "scope.delimiter", "spark.metrics.scope.delimiter"),
    *("scope.variables.additional", "scope.variables.excludes", "filter.includes", "filter.excludes"),
    *("hostUrl", "jobName", "randomJobNameSuffix", "deleteOnShutdown", "groupingKey", "batch.size"),
    *("spark.metrics.job.status.enable", "spark.traces.checkpoint.span-detail-level"),
    *("spark.events.sql.restart-strategy.fixed-delay.attempts",),
    *("spark.events.sql.restart-strategy.fixed-delay.delay",),
}
"""Names of Flink's, of its reporters', and of OpenTelemetry's exporters."""
LAST_PART = {
    "duration": r"(.*-)?(interval|timeout|duration|age|retention|sla)",
    "size": r"(.*-)?bytes",
    "int": r"(max|min)-.+",
    "ratio": r"(.*-)?ratio",
    "factor": r"(.*-)?factor",
    "bool": r"enabled|(include|measure|ship)-.+",
    "list": r".+s",
    "ports": "port",
    "local path": r"(.*-)?(dir|path|certificate|key|authorities)",
}


def _options_of_reporters() -> Iterator[tuple[str, tuple[Option[Any], ...]]]:
    shared = tuple(declared.option for declared in OF_REPORTERS)
    for kind in KINDS:
        for name in installed(kind.entry_points):
            yield f"{kind.name} {name}", (*shared, *(load_factory(kind, name, "key").options or ()))


KEYS = tuple(
    declared.option for declared in (*OF_THE_FRAMEWORK, *OF_CTAS, *declared_in(QuerySettings).values())
)
GROUPS = {"spark.*": KEYS, **dict(_options_of_reporters())}
EACH = {option.name: option for options in GROUPS.values() for option in options}


def both_value_and_subject(names: list[str]) -> list[tuple[str, str]]:
    """Return pairs of keys of which one begins with the other and a dot."""
    return [
        (one, other)
        for one in names
        for other in names
        if other.startswith(one.rstrip(".") + ".") and one != other
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_no_key_is_both_a_value_and_a_subject(group: str) -> None:
    """YAML, and with it Helm's values, could not hold it."""
    assert both_value_and_subject([option.name for option in GROUPS[group]]) == []


def test_such_a_key_would_be_found() -> None:
    """So would one that is the subject of keys for each query."""
    names = ["a.task", "a.task.ship", "a.tasks", "a.sla", "a.sla."]

    assert both_value_and_subject(names) == [("a.task", "a.task.ship"), ("a.sla", "a.sla.")]


@pytest.mark.parametrize("name", sorted(EACH.keys() - OTHERS))
def test_the_last_part_says_what_the_value_is(name: str) -> None:
    """A dot begins a subject, a hyphen joins words; no one has to look up whether it is a time or a count."""
    parts = [part.removeprefix("query-") for part in name.rstrip(".").split(".")]

    assert [part for part in parts if not re.fullmatch(r"[a-z]+(-[a-z]+)*", part)] == []
    assert re.fullmatch(LAST_PART.get(EACH[name].type.name, ".+"), parts[-1]), EACH[name].type.name


def test_the_names_of_others_are_declared() -> None:
    """The list has nothing that is gone, and nothing that follows the rules anyway."""
    assert sorted(OTHERS - EACH.keys()) == []


def test_the_page_starts_with_keys_that_are_declared() -> None:
    """The table of what most applications need."""
    page = (REPO / "docs" / "configuration.md").read_text()
    start = page[page.index("## Start here") : page.index("## Reporters")]
    named = re.findall(r"^\| `(?:spark\.\w+\.reporter\.<name>\.)?([^`]+)` \|", start, re.M)

    assert 6 <= len(named) <= 9
    assert [name for name in named if name not in EACH] == []
    assert page.index("### Applications and queries") < page.index("## Advanced") < page.index("## In code")
