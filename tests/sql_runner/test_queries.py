"""What Spark makes of a manifest: which changes are changes, which errors name which line, what fits a table."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from spark_events.api import ConfigError
from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.analysis.definitions import TableDefinitions, split_statements
from spark_events.sql_runner.analysis.fingerprint import fingerprint
from spark_events.sql_runner.analysis.query_data import query_data
from spark_events.sql_runner.analysis.query_error import QueryError
from spark_events.sql_runner.deploy.planner import problems_of_queries
from spark_events.sql_runner.manifest.folder import read_folder
from spark_events.sql_runner.manifest.manifest import Manifest, parse_manifest
from spark_events.sql_runner.manifest.yaml_text import read_yaml, write_yaml
from spark_events.sql_runner.store.deployed import DeployedQuery, Meta
from tests.support.query_shop import METADATA, Shop
from tests.support.requirements import missing
from tests.support.tpc import load

pytestmark = pytest.mark.spark
SELECT = "SELECT id, price FROM shop_orders WHERE price > 5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def analyst(session: Any, folder: Path) -> Analyst:
    shop = Shop(folder, "shop_")
    more = f"""
CREATE TABLE shop_timed (at TIMESTAMP, n INT) USING json LOCATION '{folder}/timed'
  TBLPROPERTIES ('watermark.column' = 'at', 'watermark.delay' = '1 minute');
CREATE TABLE shop_ticks USING rate OPTIONS ('rowsPerSecond' = '5')
  TBLPROPERTIES ('watermark.column' = 'timestamp', 'watermark.delay' = '1 minute');
