"""The daemon of Python workers: a mistake in it would fail every Python task."""

from __future__ import annotations

import pytest

from spark_events.configuration.check import check

KEY = "spark.python.daemon.module"
OURS = {KEY: "spark_events.task.daemon"}


@pytest.mark.parametrize("module", ["spark_events.task.deamon", "spark_events.tasks.daemon"])
def test_one_of_ours_that_there_is_not(module: str) -> None:
    problem = f"{KEY}: {module!r} is not a module; did you mean 'spark_events.task.daemon'?"
    assert problem in check({KEY: module}, False).problems


@pytest.mark.parametrize("conf", [{}, OURS, {KEY: "my.daemon"}, {KEY: "pyspark.daemon"}])
def test_one_that_is_right(conf: dict[str, str]) -> None:
    result = check(conf, False)
    assert [text for text in (*result.problems, *result.warnings) if "daemon" in text] == []


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        (
            {"spark.events.task.enabled": "false"},
            "has nothing to do, because spark.events.task.enabled is false",
        ),
        ({"spark.python.use.daemon": "false"}, "does not run, because spark.python.use.daemon is false"),
        ({"spark.events.task.ship-module": "true"}, "spark.events.task.ship-module comes too late for it"),
    ],
)
def test_one_that_goes_with_nothing_else(conf: dict[str, str], said: str) -> None:
    (warning,) = check({**OURS, **conf}, False).warnings
    assert warning.startswith(f"{KEY}: spark_events.task.daemon ")
    assert said in warning
