"""Deployments with real queries: what starts, what goes on from where, and that each row comes once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import read_deployed
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.host_files import Order
from spark_events.sql_runner.store.savepoints import all_savepoints
from tests.support.query_shop import COLUMNS, HOST, Bench, Shop
from tests.support.servers import Hdfs
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark
FASTER = {"processing-time": "200 milliseconds"}


@pytest.fixture
def hosted(bench: Bench) -> Iterator[Bench]:
    with bench.hosting():
        yield bench


def actions(results: Any) -> list[tuple[Action, bool]]:
    return [(result.action, result.failed) for result in results]


def test_a_new_query_starts_clean_and_tells_of_itself_in_each_row(hosted: Bench) -> None:
    hosted.shop.order(2)
    properties = {"spark.sql.session.timeZone": "America/New_York"}

    results = hosted.deploy(hosted.shop.manifest(description="below 5", sparkProperties=properties))

    assert actions(results) == [(Action.START, False)]
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    row, meta = hosted.shop.rows()[0], hosted.meta()
    assert row["__query_name"] == "cheap"
    assert row["__query_description"] == "below 5"
    assert row["__query_id"] == meta.query_id
    assert row["__query_version"] == meta.query_version == 1
    written = datetime.fromisoformat(row["__query_create_timestamp"])
    assert written == datetime.fromisoformat(meta.query_create_timestamp + "+00:00")
    assert written <= datetime.fromisoformat(row["__create_timestamp"])
    (query,) = [each for each in active(hosted) if each.name == "cheap"]
    assert str(query.id) == meta.query_id


def active(bench: Bench) -> list[Any]:
    """Return all streaming queries of the driver, whichever session has started them."""
    jvm = bench.spark._jsparkSession.sharedState().activeStreamingQueries().values()
    return [_Query(each) for each in jvm]


class _Query:
    def __init__(self, java: Any) -> None:
        self.name, self.id, self.stop = java.name(), java.id(), java.stop


def test_what_runs_and_has_not_changed_is_left_alone(hosted: Bench) -> None:
    hosted.deploy(hosted.shop.manifest())
    order = hosted.meta().deployment
    text = hosted.shop.manifest()["sql"].replace("SELECT", "-- the cheap ones\nselect ").replace("<", " <\n ")

    results = hosted.deploy(hosted.shop.manifest(sql=text))

    assert actions(results) == [(Action.NOTHING, False)]
    assert hosted.meta().deployment == order
    found = read_deployed(hosted.store, "cheap")
    assert found is not None
    assert found.manifest.sql == text, "the store has the team's text"


def test_another_configuration_goes_on_from_a_savepoint(hosted: Bench) -> None:
    hosted.shop.order(3)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    before = hosted.meta()

    (result,) = hosted.deploy(hosted.shop.manifest(trigger=FASTER))

    assert (result.action, result.failed) == (Action.RESTART, False)
    (savepoint,) = all_savepoints(hosted.store, "cheap", 1)
    assert result.savepoint == savepoint.path
    assert savepoint.path.startswith("savepoints/cheap/1/savepoint-")
    assert savepoint.batch == 2
    copied = hosted.store.sizes(savepoint.path)
    assert {"metadata", "offsets/2", "commits/2", layout.SAVEPOINT_COMPLETE} <= set(copied)
    assert (savepoint.files, savepoint.size) == (len(copied) - 1, sum(copied.values()) - copied["_metadata"])
    after = hosted.meta()
    assert (after.query_id, after.query_version) == (before.query_id, 1)
    hosted.shop.order(2)
    hosted.shop.wait_ids(hosted.shop.cheap_ids())


def test_another_query_is_a_new_version_with_a_clean_state(hosted: Bench) -> None:
    """Spark's file sink alone would take the first micro-batches of the new version as written."""
    hosted.shop.order(3)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    first = hosted.meta()
    changed = hosted.shop.manifest(sql=f"SELECT id, price FROM {hosted.shop.prefix}orders WHERE price >= 5")

    (result,) = hosted.deploy(changed)

    assert (result.action, result.version, result.failed) == (Action.REPLACE, 2, False)
    assert result.savepoint.startswith("savepoints/cheap/1/")
    assert hosted.meta().query_id != first.query_id
    hosted.shop.order(1)
    dear = [number for number in range(40) if number % 10 >= 5]
    hosted.shop.wait_ids(dear, version=2)
    assert hosted.shop.ids(version=1) == [number for number in range(30) if number % 10 < 5]
    # And it goes on after a restart: its batches keep their places.
    hosted.deploy({**changed, "trigger": FASTER})
    hosted.shop.order(1)
    hosted.shop.wait_ids([*dear, *range(45, 50)], version=2)


