"""What one kind of slow application is, and what its code is given: a session, chance, a folder."""

from __future__ import annotations

import ast
import heapq
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "# slow"
"""The comment at the end of the lines that a finding may name."""


@dataclass(frozen=True)
class Truth:
    """One defect of one run.

    Attributes:
        cause: a word of ``expected.KINDS``.
        cost_ms: how much shorter the run would be without it, from what was injected; None if the
            stopwatch has to say it.
        costed: False where the cost is not a time: memory, growth, silence.
        places: texts of which a finding has to name one: columns, tables, paths, keys, lines of the code.
    """

    cause: str
    cost_ms: int | None
    costed: bool = True
    places: Sequence[str] = ()


class Work:
    """A run of a case: with the defect or, as its twin, without it.

    Attributes:
        bad: whether it has the defect.
        cores: that all its executors have.
        random: the same for a run and its twin.
        folder: for the files that it reads and writes.
        truths: the defects that were injected.
    """

    def __init__(self, case: Case, seed: int, bad: bool, cores: int, folder: Path) -> None:
        self.case = case
        self.bad = bad
        self.cores = cores
        self.random = Random(f"{case.name} {seed}")
        self.folder = folder
        self.truths: list[Truth] = []
        self._begun = 0.0

    @contextmanager
    def preparing(self) -> Iterator[SparkSession]:
        """Give a session for what only Spark can prepare; it has no event log."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(f"{self.case.name}, prepared")
        spark = builder.config("spark.eventLog.enabled", "false").getOrCreate()
        yield spark
        spark.stop()

    def begin(self, python: bool = False, pandas: bool = False) -> SparkSession:
        """Return the session, once it is warm; what a case does before is in no event log.

        Args:
            python: whether Python workers have to be warm, too.
            pandas: whether these must have imported pandas.
        """
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(self.case.name)
        spark = builder.config("spark.eventLog.enabled", "true").getOrCreate()
        warm = spark.range(0, 64, 1, self.cores)
        warm.groupBy((warm["id"] % 3).alias("rest")).count().collect()
        if python:
            numbers = spark.sparkContext.parallelize(range(4 * self.cores), 4 * self.cores)
            numbers.map(lambda row: time.sleep(0.05)).count()
        if pandas:
            rows = spark.range(0, 4 * self.cores, 1, 4 * self.cores)
            rows.mapInPandas(lambda batches: batches, "id long").write.format("noop").mode("overwrite").save()
        self._begun = time.monotonic()
        return spark

    def defect(self, cause: str, cost_ms: float | None = None, *places: str, costed: bool = True) -> None:
        """Write down a defect; a twin has none."""
        if self.bad:
            cost = None if cost_ms is None else round(cost_ms)
            self.truths.append(Truth(cause, cost, costed, (*places, *self.case.lines())))

    def stop(self) -> None:
        """End the application in good order."""
        from pyspark.sql import SparkSession

        if (spark := SparkSession.getActiveSession()) is not None:
            spark.stop()

    def outcome(self) -> dict[str, Any]:
        """Return what is compared with the diagnosis: the truth, and the time since ``begin``."""
        took_ms = round((time.monotonic() - self._begun) * 1_000) if self._begun else 0
        return {"took_ms": took_ms, "truths": [asdict(truth) for truth in self.truths]}


@dataclass(frozen=True)
class Case:
    """One kind of slow application.

    Attributes:
        name: also that of the application.
        run: the application.
        conf: more of Spark's keys.
        bad, twin: more for the run with the defect, and for the one without.
        master: what it needs instead of local mode: a Spark master, or ``hosts`` of a standalone cluster.
        healthy: whether it has no defect at all; then there is no bad run.
        version: the beginning of the only version of PySpark that it runs on.
        needed: issues that are true of the twin as well: they say where the time of what it needs goes.
    """

    name: str
    run: Callable[[Work], None]
    conf: Mapping[str, str] = field(default_factory=dict)
    bad: Mapping[str, str] = field(default_factory=dict)
    twin: Mapping[str, str] = field(default_factory=dict)
    master: str = ""
    healthy: bool = False
    version: str = ""
    needed: frozenset[str] = frozenset()

    def lines(self) -> list[str]:
        """Return the lines of the statements that are marked, as ``file.py:12``."""
        path = Path(inspect.getsourcefile(self.run) or "")
        first = self.run.__code__.co_firstlineno
        source = inspect.getsource(self.run)
        marked = [first + number for number, line in enumerate(source.splitlines()) if MARK in line]
        return [f"{path.name}:{line}" for line in sorted(set(_statements(path, marked)))]


CASES: dict[str, Case] = {}


def case(name: str, **options: Any) -> Callable[[Callable[[Work], None]], Callable[[Work], None]]:
    """Register an application under its name; the options are those of ``Case``."""

    def register(run: Callable[[Work], None]) -> Callable[[Work], None]:
        if name in CASES:
            raise ValueError(f"two cases are named {name}")
        CASES[name] = Case(name, run, **options)
        return run

    return register


def makespan_ms(tasks_ms: Sequence[float], cores: int) -> float:
    """Return how long tasks take that begin in this order, each on the first free core."""
    free = [0.0] * cores
    for task_ms in tasks_ms:
        heapq.heappush(free, heapq.heappop(free) + task_ms)
    return max(free)


def resting(ms: str, when: str = "") -> str:
    """Return an SQL expression that takes so many ms in the JVM, whatever else the machine does.

    Args:
        ms: SQL, too.
        when: a condition; rows without it take no time.
    """
    rest = f"reflect('java.lang.Thread', 'sleep', CAST({ms} AS BIGINT))"
    return f"IF({when}, {rest}, '')" if when else rest


def write_parquet(folder: Path, columns: Mapping[str, Any], files: int = 1) -> None:
    """Write a table without Spark, so that no event log tells of it."""
    from pyarrow import parquet, table

    folder.mkdir(parents=True)
    rows = table(dict(columns))
    each = -(-len(rows) // files)
    for file in range(files):
        parquet.write_table(rows.slice(file * each, each), folder / f"part-{file:05}.parquet")


def _statements(path: Path, marked: Sequence[int]) -> Iterator[int]:
    """Yield all lines of the simple statements in which lines are, and the first of compound ones."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if any(line in lines for line in marked):
                yield from lines
    yield from marked
