"""Lineage: the sources, sinks and columns of a job (FLIP-314)."""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar


class Boundedness(enum.Enum):
    """Whether a source ends (Flink's ``Boundedness``)."""

    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


class ModifyType(enum.Enum):
    """What a job does to its sink: to its rows, or, from CREATE on, to the table itself."""

    INSERT = "INSERT"
    OVERWRITE = "OVERWRITE"
    CTAS = "CTAS"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    MERGE = "MERGE"
    CREATE = "CREATE"
    DROP = "DROP"
    TRUNCATE = "TRUNCATE"
    ALTER = "ALTER"
    RENAME = "RENAME"
    ANALYZE = "ANALYZE"


class Transformation(enum.Enum):
    """How a source column contributes to a sink column, with OpenLineage's subtypes.

    The first three are direct: the value is computed from the column. In the others, the column determines
    which value or rows there are, or their order.
    """

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    CONDITIONAL = "CONDITIONAL"
    WINDOW = "WINDOW"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    FILTER = "FILTER"
    SORT = "SORT"

    @property
    def direct(self) -> bool:
        """Whether the sink's value is computed from the column."""
        return self in (Transformation.IDENTITY, Transformation.TRANSFORMATION, Transformation.AGGREGATION)


class LineageDatasetFacet(abc.ABC):
    """More information about a dataset; plugins and providers may define their own."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name of the facet, as in ``dataset.facets``."""


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A column of a dataset.

    Attributes:
        name: the column's name.
        type: its type, as Spark writes it, such as ``decimal(10,2)``.
    """

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SchemaFacet(LineageDatasetFacet):
    """The columns that the job reads or writes."""

    name: ClassVar[str] = "schema"
    fields: tuple[SchemaField, ...]


@dataclass(frozen=True, slots=True)
class ConfigFacet(LineageDatasetFacet):
    """Options of the reader or writer, without secrets."""

    name: ClassVar[str] = "config"
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SymlinksFacet(LineageDatasetFacet):
    """Other names of the same data, such as the table that has the files.

    Attributes:
        identifiers: namespace and name of each.
    """

    name: ClassVar[str] = "symlinks"
    identifiers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RenamedFromFacet(LineageDatasetFacet):
    """What a table was called before the job renamed it.

    Attributes:
        previous: namespace and name that it had: of its location, or of the table if only that was renamed.
    """

    name: ClassVar[str] = "renamedFrom"
    previous: tuple[str, str]


@dataclass(frozen=True, slots=True)
class LineageDataset:
    """Named data that jobs read or write.

    Attributes:
        name: unique in the namespace, such as a path or ``database.schema.table``.
        namespace: where it is, such as ``file``, ``s3://bucket`` or ``kafka://host:9092``; both follow
            OpenLineage's naming specification, so that two tables over one topic are one dataset.
        facets: what else is known, by the facet's name.
    """

    name: str
    namespace: str
    facets: Mapping[str, LineageDatasetFacet] = field(
        default_factory=lambda: MappingProxyType({}), compare=False
    )

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name, which identify the data."""
        return self.namespace, self.name

    def __str__(self) -> str:
        """Return its name as people write it."""
        return self.name

    def to_dict(self) -> dict[str, str]:
        """Return namespace and name, as JSON has them."""
        return {"namespace": self.namespace, "name": self.name}


@dataclass(frozen=True, slots=True)
class TableLineageDataset(LineageDataset):
    """A dataset that is a table of a catalog.

    Attributes:
        catalog: the catalog's name in Spark, such as ``spark_catalog``.
        database: its database, or its namespace joined with dots.
        table: its name.
        created: whether the table exists; False for one that the statement is about to create in a place
            that only its catalog knows.
    """

    catalog: str = ""
    database: str = ""
    table: str = ""
    created: bool = field(default=True, compare=False)

    @property
    def identifier(self) -> str:
        """Catalog, database and table, joined with dots."""
        return ".".join(part for part in (self.catalog, self.database, self.table) if part)

    def __str__(self) -> str:
        """Return database and table, or else the name."""
        return ".".join(part for part in (self.database, self.table) if part) or self.name


@dataclass(frozen=True, slots=True)
class LineageVertex:
    """A source or a sink of a job.

    Attributes:
        datasets: what it reads or writes; a Kafka source has one for each topic.
    """

    datasets: tuple[LineageDataset, ...]


@dataclass(frozen=True, slots=True)
class SourceLineageVertex(LineageVertex):
    """A source.

    Attributes:
        boundedness: whether it ends.
    """

    boundedness: Boundedness = Boundedness.BOUNDED


@dataclass(frozen=True, slots=True)
class TableSinkLineageVertex(LineageVertex):
    """A sink.

    Attributes:
        modify_type: what is done to it.
    """

    modify_type: ModifyType = ModifyType.INSERT


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A source column, and how it contributes to a sink column.

    Attributes:
        dataset: the column's dataset.
        column: its name.
        transformations: the kinds of paths from the source to the sink column, each once.
        masking: whether every path goes through a hash, a count or a mask.
    """

    dataset: LineageDataset
    column: str
    transformations: tuple[Transformation, ...] = (Transformation.IDENTITY,)
    masking: bool = False

    def __str__(self) -> str:
        """Return it with its dataset's name: ``shop.orders.price``."""
        return f"{self.dataset}.{self.column}"

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        kinds = [each.value for each in self.transformations]
        return {
            **self.dataset.to_dict(),
            "column": self.column,
            "transformations": kinds,
            "masking": self.masking,
        }


