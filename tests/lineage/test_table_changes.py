"""DDL on real tables: which table, its columns afterwards, and what OpenLineage is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.applications import App, cli
from tests.support.lakehouse import CONNECTORS, lakehouse
from tests.support.lineage_shop import Shop, listeners
from tests.support.openlineage_schema import problems_of
from tests.support.paths import APPS
from tests.support.servers import jars
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CATALOG = "spark.sql.catalog"
FORMATS = {
    "files": ("USING parquet", "shop.t"),
    "hive": ("STORED AS parquet", "shop.t"),
    "delta": ("USING delta", "shop.t"),
    "iceberg": ("USING iceberg", "mem.shop.t"),
}


CALL = "what CALL mem.system.rewrite_data_files writes is not known"
OPTIMIZE = "what org.apache.spark.sql.delta.commands.OptimizeTableCommand writes is not known"


class Told(NamedTuple):
    """A statement as OpenLineage is told of it when it has ended."""

    job: str
    change: str
    place: str
    columns: str
    before: str = ""


def run(of_format: str, folder: Path, name: str = "table_changes.py") -> Shop:
    """Run one of tests/apps on tables of a format."""
    conf = {**listeners(folder), "spark.log.level": "OFF"}
    if of_format == "hive":
        url = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        conf |= {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": url,
        }
    if of_format in ("delta", "iceberg"):
        conf |= {
            "spark.jars": ",".join(map(str, jars("lakehouse"))),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            f"{CATALOG}.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            f"{CATALOG}.mem": "org.apache.iceberg.spark.SparkCatalog",
            f"{CATALOG}.mem.catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.databricks.delta.properties.defaults.columnMapping.mode": "name",
        }
    app = str(APPS / name)
    command = cli("run", "--master", "local[2]", app, str(folder), *FORMATS[of_format])
    ended = App(command, conf, folder).end(300)
    assert ended.code == 0, ended.out[-2000:] + ended.err[-2000:]
    return Shop.read(ended, folder)


def told(shop: Shop) -> list[Told]:
    def of_event(event: dict[str, Any]) -> Told:
        (output,) = event["outputs"]
        facets = output["facets"]
        change = facets.get("lifecycleStateChange", {})
        columns = " ".join(f"{field['name']}:{field['type']}" for field in facets["schema"]["fields"])
        before = (change.get("previousIdentifier") or {}).get("name", "")
        place = output["name"].removeprefix(f"{shop.folder}/")
        job = event["job"]["name"].removeprefix("ddl.")
        shown = change.get("lifecycleStateChange", "")
        return Told(job, shown, place, columns, before.removeprefix(f"{shop.folder}/"))

    completed = [event for event in shop.openlineage if event["eventType"] == "COMPLETE"]
    return [of_event(event) for event in completed if event["outputs"]]


BASE, MORE = "id:int day:string", "id:int day:string more:double"
PLACE, RENAMED = "warehouse/shop.db/t", "warehouse/shop.db/renamed"
OF_SPARK = [
    Told("create.shop.t", "CREATE", PLACE, BASE),
    Told("insert.shop.t", "", PLACE, BASE),
    Told("alter.shop.t", "ALTER", PLACE, MORE),
    Told("alter.shop.t", "ALTER", PLACE, MORE),
    Told("alter.shop.t", "ALTER", PLACE, MORE),
    Told("create.shop.parts", "CREATE", "warehouse/shop.db/parts", BASE),
    Told("alter.shop.parts", "ALTER", "warehouse/shop.db/parts", BASE),
    Told("alter.shop.parts", "ALTER", "warehouse/shop.db/parts", BASE),
    Told("alter.shop.parts", "ALTER", "warehouse/shop.db/parts", BASE),
    Told("create.shop.like_it", "CREATE", "warehouse/shop.db/like_it", MORE),
    Told("analyze.shop.t", "ALTER", PLACE, MORE),
    Told("truncate.shop.t", "TRUNCATE", PLACE, MORE),
    Told("rename.shop.t", "RENAME", RENAMED, MORE, PLACE),
    Told("alter.shop.renamed", "ALTER", "elsewhere", MORE),
    Told("drop.shop.renamed", "DROP", "elsewhere", MORE),
    Told("create.shop.external", "CREATE", "external", "id:int"),
    Told("drop.shop.external", "DROP", "external", "id:int"),
]


def of_connector(
    table: str, place: str, renamed: str, before: str, of_its_own: tuple[Told, ...] = ()
) -> list[Told]:
    database = table.rpartition(".")[0]
    return [
        Told(f"create.{table}", "CREATE", place, BASE),
        Told(f"insert.{table}", "", place, BASE),
        *[Told(f"alter.{table}", "ALTER", place, MORE)] * 3,
        Told(f"alter.{table}", "ALTER", place, "id:int day:string less:double"),
        Told(f"alter.{table}", "ALTER", place, BASE),
        *of_its_own,
        Told(f"truncate.{table}", "TRUNCATE", place, BASE),
        Told(f"rename.{table}", "RENAME", renamed, BASE, before),
        Told(f"overwrite.{database}.renamed", "OVERWRITE", renamed, "fresh:bigint"),
        Told(f"drop.{database}.renamed", "DROP", renamed, "fresh:bigint"),
        Told(f"create.{database}.external", "CREATE", "external", "id:int"),
        Told(f"drop.{database}.external", "DROP", "external", "id:int"),
    ]


ALTERED = Told("alter.mem.shop.t", "ALTER", "/shop/t", BASE)
# Partition fields, the order of rows, branches and tags; a branch's rows are the table's.
OF_ICEBERG = (*[ALTERED] * 5, Told("insert.mem.shop.t", "", "/shop/t", BASE), *[ALTERED] * 3)


@pytest.mark.parametrize(
    ("of_format", "expected"),
    [
        pytest.param("files", OF_SPARK, id="files", marks=pytest.mark.extended),
        pytest.param("hive", OF_SPARK, id="hive", marks=pytest.mark.extended),
        pytest.param("delta", of_connector("shop.t", PLACE, RENAMED, PLACE), id="delta", marks=CONNECTORS),
        # Such a table stays where it is: only its name is another one.
        pytest.param(
            "iceberg",
            of_connector("mem.shop.t", "/shop/t", "/shop/t", "shop.t", OF_ICEBERG),
            id="iceberg",
            marks=CONNECTORS,
        ),
    ],
)
def test_what_is_told_of_ddl(java: str, tmp_path: Path, of_format: str, expected: list[Told]) -> None:
    shop = run(of_format, tmp_path)

    assert told(shop) == expected
    assert [problem for event in shop.openlineage for problem in problems_of(event)] == []
    assert [job["newStatus"] for job in shop.jobs if job.get("newStatus") == "FAILED"] == ["FAILED"]
    assert not [job for job in shop.jobs if "view" in job["jobName"]]
    # The plan of the statement that fails cannot be read where its analysis fails.
    missing = [job["lineage"].get("incomplete", "") for job in shop.jobs if "lineage" in job]
    told_of = [one for one in missing if one and not one.startswith("its plan could not be read: ")]
    assert told_of == {"delta": [OPTIMIZE], "iceberg": [CALL]}.get(of_format, [])


@CONNECTORS
def test_statements_are_not_disturbed(java: str, tmp_path: Path) -> None:
    """Spark's catalog hands the same table of Iceberg to all: one that is refreshed meanwhile cannot be changed."""
    shop = run("iceberg", tmp_path, "quick_ddl.py")
    assert "failed: 0" in shop.run.out
    last = [event["lineage"] for event in shop.of("alter.mem.shop.t") if "lineage" in event][-1]
    (dataset,) = last["sinks"][0]["datasets"]
    assert [column["name"] for column in dataset["schema"]] == ["id", "day"]


