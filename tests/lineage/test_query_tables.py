"""The tables of queries that are written in other databases' SQL."""

from __future__ import annotations

import random
import sys

import pytest

from spark_events.lineage.query_tables import tables_of_query
from tests.support.requirements import missing
from tests.support.tpc import load


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("select x.a from T1 x, T2 y where x.a = y.a", ["T1", "T2"]),
        ("select * from (select * from T2) z, T1", ["T2", "T1"]),
        ("select * from (T1 join T2 on true), T3", ["T1", "T2", "T3"]),
        ("select * from T1 as x join T2 using (a, b), s.T3", ["T1", "T2", "s.T3"]),
        ("select * from T1 t(a, b), T2 where a in (1, 2) group by a, b", ["T1", "T2"]),
        ("select a, 'copied from T9' from T1 /* joined from T8 */ -- from T7", ["T1"]),
        ("select E'it\\'s from T9', 'it''s from T8', $x$from T7$x$ from T1", ["T1"]),
        ("select extract(year from d), substring(a from 2 for 3), trim(both ' ' from n) from T1", ["T1"]),
        ("select coalesce((select max(a) from T2), 0) from T1", ["T2", "T1"]),
        ("select a is not distinct from b, count(distinct c) from T1", ["T1"]),
        ("select * from generate_series(1, 10) g, table(f(1)) h, T1", ["T1"]),
        ("select * from T1 left join lateral (select * from only T2) u on true", ["T1", "T2"]),
        ("select * from T1 cross apply f(T1.a) outer apply (select 1 from T2) x", ["T1", "T2"]),
        ('select "from" from "My ""Table", `db`.`t`, [dbo].[u]', ['My "Table', "db.t", "dbo.u"]),
        ("select * from db..t with (nolock), u (nolock) join T3@far on 1 = 1", ["db..t", "u", "T3@far"]),
        (
            "with recursive c(n) as (select 1 union all select n + 1 from C), D as (select * from T2) "
            "select * from c, d, T1",
            ["T2", "T1"],
        ),
        ("select * from (with c as (select * from T1) select * from c) x", ["T1"]),
        (
            "(select * from T1 where a in (select b from T2) union all select * from T3 order by a, b) q",
            ["T1", "T2", "T3"],
        ),
        ("select 1 from dual", []),
        ("select 'from T9", []),
        ("select * from", []),
        (") from T1 (((", []),
    ],
)
def test_what_is_a_table(query: str, tables: list[str]) -> None:
    assert tables_of_query(query) == tables


@pytest.mark.skipif(sys.version_info < (3, 11), reason="DuckDB's extensions need Python 3.11")
@pytest.mark.parametrize("name", ["tpch", "tpcds"])
def test_queries_have_the_tables_that_sqlglot_finds(name: str) -> None:
    try:
        import sqlglot

        suite = load(name)
    except ImportError as error:
        missing(f"{error.name} is not installed; pip install --group test")
    for number, query in suite.queries.items():
        tree = sqlglot.parse_one(query, read="spark")
        ctes = {cte.alias_or_name.lower() for cte in tree.find_all(sqlglot.exp.CTE)}
        expected = {table.name.lower() for table in tree.find_all(sqlglot.exp.Table)} - ctes
        for dialect in ("postgres", "mysql", "tsql", "oracle", "snowflake"):
            written = tree.sql(dialect, pretty=number % 2 == 0)
            assert {table.lower() for table in tables_of_query(written)} == expected, written


@pytest.mark.parametrize("seed", range(200))
def test_queries_that_are_put_together_at_random(seed: int) -> None:
    """Each table is counted when it is written down, and each thing that only looks like one is not."""
    query = _Query(random.Random(seed))
    text = query.select(4)
    assert tables_of_query(text) == list(dict.fromkeys(query.tables)), text


class _Query:
    """A query with tables at all places where there may be some."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.tables: list[str] = []

    def select(self, depth: int) -> str:
        columns = ", ".join(self._column(depth) for _ in range(self._chance.randint(1, 3)))
        text = f"{self._word('select')} {columns} {self._word('from')} {self._from(depth)}"
        if self._chance.random() < 0.4:
            text += f" where {self._condition(depth)}"
        if self._chance.random() < 0.3:
            text += " group by a, b"
        if depth and self._chance.random() < 0.2:
            text += f" union all {self.select(depth - 1)}"
        return text

    def _word(self, word: str) -> str:
        return self._chance.choice([word, word.upper(), f"\n{word} /* from N1 */", f"-- join N2\n{word}"])

    def _column(self, depth: int) -> str:
        odd = ["a", "'x from N3'", "extract(year from d)", "a is distinct from b", "f(a, b)", 'x."from"', "3"]
        if depth and self._chance.random() < 0.2:
            return f"({self.select(depth - 1)}) as c"
        return self._chance.choice(odd)

    def _condition(self, depth: int) -> str:
        if depth and self._chance.random() < 0.4:
            return f"a in ({self.select(depth - 1)}) and b in (1, 2)"
        return "a = 1 and substring(b from 2) <> ''"

    def _from(self, depth: int) -> str:
        items = [self._item(depth)]
        for _ in range(self._chance.randint(0, 2)):
            how = self._chance.choice([", ", " join ", " left join ", " cross join "])
            on = " on x.a = y.a and x.b in (1, 2)" if how in (" join ", " left join ") else ""
            items.append(f"{how}{self._item(depth)}{on}")
        return "".join(items)

    def _item(self, depth: int) -> str:
        kind = self._chance.random()
        if depth and kind < 0.2:
            return f"({self.select(depth - 1)}) as s"
        if depth and kind < 0.3:
            return f"({self._from(depth - 1)})"
        if kind < 0.4:
            return self._chance.choice(["generate_series(1, 3) g", "lateral unnest(x.a, y.b) u"])
        name = f"T{self._chance.randint(1, 9)}"
        written, name = self._chance.choice(
            [
                (name, name),
                (f"s.{name}", f"s.{name}"),
                (f'"s"."{name} x"', f"s.{name} x"),
                (f"[{name}]", name),
            ]
        )
        self.tables.append(name)
        return written + self._chance.choice(["", " x", " as x", " as x (a, b)"])