def test_a_stopped_query_goes_on_from_where_it_was(hosted: Bench) -> None:
    hosted.shop.order(2)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())

    stopped = hosted.stop("cheap", savepoint=True)

    assert not stopped.failed
    assert hosted.status().state == "CANCELED"
    hosted.shop.order(2)
    (planned,) = hosted.plan(hosted.shop.manifest())
    assert planned.decision.action is Action.RESUME
    assert actions(hosted.deploy(hosted.shop.manifest())) == [(Action.RESUME, False)]
    hosted.shop.wait_ids(hosted.shop.cheap_ids())


@pytest.mark.extended
def test_where_the_checkpoint_is_gone_the_savepoint_is_copied_back(hosted: Bench) -> None:
    hosted.shop.order(2)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    hosted.stop("cheap", savepoint=True)
    before = hosted.meta().checkpoint
    hosted.store.delete(before)
    hosted.shop.order(1)

    assert actions(hosted.deploy(hosted.shop.manifest())) == [(Action.RESUME, False)]

    assert hosted.meta().checkpoint != before
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    assert layout.SAVEPOINT_COMPLETE not in hosted.store.names(hosted.meta().checkpoint)


@pytest.mark.extended
@pytest.mark.thorough
def test_a_store_in_hdfs(shop: Shop, session: Any, hdfs: Hdfs) -> None:
    """What is deployed, Spark's checkpoints and their copies are there: Spark by RPC, the runner by WebHDFS."""
    shop.store_url = f"{hdfs.url}/{shop.prefix}queries"
    Bench(shop, session).live_through_savepoints()


def test_a_savepoint_that_is_damaged_is_not_gone_on_from(hosted: Bench) -> None:
    hosted.shop.order(2)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    savepoint = hosted.stop("cheap", savepoint=True).savepoint
    hosted.store.delete(hosted.meta().checkpoint)
    hosted.store.delete(f"{savepoint}/commits/1")

    (result,) = hosted.deploy(hosted.shop.manifest())

    assert (result.action, result.failed) == (Action.FAIL, True)
    assert f"; savepoint {savepoint} is damaged: it was " in result.text
    assert hosted.store.names("checkpoints/cheap/1") == [], "nothing of it is left to go on from"


def test_without_any_state_it_is_an_error_until_a_clean_one_is_asked_for(hosted: Bench) -> None:
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    hosted.stop("cheap")
    hosted.store.delete(hosted.meta().checkpoint)

    (failed,) = hosted.deploy(hosted.shop.manifest())

    assert (failed.action, failed.failed) == (Action.FAIL, True)
    assert "no savepoint or checkpoint of version 1" in failed.text
    (clean,) = hosted.deploy(hosted.shop.manifest(), clean=True)
    assert (clean.action, clean.version, clean.failed) == (Action.START, 2, False)
    hosted.shop.wait_ids(hosted.shop.cheap_ids(), version=2)


