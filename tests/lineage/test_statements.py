"""What is found in plans, statement by statement, on a real Spark; none of them is run."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from spark_events.api import Boundedness, SourceLineageVertex, TableLineageDataset
from spark_events.lineage import lineage_of

pytestmark = pytest.mark.spark

# SQL, its sources, its sinks, and for columns what they come from.
STATEMENTS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "insert": (
        "INSERT INTO totals SELECT c.name, sum(o.amount), count(o.id) FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.name",
        "customers orders",
        "INSERT totals",
        {
            "name": "customers.name IDENTITY",
            "total": "orders.amount AGGREGATION",
            "n": "orders.id AGGREGATION masked",
        },
    ),
    "insert by name": (
        "INSERT INTO totals BY NAME SELECT 1L AS n, name, CAST(id AS DECIMAL(20,2)) AS total FROM customers",
        "customers",
        "INSERT totals",
        {"name": "customers.name IDENTITY", "total": "customers.id TRANSFORMATION"},
    ),
    "insert overwrite": (
        "INSERT OVERWRITE totals SELECT name, NULL, id FROM customers",
        "customers",
        "OVERWRITE totals",
        {"name": "customers.name IDENTITY", "n": "customers.id TRANSFORMATION"},
    ),
    "insert into a partition": (
        "INSERT OVERWRITE orders PARTITION (day = DATE'2026-01-01') SELECT id, id, NULL, NULL FROM customers",
        "customers",
        "OVERWRITE orders",
        {"id": "customers.id IDENTITY", "customer": "customers.id IDENTITY"},
    ),
    "insert from several": (
        "FROM customers INSERT INTO totals SELECT name, 1, 1 INSERT OVERWRITE DIRECTORY '/nowhere/out' USING csv SELECT id",
        "customers",
        "INSERT totals, OVERWRITE out",
        {"name": "customers.name IDENTITY", "id": "customers.id IDENTITY"},
    ),
    "insert structs as they are": (
        "INSERT INTO places_kept TABLE places",
        "places",
        "INSERT places_kept",
        {
            "place": "places.place IDENTITY",
            "spots": "places.spots IDENTITY",
            "by_name": "places.by_name IDENTITY",
        },
    ),
    "insert structs whose fields change places": (
        "INSERT INTO places_kept (place) SELECT if(isnull(place), null, named_struct('x', double(place.at.y), 'at', place.at)) FROM places",
        "places",
        "INSERT places_kept",
        {"place": "places.place TRANSFORMATION+CONDITIONAL"},
    ),
    "insert structs but for those that are not there": (
        "INSERT INTO places_kept (place) SELECT if(isnull(place), named_struct('x', 1D, 'at', named_struct('y', '')), place) FROM places",
        "places",
        "INSERT places_kept",
        {"place": "places.place TRANSFORMATION+CONDITIONAL"},
    ),
    "create table as": (
        "CREATE TABLE fresh USING orc AS SELECT id, name FROM customers",
        "customers",
        "CTAS fresh",
        {"id": "customers.id IDENTITY", "name": "customers.name IDENTITY"},
    ),
    "directory": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT id FROM orders",
        "orders",
        "OVERWRITE out",
        {"id": "orders.id IDENTITY"},
    ),
    "view": (
        "INSERT INTO totals SELECT loud_name, 1, id FROM loud",
        "customers",
        "INSERT totals",
        {"name": "customers.name TRANSFORMATION", "n": "customers.id TRANSFORMATION"},
    ),
    "common table expressions, one used twice": (
        "INSERT INTO totals WITH a AS (SELECT id, name FROM customers), b AS (SELECT id FROM a) SELECT a.name, 1, b.id FROM a JOIN b ON a.id = b.id",
        "customers",
        "INSERT totals",
        {"name": "customers.name IDENTITY", "n": "customers.id TRANSFORMATION"},
    ),
    "union": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT id, name FROM customers UNION ALL SELECT customer, 'x' FROM orders",
        "customers orders",
        "OVERWRITE out",
        {"id": "customers.id IDENTITY, orders.customer IDENTITY", "name": "customers.name IDENTITY"},
    ),
    "except": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT id FROM customers EXCEPT SELECT customer FROM orders",
        "customers orders",
        "OVERWRITE out",
        {"id": "customers.id IDENTITY"},
    ),
    "scalar subquery": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT name, (SELECT max(amount) FROM orders o WHERE o.customer = c.id) AS most FROM customers c",
        "customers orders",
        "OVERWRITE out",
        {
            "name": "customers.name IDENTITY",
            "most": "customers.id CONDITIONAL+FILTER, orders.amount AGGREGATION, orders.customer FILTER",
        },
    ),
    "window": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT sum(amount) OVER (PARTITION BY customer ORDER BY day) AS running FROM orders",
        "orders",
        "OVERWRITE out",
        {"running": "orders.amount AGGREGATION, orders.customer WINDOW, orders.day WINDOW"},
    ),
    "case": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT CASE WHEN country = 'CH' THEN name ELSE 'abroad' END AS shown FROM customers",
        "customers",
        "OVERWRITE out",
        {"shown": "customers.country CONDITIONAL, customers.name TRANSFORMATION"},
    ),
    "masking": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT sha2(name, 256) AS hidden FROM customers",
        "customers",
        "OVERWRITE out",
        {"hidden": "customers.name TRANSFORMATION masked"},
    ),
    "generator": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT id, tag FROM orders LATERAL VIEW explode(tags) AS tag",
        "orders",
        "OVERWRITE out",
        {"id": "orders.id IDENTITY", "tag": "orders.tags TRANSFORMATION"},
    ),
    "rows that stack makes": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT country, what, text FROM customers LATERAL VIEW stack(3, 'name', name, 'id', cast(id AS string), country) AS what, text",
        "customers",
        "OVERWRITE out",
        {
            "country": "customers.country IDENTITY",
            "what": "customers.country IDENTITY",
            "text": "customers.id TRANSFORMATION, customers.name IDENTITY",
        },
    ),
    "rows of structs that an array names": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT country, kv.what, kv.text, pos FROM customers LATERAL VIEW posexplode(array(named_struct('what', 'name', 'text', name), named_struct('what', 'id', 'text', cast(id AS string)))) t AS pos, kv",
        "customers",
        "OVERWRITE out",
        {
            "country": "customers.country IDENTITY",
            "text": "customers.id TRANSFORMATION, customers.name IDENTITY",
        },
    ),
    "rows of structs, inline": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT a, b FROM (SELECT array(struct(id, name), struct(length(country) AS id, 'x' AS name)) AS pairs FROM customers) LATERAL VIEW OUTER inline(pairs) t AS a, b",
        "customers",
        "OVERWRITE out",
        {
            "a": "customers.country TRANSFORMATION, customers.id IDENTITY",
            "b": "customers.name IDENTITY",
        },
    ),
    "rows of arrays side by side": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT z.tags AS tag, z.words AS word, p FROM (SELECT arrays_zip(tags, words) AS zipped FROM (SELECT tags, split(cast(day AS string), '-') AS words FROM orders)) LATERAL VIEW posexplode(zipped) t AS p, z",
        "orders",
        "OVERWRITE out",
        {
            "tag": "orders.tags TRANSFORMATION",
            "word": "orders.day TRANSFORMATION",
            "p": "orders.day TRANSFORMATION, orders.tags TRANSFORMATION",
        },
    ),
    "rows of maps": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT what, text, k, v FROM customers LATERAL VIEW explode(map(country, name, 'id', string(id))) t AS what, text LATERAL VIEW posexplode(map_from_arrays(array(id), split(country, ','))) u AS p, k, v",
        "customers",
        "OVERWRITE out",
        {
            "what": "customers.country IDENTITY",
            "text": "customers.id TRANSFORMATION, customers.name IDENTITY",
            "k": "customers.id TRANSFORMATION",
            "v": "customers.country TRANSFORMATION",
        },
    ),
    "fields of several aggregates": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT kv.b AS b FROM (SELECT array(max(struct(id AS a, name AS b)), min(struct(length(country) AS a, country AS b))) AS pair FROM customers) LATERAL VIEW explode(pair) t AS kv",
        "customers",
        "OVERWRITE out",
        {
            "b": "customers.country AGGREGATION, customers.id AGGREGATION, customers.name AGGREGATION",
        },
    ),
    "rows of a map of entries": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT k, v FROM customers LATERAL VIEW explode(map_from_entries(array(struct(id, name)))) t AS k, v",
        "customers",
        "OVERWRITE out",
        {"k": "customers.id IDENTITY", "v": "customers.name IDENTITY"},
    ),
    "rows of a map that is read": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT k, v.x AS y FROM places LATERAL VIEW explode(by_name) t AS k, v",
        "places",
        "OVERWRITE out",
        {"k": "places.by_name TRANSFORMATION", "y": "places.by_name TRANSFORMATION"},
    ),
    "a subquery that tells whether there are rows": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND o.amount > 9) AS some FROM customers c",
        "customers orders",
        "OVERWRITE out",
        {
            "some": "customers.id CONDITIONAL+FILTER, orders.amount FILTER, orders.customer FILTER",
        },
    ),
    "rollup": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT country, count(DISTINCT name) AS names FROM customers GROUP BY ROLLUP (country)",
        "customers",
        "OVERWRITE out",
        {"country": "customers.country IDENTITY", "names": "customers.name AGGREGATION masked"},
    ),
    "pivot": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT * FROM (SELECT country, name FROM customers) PIVOT (max(name) FOR country IN ('CH' AS ch))",
        "customers",
        "OVERWRITE out",
        {"ch": "customers.country CONDITIONAL, customers.name AGGREGATION"},
    ),
    "pivot of two aggregates": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT * FROM (SELECT customer, day, amount FROM orders) PIVOT (sum(amount) AS s, max(amount) AS m FOR day IN (DATE'2026-11-23' AS mon))",
        "orders",
        "OVERWRITE out",
        {
            "customer": "orders.customer IDENTITY",
            "mon_s": "orders.amount AGGREGATION, orders.day CONDITIONAL",
            "mon_m": "orders.amount AGGREGATION, orders.day CONDITIONAL",
        },
    ),
    "aggregate of some rows": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT sum(amount) FILTER (WHERE day = DATE'2026-11-23') AS mondays FROM orders",
        "orders",
        "OVERWRITE out",
        {"mondays": "orders.amount AGGREGATION, orders.day CONDITIONAL"},
    ),
    "the value where another is greatest": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT max_by(customer, amount) AS best, min_by(day, amount) OVER (PARTITION BY id) AS worst FROM orders GROUP BY id, day, amount",
        "orders",
        "OVERWRITE out",
        {
            "best": "orders.amount CONDITIONAL, orders.customer AGGREGATION",
            "worst": "orders.amount CONDITIONAL, orders.day AGGREGATION, orders.id WINDOW",
        },
    ),
    "a list in the order of another column": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT listagg(name, ', ') WITHIN GROUP (ORDER BY country) AS names FROM customers",
        "customers",
        "OVERWRITE out",
        {"names": "customers.country SORT, customers.name AGGREGATION"},
    ),
    "the value and where it is greatest are one": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT max_by(amount, amount) AS most FROM orders",
        "orders",
        "OVERWRITE out",
        {"most": "orders.amount AGGREGATION+CONDITIONAL"},
    ),
    "fields of structs": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT both.n AS name, outer.s.c AS country, upper(outer.s.n) AS loud FROM"
        " (SELECT struct(name AS n, country AS c) AS both, struct(id, struct(name AS n, country AS c) AS s) AS outer FROM customers)",
        "customers",
        "OVERWRITE out",
        {
            "name": "customers.name IDENTITY",
            "country": "customers.country IDENTITY",
            "loud": "customers.name TRANSFORMATION",
        },
    ),
    "fields of a struct that a view makes": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT box.c AS country, max(id) AS last FROM boxed GROUP BY box.c",
        "customers",
        "OVERWRITE out",
        {"country": "customers.country IDENTITY", "last": "customers.id AGGREGATION"},
    ),
    "fields of structs of several rows": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT s.n AS name FROM"
        " (SELECT struct(name AS n, id AS i) AS s FROM customers UNION ALL SELECT struct(country AS n, id AS i) AS s FROM customers)",
        "customers",
        "OVERWRITE out",
        {
            "name": "customers.country TRANSFORMATION, customers.id TRANSFORMATION, customers.name TRANSFORMATION"
        },
    ),
    "fields of the greatest struct": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT best.customer AS best, best.amount AS most, upper(latest.tag) AS tag FROM"
        " (SELECT max(struct(amount, customer)) FILTER (WHERE id > 0) AS best, first(struct(tags[0] AS tag, id)) AS latest FROM orders)",
        "orders",
        "OVERWRITE out",
        {
            "best": "orders.amount CONDITIONAL, orders.customer AGGREGATION, orders.id CONDITIONAL",
            "most": "orders.amount AGGREGATION, orders.id CONDITIONAL",
            "tag": "orders.tags AGGREGATION",
        },
    ),
    "lateral join": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT c.name, t.most FROM customers c, LATERAL (SELECT max(amount) AS most FROM orders WHERE customer = c.id) t",
        "customers orders",
        "OVERWRITE out",
        {"name": "customers.name IDENTITY", "most": "orders.amount AGGREGATION"},
    ),
    "lateral join of the left side's columns": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT t.doubled, u.tag FROM orders o, LATERAL (SELECT o.amount * 2 AS doubled) t, LATERAL explode(o.tags) u(tag)",
        "orders",
        "OVERWRITE out",
        {"doubled": "orders.amount TRANSFORMATION", "tag": "orders.tags TRANSFORMATION"},
    ),
    "higher-order function": (
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT transform(tags, t -> concat(t, id)) AS tagged FROM orders",
        "orders",
        "OVERWRITE out",
        {"tagged": "orders.id TRANSFORMATION, orders.tags TRANSFORMATION"},
    ),
    "files by path": (
        "INSERT INTO totals SELECT name, total, n FROM totals WHERE n > 1",
        "totals",
        "INSERT totals",
        {"name": "totals.name IDENTITY", "total": "totals.total IDENTITY", "n": "totals.n IDENTITY"},
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(lineage: Any, spark: Any, name: str) -> None:
    sql, sources, sinks, columns = STATEMENTS[name]
    if "listagg" in sql and spark.version < "4":
        pytest.skip("listagg came with Spark 4")
    found = lineage(sql)
    assert found.incomplete == ""
    assert found.sources == tuple(sources.split())
    assert ", ".join(found.sinks) == sinks
    assert {column: ", ".join(inputs) for column, inputs in found.columns.items()} == columns


def test_what_decides_which_rows_there_are(lineage: Any) -> None:
    found = lineage(
        "INSERT INTO totals SELECT c.name, 1, 1 FROM orders o JOIN customers c ON o.customer = c.id "
        "WHERE c.country IN (SELECT country FROM customers WHERE id > 3) AND EXISTS (SELECT 1 FROM totals t WHERE t.n = o.id) "
        "GROUP BY c.name, o.day ORDER BY o.day"
    )
    assert found.influences == (
        "customers.country FILTER",
        "customers.id JOIN+FILTER",
        "customers.name GROUP_BY",
        "orders.customer JOIN",
        "orders.day GROUP_BY+SORT",
        "orders.id FILTER",
        "totals.n FILTER",
    )
    assert found.columns == {"name": ("customers.name IDENTITY",)}


def test_each_table_of_several_has_its_conditions(spark: Any) -> None:
    """Those of its own branch, and those of what all branches read."""
    graph = lineage_of(
        spark,
        "FROM (SELECT id, customer, amount, day FROM orders WHERE day > DATE'2026-01-01') "
        "INSERT INTO totals SELECT 'x', amount, 1 WHERE customer > 1 "
        "INSERT INTO customers SELECT id, 'y', 'z' WHERE amount > 5 GROUP BY id",
    )
    decided = {
        edge.sink.datasets[0].name.rpartition("/")[2]: sorted(
            str(column.column) for column in edge.influences
        )
        for edge in graph.relations
    }
    assert decided == {"totals": ["customer", "day"], "customers": ["amount", "day", "id"]}


def test_rows_that_are_kept_by_all_of_their_columns(spark: Any, lineage: Any) -> None:
    """DISTINCT, UNION and dropDuplicates() group by all columns, as GROUP BY of them does; INTERSECT and EXCEPT
    compare all of both sides.
    """
    spark.table("orders").select("id", "customer").dropDuplicates().createOrReplaceTempView("dropped")
    for query, influences in {
        "SELECT DISTINCT id, customer FROM orders": ("orders.customer GROUP_BY", "orders.id GROUP_BY"),
        "SELECT * FROM dropped": ("orders.customer GROUP_BY", "orders.id GROUP_BY"),
        "SELECT id FROM orders UNION SELECT id FROM customers": (
            "customers.id GROUP_BY",
            "orders.id GROUP_BY",
        ),
        "SELECT id FROM orders UNION ALL SELECT id FROM customers": (),
        "SELECT id FROM orders INTERSECT SELECT id FROM customers": (
            "customers.id FILTER",
            "orders.id FILTER",
        ),
        "SELECT customer, day FROM orders EXCEPT ALL SELECT id, day FROM orders": (
            "orders.customer FILTER",
            "orders.day FILTER",
            "orders.id FILTER",
        ),
    }.items():
        found = lineage(f"INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json {query}")
        assert found.influences == influences, query


def test_structs_whose_fields_are_replaced(spark: Any, lineage: Any) -> None:
    """withField() and dropFields(): what is replaced or dropped is no source of the struct, or of a field."""
    from pyspark.sql import functions

    customers = spark.table("customers")
    made = customers.select(functions.struct("id", "name").alias("made"))
    changed = customers.select(
        functions.struct("id", "name").withField("name", functions.col("country")).alias("changed")
    )
    read = spark.table("places").select(
        functions.col("place").withField("x", functions.lit(1.0)).alias("read")
    )
    for frame, columns in {
        changed.select("changed", "changed.id", "changed.name"): {
            "changed": ("customers.country TRANSFORMATION", "customers.id TRANSFORMATION"),
            "id": ("customers.id IDENTITY",),
            "name": ("customers.country IDENTITY",),
        },
        made.select(functions.col("made").dropFields("name").alias("dropped")): {
            "dropped": ("customers.id TRANSFORMATION",)
        },
        read.select("read", "read.x", "read.at"): {
            "read": ("places.place TRANSFORMATION",),
            "at": ("places.place TRANSFORMATION",),
        },
    }.items():
        frame.createOrReplaceTempView("framed")
        found = lineage("INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT * FROM framed")
        assert found.columns == columns


def test_what_spark_runs_to_analyze_it_is_not_run(spark: Any, lineage: Any, tmp_path: Path) -> None:
    """EXECUTE IMMEDIATE runs its statement when Spark analyzes it, and a script all of them."""
    if spark.version < "4.1":
        pytest.skip("Spark 4.1 runs them when it analyzes them")
    out = tmp_path / "out"
    write = f"INSERT OVERWRITE DIRECTORY '{out}' USING json SELECT 1 AS id, name FROM customers"
    found = lineage(f'EXECUTE IMMEDIATE "{write}"')
    assert (found.sources, found.columns) == (("customers",), {"name": ("customers.name IDENTITY",)})
    spark.sql(f'DECLARE OR REPLACE VARIABLE written STRING DEFAULT "{write}"')
    for statement, why in {
        "EXECUTE IMMEDIATE written": "a text that is not known before it runs",
        f'EXECUTE IMMEDIATE "{write} WHERE id = ?" USING 1': "a text that is not known before it runs",
        f"BEGIN {write}; END": "pass its statements one by one",
        "CALL system.expire_snapshots('orders')": "Spark runs a procedure to analyze it",
    }.items():
        with pytest.raises(ValueError, match=why):
            lineage_of(spark, statement)
    assert not out.exists()


def test_a_subquery_for_a_value_decides_no_rows(lineage: Any) -> None:
    for value in (
        "(SELECT max(amount) FROM orders o WHERE o.customer = c.id)",
        "EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
        "c.id IN (SELECT customer FROM orders WHERE amount > 1)",
    ):
        found = lineage(
            f"INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT {value} AS value FROM customers c"
        )
        assert found.influences == (), value


def test_a_recursion_ends(spark: Any, lineage: Any) -> None:
    if spark.version < "4.1":
        pytest.skip("recursive queries came with Spark 4.1")
    found = lineage(
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json WITH RECURSIVE up(id, step) AS "
        "(SELECT id, 1 FROM customers UNION ALL SELECT o.customer, step + 1 FROM up JOIN orders o ON up.id = o.id) "
        "SELECT * FROM up"
    )
    assert found.sources == ("customers", "orders")
    assert found.columns["id"] == ("customers.id IDENTITY", "orders.customer IDENTITY")
    assert found.influences == ("customers.id JOIN", "orders.customer JOIN", "orders.id JOIN")


def test_the_turns_of_a_recursion(spark: Any, lineage: Any) -> None:
    """Each reads the columns of the one before, so that values and conditions may come from many turns back."""
    if spark.version < "4.1":
        pytest.skip("recursive queries came with Spark 4.1")
    found = lineage(
        "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json WITH RECURSIVE turning(a, b, c, step) AS "
        "(SELECT string(id), string(customer), string(amount), 1 FROM orders UNION ALL "
        "SELECT b, nullif(c, d), a, step + 1 FROM turning LATERAL VIEW explode(array(a)) AS d WHERE a < '3') "
        "SELECT a, b, c FROM turning"
    )
    assert found.sources == ("orders",)
    for column in ("a", "b", "c"):
        assert [each.split()[0] for each in found.columns[column]] == [
            "orders.amount", "orders.customer", "orders.id"
        ]  # fmt: skip
    assert [each.split()[0] for each in found.influences] == ["orders.amount", "orders.customer", "orders.id"]


def test_a_dataframe_has_sources_alone(spark: Any, lineage: Any) -> None:
    found = lineage(spark.table("loud").filter("id > 1"))
    assert (found.sources, found.sinks) == (("customers",), ())


def test_functions_in_python(spark: Any, lineage: Any) -> None:
    from pyspark.sql import functions

    @functions.udf("string")
    def shout(text: str) -> str:
        return text.upper()

    def passed_on(batches: Any) -> Any:
        yield from batches

    customers = spark.table("customers")
    customers.select("id", shout("name").alias("shouted")).createOrReplaceTempView("shouting")
    customers.select("id", "name").mapInPandas(passed_on, "a int, b string").createOrReplaceTempView("mapped")
    by_udf = lineage("INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT * FROM shouting")
    assert by_udf.columns == {"id": ("customers.id IDENTITY",), "shouted": ("customers.name TRANSFORMATION",)}
    mapped = lineage("INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT * FROM mapped")
    assert mapped.columns["b"] == ("customers.id TRANSFORMATION", "customers.name TRANSFORMATION")


def test_functions_in_python_for_groups(spark: Any, lineage: Any) -> None:
    """What rows are grouped by decides which rows there are."""

    def passed_on(frame: Any) -> Any:
        return frame

    def first(frame: Any, _other: Any) -> Any:
        return frame

    orders, customers = spark.table("orders"), spark.table("customers")
    schema, by_country = "id int", customers.groupBy("country")
    by_country.applyInPandas(passed_on, schema).createOrReplaceTempView("in_pandas")
    in_arrow = by_country.applyInArrow if spark.version >= "4" else by_country.applyInPandas
    in_arrow(passed_on, schema).createOrReplaceTempView("in_arrow")
    both = orders.groupBy("customer").cogroup(customers.groupBy("id"))
    both.applyInPandas(first, schema).createOrReplaceTempView("in_both")
    for view, influences in {
        "in_pandas": ("customers.country GROUP_BY",),
        "in_arrow": ("customers.country GROUP_BY",),
        "in_both": ("customers.id JOIN", "orders.customer JOIN"),
    }.items():
        found = lineage(f"INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT * FROM {view}")
        assert found.influences == influences, view


def test_state_with_first_rows(spark: Any, lineage: Any) -> None:
    """The keys of the state's first rows decide which rows there are, as those of the other rows do."""
    if spark.version < "4":
        pytest.skip("transformWithState came with Spark 4")
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None: ...

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
            yield from rows

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None: ...  # noqa: N802, N803

        def close(self) -> None: ...

    known = spark.table("customers").groupBy("id")
    counted = (
        spark.table("orders")
        .groupBy("customer")
        .transformWithStateInPandas(Counting(), "n int", "append", "none", initialState=known)
    )
    counted.createOrReplaceTempView("counted")
    found = lineage("INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT * FROM counted")
    assert found.influences == ("customers.id GROUP_BY", "orders.customer GROUP_BY")


