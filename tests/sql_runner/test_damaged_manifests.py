"""A manifest in the store that was damaged: the next deployment heals it, or says how, and deploys all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.store import layout
from tests.support.query_shop import Bench
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark
DAMAGED = b"\xff\xfe\xff"


@pytest.fixture
def hosted(bench: Bench) -> Iterator[Bench]:
    """Give a bench where the cheap orders run."""
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
        yield bench


def runs_whole(bench: Bench, version: int = 1) -> None:
    bench.shop.order(1)
    bench.shop.wait_ids(bench.shop.cheap_ids(), version=version)
    row = bench.status()
    assert (row.state, row.version, row.is_well) == ("RUNNING", version, True), row
    assert bench.meta().query_version == version


@pytest.mark.parametrize(
    ("keys", "action", "version"),
    [
        pytest.param({}, Action.RECORD, 1, id="unchanged"),
        pytest.param(
            {"trigger": {"processing-time": "200 milliseconds"}}, Action.RESTART, 1, id="configured"
        ),
        pytest.param(
            {"sql": "SELECT id, price FROM {}orders WHERE price < 5 AND id > -7"}, Action.REPLACE, 2, id="new"
        ),
    ],
)
def test_of_a_query_that_runs(hosted: Bench, keys: dict[str, Any], action: Action, version: int) -> None:
    if "sql" in keys:
        keys = {"sql": keys["sql"].format(hosted.shop.prefix)}
    hosted.store.write(layout.manifest("cheap"), DAMAGED)
    (planned,) = hosted.plan(hosted.shop.manifest(**keys))
    (result,) = hosted.deploy(hosted.shop.manifest(**keys))

    assert (planned.decision.action, result.action, result.failed) == (action, action, False), result.text
    assert any("manifests/cheap.yaml" in warning for warning in planned.warnings)
    runs_whole(hosted, version)


def test_of_a_query_that_was_stopped(hosted: Bench) -> None:
    hosted.workspace.stop("cheap", savepoint=False)
    hosted.store.write(layout.manifest("cheap"), DAMAGED)
    (result,) = hosted.deploy(hosted.shop.manifest())

    assert (result.action, result.failed) == (Action.RESUME, False), result.text
    runs_whole(hosted)


def test_of_a_query_without_an_order_keeps_no_other_from_being_deployed(hosted: Bench) -> None:
    hosted.store.write(layout.manifest("other"), DAMAGED)
    other = hosted.shop.manifest("other", target_table=f"{hosted.shop.prefix}other")
    changed = hosted.shop.manifest(trigger={"processing-time": "200 milliseconds"})
    results = {result.name: result for result in hosted.deploy(changed, other)}

    assert (results["cheap"].action, results["cheap"].failed) == (Action.RESTART, False)
    assert results["other"].failed
    assert "manifests/other.yaml" in results["other"].text
    assert "forget other" in results["other"].text
    hosted.workspace.forget("other", state=False)
    (planned, again) = hosted.plan(changed, other)
    assert (planned.decision.action, again.decision.action) == (Action.NOTHING, Action.START)


def test_without_a_manifest_is_named_by_prune(hosted: Bench) -> None:
    hosted.store.write(layout.manifest("other"), DAMAGED)
    results = {result.name: result for result in hosted.deploy(hosted.shop.manifest(), prune=True)}

    assert (results["cheap"].action, results["other"].failed) == (Action.NOTHING, True)
    assert "manifests/other.yaml" in results["other"].text


def test_of_a_query_that_could_not_start_because_of_it(bench: Bench) -> None:
    """Without its record, nobody knows whether there should be a checkpoint."""
    bench.shop.order(1)
    (given,) = bench.deploy(bench.shop.manifest())
    assert "has never run" in given.text
    bench.store.write(layout.manifest("cheap"), DAMAGED)
    with bench.hosting():
        wait_until(lambda: bench.status().restarts > 0, "it does not start")
        (result,) = bench.deploy(bench.shop.manifest())

        assert (result.action, result.failed) == (Action.RECORD, False), result.text
        runs_whole(bench)