def test_a_stop_waits_for_the_micro_batch(hosted: Bench) -> None:
    """What is stopped in the middle of a batch would write that batch again."""
    hosted.shop.order(1)
    code = f"""
import time
from pyspark.sql.functions import udf

@udf("int")
def slowly(number):
    time.sleep(0.3)
    return number

execution_output = spark.readStream.table("{hosted.shop.prefix}orders").select(slowly("id").alias("id"), "price")
"""
    hosted.deploy(hosted.shop.manifest(code=code))
    hosted.wait_batch(0)
    hosted.shop.order(1)
    offsets = f"{hosted.meta().checkpoint}/offsets"
    wait_until(lambda: "1" in hosted.store.names(offsets), "batch 1 has begun")

    result = hosted.stop("cheap", savepoint=True)

    assert not result.failed
    (savepoint,) = all_savepoints(hosted.store, "cheap", 1)
    assert savepoint.batch == 1
    assert "1" in hosted.store.names(f"{savepoint.path}/commits")


def test_a_deployment_that_fails_leaves_the_query_as_it_was(hosted: Bench) -> None:
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    before = hosted.meta()
    broken = hosted.shop.manifest(
        sql=f"SELECT id, raise_error('no such price') + price AS price FROM {hosted.shop.prefix}orders"
    )

    (result,) = hosted.deploy(broken)

    assert (result.action, result.failed) == (Action.REPLACE, True)
    assert "no such price" in result.text
    assert "version 1 runs again as it was deployed" in result.text
    assert hosted.meta().query_version == 1
    assert hosted.meta().query_id == before.query_id
    hosted.shop.order(1)
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    # Its version is not used again: rows of it may be in the table.
    (planned,) = hosted.plan(broken)
    assert planned.decision.version == 3


def test_a_new_query_that_fails_is_not_deployed(hosted: Bench) -> None:
    hosted.shop.order(1)

    (result,) = hosted.deploy(
        hosted.shop.manifest(
            sql=f"SELECT id, raise_error('x') + price AS price FROM {hosted.shop.prefix}orders"
        )
    )

    assert result.failed
    assert read_deployed(hosted.store, "cheap") is None
    assert not [query for query in active(hosted) if query.name == "cheap"]
    assert [entry.result for entry in read_history(hosted.store, "cheap")] == [result.text]


def test_a_query_that_fails_is_restarted_and_stops_no_other(hosted: Bench) -> None:
    hosted.shop.order(1)
    other = hosted.shop.manifest("other", target_table=f"{hosted.shop.prefix}other")
    hosted.deploy(hosted.shop.manifest(), other)
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    hosted.shop.wait_ids(hosted.shop.cheap_ids(), "other")
    # Its target cannot be written for a while.
    (hosted.shop.folder / "out").rename(hosted.shop.folder / "away")
    (hosted.shop.folder / "out").write_text("no folder")

    hosted.shop.order(1)
    restarting = hosted.wait_state("RESTARTING")

    assert restarting.error
    hosted.shop.wait_ids(hosted.shop.cheap_ids(), "other")
    assert hosted.status("other").state == "RUNNING"
    (hosted.shop.folder / "out").unlink()
    (hosted.shop.folder / "away").rename(hosted.shop.folder / "out")
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    wait_until(lambda: hosted.status().recovered, "it has recovered")
    recovered = hosted.status()
    assert recovered.restarts >= 1
    assert recovered.error_ms is not None
    assert recovered.batch_ms is not None
    assert recovered.since_ms is not None
    assert recovered.error_ms <= recovered.batch_ms
    assert "=== Streaming Query ===" not in recovered.error
    # Of the write that failed, or of a restart that looked first.
    reasons = ("ParentNotDirectory", "FileAlreadyExists", "does not exist", "no longer has the micro-batches")
    assert any(reason in recovered.error for reason in reasons)


@pytest.mark.extended
def test_a_query_that_somebody_else_stops_is_restarted(hosted: Bench) -> None:
    """It has no end, so it has not come to it."""
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    (query,) = [query for query in active(hosted) if query.name == "cheap"]
    query.stop()
    hosted.shop.order(1)
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    wait_until(lambda: hosted.status().recovered, "it has recovered")
    assert hosted.status().state == "RUNNING"
    assert hosted.status().restarts == 1
    assert "the query ended although nobody has asked for it" in hosted.status().error


