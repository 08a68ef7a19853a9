"""Names of data, against the examples of OpenLineage's naming specification."""

from __future__ import annotations

import pytest

from spark_events.api import LineageVertex, LineageVertexProvider, TableLineageDataset
from spark_events.lineage import naming, provide, withdraw
from spark_events.lineage.datasets import Catalogs, catalogs_of, datasets_of
from spark_events.lineage.graph import GraphBuilder


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("/data/orders", "file", "/data/orders"),
        ("file:/data/orders", "file", "/data/orders"),
        ("file:///data/orders/", "file", "/data/orders"),
        ("file://host/data", "file://host", "/data"),
        ("hdfs://namenode:8020/data/orders", "hdfs://namenode:8020", "/data/orders"),
        ("s3://bucket/a/b", "s3://bucket", "a/b"),
        ("s3a://bucket/a/b", "s3://bucket", "a/b"),
        ("s3n://bucket/a", "s3://bucket", "a"),
        ("s3a://bucket/", "s3://bucket", "/"),
        ("gs://bucket/a", "gs://bucket", "a"),
        (
            "abfss://container@service.dfs.core.windows.net/a/b",
            "abfss://container@service.dfs.core.windows.net",
            "/a/b",
        ),
        ("s3a://bucket/orders/day=2026-01-01/hour=3", "s3://bucket", "orders"),
        ("/data/orders/day=2026-01-01/part-0.parquet", "file", "/data/orders"),
        ("/data/t/part-00000-3959ce92-78ea-4c8f-8c0d-f4a1f0d6e5c1-c000.csv", "file", "/data/t"),
        ("/data/t/part-00000", "file", "/data/t"),
        ("/data/part-time/x.csv", "file", "/data/part-time/x.csv"),
        ("/in/orders_90f04566-0b0c-4d2e-9d1d-0f6c1d0a4a11.csv.gz", "file", "/in"),
        ("/in/90F045660B0C4D2E9D1D0F6C1D0A4A11.json", "file", "/in"),
        ("/in/orders_20261129.csv", "file", "/in/orders_20261129.csv"),
        ("/in/0090f045660b0c4d2e9d1d0f6c1d0a4a11.csv", "file", "/in/0090f045660b0c4d2e9d1d0f6c1d0a4a11.csv"),
        (
            "s3://b/__unitystorage/tables/90f04566-0b0c-4d2e-9d1d-0f6c1d0a4a11",
            "s3://b",
            "__unitystorage/tables/90f04566-0b0c-4d2e-9d1d-0f6c1d0a4a11",
        ),
        ("/data/logs-*/x", "file", "/data/x"),
        ("/data/{a,b}/*.csv", "file", "/data"),
        ("/data/{a/x,b/y}/z", "file", "/data"),
        ("/raw/date=2026-01-01/orders", "file", "/raw/orders"),
        ("/raw/date=2026-01-02/customers/region=eu", "file", "/raw/customers"),
        ("s3a://b/tenant=a/orders", "s3://b", "orders"),
        ("s3a://b/tenant=b", "s3://b", "/"),
        ("/raw/report=final.csv", "file", "/raw/report=final.csv"),
        ("/raw/version=1.0", "file", "/raw"),
        ("/raw/of=a.logistics", "file", "/raw"),
        ("/raw/date=2026-01-01/orders.csv.gz", "file", "/raw/orders.csv.gz"),
        ("/data/orders/day=2026-01-01/part.3.parquet", "file", "/data/orders"),
        ("/data/with%20blank", "file", "/data/with%20blank"),
        ("file:/data/with%20blank", "file", "/data/with blank"),
    ],
)
def test_paths(uri: str, namespace: str, name: str) -> None:
    assert naming.of_path(uri) == (namespace, name)


def test_many_paths_are_the_folder_that_has_them_all() -> None:
    few = naming.of_paths(["/d/a.csv", "/d/b.csv", "/d/a.csv"])
    assert few == [("file", "/d/a.csv"), ("file", "/d/b.csv")]
    many = naming.of_paths([f"s3a://b/logs/{number}.json" for number in range(50)])
    assert many == [("s3://b", "logs")]