def test_caching_hides_nothing(spark: Any, lineage: Any) -> None:
    cached = spark.table("customers").select("id", "country").cache()
    cached.createOrReplaceTempView("cached")
    try:
        found = lineage("INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT country FROM cached")
    finally:
        cached.unpersist()
    assert found.columns == {"country": ("customers.country IDENTITY",)}


@pytest.mark.parametrize("of_format", ["parquet", "orc", "csv", "json", "text"])
def test_files(spark: Any, tmp_path: Path, of_format: str) -> None:
    for day in ("2026-01-01", "2026-01-02"):
        folder = tmp_path / "in" / f"day={day}"
        spark.createDataFrame([("a",)], "value string").write.format(of_format).save(str(folder))
    for path in (tmp_path / "in", tmp_path / "in" / "day=2026-01-01", tmp_path / "in" / "day=*"):
        graph = lineage_of(spark, spark.read.format(of_format).load(str(path)))
        ((dataset,),) = [vertex.datasets for vertex in graph.sources]
        assert (dataset.namespace, dataset.name) == ("file", str(tmp_path / "in"))
        assert dataset.facets["config"].config["format"] == of_format


def test_tables_say_where_they_are_and_how_they_are_called(spark: Any, warehouse: Path) -> None:
    graph = lineage_of(spark, "SELECT * FROM customers")
    (vertex,) = graph.sources
    assert isinstance(vertex, SourceLineageVertex)
    assert vertex.boundedness is Boundedness.BOUNDED
    (dataset,) = vertex.datasets
    assert isinstance(dataset, TableLineageDataset)
    assert (dataset.namespace, dataset.name) == ("file", str(warehouse / "customers"))
    assert dataset.identifier == "spark_catalog.default.customers"
    assert dataset.facets["symlinks"].identifiers == ((f"file:{warehouse}", "default.customers"),)
    assert [(field.name, field.type) for field in dataset.facets["schema"].fields] == [
        ("id", "int"),
        ("name", "string"),
        ("country", "string"),
    ]


