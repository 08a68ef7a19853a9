"""A real Kafka, Delta and Iceberg as what queries read and write, and S3 as their store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.analysis.definitions import split_statements
from spark_events.sql_runner.deploy.decision import Action
from tests.support.lakehouse import CONNECTORS
from tests.support.query_shop import METADATA, Bench, Shop
from tests.support.servers import KafkaBroker, running_kafka
from tests.support.spark import local_spark
from tests.support.sql_targets import ICE, KafkaTarget, LakeTarget, lakehouse_conf
from tests.support.sql_truth import Sequence
from tests.support.sql_world import World
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.spark,
    CONNECTORS,
]
ORDERS = "from_json(CAST(value AS STRING), 'id INT, price DOUBLE') AS o"


@pytest.fixture(scope="module")
def broker(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def lake(java: str, s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("lake")
    conf = lakehouse_conf(folder / "ice", s3)
    with local_spark("connectors", folder, conf) as session:
        yield session


@pytest.fixture
def bench(lake: Any, broker: KafkaBroker, tmp_path: Path) -> Bench:
    shop = Shop(tmp_path)
    servers = f"'kafka.bootstrap.servers' = '{broker.servers}'"
    shop.definitions = f"""
CREATE TABLE IF NOT EXISTS orders USING kafka
  OPTIONS ({servers}, 'subscribe' = 'orders', 'startingOffsets' = 'earliest');
CREATE TABLE IF NOT EXISTS dear USING kafka OPTIONS ({servers}, 'topic' = 'dear', 'subscribe' = 'dear');
CREATE TABLE IF NOT EXISTS lake (id INT, price DOUBLE, {METADATA}) USING delta;
CREATE TABLE IF NOT EXISTS ice.db.lake (id INT, price DOUBLE, {METADATA}) USING iceberg;
"""
    bench = Bench(shop, lake)
    bench.analyst = Analyst(lake, split_statements(shop.definitions))
    return bench


def order(lake: Any, broker: KafkaBroker, ids: range) -> None:
    rows = [(json.dumps({"id": number, "price": float(number)}),) for number in ids]
    writer = lake.createDataFrame(rows, "value STRING").write.format("kafka")
    writer.option("kafka.bootstrap.servers", broker.servers).option("topic", "orders").save()


def messages(lake: Any, broker: KafkaBroker, topic: str) -> list[Any]:
    reader = lake.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    found = reader.option("subscribe", topic).option("includeHeaders", "true").load().collect()
    return sorted(found, key=lambda row: row.offset)


def test_kafka_into_kafka_delta_and_iceberg(bench: Bench, lake: Any, broker: KafkaBroker) -> None:
    order(lake, broker, range(10))
    select = f"SELECT o.id, o.price FROM (SELECT {ORDERS} FROM orders) WHERE o.price >= 5"
    made = select.replace("o.id, o.price", "CAST(o.id AS STRING) AS key, 'made' AS value")
    manifests = [
        bench.shop.manifest("to-kafka", target_table="dear", sql=select),
        bench.shop.manifest("own-value", target_table="dear", sql=made),
        bench.shop.manifest("to-delta", target_table="lake", sql=select),
        bench.shop.manifest("to-iceberg", target_table="ice.db.lake", sql=select),
    ]
    with bench.hosting():
        results = bench.deploy(*manifests)

        assert [result.text for result in results] == ["done"] * 4
        for table in ("lake", "ice.db.lake"):
            rows = lambda table=table: sorted(row.id for row in lake.table(table).collect())  # noqa: E731
            wait_until(lambda rows=rows: rows() == list(range(5, 10)), f"{table} has the rows")
        wait_until(lambda: len(messages(lake, broker, "dear")) == 10, "the topic has the messages")
        found = messages(lake, broker, "dear")
        packed = [json.loads(message.value) for message in found if message.value != b"made"]
        assert sorted(message["id"] for message in packed) == list(range(5, 10))
        assert {message["__query_name"] for message in packed} == {"to-kafka"}
        own = [message for message in found if message.value == b"made"]
        assert {bytes(message.key) for message in own} == {b"5", b"6", b"7", b"8", b"9"}
        headers = {header.key: bytes(header.value) for header in own[0].headers}
        assert headers["__query_name"] == b"own-value"
        assert headers["__query_version"] == b"1"


def test_a_new_version_reads_all_again(bench: Bench, lake: Any, broker: KafkaBroker) -> None:
    def sql(price: int) -> str:
        return f"SELECT o.id, o.price FROM (SELECT {ORDERS} FROM orders) WHERE o.price >= {price}"

    def of_version(version: int) -> list[int]:
        return sorted(
            row.id
            for row in lake.table("lake")
            .where(f"__query_version = {version} AND __query_name = 'v'")
            .collect()
        )

    order(lake, broker, range(10))
    with bench.hosting():
        bench.deploy(bench.shop.manifest("v", target_table="lake", sql=sql(8)))
        wait_until(lambda: set(of_version(1)) == {8, 9}, "version 1 has its rows")
        (result,) = bench.deploy(bench.shop.manifest("v", target_table="lake", sql=sql(7)))

        assert (result.action, result.failed) == (Action.REPLACE, False)
        wait_until(lambda: set(of_version(2)) == {7, 8, 9}, "version 2 has its rows")
        (resumed,) = bench.deploy(
            bench.shop.manifest("v", target_table="lake", sql=sql(7), trigger={"processing-time": "1s"})
        )
        assert (resumed.action, resumed.failed) == (Action.RESTART, False)
        before = of_version(2)
        order(lake, broker, range(20, 22))
        wait_until(lambda: of_version(2) == [*before, 20, 21], "each new row comes once")


@pytest.mark.parametrize("table", ["lake", "ice.db.lake"])
def test_an_older_savepoint_loses_no_row(bench: Bench, lake: Any, broker: KafkaBroker, table: str) -> None:
    """Delta and Iceberg skip a micro-batch of a query of which they have a later one."""
    name, first = f"back-{table[:3]}", {"lake": 100, "ice.db.lake": 200}[table]

    def ids() -> list[int]:
        lake.catalog.refreshTable(table)  # Iceberg's catalog keeps what a session has read
        rows = lake.table(table).where(f"__query_name = '{name}' AND id >= {first}")
        return [row.id for row in rows.collect()]

    code = """