@dataclass(frozen=True, slots=True)
class TableColumnLineageEdge:
    """A sink column, with the source columns it is computed from.

    Attributes:
        column: the sink column's name.
        sources: the source columns.
        expression: the text of the expression that computes it last, redacted; empty for a column that is
            passed on as it is, and for one that is computed in several ways.
    """

    column: str
    sources: tuple[SourceColumn, ...]
    expression: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class LineageEdge:
    """The flow of data from a source to a sink.

    Attributes:
        source: where the data comes from.
        sink: where it goes.
    """

    source: LineageVertex
    sink: LineageVertex


@dataclass(frozen=True, slots=True)
class TableLineageEdge(LineageEdge):
    """An edge that knows the columns.

    Attributes:
        columns: the sink's columns that this source contributes to.
        influences: source columns, in joins, filters, groups and sorts, that determine which rows the sink
            gets, or their order.
    """

    columns: tuple[TableColumnLineageEdge, ...] = ()
    influences: tuple[SourceColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class LineageGraph:
    """The lineage of one job; printed, it shows what is written, from which columns, and what is read.

    Attributes:
        sources: what it reads.
        sinks: what it writes; none for a query whose result goes to the program.
        relations: which source feeds which sink.
        incomplete: why something may be missing; empty if nothing is known to be.

    Example::

        graph = lineage_of(spark, "INSERT INTO totals SELECT name, sum(x) AS sum FROM orders GROUP BY name")
        print(graph)
        graph.columns["sum"]  # (SourceColumn(…),)
        graph.to_dict()
    """

    sources: tuple[LineageVertex, ...] = ()
    sinks: tuple[LineageVertex, ...] = ()
    relations: tuple[LineageEdge, ...] = ()
    incomplete: str = ""

    @property
    def inputs(self) -> tuple[LineageDataset, ...]:
        """The data that it reads, each once."""
        return tuple(dict.fromkeys(each for vertex in self.sources for each in vertex.datasets))

    @property
    def outputs(self) -> tuple[LineageDataset, ...]:
        """The data that it writes, each once."""
        return tuple(dict.fromkeys(each for vertex in self.sinks for each in vertex.datasets))

    @property
    def columns(self) -> dict[str, tuple[SourceColumn, ...]]:
        """The source columns of each column that is written; of several sinks, by ``sink.column``."""
        columns: dict[str, tuple[SourceColumn, ...]] = {}
        for sink in dict.fromkeys(self.sinks):
            head = f"{', '.join(map(str, sink.datasets))}." if len(self.sinks) > 1 else ""
            columns |= {head + name: sources for name, sources in self.column_edges(sink).items()}
        return columns

    def to_dict(self) -> dict[str, object]:
        """Return inputs, outputs and columns as JSON has them."""
        return {
            "inputs": [each.to_dict() for each in self.inputs],
            "outputs": [each.to_dict() for each in self.outputs],
            "columns": {name: [each.to_dict() for each in sources] for name, sources in self.columns.items()},
            "incomplete": self.incomplete,
        }

    def __str__(self) -> str:
        """Return what is written, from which columns, and what is read, a line each."""
        lines = []
        for sink in dict.fromkeys(self.sinks):
            how = f" ({sink.modify_type.value})" if isinstance(sink, TableSinkLineageVertex) else ""
            lines.append(f"writes {', '.join(map(str, sink.datasets))}{how}")
            for column, sources in self.column_edges(sink).items():
                names = dict.fromkeys(map(str, sources))
                lines.append(f"  {column} ← {', '.join(names) or 'no column'}")
        lines += [f"reads {each}" for each in self.inputs]
        lines += [f"incomplete: {self.incomplete}"] if self.incomplete else []
        return "\n".join(lines) or "no lineage"

    @property
    def input_count(self) -> int:
        """Total number of inputs of all columns, a measure of the graph's size."""
        return sum(
            len(column.sources)
            for edge in self.relations
            if isinstance(edge, TableLineageEdge)
            for column in edge.columns
        )

    def column_edges(self, sink: LineageVertex) -> Mapping[str, tuple[SourceColumn, ...]]:
        """Return for each column of a sink the source columns of all edges to it."""
        sources: dict[str, tuple[SourceColumn, ...]] = {}
        for edge in self.relations:
            if isinstance(edge, TableLineageEdge) and edge.sink == sink:
                for column in edge.columns:
                    sources[column.column] = sources.get(column.column, ()) + column.sources
        return sources

    def expressions(self, sink: LineageVertex) -> Mapping[str, str]:
        """Return for each column of a sink that is computed the text of the expression."""
        return {
            column.column: column.expression
            for edge in self.relations
            if isinstance(edge, TableLineageEdge) and edge.sink == sink
            for column in edge.columns
            if column.expression
        }


class LineageVertexProvider(abc.ABC):
    """Base class of sources and sinks that declare their own lineage (FLIP-314).

    Register it with ``spark_events.lineage.provide(format, provider)``; a Python data source is found by
    the name under which Spark knows it.
    """

    @abc.abstractmethod
    def lineage_vertex(self, options: Mapping[str, str], is_sink: bool) -> LineageVertex:
        """Return the vertex of a reader or a writer with these options.

        Args:
            options: as given to Spark, secrets included: put none of them into the vertex.
            is_sink: whether it writes.
        """