def test_a_statement_is_not_run(spark: Any) -> None:
    lineage_of(spark, "CREATE TABLE never USING parquet AS SELECT 1 AS one")
    assert not spark.catalog.tableExists("never")


def test_a_wrong_statement_raises_what_spark_raises(spark: Any) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="nobody"):
        lineage_of(spark, "INSERT INTO totals SELECT nobody FROM customers")


def test_what_is_not_known_of_an_rdd_is_said(spark: Any, tmp_path: Path) -> None:
    """Where a program has rows of a list from; of an RDD that reads files, the files are known, but no columns."""
    (tmp_path / "some.txt").write_text("1")
    local = lineage_of(spark, spark.createDataFrame([(1,)], "id int"))
    lines = spark.sparkContext.textFile(str(tmp_path)).map(lambda line: (int(line),))
    of_files = lineage_of(spark, spark.createDataFrame(lines, "id int"))
    local_copy = spark.range(3).localCheckpoint().rdd.map(tuple)
    of_copy = lineage_of(spark, spark.createDataFrame(local_copy, "id int"))

    of_program = "a DataFrame was made of the program's own data: where that is from is not known"
    assert local.incomplete == of_program
    assert [dataset.name for vertex in of_files.sources for dataset in vertex.datasets] == [str(tmp_path)]
    assert of_files.incomplete == "a DataFrame was made of an RDD: which columns that reads is not known"
    assert of_copy.sources == ()
    assert of_copy.incomplete == "an RDD reads what is not known: LocalCheckpointRDD"