@pytest.mark.extended
def test_attempts_are_counted(hosted: Bench) -> None:
    properties = {
        "spark.events.sql.restart-strategy.fixed-delay.delay": "50ms",
        "spark.events.sql.restart-strategy.fixed-delay.attempts": "2",
    }
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest(sparkProperties=properties))
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    (hosted.shop.folder / "out").rename(hosted.shop.folder / "away")
    (hosted.shop.folder / "out").write_text("no folder")
    hosted.shop.order(1)

    failed = hosted.wait_state("FAILED")

    assert failed.restarts == 2
    assert not failed.is_well
    (hosted.shop.folder / "out").unlink()
    (hosted.shop.folder / "away").rename(hosted.shop.folder / "out")
    assert actions(hosted.deploy(hosted.shop.manifest(sparkProperties=properties))) == [
        (Action.RESUME, False)
    ]
    hosted.shop.wait_ids(hosted.shop.cheap_ids())


@pytest.mark.extended
def test_queries_whose_manifest_is_gone_are_stopped_with_prune_alone(hosted: Bench) -> None:
    hosted.shop.order(1)
    other = hosted.shop.manifest("other", target_table=f"{hosted.shop.prefix}other")
    hosted.deploy(hosted.shop.manifest(), other)

    assert actions(hosted.deploy(other)) == [(Action.NOTHING, False)]
    assert hosted.status().state == "RUNNING"
    pruned = hosted.deploy(other, prune=True)

    assert actions(pruned) == [(Action.NOTHING, False), (Action.STOP, False)]
    assert hosted.status().state == "CANCELED"
    assert all_savepoints(hosted.store, "cheap", 1)
    assert actions(hosted.deploy(other, prune=True)) == [(Action.NOTHING, False)]
    # Where it comes back, so does its state.
    assert actions(hosted.deploy(other, hosted.shop.manifest())) == [
        (Action.NOTHING, False),
        (Action.RESUME, False),
    ]


@pytest.mark.extended
def test_code_is_changed_by_what_it_does(hosted: Bench) -> None:
    code = f"execution_output = spark.readStream.table('{hosted.shop.prefix}orders').select('id', 'price')\n"
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest(code=code))
    hosted.shop.wait_ids(list(range(10)))

    assert actions(hosted.deploy(hosted.shop.manifest(code=f"# all\n{code}\n"))) == [(Action.NOTHING, False)]
    assert actions(
        hosted.deploy(
            hosted.shop.manifest(
                code=code.replace("\n", ".limit(3)\n").replace(".limit(3)", ".where('id < 3')")
            )
        )
    ) == [(Action.REPLACE, False)]
    hosted.shop.wait_ids([0, 1, 2], version=2)


@pytest.mark.extended
def test_a_query_that_ends_by_itself_is_well(hosted: Bench) -> None:
    hosted.shop.order(2)
    once = hosted.shop.manifest(trigger={"available-now": True})

    assert actions(hosted.deploy(once)) == [(Action.START, False)]
    hosted.wait_state("FINISHED")
    assert hosted.status().is_well
    hosted.shop.order(1)
    assert actions(hosted.deploy(once)) == [(Action.RESUME, False)]
    hosted.shop.wait_ids(hosted.shop.cheap_ids())


def test_each_query_has_a_fair_pool(hosted: Bench) -> None:
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())

    pools = hosted.spark.sparkContext._jsc.sc().getAllPools()
    names = [pools.apply(index).name() for index in range(pools.size())]

    assert "cheap" in names


@pytest.mark.extended
def test_the_history_says_what_was_done_and_why(hosted: Bench) -> None:
    hosted.deploy(hosted.shop.manifest())
    hosted.deploy(hosted.shop.manifest(trigger=FASTER))
    hosted.stop("cheap")

    found = read_history(hosted.store, "cheap")

    assert [entry.action for entry in found] == ["start", "restart", "stop"]
    assert "trigger.processing-time: unset -> '200 milliseconds'" in found[1].reason
    assert found[1].savepoint.startswith("savepoints/cheap/1/")
    assert all(entry.result == "done" and "@" in entry.who for entry in found)


