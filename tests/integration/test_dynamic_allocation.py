"""Executors that come when tasks wait and go when they are idle, with Spark's dynamic allocation."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from tests.support.applications import App, AppRun, cli
from tests.support.executors import losses, losses_without_memory, observed, removed, replay, value
from tests.support.file_log import file_events, statuses
from tests.support.paths import APPS
from tests.support.waiting import free_port, http_get

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
MOST = 3
ROUNDS = 2
OF_ALL = "spark_application_executor_heap_used"
LIVE = "spark_application_executors{"
ADDED = "spark_application_executors_added_total"
COLLECTIONS = "spark_application_executor_gc_count_total"


def with_series(metrics: str) -> set[str]:
    """Return the executors that have metrics of their own."""
    of_executors = re.findall(r'^spark_executor_\w+{[^}]*executor_id="(\d+)"', metrics, re.MULTILINE)
    return set(of_executors)


class Scaling:
    """The application that has had three executors twice, and in between the fewest that are allowed.

    Attributes:
        least: how many executors are kept.
        reason: why the others go, in one word.
        up: its metrics in each round, when all executors have come and have been measured.
        idle: after each round, as soon as those that it does not need are gone.
        quiet: after each round, when the series of those have left.
        live, replayed: both accounts of its events.
    """

    def __init__(self, folder: Path, least: int, reason: str) -> None:
        conf, self._url = observed(folder)
        self.least, self.reason = least, reason
        conf = {
            **conf,
            "spark.metrics.ended.retention": "8s",
            "spark.metrics.executors.sink.port": str(free_port()),
            "spark.metrics.conf.executor.sink.sparkEvents.period": "1",
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": str(least),
            "spark.dynamicAllocation.maxExecutors": str(MOST),
            "spark.dynamicAllocation.executorIdleTimeout": "2s",
            "spark.decommission.enabled": str(reason == "decommissioned").lower(),
        }
        command = cli(
            "run",
            "--master",
            f"local-cluster[{MOST},1,512]",
            str(APPS / "scaling.py"),
            str(folder),
            str(ROUNDS),
        )
        self._app = App(command, conf, folder)
        self.up: list[str] = []
        self.idle: list[str] = []
        self.quiet: list[str] = []
        for number in range(ROUNDS):
            (folder / f"begin-{number}").touch()
            self.up.append(self._metrics_when(self._all_measured, "all executors have come"))
            (folder / f"over-{number}").touch()
            self.idle.append(self._metrics_when(self._fewest, "those that are idle are gone"))
            self.quiet.append(self._metrics_when(self._no_dead_series, "their series have left"))
        (folder / "go").touch()
        self.run: AppRun = self._app.end()
        self.live = file_events(folder / "live")
        self.replayed = replay(folder / "logs", folder / "replayed")

    def _metrics_when(self, condition: Callable[[str], bool], what: str) -> str:
        """Return the metrics for which a condition holds first."""
        scrapes = [""]

        def holds() -> bool:
            scrapes[0] = http_get(self._url)
            return condition(scrapes[0])

        self._app.wait_for(holds, what)
        return scrapes[0]

    def _all_measured(self, metrics: str) -> bool:
        return value(metrics, LIVE) == MOST == len(with_series(metrics))

    def _fewest(self, metrics: str) -> bool:
        return value(metrics, LIVE) == self.least

    def _no_dead_series(self, metrics: str) -> bool:
        return len(with_series(metrics)) == self.least


@pytest.fixture(
    scope="module", params=[(0, "killed_by_driver"), (1, "decommissioned")], ids=lambda param: param[1]
)
def scaling(java: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scaling:
    with pytest.MonkeyPatch.context() as patch:
        # Where a cluster on this machine finds the scripts to start executors with.
        patch.setenv("SPARK_HOME", os.path.dirname(pyspark.__file__))
        return Scaling(tmp_path_factory.mktemp("scaling"), *request.param)


def test_they_are_counted_as_they_come_and_go(scaling: Scaling) -> None:
    """By why they go, which may be a second later: nobody needed them any longer."""
    passing = MOST - scaling.least
    for number in range(ROUNDS):
        assert value(scaling.up[number], ADDED) == MOST + number * passing
        assert removed(scaling.up[number]) == ({scaling.reason: number * passing} if number else {})
        assert removed(scaling.quiet[number]) == {scaling.reason: (number + 1) * passing}
    assert value(scaling.quiet[-1], ADDED) == MOST + (ROUNDS - 1) * passing


def test_to_go_for_idleness_is_no_failure(scaling: Scaling) -> None:
    lost = losses(scaling.live)
    assert len(lost) == ROUNDS * (MOST - scaling.least)
    assert {attributes["reason"] for attributes in lost.values()} == {scaling.reason}
    assert not any("exitCode" in attributes or attributes["runningTasks"] for attributes in lost.values())
    assert {event["severityText"] for event in scaling.live} == {"INFO"}
    assert statuses(scaling.live, "application")[-1] == "FINISHED"
    assert scaling.run.code == 0, scaling.run.err[-3000:]


def test_series_leave_some_time_after_their_executors(scaling: Scaling) -> None:
    """Those of an executor that is kept stay; the next round's executors are others."""
    for up, idle, quiet in zip(scaling.up, scaling.idle, scaling.quiet, strict=True):
        assert with_series(up) >= with_series(idle) > with_series(quiet)
    kept = with_series(scaling.quiet[0])
    assert len(kept) == scaling.least
    assert with_series(scaling.up[0]) & with_series(scaling.up[1]) == kept


def test_what_all_have_used_outlives_them(scaling: Scaling) -> None:
    """The highest of all so far and what adds up never fall; sums are of those that live."""
    rounds = zip(scaling.up, scaling.idle, scaling.quiet, strict=True)
    in_order = [metrics for of_round in rounds for metrics in of_round]
    for name in (f"{OF_ALL}_peak_bytes", COLLECTIONS, "spark_application_executor_gc_time_seconds_total"):
        values = [value(metrics, name) for metrics in in_order]
        assert values[0] > 0, name
        assert values == sorted(values), name
    assert value(in_order[-1], COLLECTIONS) > value(scaling.up[0], COLLECTIONS)
    for metrics in scaling.up:
        total, highest, median = (
            value(metrics, f"{OF_ALL}_{name}_bytes") for name in ("sum", "max", "median")
        )
        assert 0 < median <= highest < total
        assert highest <= value(metrics, f"{OF_ALL}_peak_bytes")
    for metrics in scaling.quiet:
        total, highest = (value(metrics, f"{OF_ALL}_{name}_bytes") for name in ("sum", "max"))
        assert total == highest
        assert (total > 0) is (scaling.least > 0), "of no executor, there is no sum"


def test_a_replay_gives_the_same(scaling: Scaling) -> None:
    live = losses_without_memory(scaling.live)
    assert losses_without_memory(scaling.replayed) == live != {}
