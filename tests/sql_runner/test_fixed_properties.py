"""Properties that a checkpoint has fixed, and keys that need no restart: the plan says what comes of a change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_events.sql_runner.deploy.decision import Action
from spark_events.sql_runner.store.deployed import read_deployed
from spark_events.sql_runner.store.fixed import fixed_properties
from spark_events.sql_runner.store.host_files import read_orders
from spark_events.sql_runner.store.store import Store
from tests.support.query_shop import HOST, Bench
from tests.support.waiting import wait_until

pytestmark = pytest.mark.extended

FASTER = {"processing-time": "200 milliseconds"}
PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture
def hosted(bench: Bench) -> Iterator[Bench]:
    with bench.hosting():
        yield bench


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "before", "after", "key"),
    [
        ("sparkProperties", {PARTITIONS: 2}, {PARTITIONS: 4}, PARTITIONS),
        ("flinkProperties", {"parallelism.default": 2}, {"parallelism.default": 4}, PARTITIONS),
        ("flinkProperties", {"state.backend": "hashmap"}, {"state.backend": "rocksdb"}, PROVIDER),
    ],
)
def test_what_spark_has_fixed_is_said(
    hosted: Bench, kind: str, before: dict[str, Any], after: dict[str, Any], key: str
) -> None:
    shop = hosted.shop
    orders = f"spark.readStream.table('{shop.prefix}orders').where('price < 5')"
    code = f"execution_output = {orders}.dropDuplicates(['id']).select('id', 'price')"
    first = shop.manifest(code=code, **{"sparkProperties": {}, kind: before})
    changed = shop.manifest(code=code, **{"sparkProperties": {}, kind: after})
    shop.order(1)
    (result,) = hosted.deploy(first)
    assert not result.failed, result.text
    shop.wait_ids(shop.cheap_ids())
    fixed = fixed_properties(hosted.store, hosted.meta().checkpoint)[key]

    (planned,) = hosted.plan(changed)
    (result,) = hosted.deploy(changed)

    assert (planned.decision.action, result.action, result.failed) == (Action.NOTHING, Action.NOTHING, False)
    assert f"without effect: sparkProperties.{key}: " in planned.decision.reason
    (again,) = hosted.plan(changed)
    assert again.warnings == planned.warnings, "the deployment has not brought it about"
    (warning,) = again.warnings
    assert f"sparkProperties.{key}: " in warning
    assert f"has no effect on version 1: Spark has fixed {fixed!r} in its checkpoint" in warning
    # With another change, it is not among what the restart brings about, and really has no effect.
    (restart,) = hosted.plan({**changed, "trigger": FASTER})
    assert restart.decision.reason.startswith("changed: trigger.processing-time")
    assert key not in restart.decision.reason
    hosted.deploy({**changed, "trigger": FASTER})
    shop.order(1)
    shop.wait_ids(shop.cheap_ids())
    assert fixed_properties(hosted.store, hosted.meta().checkpoint)[key] == fixed
    (clean,) = hosted.plan(changed, clean=True)
    assert clean.warnings == ()


@pytest.mark.spark
def test_before_the_first_micro_batch_nothing_is_fixed(hosted: Bench) -> None:
    hosted.deploy(hosted.shop.manifest(sparkProperties={PARTITIONS: 2}))

    (planned,) = hosted.plan(hosted.shop.manifest(sparkProperties={PARTITIONS: 4}))

    assert planned.decision.action is Action.RESTART
    assert planned.warnings == ()


@pytest.mark.spark
def test_another_description_does_not_restart(hosted: Bench) -> None:
    """It is in the rows from the next start on, also if that is the application's."""
    shop = hosted.shop
    shop.order(1)
    hosted.deploy(shop.manifest(description="old"))
    shop.wait_ids(shop.cheap_ids())
    order = hosted.meta().deployment

    (result,) = hosted.deploy(shop.manifest(description="new"))

    assert (result.action, result.failed) == (Action.NOTHING, False)
    found = read_deployed(hosted.store, "cheap")
    assert found is not None
    assert (found.manifest.description, found.meta.deployment) == ("new", order)
    ordered = read_orders(hosted.store, HOST)["cheap"]
    assert (ordered.id, ordered.deployed["description"]) == (order, "new")
    hosted.deploy(shop.manifest(description="new", trigger=FASTER))
    shop.order(1)
    shop.wait_ids(shop.cheap_ids())
    wait_until(
        lambda: {row["__query_description"] for row in shop.rows()} == {"old", "new"}, "both are there"
    )


@pytest.mark.parametrize("log", [b"", b"v1\n", b"v1\n{}\n{}", b"v1\n[1]\n{}", b"\xff\n\xff"])
def test_a_log_that_is_not_known_fixes_nothing(store: Store, log: bytes) -> None:
    store.write("c/offsets/3", log)

    assert fixed_properties(store, "c") == {}


def test_the_newest_log_counts(store: Store) -> None:
    for batch, partitions in ((2, 7), (10, 8)):
        store.write(f"c/offsets/{batch}", b'v1\n{"conf":{"p":"%d"}}\n{}' % partitions)

    assert fixed_properties(store, "c") == {"p": "8"}
