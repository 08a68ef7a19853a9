"""Values that can be used, but hardly as they were meant: each is named, and the job goes on."""

from __future__ import annotations

import re

import pytest

from spark_events.configuration.check import check
from spark_events.listeners.scopes import SCOPES
from tests.support.paths import REPO

FILE = {"spark.events.reporter.f.factory.class": "file_log", "spark.events.reporter.f.path": "/tmp/x"}
OTEL = {"spark.events.reporter.o.factory.class": "otlp"}
HEADERS = "spark.events.reporter.o.exporter.headers"
F = "spark.events.reporter.f."


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        (FILE | {"spark.events.reporters": "f,f"}, "spark.events.reporters: 'f,f' has 'f' more than once"),
        (
            FILE | {f"{F}scope.variables.additional": "a:1, a:2"},
            f"{F}scope.variables.additional: 'a:1, a:2' has 'a' more than once; only its last value counts",
        ),
        (OTEL | {HEADERS: "a:env:HOME,a:hidden"}, f"{HEADERS}: '******' has 'a' more than once"),
        (
            FILE | {"spark.events.reporters": "f", "spark.events.reporter.g.path": "/tmp/y"},
            "spark.events.reporter.g.path: no effect, because spark.events.reporters is 'f', without 'g'",
        ),
        (FILE | {f"{F}filter.includes": "[["}, f"{F}filter.includes: '[[' is not a regular expression"),
        (
            FILE | {f"{F}filter.includes": "*.query;*.aplication:x"},
            f"{F}filter.includes: '*.query;*.aplication:x' selects nothing by the scope '*.aplication': did you mean "
            "'*.application'? the scopes are spark.application, spark.query, ",
        ),
        (
            FILE | {f"{F}filter.excludes": "job.*"},
            f"{F}filter.excludes: 'job.*' selects nothing by the scope 'job.*': the scopes are spark.application, ",
        ),
        (FILE | {f"{F}filter.excludes": "job.+"}, f"{F}filter.excludes: 'job.+' is not a regular expression"),
        (
            FILE | {f"{F}scope.variables.excludes": "host;app_id"},
            f"{F}scope.variables.excludes: 'app_id' is left out, so that report, status and show cannot tell",
        ),
        (
            FILE | {f"{F}scope.variables.additional": "app_name:prod"},
            f"{F}scope.variables.additional: 'app_name' is the same for all, so that report",
        ),
    ],
)
def test_what_can_hardly_be_meant(conf: dict[str, str], expected: str) -> None:
    """The key, the value and what to do; `attach` logs the same warnings."""
    result = check(conf, False)

    assert result.problems == []
    assert [text for text in result.warnings if text.startswith(expected)], result.warnings
    assert "hidden" not in str([text for text in result.warnings if "more than once" in text])


@pytest.mark.parametrize(
    "conf",
    [
        FILE,
        FILE | {"spark.events.reporters": ""},
        FILE
        | {
            "spark.events.reporters": "f",
            f"{F}filter.includes": "*.job:Job*,X-y_z;*;spark;spark.dr*;*.of_a_plugin",
        },
        FILE | {f"{F}scope.variables.additional": "a:1,b:1", f"{F}scope.variables.excludes": "host"},
        {
            "spark.metrics.reporter.p.factory.class": "prometheus",
            "spark.metrics.reporter.p.scope.variables.excludes": "app_name",
        },
    ],
)
def test_what_is_meant(conf: dict[str, str]) -> None:
    """No word about what is as it should be."""
    assert check(conf, False).warnings == []


def test_the_scopes() -> None:
    """A filter is held against all that there are."""
    made = re.compile(r"\b_?(?:child|detached|events|series|receiver)\(\s*\"(\w+)\"")
    names = {
        name for path in (REPO / "spark_events").rglob("*.py") for name in made.findall(path.read_text())
    }
    assert names == set(SCOPES)
    text = (REPO / "docs/configuration.md").read_text()
    assert [name for name in SCOPES if f"`spark.{name}`" not in text] == []