@pytest.mark.extended
@CONNECTORS
def test_a_new_name_with_that_of_the_catalog(java: str, tmp_path: Path) -> None:
    """Spark hands all of it to the catalog; Iceberg's of Hive takes its own name off, others refuse it."""
    hive, hadoop = "spark.sql.catalog.hive", "spark.hadoop"
    conf = {
        **lakehouse(tmp_path),
        **listeners(tmp_path),
        hive: "org.apache.iceberg.spark.SparkCatalog",
        f"{hive}.type": "hive",
        f"{hive}.warehouse": str(tmp_path / "hive"),
        f"{hadoop}.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        f"{hadoop}.datanucleus.connectionPoolingType": "DBCP",
        f"{hadoop}.datanucleus.schema.autoCreateAll": "true",
        f"{hadoop}.hive.metastore.schema.verification": "false",
        f"{hadoop}.iceberg.engine.hive.lock-enabled": "false",
    }
    app = str(APPS / "renamed_table.py")
    ended = App(cli("run", "--master", "local[2]", app), conf, tmp_path).end(300)
    assert ended.code == 0, ended.out[-2000:] + ended.err[-2000:]

    (renamed,) = [one for one in told(Shop.read(ended, tmp_path)) if one.change == "RENAME"]
    assert renamed == Told("rename.hive.shop.t", "RENAME", "hive/shop.db/t", "id:int", "shop.t")


def test_a_catalog_that_does_not_answer_holds_up_nothing(spark: Any) -> None:
    """Nor is another one asked before it does."""
    from spark_events.lineage.plans import _JAVA

    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(
        "public class Silent implements java.util.concurrent.Callable {"
        " public final java.util.concurrent.CountDownLatch end = new java.util.concurrent.CountDownLatch(1);"
        ' public Object call() throws Exception { end.await(); return "late"; } }'
    )
    silent = compiler.getClassLoader().loadClass("Silent").newInstance()
    calls = _JAVA.load(spark._jvm, "CatalogCalls").newInstance()
    try:
        assert calls.answer(silent) is None
        assert calls.answer(silent) is None
    finally:
        silent.getClass().getField("end").get(silent).countDown()
    wait_until(lambda: calls.answer(silent) == "late", "the catalog is asked again")


def test_ddl_is_not_run_to_be_read(lineage: Any, spark: Any) -> None:
    """What it would change is told all the same."""
    assert lineage("CREATE TABLE made_up (a INT) USING parquet").sinks == ("CREATE made_up",)
    assert lineage("DROP TABLE customers").sinks == ("DROP customers",)
    assert lineage("ALTER TABLE customers ADD COLUMNS (x INT)").sinks == ("ALTER customers",)
    assert lineage("DROP TABLE IF EXISTS never").sinks == ()
    assert not spark.catalog.tableExists("made_up")
    assert spark.table("customers").columns == ["id", "name", "country"]
