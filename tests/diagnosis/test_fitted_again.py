"""Features that are fitted again for each evaluation of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from spark_events.diagnosis.issue import Issue
from spark_events.diagnosis.rdds.fitted_again import FittedAgain

S = 1_000
WORDS = ("map at Word2Vec.scala:190", "mapPartitions at Word2Vec.scala:450")
EVALUATED = ("map at BinaryClassificationMetrics.scala:50", "collect at AreaUnderCurve.scala:44")


def told(stages: Iterable[str], rows: Sequence[int] = (10_000,)) -> Issue | None:
    """Return what is told last of stages of 3 s; the fits read so many rows, one after the other, again and again."""
    fitted, issue, number = FittedAgain(), None, 0
    for stage in stages:
        issue = fitted.take(stage, rows[number % len(rows)], lambda: 3 * S) or issue
        number += stage == EVALUATED[-1]
    return issue


def test_a_pipeline_that_is_tuned() -> None:
    """Two folds of three sets of parameters: each fits two stages of 3 s again, of which one would do."""
    issue = told([*WORDS, "treeAggregate at RDDLossFunction.scala:61", *EVALUATED] * 6)
    assert issue is not None
    assert (issue.kind, issue.lost_ms) == ("recomputation", 5 * 2 * 3 * S)
    assert issue.sentence.startswith("features (Word2Vec) are fitted 6 times, 36.0 s in all")
    assert "tune the model alone" in issue.advice


@pytest.mark.parametrize(
    "stages",
    [
        [*WORDS, *EVALUATED * 6],
        [*WORDS * 3, *EVALUATED * 6],
        [*WORDS * 6],
        [*WORDS, *EVALUATED] * 3,
        [*("collect at StringIndexer.scala:204", *EVALUATED) * 6],
        ["count at features.py:12", *EVALUATED] * 6,
        [*WORDS * 40, *EVALUATED * 6],
    ],
    ids=[
        "features are fitted once",
        "more rarely than models",
        "no model is evaluated",
        "three times",
        "of which a pipeline has one for each column",
        "stages of the program",
        "far more often than models",
    ],
)
def test_what_is_no_tuning_of_features(stages: list[str]) -> None:
    assert told(stages) is None


@pytest.mark.parametrize(
    ("rows", "is_told"),
    [
        ([6_000, 6_100], True),
        ([6_000, 6_100, 6_050, 5_900, 6_200, 6_020], False),
        ([40], False),
    ],
    ids=["each of two folds, again and again", "one shop after the other", "sums of partitions"],
)
def test_the_same_data_or_others(rows: list[int], is_told: bool) -> None:
    """A program may need features of each of its shops, and evaluate a model of each."""
    assert (told([*WORDS, *EVALUATED] * 6, rows) is not None) is is_told