CREATE TABLE shop_counts (start TIMESTAMP, n BIGINT, {METADATA}) USING json LOCATION '{folder}/counts';
CREATE TABLE shop_small (id SMALLINT, price STRING, {METADATA}) USING json LOCATION '{folder}/small';
CREATE TABLE shop_plain (id INT, price DOUBLE) USING json LOCATION '{folder}/plain';
CREATE TABLE shop_kinds (item STRING, kind STRING) USING parquet;
CREATE TABLE shop_chars (id INT, price DOUBLE, item CHAR(5), {METADATA}) USING json LOCATION '{folder}/chars';
CREATE VIEW shop_view AS SELECT 1 AS id;
"""
    for name in ("other", "timed"):
        (folder / name).mkdir()
    return Analyst(session, split_statements(shop.definitions + more))


def manifest(**keys: Any) -> Manifest:
    given = {key.replace("_", "-"): value for key, value in keys.items()}
    values = {
        "name": "q",
        "target-table": "shop_out",
        **({} if "code" in given else {"sql": SELECT}),
        **given,
    }
    return parse_manifest(read_yaml(write_yaml(values), "q.yaml"))[0]


def plan(analyst: Analyst, **keys: Any) -> str:
    return analyst.analyze(manifest(**keys)).fingerprint


def error(analyst: Analyst, **keys: Any) -> QueryError:
    with pytest.raises(QueryError) as raised:
        analyst.analyze(manifest(**keys))
    return raised.value


@pytest.mark.parametrize(
    "sql",
    [
        "select id,price from shop_orders where price>5",
        "-- a comment\nSELECT /* another */ id, price\nFROM shop_orders WHERE (price > 5)",
        "SELECT o.id, o.price FROM default.shop_orders AS o WHERE o.price > 5",
    ],
)
def test_what_is_no_change(analyst: Analyst, sql: str) -> None:
    assert plan(analyst, sql=sql) == plan(analyst)


@pytest.mark.parametrize(
    "keys",
    [
        {"sql": SELECT.replace("5", "6")},
        {"sql": SELECT.replace(">", ">=")},
        {"sql": SELECT + " AND item <> 'tea#12'"},
        {"sql": "SELECT id + 0 AS id, price FROM shop_orders WHERE price > 5"},
        {"sql": SELECT.replace("SELECT", "SELECT DISTINCT"), "output_mode": "update"},
        {"sql": SELECT.replace("shop_orders", "shop_other")},
        {"target_table": "shop_other"},
        {"output_mode": "update"},
        {
            "code": "execution_output = spark.readStream.table('shop_orders').where('price > 5').select('id', 'price')"
        },
    ],
)
def test_what_is_a_change(analyst: Analyst, keys: dict[str, Any]) -> None:
    assert plan(analyst, **keys) != plan(analyst)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH c AS (SELECT * FROM shop_orders) SELECT c.id, c.price FROM c JOIN shop_items USING (item)",
        "SELECT id, rand() AS price FROM shop_orders",
        "SELECT id, price FROM shop_orders WHERE uuid() IS NOT NULL AND now() > '2020-01-01'",
        "SELECT id, price FROM shop_orders WHERE item IN (SELECT item FROM shop_items)",
        "SELECT id, transform(array(price), x -> x + 1)[0] AS price FROM shop_orders",
    ],
)
def test_a_plan_reads_the_same_each_time(analyst: Analyst, sql: str) -> None:
    assert plan(analyst, sql=sql) == plan(analyst, sql=sql)


def test_the_names_of_what_is_in_between_are_no_change(analyst: Analyst) -> None:
    sql = "SELECT x.id, a AS price FROM (SELECT id, price + 1 AS a FROM shop_orders) AS x"

    assert plan(analyst, sql=sql) == plan(analyst, sql=sql.replace("x", "y").replace(" a ", " b "))
    assert plan(analyst, sql=sql) != plan(analyst, sql=sql.replace("+ 1", "+ 2"))


def test_what_is_in_quotes_is_no_number(analyst: Analyst) -> None:
    assert plan(analyst, sql=SELECT + " AND item <> 'a#1'") != plan(
        analyst, sql=SELECT + " AND item <> 'b#1'"
    )
    assert plan(analyst, sql=SELECT + " AND item <> 'a#1'") != plan(
        analyst, sql=SELECT + " AND item <> 'a#2'"
    )


def test_the_rows_of_a_view_are_part_of_the_query(session: Any, folder: Path) -> None:
    sql = "SELECT id, price FROM shop_orders JOIN shop_items USING (item)"
    definitions = Shop(folder, "shop_").definitions

    def with_kind(kind: str) -> str:
        return plan(Analyst(session, split_statements(definitions.replace("'hot'", kind))), sql=sql)

    assert with_kind("'hot'") == with_kind("'hot'")
    assert with_kind("'hot'") != with_kind("'cold'")


@pytest.mark.parametrize(
    "stride", [pytest.param(10, marks=pytest.mark.extended), pytest.param(1, marks=pytest.mark.thorough)]
)
def test_queries_of_tpc_ds_read_the_same_twice_and_differ_from_each_other(session: Any, stride: int) -> None:
    try:
        suite = load("tpcds")
    except ImportError as absent:
        missing(f"{absent.name} is not installed; pip install --group test")
    session.sql("CREATE DATABASE IF NOT EXISTS sql_runner_tpcds")
    session.sql("USE sql_runner_tpcds")
    suite.create(session)
    try:
        prints = {
            number: [fingerprint(session, manifest(), session.sql(query)) for _ in range(2)]
            for number, query in list(suite.queries.items())[::stride]
        }
    finally:
        session.sql("USE default")

    assert [number for number, (one, two) in prints.items() if one != two] == []
    assert len({one for one, _ in prints.values()}) == len(prints) == len(range(0, 99, stride))


def test_another_spark_is_asked_what_is_deployed(analyst: Analyst) -> None:
    """What an upgrade of Spark changes in its plans must not throw the state away."""
    meta = Meta("id", 1, "2026-01-01 00:00:00", "checkpoints/q/1/x", "h", "d", "of another Spark", "3.4.0")
    same = manifest(sql=SELECT.lower())
    other = manifest(sql=SELECT.replace("5", "6"))
    broken = manifest(sql="SELECT nothing FROM nowhere")
    now = plan(analyst)

    assert analyst.is_same_query(DeployedQuery(same, meta), manifest(), now)
    assert analyst.is_same_query(DeployedQuery(manifest(), meta), manifest(), now)
    assert not analyst.is_same_query(DeployedQuery(other, meta), manifest(), now)
    assert not analyst.is_same_query(DeployedQuery(broken, meta), manifest(), now)


class TestCode:
    """Code that makes a query."""

    STREAM = "execution_output = spark.readStream.format('rate').load()"

    def test_it_runs_again_in_its_session(self, session: Any) -> None:
        """As at each restart of its query: what it made the time before is not in its way."""
        own = session.newSession()
        own.sql("CREATE TEMPORARY VIEW given AS SELECT 1 AS one")
        made = "spark.sql('CREATE TEMPORARY VIEW mine AS SELECT one FROM given')"
        function = (
            "spark.udf.register('twice', lambda n: 2 * n)\nassert spark.sql('SELECT twice(1)').count() == 1"
        )
        database = "spark.sql('CREATE DATABASE IF NOT EXISTS elsewhere')\nspark.sql('USE elsewhere')"
        here = "assert spark.catalog.currentDatabase() == 'default'"
        of_code = manifest(code="\n".join((here, made, function, database, self.STREAM)))
        for _ in range(3):
            assert query_data(own, of_code).isStreaming

    def test_what_it_prints_is_no_output(self, session: Any, capsys: pytest.CaptureFixture[str]) -> None:
        """That of ``sql plan --json`` is JSON."""
        query_data(session, manifest(code=f"print('hello')\n{self.STREAM}"))
        assert tuple(capsys.readouterr()) == ("", "hello\n")


class TestErrors:
    @pytest.mark.parametrize(
        ("keys", "words", "line"),
        [
            ({"sql": "SELECT id,\n prise FROM shop_orders"}, "`prise` cannot be resolved", 2),
            ({"sql": "SELEC id"}, "Syntax error at or near 'SELEC'", 1),
            ({"sql": "SELECT 1; SELECT 2"}, "Syntax error", 1),
            ({"sql": "SELECT id\nFROM nowhere"}, "`nowhere` cannot be found", 2),
            ({"sql": "SELECT 1 AS id, 2D AS price"}, "reads no stream", None),
            ({"sql": "DROP TABLE shop_orders"}, "is not a query, and is not run", None),
            pytest.param(
                {"sql": "EXECUTE IMMEDIATE 'DROP TABLE shop_orders'"},
                "is not a query, and is not run",
                None,
                marks=pytest.mark.skipif(pyspark.__version__ < "4", reason="came with Spark 4"),
            ),
            pytest.param(
                {"sql": "CALL system.remove_orphan_files('shop_orders')"},
                "is not a query, and is not run",
                None,
                marks=pytest.mark.skipif(pyspark.__version__ < "4", reason="came with Spark 4"),
            ),
            (
                {"sql": "INSERT INTO shop_out SELECT * FROM shop_orders"},
                "is not a query, and is not run",
                None,
            ),
            ({"sql": "SELECT id, count(*) AS price FROM shop_orders GROUP BY id"}, "without watermark", None),
            ({"sql": "SELECT id, price, id FROM shop_orders"}, "two columns the same name: id", None),
            (
                {"sql": "SELECT id, item AS price FROM shop_orders"},
                "price is double in the table, but string in the query",
                None,
            ),
            ({"sql": "SELECT id FROM shop_orders"}, "price is missing in the query", None),
            ({"sql": "SELECT *, 1 AS more FROM shop_orders"}, "more is not a column of the table", None),
            ({"target_table": "nowhere"}, "target-table nowhere: not found", None),
            ({"target_table": "shop_items"}, "target-table shop_items: is a view; expected a table", None),
            ({"target_table": "shop_view"}, "target-table shop_view: is a view; expected a table", None),
            (
                {"target_table": "shop_plain"},
                "add __query_id STRING, or set include-query-metadata: false",
                None,
            ),
            ({"code": "x = 1\nx / 0"}, "code: ZeroDivisionError", 2),
            ({"code": "x = (\n"}, "code: '(' was never closed", 1),
            ({"code": "raise SystemExit(3)"}, "code: calls sys.exit(3)", None),
            ({"code": "rows = 1\nspark.stop()"}, "code: calls spark.stop(); it may only set", 2),
            ({"code": "x = 1"}, "code: execution_output is not set", None),
            ({"code": "execution_output = 5"}, "code: execution_output is a int", None),
            (
                {"code": "def f(x: str): ...\nexecution_output = f.__annotations__['x']"},
                "code: execution_output is a type",  # and no text, as by ``from __future__``
                None,
            ),
        ],
    )
    def test_a_query_that_cannot_be(self, analyst: Analyst, keys: Any, words: str, line: int | None) -> None:
        found = error(analyst, **keys)

        assert words in str(found)
        assert found.line == line
        assert "\n" not in str(found)

    def test_several_at_once(self, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """As a host prepares its queries: the end of one's code changes nothing for another's."""
        both, ended = threading.Barrier(2), threading.Event()
        meeting = SimpleNamespace(both=lambda: both.wait(60), ended=lambda: ended.wait(60))
        monkeypatch.setitem(sys.modules, "meeting", meeting)
        stream = "execution_output = spark.readStream.format('rate').load()"

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(
                query_data, session, manifest(code=f"import meeting\nmeeting.both()\n{stream}")
            )
            code = f"import meeting\nmeeting.both()\nmeeting.ended()\n{stream}\nspark.stop()"
            second = pool.submit(query_data, session, manifest(code=code))
            assert first.result(60).isStreaming
            ended.set()
            with pytest.raises(QueryError, match=r"code: calls spark\.stop\(\)") as caught:
                second.result(60)
        assert caught.value.line == 5
        assert session.range(3).count() == 3

    def test_what_code_raises(self, analyst: Analyst, session: Any) -> None:
        """Ctrl-C reaches the main thread alone: elsewhere, it is the code's, as whatever else it raises."""
        cancelled = {"code": "import asyncio\nraise asyncio.CancelledError('enough')"}
        assert str(error(analyst, **cancelled)) == "code: CancelledError: enough"

        interrupted = manifest(code="raise KeyboardInterrupt")
        with pytest.raises(KeyboardInterrupt):
            query_data(session, interrupted)
        with ThreadPoolExecutor(1) as pool:
            assert isinstance(pool.submit(query_data, session, interrupted).exception(60), QueryError)

    def test_nothing_was_run(self, session: Any, analyst: Analyst) -> None:
        error(analyst, sql="DROP TABLE shop_orders")

        assert session.catalog.tableExists("shop_orders")

    def test_the_line_is_the_files(self, analyst: Analyst, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text(
            "name: a\ntarget-table: shop_out\nsql: |\n  SELECT id,\n    prise\n  FROM shop_orders\n"
        )

        (found,) = problems_of_queries(analyst, read_folder(tmp_path, None))

        assert found.startswith(f"{tmp_path}/a.yaml:5: a: [UNRESOLVED_COLUMN")
        (tmp_path / "a.yaml").write_text(
            "name: a\ntarget-table: shop_out\nsql: SELECT prise FROM shop_orders\n"
        )
        (found,) = problems_of_queries(analyst, read_folder(tmp_path, None))
        assert found.startswith(f"{tmp_path}/a.yaml:3: a: [UNRESOLVED_COLUMN")

    @pytest.mark.parametrize(
        ("target", "words"),
        [
            ("nowhere", "nowhere: not found"),
            ("shop_view", "shop_view: is a view"),
            ("shop_plain", "the columns do not fit"),
        ],
    )
    def test_an_error_about_the_target_has_its_line(
        self, analyst: Analyst, tmp_path: Path, target: str, words: str
    ) -> None:
        (tmp_path / "a.yaml").write_text(
            f"name: a\ntarget-table: {target}\nsql: |\n  SELECT id, price\n  FROM shop_orders\n"
        )

        (found,) = problems_of_queries(analyst, read_folder(tmp_path, None))

        assert found.startswith(f"{tmp_path}/a.yaml:2: a: target-table {target}")
        assert words in found

    def test_so_has_one_about_a_target_of_the_template(self, analyst: Analyst, tmp_path: Path) -> None:
        template = tmp_path / "template.yaml"
        template.write_text("description: x\n\ntarget-table: nowhere_{name}\n")
        (tmp_path / "a.yaml").write_text("name: a\nsql: SELECT id, price FROM shop_orders\n")

        (found,) = problems_of_queries(analyst, read_folder(tmp_path, template))

        assert found.startswith(f"{template}:3: a: target-table nowhere_a: not found")

    def test_so_has_one_about_a_second_writer(self, analyst: Analyst, tmp_path: Path) -> None:
        for name in ("a", "b"):
            (tmp_path / f"{name}.yaml").write_text(
                f"name: {name}\nsql: SELECT id, price FROM shop_orders\ntarget-table: shop_out\n"
            )

        (found,) = problems_of_queries(analyst, read_folder(tmp_path, None))

        assert found.startswith(f"{tmp_path}/b.yaml:3: b: its target-table is in ")
        assert "which 'a' writes to as well" in found

    def test_a_definition_that_cannot_be_run(self, session: Any) -> None:
        with pytest.raises(ConfigError, match=r"table definition 'CREATE TABEL x': .*Syntax error"):
            Analyst(session, ["CREATE TABEL x"]).analyze(manifest())


def test_narrower_types_are_stored_and_not_guessed(analyst: Analyst) -> None:
    assert analyst.analyze(
        manifest(target_table="shop_small", sql="SELECT id, item AS price FROM shop_orders")
    )
    found = error(analyst, target_table="shop_out", sql="SELECT item AS id, price FROM shop_orders")
    assert "id is int in the table, but string in the query: CAST(id AS INT)" in str(found)


def test_a_table_with_a_watermark_can_be_counted_in_windows(analyst: Analyst) -> None:
    sql = "SELECT window.start, count(*) AS n FROM shop_timed GROUP BY window(at, '1 minute')"

    keys = {"sql": sql, "target_table": "shop_counts"}
    assert plan(analyst, **keys) == plan(analyst, **keys), "Spark 4 gives each watermark a UUID"


@pytest.mark.parametrize("name", ["shop_ticks", "default.shop_ticks", "spark_catalog.default.shop_ticks"])
def test_a_table_of_a_source_that_is_a_stream_only(analyst: Analyst, name: str) -> None:
    """Spark cannot read it whole, not even to describe it."""
    sql = f"SELECT CAST(value AS INT) AS id, 1D AS price FROM {name}"
    plan(analyst, target_table="shop_plain", sql=sql, include_query_metadata=False)
    windows = f"SELECT window.start, count(*) AS n FROM {name} GROUP BY window(timestamp, '1 hour')"
    assert plan(analyst, target_table="shop_counts", sql=windows)  # which append mode needs a watermark for


def test_a_target_that_can_be_read_as_a_stream_only(analyst: Analyst) -> None:
    sql = "SELECT timestamp, value FROM shop_ticks"
    found = error(analyst, target_table="shop_ticks", sql=sql, include_query_metadata=False)
    assert str(found).startswith("target-table shop_ticks: exists, but Spark cannot read it: ")
    assert "does not support batch scan" in str(found) or "rate is not a valid Spark SQL Data" in str(found)
    assert "ExecutionException" not in str(found), "which the cache of Spark 3 puts around its reason"


def test_static_tables_are_read_whole(analyst: Analyst) -> None:
    sql = "SELECT id, price FROM shop_orders JOIN shop_kinds USING (item)"

    assert plan(analyst, sql=sql, static_tables=["default.shop_kinds"]) != plan(analyst, sql=sql)
    found = error(analyst, sql="SELECT 1 AS id, 2D AS price FROM shop_kinds", static_tables=["shop_kinds"])
    assert "reads no stream" in str(found)


def test_a_target_with_padded_columns(analyst: Analyst, folder: Path) -> None:
    """Spark puts a projection above the relation of such a table."""
    found = analyst.analyze(
        manifest(target_table="shop_chars", sql="SELECT id, price, item FROM shop_orders")
    )

    assert found.sink_folder.endswith(f"{folder}/chars")


def test_without_metadata(analyst: Analyst) -> None:
    assert analyst.analyze(manifest(target_table="shop_plain", include_query_metadata=False))


def test_properties_that_a_session_cannot_take(analyst: Analyst) -> None:
    found = analyst.analyze(
        manifest(sparkProperties={"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": 3})
    )

    assert found.without_effect == ("spark.executor.memory",)


class TestDefinitions:
    def test_statements_are_split_as_spark_reads_them(self) -> None:
        sql = """-- a; comment
SELECT 'it''s; \\'quoted\\';' AS a; /* b; */ SELECT ";" , `;`;;
SELECT /*+ BROADCAST(t) */ 1 - -1 -- end"""

        assert split_statements(sql) == [
            "SELECT 'it''s; \\'quoted\\';' AS a",
            'SELECT ";" , `;`',
            "SELECT /*+ BROADCAST(t) */ 1 - -1",
        ]

    def test_comments_may_be_in_each_other(self) -> None:
        assert split_statements("/* a /* b; */ c; */ SELECT 1; SELECT 2 /* open; ") == [
            "SELECT 1",
            "SELECT 2 /* open;",
        ]

    def test_each_runs_once_but_for_what_a_session_has_of_its_own(self, session: Any, tmp_path: Path) -> None:
        statements = [
            f"CREATE TABLE once_only (a INT) USING json LOCATION '{tmp_path}'",
            "CREATE TEMPORARY VIEW each_time AS SELECT 1 AS a",
            "SET spark.sql.shuffle.partitions = 7",
        ]
        definitions = TableDefinitions()
        for _ in range(2):
            mine = session.newSession()
            definitions.run(mine, statements)
            assert mine.table("each_time").count() == 1
            assert mine.conf.get("spark.sql.shuffle.partitions") == "7"

    def test_a_table_that_is_defined_anew_is_another_one(self, session: Any, tmp_path: Path) -> None:
        definitions = TableDefinitions()
        for columns in ("a INT", "a INT, b INT", "a INT"):
            statement = f"CREATE TABLE IF NOT EXISTS again ({columns}) USING json LOCATION '{tmp_path}'"
            definitions.run(session, [statement])
            assert len(session.table("again").columns) == columns.count(" INT")

    def test_one_whose_rows_would_be_lost_is_refused(self, session: Any) -> None:
        definitions = TableDefinitions()
        definitions.run(session, ["CREATE TABLE kept (a INT) USING json"])
        with pytest.raises(
            ConfigError, match="table definition of `kept`: has changed, but Spark keeps the rows"
        ):
            definitions.run(session, ["CREATE TABLE kept (a INT, b INT) USING json"])


def deployed_with(analyst: Analyst, code: str) -> DeployedQuery:
    given = manifest(code=code)
    plan = analyst.analyze(given).fingerprint
    meta = Meta("id", 1, "2026-01-01 00:00:00", "checkpoints/q/1/x", "h", "d", plan, analyst.spark_version)
    return DeployedQuery(given, meta)


def is_same(analyst: Analyst, before: str, after: str) -> bool:
    given = manifest(code=after)
    return analyst.is_same_query(deployed_with(analyst, before), given, analyst.analyze(given).fingerprint)


CODE = """execution_output = spark.readStream.table('shop_orders').where("price > 5").selectExpr('id', 'price')"""
VARIABLE = 'condition = "price > 5"\n' + CODE.replace('"price > 5"', "condition")
TEXT = CODE.replace("price > 5", "item = 'a b'")
UDF = """
from pyspark.sql.functions import udf
@udf("string")
def joined(item):
    return item + "a b"
execution_output = spark.readStream.table('shop_orders').select('id', 'price').where(joined('id') != 'x')
"""


@pytest.mark.parametrize("code", [CODE, VARIABLE])
def test_a_blank_in_the_sql_of_code_is_no_change(analyst: Analyst, code: str) -> None:
    wider = code.replace("price > 5", "price  >\\n5 ")

    assert plan(analyst, code=wider) != plan(analyst, code=code), "what is recorded stays as it was"
    assert is_same(analyst, code, wider)
    assert is_same(analyst, wider, code)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CODE, CODE.replace("price > 5", "price > 6")),
        (TEXT, TEXT.replace("a b", "a  b")),
        (UDF, UDF.replace("a b", "a  b")),
        # A text that is used for something else, too.
        (f"{VARIABLE}\nprint(condition)", f"{VARIABLE}\nprint(condition)".replace("price > 5", "price  > 5")),
    ],
)
def test_a_blank_that_may_mean_something_is_a_change(analyst: Analyst, before: str, after: str) -> None:
    assert not is_same(analyst, before, after)
