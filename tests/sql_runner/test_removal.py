"""Queries that are taken out, also where their application is gone."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.api import ConfigError
from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.placement import HostKind, Placement
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import DeployedQuery, Meta, write_deployed
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.host_files import RUN, Order, write_orders
from spark_events.sql_runner.store.savepoints import all_savepoints
from tests.support.query_shop import HOST, Bench
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.extended]


@pytest.fixture
def away(bench: Bench) -> Bench:
    """Give a bench with a query whose application is gone."""
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
    assert bench.status().state == "GONE"
    return bench


def stays_stopped(bench: Bench) -> None:
    """Its application comes back, and does not start it: at most, what was is told again."""
    before = bench.status().batch
    with bench.hosting():
        link = bench.workspace.link(HOST)
        wait_until(lambda: link.snapshot().status_of("cheap"), "the order is answered")
        bench.wait_state("CANCELED")
        assert bench.status().batch in (None, before)
        assert not bench.spark.streams.active


def test_a_stop_without_its_application_is_a_wish(away: Bench) -> None:
    result = away.workspace.stop("cheap", savepoint=True)

    assert result is not None
    assert not result.failed
    assert "session 'default' is not running; when it is back, it does not start the query" in result.text
    assert "makes the savepoint" in result.text
    row = away.status()
    assert (row.state, row.wanted, row.is_well) == ("CANCELED", False, True)
    assert away.workspace.stop("cheap", savepoint=True) is None
    stays_stopped(away)
    assert all_savepoints(away.store, "cheap", 1)
    assert read_history(away.store, "cheap")[-1].result == result.text


def test_prune_without_its_application_says_so(away: Bench) -> None:
    other = away.shop.manifest("other", target_table=f"{away.shop.prefix}other")
    (_, planned) = away.plan(other, prune=True)

    assert planned.decision.action is Action.STOP
    assert "session 'default' is not running" in planned.decision.reason
    with away.workspace.deploying() as lease:
        (result,) = away.workspace.deployer(lease, None).deploy_all([planned])
    assert not result.failed
    assert "when it is back, it does not start the query" in result.text
    stays_stopped(away)


def test_a_query_that_has_failed_for_good_can_be_stopped(bench: Bench) -> None:
    """Otherwise it starts again with its application."""
    with bench.hosting():
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest(sparkProperties={"spark.events.sql.restart-strategy.type": "none"}))
        bench.shop.wait_ids(bench.shop.cheap_ids())
        (bench.shop.folder / "out").rename(bench.shop.folder / "away")
        (bench.shop.folder / "out").write_text("no folder")
        bench.shop.order(1)
        bench.wait_state("FAILED")

        result = bench.workspace.stop("cheap", savepoint=False)

        assert result is not None
        assert not result.failed
        assert bench.status().is_well
    stays_stopped(bench)


def test_the_query_of_a_dead_application_is_stopped_and_forgotten(bench: Bench) -> None:
    host = layout.APPLICATION + "cheap"
    manifest = bench._read((bench.shop.manifest(),)).by_name["cheap"]
    deployed = DeployedQuery(manifest, Meta.new("cheap", 1, host, "", ""))
    write_deployed(bench.store, deployed)
    write_orders(bench.store, host, {"cheap": Order(deployed.meta.deployment, RUN, deployed.values())})
    bench.placement = Placement(mode=HostKind.APPLICATION)
    assert bench.status().state == "GONE"

    result = bench.workspace.stop("cheap", savepoint=False)

    assert result is not None
    assert "application 'cheap' is gone already" in result.text
    bench.workspace.forget("cheap", state=False)
    assert bench.workspace.rows() == []
    assert bench.store.sizes(layout.host(host)) == {}


def test_what_runs_is_not_forgotten(away: Bench) -> None:
    with pytest.raises(ConfigError, match="'cheap': is to run; stop it first with"):
        away.workspace.forget("cheap", state=False)
    with pytest.raises(ConfigError, match="no such query"):
        away.workspace.forget("nobody", state=False)
    assert [row.name for row in away.workspace.rows()] == ["cheap"]


@pytest.mark.parametrize("state", [False, True])
def test_what_is_forgotten_leaves_its_state_or_not(away: Bench, state: bool) -> None:
    away.workspace.stop("cheap", savepoint=False)
    away.workspace.forget("cheap", state=state)

    assert away.workspace.rows() == []
    left: Any = {path.split("/")[0] for path in away.store.sizes("") if "cheap" in path}
    assert left == (set() if state else {"checkpoints", "history"})
    (planned,) = away.plan(away.shop.manifest())
    assert planned.decision.action is Action.START
    assert planned.decision.version == (1 if state else 2)


def test_what_was_left_can_be_removed(away: Bench) -> None:
    """By a query that was forgotten without it, or that could never be deployed; and nothing else can."""
    away.workspace.stop("cheap", savepoint=False)
    away.workspace.forget("cheap", state=False)
    for name in ("", ".", "..", "cheap/..", "nobody", "cheap/1"):
        with pytest.raises(ConfigError, match="no such query"):
            away.workspace.forget(name, state=True)
    with pytest.raises(ConfigError, match="no such query"):
        away.workspace.forget("cheap", state=False)
    before = set(away.store.sizes(""))

    away.workspace.forget("cheap", state=True)

    gone = before - set(away.store.sizes(""))
    assert {path.split("/")[0] for path in gone} >= {"checkpoints", "history"}
    assert all("/cheap/" in path or path.startswith("locks/") for path in gone)
    assert not any("/cheap/" in path for path in away.store.sizes(""))
