"""A manifest in the store that was damaged: the next deployment heals it, or says how, and deploys all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.steps import Steps
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.history import read_history
from tests.support.query_shop import Bench
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.extended]
DAMAGED = b"\xff\xfe\xff"


class Killed(Exception):  # noqa: N818 - says what happened
    """Stands for SIGKILL: nothing of the deployer runs after it."""


def killed(*_: Any, **__: Any) -> None:
    raise Killed


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


def test_of_a_query_that_was_stopped_before_a_bad_version_failed(hosted: Bench) -> None:
    """The bad version takes its order, and gives it back."""
    bad = f"SELECT id, raise_error('no such price') + price AS price FROM {hosted.shop.prefix}orders"
    hosted.workspace.stop("cheap", savepoint=True)
    (failed,) = hosted.deploy(hosted.shop.manifest(sql=bad))
    hosted.store.write(layout.manifest("cheap"), DAMAGED)
    (result,) = hosted.deploy(hosted.shop.manifest())

    assert failed.failed
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


def test_of_a_query_that_is_pruned(hosted: Bench) -> None:
    """When its manifest is back, it goes on from its savepoint."""
    hosted.store.write(layout.manifest("cheap"), DAMAGED)
    (stopped,) = hosted.deploy(prune=True)
    (result,) = hosted.deploy(hosted.shop.manifest())

    assert (stopped.action, stopped.failed) == (Action.STOP, False), stopped.text
    assert (result.action, result.failed) == (Action.RESUME, False), result.text
    runs_whole(hosted)


@pytest.mark.parametrize("has_savepoint", [True, False])
def test_of_a_query_whose_checkpoint_is_gone_too(bench: Bench, has_savepoint: bool) -> None:
    """In an empty checkpoint it would begin anew, and write everything again without a word."""
    manifest = bench.shop.manifest()
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(manifest)
        bench.shop.wait_ids(bench.shop.cheap_ids())
        if has_savepoint:
            bench.stop("cheap", savepoint=True)
            bench.deploy(manifest)
        saved = bench.shop.cheap_ids()
        bench.shop.order(1)
        bench.shop.wait_ids(bench.shop.cheap_ids())
    written = bench.shop.ids()
    bench.store.delete(bench.meta().checkpoint)
    bench.store.write(layout.manifest("cheap"), DAMAGED)
    with bench.hosting():
        wait_until(lambda: bench.status().restarts > 0, "it does not start")
        (result,) = bench.deploy(manifest)

        if has_savepoint:
            assert (result.action, result.failed) == (Action.RESUME, False), result.text
            (entry,) = read_history(bench.store, "cheap")[-1:]
            assert "1 later micro-batches: their rows are written again" in entry.reason
            bench.shop.order(1)
            twice = sorted([*bench.shop.cheap_ids(), *(set(written) - set(saved))])
            bench.shop.wait_ids(twice)
        else:
            assert (result.action, result.failed) == (Action.FAIL, True), result.text
            assert "there is no savepoint or checkpoint of version 1" in result.text
            assert bench.shop.ids() == written
            (result,) = bench.deploy(manifest, clean=True)
            assert not result.failed, result.text
            runs_whole(bench, version=2)


def test_a_query_whose_checkpoint_is_gone_too_does_not_begin_anew_when_its_deployer_is_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its application tries to start it again and again meanwhile."""
    manifest = bench.shop.manifest()
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(manifest)
        bench.shop.wait_ids(bench.shop.cheap_ids())
        bench.stop("cheap", savepoint=True)
        bench.deploy(manifest)
    bench.store.delete(bench.meta().checkpoint)
    bench.store.write(layout.manifest("cheap"), DAMAGED)
    with bench.hosting():
        wait_until(lambda: bench.status().restarts > 0, "it does not start")
        with monkeypatch.context() as patch:
            patch.setattr(Steps, "stop", killed)
            with pytest.raises(Killed):
                bench.deploy(manifest)
        wait_until(lambda: bench.status().state in ("FAILED", "RUNNING"), "it was tried again")
        assert bench.status().state == "FAILED"
        (result,) = bench.deploy(manifest)

        assert (result.action, result.failed) == (Action.RESUME, False), result.text
        runs_whole(bench)