def test_only_so_many_rdds_are_looked_at(spark: Any) -> None:
    from pyspark import RDD

    context = spark.sparkContext
    base = context.parallelize([1], 1)._jrdd
    many = context.union([RDD(base.coalesce(1), context) for _ in range(10_000)])
    rows = many.map(lambda one: (one,))
    graph = lineage_of(spark, spark.createDataFrame(rows, "id int"))
    assert graph.incomplete == "an RDD reads what is not known: more than 10000 RDDs"


def test_a_query_of_a_database(spark: Any, tmp_path: Path) -> None:
    """Its table is known; the columns are the query's own, and no schema of the table."""
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    spark.sql("SELECT 1 AS id, 2 AS price").write.jdbc(url, "SRC")
    read = spark.read.format("jdbc").option("url", url)
    whole = lineage_of(spark, read.option("dbtable", "SRC").load())
    read = spark.read.format("jdbc").option("url", url)
    queried = lineage_of(spark, read.option("query", 'SELECT "id" AS "i2" FROM SRC').load())
    ((table,),) = [vertex.datasets for vertex in whole.sources]
    ((same,),) = [vertex.datasets for vertex in queried.sources]

    assert [field.name for field in table.facets["schema"].fields] == ["id", "price"]
    assert same.key == table.key
    assert "schema" not in same.facets or same.facets["schema"].fields == ()
    assert queried.incomplete == "a query was sent to a database: which columns it reads is not known"
    assert whole.incomplete == ""


