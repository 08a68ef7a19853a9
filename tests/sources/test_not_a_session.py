"""``attach`` of what is neither a session nor a context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyspark
import pytest
from pyspark.sql.connect.dataframe import DataFrame

import spark_events


class EachName:
    """Has an attribute of each name, as a Column has."""

    def __getattr__(self, name: str) -> EachName:
        return self


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (lambda: object.__new__(DataFrame), "DataFrame"),
        (EachName, "EachName"),
        (lambda: None, "NoneType"),
        (lambda: pyspark.SparkContext, "type"),
        (lambda: "local[1]", "str"),
    ],
)
def test_it_says_what_it_takes(given: Callable[[], Any], name: str) -> None:
    """It cannot know whether the session of a DataFrame is meant."""
    with pytest.raises(TypeError, match=f"takes a SparkSession or a SparkContext, and was given: {name}$"):
        spark_events.attach(given())
