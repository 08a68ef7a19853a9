"""Random queries over two small tables, whose columns have every kind of type: a grammar, and rows to fill it with."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

TABLES = {
    "facts": {"a": "int", "b": "int", "s": "text", "l": "list", "p": "pair", "m": "map", "ps": "pairs"},
    "names": {"k": "int", "v": "int", "w": "text", "q": "pair"},
}
SQL_TYPES = {
    "int": "int",
    "text": "string",
    "list": "array<int>",
    "pair": "struct<x: int, y: int>",
    "map": "map<string, int>",
    "pairs": "array<struct<x: int, y: int>>",
}
# How a value of each type is made; a type in braces stands for another expression.
EXPRESSIONS = {
    "int": (
        "{int} + {int}", "{int} * 3 - 1", "CASE WHEN {bool} THEN {int} ELSE {int} END", "if({bool}, {int}, {int})",
        "{pair}.x", "{pair}.y", "try_element_at({list}, 1)", "size({list})", "try_element_at({map}, 'p')", "length({text})",
        "aggregate({list}, 0, (sum, e) -> sum + e)", "coalesce({int}, {int})", "greatest({int}, {int})",
        "named_struct('f', {int}, 'g', {int}).f", "get({pairs}, 0).y", "try_element_at({pairs}.x, 1)",
    ),
    "text": ("concat({text}, {text})", "upper({text})", "cast({int} AS string)", "nullif({text}, {text})"),
    "list": (
        "array({int}, {int})", "transform({list}, e -> e + {int})", "{pairs}.x", "filter({list}, e -> e > {int})",
        "map_values({map})", "array_union({list}, {list})", "transform({pairs}, e -> e.y)",
    ),
    "pair": ("named_struct('x', {int}, 'y', {int})", "get({pairs}, 0)", "if({bool}, {pair}, {pair})"),
    "map": (
        "map('p', {int}, 'q', {int})", "transform_values({map}, (k, e) -> e + {int})",
        "map_from_arrays(array('p', 'q'), array({int}, {int}))",
    ),
    "pairs": (
        "array({pair}, {pair})", "transform({list}, e -> named_struct('x', e, 'y', {int}))",
        "filter({pairs}, e -> e.x > {int})",
    ),
    "bool": ("{int} > {int}", "{text} = {text}", "{int} IS NOT NULL", "exists({list}, e -> e > 3)"),
}  # fmt: skip
CONSTANTS = {
    "int": "7",
    "text": "'z'",
    "list": "array(1, 2)",
    "pair": "named_struct('x', 1, 'y', 2)",
    "map": "map('p', 1)",
    "pairs": "array(named_struct('x', 1, 'y', 2))",
}
AGGREGATES = (
    ("int", "sum({int})"), ("int", "max({int})"), ("int", "count(CASE WHEN {bool} THEN 1 END)"),
    ("int", "sum({int}) FILTER (WHERE {bool})"), ("list", "sort_array(collect_list({int}))"),
    ("int", "min_by({int}, named_struct('i', {int}, 'j', {int}))"),
    ("pair", "max(named_struct('x', {int}, 'y', {int}))"),
    ("pairs", "sort_array(collect_list(named_struct('x', {int}, 'y', {int})))"),
)  # fmt: skip
GENERATORS = (
    ("explode({list})", "int"), ("explode({map})", "text", "int"), ("inline({pairs})", "int", "int"),
    ("posexplode({pairs})", "int", "pair"), ("stack(2, {int}, {text}, {int}, {text})", "int", "text"),
    ("explode({pairs})", "pair"),
)  # fmt: skip
WINDOWS = (
    "sum({int}) OVER (PARTITION BY {int})",
    "max({int}) OVER (PARTITION BY {int})",
    "rank() OVER (PARTITION BY {int} ORDER BY {int})",
)
_TABLE = re.compile(f"<({'|'.join(TABLES)})>")
_HOLE = re.compile(r"\{(\w+)\}")


@dataclass
class Query:
    """A SELECT, and its columns with their types; ``of(facts=…)`` reads other tables in place of some."""

    sql: str
    columns: dict[str, str]

    def of(self, **others: str) -> str:
        return _TABLE.sub(lambda table: others.get(table[1], table[1]), self.sql)

    @property
    def tables(self) -> set[str]:
        return set(_TABLE.findall(self.sql))


class Grammar:
    """Makes queries: the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def query(self, depth: int) -> Query:
        """Return a query with so many steps above its tables."""
        if depth == 0:
            table = self._random.choice(list(TABLES))
            columns = {column: self._name() for column in TABLES[table]}
            listed = ", ".join(f"{column} AS {name}" for column, name in columns.items())
            types = {columns[column]: kind for column, kind in TABLES[table].items()}
            return Query(f"SELECT {listed} FROM <{table}>", types)
        steps = (
            self._project, self._filter, self._join, self._semi_join, self._aggregate, self._window, self._unite,
            self._generate, self._subquery, self._distinct, self._intersect, self._lateral,
        )  # fmt: skip
        return self._random.choice(steps)(depth)

    def value(self, kind: str) -> str:
        """Return a constant to fill a table with."""
        if kind == "text":
            return repr(self._random.choice(["p", "q", "r", "pq"]))
        if kind in ("list", "pairs"):
            element = {"list": "int", "pairs": "pair"}[kind]
            return f"array({', '.join(self.value(element) for _ in range(self._random.randint(1, 3)))})"
        return _HOLE.sub(
            lambda _: str(self._random.randint(1, 6)),
            {
                "int": "{int}",
                "pair": "named_struct('x', {int}, 'y', {int})",
                "map": "map('p', {int}, 'q', {int})",
            }[kind],
        )

    def _name(self) -> str:
        self._names += 1
        return f"c{self._names}"

    def _expression(self, kind: str, columns: dict[str, str], depth: int = 1) -> str:
        fitting = [column for column, its_kind in columns.items() if its_kind == kind]
        if fitting and (depth <= 0 or self._random.random() < 0.3):
            return self._random.choice(fitting)
        if depth <= -2 and kind in CONSTANTS:
            return CONSTANTS[kind]
        return self._fill(self._random.choice(EXPRESSIONS[kind]), columns, depth - 1)

    def _fill(self, template: str, columns: dict[str, str], depth: int = 1) -> str:
        return _HOLE.sub(lambda hole: f"({self._expression(hole[1], columns, depth)})", template)

    def _project(self, depth: int) -> Query:
        below = self.query(depth - 1)
        made = {self._name(): self._random.choice(list(SQL_TYPES)) for _ in range(self._random.randint(2, 4))}
        listed = ", ".join(
            f"{self._expression(kind, below.columns, 2)} AS {name}" for name, kind in made.items()
        )
        return Query(f"SELECT {listed} FROM ({below.sql})", made)

    def _filter(self, depth: int) -> Query:
        below = self.query(depth - 1)
        return Query(
            f"SELECT * FROM ({below.sql}) WHERE {self._fill('{bool}', below.columns)}", below.columns
        )

    def _join(self, depth: int) -> Query:
        left, right = self.query(depth - 1), self.query(depth - 1)
        way = self._random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        keys = f"{self._fill('{int}', left.columns)} = {self._fill('{int}', right.columns)}"
        return Query(
            f"SELECT * FROM ({left.sql}) {way} ({right.sql}) ON {keys}", left.columns | right.columns
        )

    def _semi_join(self, depth: int) -> Query:
        left, right = self.query(depth - 1), self.query(depth - 1)
        way = self._random.choice(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        keys = f"{self._fill('{int}', left.columns)} = {self._fill('{int}', right.columns)}"
        return Query(f"SELECT * FROM ({left.sql}) {way} ({right.sql}) ON {keys}", left.columns)

    def _aggregate(self, depth: int) -> Query:
        below = self.query(depth - 1)
        key, name = self._fill("{int}", below.columns), self._name()
        columns, listed = {name: "int"}, [f"{key} AS {name}"]
        for kind, template in self._random.sample(AGGREGATES, 2):
            columns[name := self._name()] = kind
            listed.append(f"CAST({self._fill(template, below.columns)} AS {SQL_TYPES[kind]}) AS {name}")
        return Query(f"SELECT {', '.join(listed)} FROM ({below.sql}) GROUP BY {key}", columns)

    def _window(self, depth: int) -> Query:
        return self._with_int(
            below := self.query(depth - 1), self._fill(self._random.choice(WINDOWS), below.columns)
        )

    def _with_int(self, below: Query, expression: str) -> Query:
        name = self._name()
        return Query(
            f"SELECT *, CAST({expression} AS int) AS {name} FROM ({below.sql})", below.columns | {name: "int"}
        )

    def _unite(self, depth: int) -> Query:
        above, below = self._project(depth), self.query(depth - 1)
        listed = ", ".join(self._expression(kind, below.columns) for kind in above.columns.values())
        return Query(f"{above.sql} UNION ALL SELECT {listed} FROM ({below.sql})", above.columns)

    def _generate(self, depth: int) -> Query:
        below = self.query(depth - 1)
        generator, *kinds = self._random.choice(GENERATORS)
        made = {self._name(): kind for kind in kinds}
        outer = self._random.choice(["", "OUTER "])
        view = f"LATERAL VIEW {outer}{self._fill(generator, below.columns)} v AS {', '.join(made)}"
        return Query(f"SELECT * FROM ({below.sql}) {view}", below.columns | made)

    def _subquery(self, depth: int) -> Query:
        below = self.query(depth - 1)
        table = self._random.choice(list(TABLES))
        inner = {f"u.{column}": kind for column, kind in TABLES[table].items()}
        outer = self._expression("int", below.columns, 0)
        found = f"FROM <{table}> u WHERE {self._fill('{int}', inner)} = {outer}"
        if self._random.random() < 0.3:
            return Query(f"SELECT * FROM ({below.sql}) WHERE EXISTS (SELECT 1 {found})", below.columns)
        value = self._random.choice(["(SELECT max({int}) FOUND)", "EXISTS (SELECT 1 FOUND)"])
        return self._with_int(below, self._fill(value, inner).replace("FOUND", found))

    def _distinct(self, depth: int) -> Query:
        below = self.query(depth - 1)
        kept = {column: kind for column, kind in below.columns.items() if kind != "map"}
        return Query(f"SELECT DISTINCT {', '.join(kept) or 1} FROM ({below.sql})", kept or {"1": "int"})

    def _intersect(self, depth: int) -> Query:
        left, right = self.query(depth - 1), self.query(depth - 1)
        kept = {column: kind for column, kind in left.columns.items() if kind in ("int", "text")}
        listed = ", ".join(self._expression(kind, right.columns) for kind in kept.values())
        way = self._random.choice(["EXCEPT", "INTERSECT"])
        if not kept:
            return left
        return Query(
            f"SELECT {', '.join(kept)} FROM ({left.sql}) {way} SELECT {listed} FROM ({right.sql})", kept
        )

    def _lateral(self, depth: int) -> Query:
        below, name = self.query(depth - 1), self._name()
        inner = {f"u.{column}": kind for column, kind in TABLES["facts"].items()}
        condition = f"{self._fill('{int}', inner)} > {self._expression('int', below.columns, 0)}"
        side = (
            f"LATERAL (SELECT max({self._fill('{int}', inner)}) AS {name} FROM <facts> u WHERE {condition})"
        )
        return Query(f"SELECT * FROM ({below.sql}), {side}", below.columns | {name: "int"})