def test_literals_come_from_nowhere(spark: Any, lineage: Any) -> None:
    rows = spark.createDataFrame([(1, datetime.date(2026, 1, 1))], "id int, day date")
    rows.createOrReplaceTempView("literals")
    found = lineage("INSERT INTO totals SELECT 'x', 1, id FROM literals")
    assert (found.sources, found.sinks, found.columns) == ((), ("INSERT totals",), {})


def test_a_plan_that_takes_too_long_has_its_tables(spark: Any) -> None:
    from spark_events.lineage.datasets import Catalogs
    from spark_events.lineage.graph import GraphBuilder
    from spark_events.lineage.plans import read_plan

    sums = ", ".join(f"sum(id + {i}) AS s{i}" for i in range(500))
    plan = spark.sql(f"SELECT {sums} FROM customers")._jdf.queryExecution().analyzed()
    graph = GraphBuilder(read_plan(spark, plan, budget_ms=0), Catalogs()).build()
    assert "spark.events.lineage.timeout" in graph.incomplete
    assert [dataset.table for vertex in graph.sources for dataset in vertex.datasets] == ["customers"]


def test_a_data_source_in_python_says_itself_what_it_reads(spark: Any) -> None:
    if spark.version < "4":
        pytest.skip("data sources in Python came with Spark 4")
    from pyspark.sql.datasource import DataSource, DataSourceReader

    from spark_events.api import LineageDataset, LineageVertex, LineageVertexProvider
    from spark_events.lineage import provide, withdraw

    class Birds(DataSource, LineageVertexProvider):
        @classmethod
        def name(cls) -> str:
            return "birds"

        def schema(self) -> str:
            return "kind string"

        def reader(self, schema: Any) -> DataSourceReader:
            raise NotImplementedError

        def lineage_vertex(self, options: Any, is_sink: bool) -> LineageVertex:
            return LineageVertex((LineageDataset(options["nest"], "birds://tree"),))

    spark.dataSource.register(Birds)
    provide("birds", Birds({}))
    try:
        spark.read.format("birds").option("nest", "robin").load().createOrReplaceTempView("birds")
        graph = lineage_of(
            spark, "INSERT OVERWRITE DIRECTORY '/nowhere/out' USING json SELECT kind FROM birds"
        )
    finally:
        withdraw("birds")
    assert [dataset.key for vertex in graph.sources for dataset in vertex.datasets] == [
        ("birds://tree", "robin")
    ]
    assert [source.column for source in graph.column_edges(graph.sinks[0])["kind"]] == ["kind"]