def test_secrets_are_not_in_a_reason(hosted: Bench) -> None:
    hosted.deploy(hosted.shop.manifest())
    properties = {"spark.hadoop.fs.s3a.secret.key": "hunter2-hunter2"}

    (planned,) = hosted.plan(hosted.shop.manifest(sparkProperties=properties))

    assert planned.decision.action is Action.RESTART
    assert "hunter2" not in planned.decision.reason
    assert "fs.s3a.secret.key: unset -> '******'" in planned.decision.reason


@pytest.mark.extended
def test_an_application_that_comes_back_goes_on(bench: Bench) -> None:
    bench.shop.order(1)
    with bench.hosting():
        bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
    assert bench.status().state == "GONE"
    with bench.hosting():
        idle = bench.wait_state("RUNNING")
        assert (idle.batch, idle.batch_ms is not None) == (0, True), "the checkpoint knows it"
    bench.shop.order(2)
    with bench.hosting():
        bench.shop.wait_ids(bench.shop.cheap_ids())
        assert actions(bench.deploy(bench.shop.manifest())) == [(Action.NOTHING, False)]


@pytest.mark.extended
def test_an_application_that_was_silent_too_long_stops_its_queries(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may run them by then: a store that it cannot reach is simulated. Their past is not forgotten."""
    from spark_events.sql_runner.host import host
    from spark_events.sql_runner.store.store import StoreError

    with bench.hosting(lease_ms=3_000):
        bench.shop.order(1)
        bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
        (bench.shop.folder / "out").rename(bench.shop.folder / "away")
        (bench.shop.folder / "out").write_text("no folder")
        bench.shop.order(1)
        bench.wait_state("RESTARTING")
        (bench.shop.folder / "out").unlink()
        (bench.shop.folder / "away").rename(bench.shop.folder / "out")
        bench.shop.wait_ids(bench.shop.cheap_ids())
        wait_until(lambda: bench.status().recovered, "it has recovered")
        before = bench.status()
        real = host.read_orders

        def fail(*_: Any) -> Any:
            raise StoreError("away")

        monkeypatch.setattr(host.Lease, "renew", fail)
        monkeypatch.setattr(host, "read_orders", fail)
        wait_until(
            lambda: not [query for query in active(bench) if query.name == "cheap"], "the query is stopped"
        )
        monkeypatch.undo()
        assert host.read_orders is real
        bench.shop.order(1)
        bench.shop.wait_ids(bench.shop.cheap_ids())
        after = bench.wait_state("RUNNING")
        assert (after.restarts, after.error, after.error_ms, after.recovered) == (
            before.restarts,
            before.error,
            before.error_ms,
            True,
        )


@pytest.mark.extended
def test_a_query_moves_to_another_application_with_its_state(hosted: Bench) -> None:
    """It must not run in both, even where its first deployment was broken off before it was written down."""
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest())
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    hosted.store.delete(layout.manifest("cheap"))
    other = Bench(hosted.shop, hosted.spark, "other")

    with other.hosting():
        (result,) = other.deploy(other.shop.manifest())

        assert (result.action, result.version, result.failed) == (Action.RESTART, 1, False)
        assert other.meta().host == "session-other"
        assert [query.name for query in active(hosted)].count("cheap") == 1
        other.shop.order(1)
        other.shop.wait_ids(other.shop.cheap_ids())


def test_an_order_that_is_not_understood_stops_no_other(hosted: Bench) -> None:
    """As another version of spark-events may give one."""
    hosted.shop.order(1)
    hosted.deploy(hosted.shop.manifest())
    link = hosted.workspace.link(HOST)
    deployed = {"name": "strange", "meta": {"unknown": 1}}

    link.give("strange", Order("x", "run", deployed))

    wait_until(lambda: link.snapshot().status_of("strange"), "the order is answered")
    found = link.snapshot().status_of("strange")
    assert found is not None
    assert found.state == "FAILED"
    assert "order x: its meta is not what a deployment writes" in found.error
    hosted.store.write(layout.orders(HOST), b"{")
    hosted.shop.order(1)
    hosted.shop.wait_ids(hosted.shop.cheap_ids())
    assert link.is_alive


def test_two_queries_into_one_folder_of_files_are_refused(hosted: Bench) -> None:
    results = hosted.deploy(hosted.shop.manifest("a"), hosted.shop.manifest("b"))

    assert actions(results) == [(Action.START, False), (Action.FAIL, True)]
    assert "Spark's file sink supports one query per folder" in results[1].text


@pytest.mark.extended
def test_queries_that_read_what_others_write_are_deployed_at_once(hosted: Bench) -> None:
    """Also where all are new, so that no query has made its folder yet, and in whatever order they come."""
    shop = hosted.shop
    hosted.define(shop.table("third", COLUMNS) + shop.table("fourth", COLUMNS))
    steps = (("a", "third", "fourth"), ("b", "out", "third"), ("c", "orders", "out"))

    results = hosted.deploy(*(shop.step(*names) for names in steps))

    assert actions(results) == [(Action.START, False)] * 3
    shop.order(2)
    shop.wait_ids(list(range(20)), "fourth")
    assert {row["__query_name"] for row in shop.rows("fourth")} == {"a"}


def test_a_folder_that_nobody_writes_is_not_made(bench: Bench) -> None:
    """Nor is that of a target that no query misses, whatever else is wrong."""
    shop = bench.shop
    wrong = shop.manifest("wrong", sql="SELECT prise FROM x")

    assert [each.decision.action for each in bench.plan(shop.manifest(), wrong)] == [
        Action.START,
        Action.FAIL,
    ]
    assert not (shop.folder / "out").exists()
    (shop.folder / "orders").rmdir()
    (planned,) = bench.plan(shop.manifest())
    assert "[PATH_NOT_FOUND]" in planned.decision.reason
    assert not (shop.folder / "orders").exists()


def test_a_folder_that_cannot_be_made(bench: Bench) -> None:
    shop = bench.shop
    bench.define(shop.table("third", COLUMNS, place="orders/0.json/third"))
    (shop.folder / "orders" / "0.json").write_text("{}")

    reads, writes = bench.plan(shop.step("a", "third", "out"), shop.step("b", "orders", "third"))

    assert (reads.decision.action, writes.decision.action) == (Action.FAIL, Action.START)
    assert "[PATH_NOT_FOUND]" in reads.decision.reason
    assert "it cannot be created" in reads.decision.reason
    assert "is not a directory" in reads.decision.reason


def test_the_plan_does_nothing(bench: Bench) -> None:
    (planned,) = bench.plan(bench.shop.manifest())

    assert planned.decision.action is Action.START
    assert bench.store.sizes("") == {}


def test_a_first_deployment_that_is_interrupted_and_then_stopped_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has written by then does not come twice."""
    with bench.hosting():
        bench.shop.order(1)
        with monkeypatch.context() as patch:
            patch.setattr(HostLink, "wait_started", _ctrl_c)
            with pytest.raises(KeyboardInterrupt):
                bench.deploy(bench.shop.manifest())
        bench.shop.wait_ids(bench.shop.cheap_ids())
        wait_until(lambda: bench.status().batch == 0, "its batch is committed")
        bench.stop("cheap")
        row = bench.status()
        assert (row.state, row.version, row.wanted) == ("CANCELED", 1, False)

        bench.shop.order(1)
        (result,) = bench.deploy(bench.shop.manifest())

        assert (result.action, result.version, result.failed) == (Action.RESUME, 1, False), result.text
        bench.shop.wait_ids(bench.shop.cheap_ids())


def test_one_that_is_stopped_before_it_writes_shows_its_version(bench: Bench) -> None:
    """There is nothing that the next version could write twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostLink, "wait_started", _ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            bench.deploy(bench.shop.manifest())
    bench.stop("cheap")
    assert (bench.status().state, bench.status().version) == ("CANCELED", 1)
    (planned,) = bench.plan(bench.shop.manifest())
    assert planned.decision.action is Action.START


def _ctrl_c(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