@pytest.mark.parametrize(
    ("url", "table", "namespace", "name"),
    [
        ("jdbc:postgresql://db:5433/shop", "sales.orders", "postgres://db:5433", "shop.sales.orders"),
        ("jdbc:postgresql://db/shop?user=a&password=b", "orders", "postgres://db:5432", "shop.public.orders"),
        ("jdbc:postgresql://a:b@db/shop", '"public"."orders"', "postgres://db:5432", "shop.public.orders"),
        ("jdbc:mysql://db/shop", "orders", "mysql://db:3306", "shop.orders"),
        ("jdbc:mysql://db:3307,other/shop", "`orders`", "mysql://db:3307", "shop.orders"),
        (
            "jdbc:sqlserver://db:1433;databaseName=shop;password=x",
            "dbo.orders",
            "mssql://db:1433",
            "shop.dbo.orders",
        ),
        ("jdbc:oracle:thin:@//db:1521/service", "sales.orders", "oracle://db:1521", "service.sales.orders"),
        ("jdbc:oracle:thin:@db:1521:sid", "orders", "oracle://db:1521", "sid.orders"),
        ("jdbc:oracle:thin:scott/a@password@db:1521:sid", "orders", "oracle://db:1521", "sid.orders"),
        ("jdbc:mysql://a:b/password@c@db/shop", "orders", "mysql://db:3306", "shop.orders"),
        ("jdbc:mysql://address=(password=b)(host=db)/shop", "orders", "mysql://db:3306", "shop.orders"),
        ("jdbc:mysql://(password=b,host=db)/shop", "orders", "mysql://db:3306", "shop.orders"),
        ("jdbc:db2://db/shop:password=b;user=a;", "sales.orders", "db2://db:50000", "shop.sales.orders"),
        ("jdbc:teradata://db/DATABASE=shop,PASSWORD=b", "orders", "teradata://db", "shop.orders"),
        ("jdbc:teradata://db/USER=a,PASSWORD=password", "orders", "teradata://db", "orders"),
        ("jdbc:derby:/tmp/base;create=true", "orders", "derby:tmp/base", "orders"),
        ("jdbc:sqlite:/tmp/x.db", "orders", "sqlite:tmp/x.db", "orders"),
        ("jdbc:mysql://db/shop", "orders o", "mysql://db:3306", "shop.orders"),
        ("jdbc:mysql://db/shop", '"the orders" AS o', "mysql://db:3306", "shop.the orders"),
        (
            "jdbc:postgresql://db/shop",
            'sales."all orders" "o"',
            "postgres://db:5432",
            "shop.sales.all orders",
        ),
        ("jdbc:postgresql://db/shop", "ONLY orders", "postgres://db:5432", "shop.public.ONLY orders"),
        ("jdbc:mysql://db/shop", '"the orders"', "mysql://db:3306", "shop.the orders"),
        ("nonsense", "orders", "jdbc", "orders"),
    ],
)
def test_jdbc(url: str, table: str, namespace: str, name: str) -> None:
    assert naming.of_jdbc(url, table) == (namespace, name)
    assert "password" not in "".join(naming.of_jdbc(url, table)).lower()


@pytest.mark.parametrize(
    ("options", "topics"),
    [
        ({"subscribe": "a, b"}, ["a", "b"]),
        ({"subscribePattern": "a.*"}, ["a.*"]),
        ({"assign": '{"b":[0],"a":[0,1]}'}, ["a", "b"]),
        ({"topic": "a"}, ["a"]),
        ({}, []),
    ],
)
def test_topics(options: dict[str, str], topics: list[str]) -> None:
    assert naming.kafka_topics(options) == topics


def test_two_tables_over_one_topic_are_one_dataset() -> None:
    one = {"format": "kafka", "options": {"kafka.bootstrap.servers": "a,b:9092", "subscribe": "orders"}}
    other = {
        "format": "kafka",
        "options": {"kafka.bootstrap.servers": "PLAINTEXT://a:9092, b:9092", "topic": "orders"},
        "table": {"catalog": "spark_catalog", "database": "default", "table": "orders_out"},
    }
    keys = {dataset.key for identity in (one, other) for dataset in datasets_of(identity, (), Catalogs())}
    assert keys == {("kafka://a:9092", "orders")}


def test_a_hive_metastore_names_its_tables() -> None:
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": "thrift://meta:9083,thrift://other:9083",
    }
    identity = {
        "format": "parquet",
        "paths": ["hdfs://nn:8020/warehouse/orders"],
        "table": {"catalog": "spark_catalog", "database": "shop", "table": "orders"},
    }
    (dataset,) = datasets_of(identity, (), catalogs_of(conf))
    assert isinstance(dataset, TableLineageDataset)
    assert dataset.key == ("hdfs://nn:8020", "/warehouse/orders")
    assert dataset.facets["symlinks"].identifiers == (("hive://meta:9083", "shop.orders"),)


def test_a_connectors_table_may_name_itself() -> None:
    identity = {
        "format": "x",
        "properties": {"openlineage.dataset.namespace": "bird", "openlineage.dataset.name": "nest"},
    }
    assert [dataset.key for dataset in datasets_of(identity, (), Catalogs())] == [("bird", "nest")]


@pytest.mark.parametrize("of_format", ["console", "noop", "org.x.ConsoleTable$", "org.x.MemorySink"])
def test_what_is_nowhere_has_no_name(of_format: str) -> None:
    assert datasets_of({"format": of_format}, (), Catalogs()) == ()


def test_options_that_may_be_secret_are_not_shown() -> None:
    identity = {
        "format": "csv",
        "paths": ["/x"],
        "options": {"header": "true", "fs.s3a.secret.key": "hunter22"},
    }
    (dataset,) = datasets_of(identity, (), Catalogs())
    assert dataset.facets["config"].config == {"header": "true", "format": "csv"}


def test_a_provider_that_raises_costs_its_source_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(LineageVertexProvider):
        def lineage_vertex(self, options: dict[str, str], is_sink: bool) -> LineageVertex:
            raise RuntimeError("no idea")

    provide("mine", Broken())
    try:
        found = {
            "sources": [
                {"identity": {"format": "mine", "options": {}}, "streaming": False},
                {"identity": {"format": "csv", "paths": ["/x"]}, "streaming": False},
            ],
            "columns": [],
            "sinks": [],
            "groups": [],
            "indirect": {},
        }
        graph = GraphBuilder(found, Catalogs()).build()
    finally:
        withdraw("mine")
    assert [dataset.name for vertex in graph.sources for dataset in vertex.datasets] == ["mine", "/x"]
    assert "no idea" in caplog.text


@pytest.mark.parametrize(
    ("uri", "namespace"),
    [
        ("s3a://key:password@bucket/table", "s3://bucket"),
        ("ftp://a:password@server/table", "ftp://server"),
        ("wasbs://box@account.blob.core.windows.net/table", "wasbs://box@account.blob.core.windows.net"),
    ],
)
def test_credentials_of_a_path_are_no_part_of_its_name(uri: str, namespace: str) -> None:
    assert naming.of_path(uri)[0] == namespace
