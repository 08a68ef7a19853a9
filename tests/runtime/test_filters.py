"""Reporter filters, with Flink's grammar."""

from __future__ import annotations

import pytest

from spark_events.api import ConfigError
from spark_events.runtime.filters import Filter, glob, parse_patterns


def passes(includes: str, excludes: str, scope: str, name: str, metric_type: str = "") -> bool:
    typed = bool(metric_type)
    chosen = Filter(parse_patterns(includes, "k", typed), parse_patterns(excludes, "k", typed))
    return chosen.passes(tuple(scope.split(".")), name, metric_type)


@pytest.mark.parametrize(
    ("includes", "excludes", "scope", "name", "expected"),
    [
        ("*", "", "spark.query", "CheckpointEvent", True),
        ("", "", "spark.query", "CheckpointEvent", True),
        ("*.query:*Checkpoint*", "", "spark.query", "CheckpointEvent", True),
        ("*.query:*Checkpoint*", "", "spark.query", "JobFailureEvent", False),
        ("*.query:*Checkpoint*", "", "spark.job", "CheckpointEvent", False),
        ("spark.job;spark.stage", "", "spark.stage", "X", True),
        ("*:A,B", "", "spark.job", "B", True),
        ("*:A,B", "", "spark.job", "AB", False),
        ("*", "*.stage", "spark.stage", "X", False),
        ("*.stage:X", "*:X", "spark.stage", "X", False),
        ("spark.q", "", "spark.query", "X", False),
        ("spark?query", "", "spark.query", "X", False),
    ],
)
def test_events(includes: str, excludes: str, scope: str, name: str, expected: bool) -> None:
    """Scope and name must both match; excludes win."""
    assert passes(includes, excludes, scope, name) is expected


@pytest.mark.parametrize(
    ("includes", "metric_type", "expected"),
    [("*:*:counter", "counter", True), ("*:*:counter,gauge", "histogram", False), ("*:n", "gauge", True)],
)
def test_metrics_have_a_type(includes: str, metric_type: str, expected: bool) -> None:
    """Metrics have a third part, the type."""
    assert passes(includes, "", "spark.query", "n", metric_type) is expected


@pytest.mark.parametrize(
    ("text", "typed"),
    [("a:b:c", False), ("a:b:meters", True), ("a::b", True), (":", False), ("a:b:c:d", True)],
)
def test_wrong_pattern(text: str, typed: bool) -> None:
    """The error names the key, the pattern and the grammar."""
    with pytest.raises(ConfigError, match=r"^the\.key: .* is not valid; expected <scope>\[:<name>"):
        parse_patterns(text, "the.key", typed)


def test_what_is_known_of_names_is_bounded() -> None:
    """A program may make new names without end, as a span for each row does."""
    chosen = Filter(parse_patterns("*:row *", "k", typed=False))
    for number in range(10_000):
        assert chosen.passes(("spark", "task"), f"row {number}")
    assert len(chosen._seen) <= 4_096
    assert not chosen.passes(("spark", "task"), "other")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("stars", ["*" * 40, "*a" * 40, "*?[" * 40])
def test_a_pattern_never_runs_away(stars: str) -> None:
    """Whoever reports waits for it."""
    assert glob(f"{stars}x").fullmatch("a" * 2_000) is None
    assert glob("never", f"{stars}*").fullmatch(stars.replace("*", "aa")) is not None
    assert (glob("a?[b]").fullmatch("a?[b]") is not None, glob("a?[b]").fullmatch("abb")) == (True, None)