execution_output = (
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}").option("subscribe", "orders")
    .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", spark.conf.get("spark.orders.at.once")).load()
    .selectExpr("from_json(CAST(value AS STRING), 'id INT, price DOUBLE') AS o")
    .selectExpr("o.id", "o.price").where("id >= {first}")
)
"""
    manifest = bench.shop.manifest(
        name, target_table=table, code=code.format(servers=broker.servers, first=first)
    )

    def reading(rows: int) -> dict[str, Any]:
        return {**manifest, "sparkProperties": {"spark.orders.at.once": str(rows)}}

    order(lake, broker, range(first, first + 3))
    with bench.hosting():
        bench.deploy(reading(1))
        wait_until(lambda: len(ids()) == 3, "all rows are there")
        bench.stop(name, savepoint=True)
        order(lake, broker, range(first + 3, first + 9))
        bench.deploy(reading(1))
        wait_until(lambda: len(ids()) == 9, "all rows are there")
        bench.stop(name)
        bench.store.delete(bench.meta(name).checkpoint)
        before, query = ids(), bench.meta(name).query_id
        order(lake, broker, range(first + 9, first + 20))
        (planned,) = bench.plan(reading(2))
        (result,) = bench.deploy(reading(2))

        assert f"{table} has 6 later micro-batches: their rows are written again" in planned.decision.reason
        assert (result.action, result.failed) == (Action.RESUME, False), result.text
        wait_until(lambda: len(ids()) >= 9 + 17, "all rows are there")
        expected = sorted([*before, *range(first + 3, first + 20)])
        assert sorted(ids()) == expected
        assert bench.meta(name).query_id != query
        rows = lake.table(table).where(f"id > {first + 8} AND __query_name = '{name}'").collect()
        assert {row["__query_id"] for row in rows} == {bench.meta(name).query_id}


def test_a_savepoint_that_somebody_put_in_place_of_the_checkpoint(
    bench: Bench, lake: Any, broker: KafkaBroker
) -> None:
    """The query then gets another id when it starts, which its rows have, too."""
    sql = f"SELECT o.id, o.price FROM (SELECT {ORDERS} FROM orders)"
    manifest = bench.shop.manifest("put", target_table="lake", sql=sql)

    def ids() -> list[int]:
        return [row.id for row in lake.table("lake").where("__query_name = 'put'").collect()]

    order(lake, broker, range(300, 302))
    with bench.hosting():
        bench.deploy(manifest)
        wait_until(lambda: {300, 301} <= set(ids()), "all rows are there")
        savepoint = bench.stop("put", savepoint=True).savepoint
        for number in range(302, 305):
            bench.deploy(manifest)
            order(lake, broker, range(number, number + 1))
            wait_until(lambda: number in ids(), "the row is there")  # noqa: B023
            bench.stop("put")
        order(lake, broker, range(305, 306))
        checkpoint = bench.meta("put").checkpoint
        bench.store.delete(checkpoint)
        bench.store.copy(savepoint, checkpoint)
        before = ids()
        bench.deploy(manifest)

        wait_until(lambda: 305 in ids(), "the last row is there")
        assert sorted(ids()) == sorted([*before, *range(302, 306)])
        rows = lake.table("lake").where("id = 305 AND __query_name = 'put'").collect()
        assert [row["__query_id"] for row in rows] != [bench.meta("put").query_id]


@pytest.mark.timeout(14_400)
@pytest.mark.parametrize(
    ("seeds", "steps"), [(range(1), 3), pytest.param(range(1, 10), 12, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("kind", ["delta", "iceberg", "kafka", "files, from a store in S3"])
def test_every_row_is_accounted_for(
    lake: Any, s3: str, broker: KafkaBroker, tmp_path: Path, kind: str, seeds: range, steps: int
) -> None:
    """What test_truth.py does, with other targets, and another store; on PySpark 4.1."""
    conf = lakehouse_conf(Path(lake.conf.get(f"{ICE}.warehouse")), s3)
    wrong = []
    for seed in seeds:
        folder = tmp_path / f"{kind[:5]}{seed}"
        target = KafkaTarget(lake, broker.servers, f"t{seed}") if kind == "kafka" else None
        if kind in ("delta", "iceberg"):
            target = LakeTarget(lake, kind, folder)
        store = f"s3a://queries/truth-{seed}" if "S3" in kind else ""
        # Iceberg refuses a commit that is earlier than the last; a trigger of Spark's waits for the time that was.
        wrong += Sequence(World(folder, seed, store, target, conf), steps, left_out=("clocks",)).run()
    assert not wrong, "\n".join(wrong)


def test_a_store_in_s3(lake: Any, tmp_path: Path) -> None:
    """What is deployed, Spark's checkpoints and their copies are in a bucket."""
    shop = Shop(tmp_path, "s3_")
    shop.store_url = "s3a://queries/store"
    Bench(shop, lake).live_through_savepoints()
