"""The lineage of SQL files that are not run: statements are analyzed, over tables without rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ApplicationInfo, ConfigError, JobCreatedEvent, LineageGraph, job_event_json
from spark_events.api.job_listener import STATEMENT
from spark_events.jobs.job_names import name_of_statement
from spark_events.jobs.planned_catalog import CurrentDatabase, PlannedCatalog, UnknownColumnsError
from spark_events.lineage.data_flow import DataFlow
from spark_events.lineage.job_logs import flow_of_events
from spark_events.lineage.preview import RunsWhenAnalyzedError
from spark_events.spark.sql_errors import error_summary, query_line
from spark_events.spark.sql_scripts import statements_of_file
from spark_events.spark.sql_statements import SqlStatement

_NOT_FOUND = "[TABLE_OR_VIEW_NOT_FOUND]"
_MOST_CHARACTERS = 16 << 20


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """A statement of a file, or the query of a manifest.

    Attributes:
        place: ``file:line`` where it begins; if it cannot be analyzed, where the mistake is.
        origin: its file, or for a query the folder of its manifest: the job's name begins with its name.
        graph: what it would read and write; None if it cannot be analyzed.
        problem: why it cannot be; empty if it can.
        name: of the query; empty for a statement, which is named after what it does.
    """

    place: str
    origin: Path
    graph: LineageGraph | None
    problem: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What statements would do.

    Attributes:
        flow: what they would read and write.
        places: by job, where its statement is.
        problems: what cannot be analyzed, each with file and line.
    """

    flow: DataFlow
    places: dict[str, str]
    problems: list[str]


def plan_files(catalog: PlannedCatalog, groups: Iterable[Sequence[Path]]) -> list[PlannedStatement]:
    """Analyze the statements of SQL files, in order; none that writes rows is run.

    Args:
        catalog: has what an earlier statement creates for the later ones.
        groups: of files. The files of a folder are one group, in no order that matters: what names a table
            of a later file is analyzed after that.

    Raises:
        ConfigError: a file cannot be read.
    """
    read = [[(file, list(_statements(file))) for file in files] for files in groups]
    catalog.expect(each.text for files in read for _, statements in files for each in statements)
    return [planned for files in read for planned in _plan_group(catalog, files)]


def _plan_group(
    catalog: PlannedCatalog, files: Sequence[tuple[Path, Sequence[SqlStatement]]]
) -> list[PlannedStatement]:
    statements: list[tuple[Path, SqlStatement, CurrentDatabase]] = []
    planned: list[PlannedStatement] = []
    begins_in = catalog.place
    for file, in_file in files:
        place = begins_in  # whatever the file before has made the current one
        for statement in in_file:
            statements.append((file, statement, place))
            planned.append(_plan(catalog, file, statement, place))
            place = catalog.place
    waiting, misses = len(planned) + 1, _misses(planned)
    while len(files) > 1 and 0 < len(misses) < waiting:
        for number in misses:
            planned[number] = _plan(catalog, *statements[number])
        waiting, misses = len(misses), _misses(planned)
    if len(files) > 1 and catalog.has(begins_in):
        catalog.use(begins_in)
    return planned


def _misses(planned: Sequence[PlannedStatement]) -> list[int]:
    """Return the numbers of those that name a table that is not there yet."""
    return [number for number, each in enumerate(planned) if each.problem.startswith(_NOT_FOUND)]


def _statements(file: Path) -> Iterator[SqlStatement]:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            text = opened.read(_MOST_CHARACTERS + 1)  # a device has no size, and may never end
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not text in UTF-8; expected SQL statements") from None
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"{file}: is too long; a SQL file may have at most {_MOST_CHARACTERS:,} characters")
    return statements_of_file(text)


def _plan(
    catalog: PlannedCatalog, file: Path, statement: SqlStatement, place: CurrentDatabase
) -> PlannedStatement:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    begin = f"{file}:{statement.line}"
    try:
        catalog.use(place)
        return PlannedStatement(begin, file, catalog.graph_of(statement.text))
    except (UnknownColumnsError, RunsWhenAnalyzedError) as error:
        return PlannedStatement(begin, file, None, str(error))
    except (PySparkException, Py4JError) as error:
        line = statement.line + (query_line(error) or 1) - 1
        return PlannedStatement(f"{file}:{line}", file, None, reason_of(error_summary(error)))


def reason_of(text: str) -> str:
    """Return what Spark says of a statement; of a table that is missing, with what to do about it here."""
    if not text.startswith(_NOT_FOUND):
        return text
    return f"{text.partition('. ')[0]}: put its CREATE TABLE into an SQL file that comes first"


def plan_of(statements: Iterable[PlannedStatement]) -> Plan:
    """Return what statements would do, as one graph; a job is named after its file, or its manifest's folder.

    Statements that would have the same name, because they do the same to the same table, have their line.
    """
    statements = list(statements)
    origins = {statement.origin for statement in statements}
    same_stem = Counter(origin.stem for origin in origins)
    applications = {origin: origin.stem if same_stem[origin.stem] == 1 else str(origin) for origin in origins}
    effective = [
        (statement, statement.graph, statement.name or name_of_statement(statement.graph))
        for statement in statements
        if statement.graph is not None and (statement.graph.sources or statement.graph.sinks)
    ]
    often = Counter((statement.origin, name) for statement, _, name in effective)
    events, places = [], {}
    for number, (statement, graph, name) in enumerate(effective):
        if often[statement.origin, name] > 1:
            name += f" (line {statement.place.rpartition(':')[2]})"
        application = ApplicationInfo(applications[statement.origin], "plan")
        created = JobCreatedEvent(f"plan/{number}", name, STATEMENT, 0, application, {}, lineage=graph)
        events.append(job_event_json(created))
        places[f"{application.name}.{name}"] = statement.place
    problems = [f"{statement.place}: {statement.problem}" for statement in statements if statement.problem]
    return Plan(flow_of_events(events), places, problems)
