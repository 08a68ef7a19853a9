"""The scope tree: where metrics, events and spans are added, and whose variables they take."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TypeVar

from spark_events.api.event import EventBuilder
from spark_events.api.metrics import Metric
from spark_events.api.span import SpanBuilder

M = TypeVar("M", bound=Metric)


class MetricGroup(abc.ABC):
    """A named place in the scope tree (Flink's ``MetricGroup``).

    One node serves both kinds of reporter: those with dotted names read ``scope_components``
    (``("orders-app", "query", "orders")``), those with labels read ``logical_scope``
    (``("spark", "query")``) and ``variables`` (``{"app_name": "orders-app", "query_name": "orders"}``).
    """

    __slots__ = ()

    # -- children --------------------------------------------------------------------------------------

    @abc.abstractmethod
    def add_group(self, key: str, value: str | None = None) -> MetricGroup:
        """Return the child group of this name; it is created on first use.

        With a value, the child also has the variable ``key``, and only the key enters the logical scope.
        """

    # -- what is added ---------------------------------------------------------------------------------

    @abc.abstractmethod
    def register(self, name: str, metric: M) -> M:
        """Add a metric and return it.

        A second metric of one name in one group is not reported: a warning is logged, the first stays.
        """

    @abc.abstractmethod
    def add_event(self, event: EventBuilder) -> None:
        """Report an event with this group's variables. Never blocks and never raises."""

    @abc.abstractmethod
    def add_span(self, span: SpanBuilder) -> None:
        """Report a span with this group's variables. Never blocks and never raises."""

    @abc.abstractmethod
    def close(self) -> None:
        """Remove the metrics of this group and of all groups below it; a closed group accepts nothing."""

    # -- its address -----------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def logical_scope(self) -> tuple[str, ...]:
        """The scope without variables, such as ``("spark", "query")``; what filters match."""

    @property
    @abc.abstractmethod
    def scope_components(self) -> tuple[str, ...]:
        """The scope with the variables' values in it, such as ``("orders-app", "query", "orders")``."""

    @property
    @abc.abstractmethod
    def variables(self) -> Mapping[str, str]:
        """Variables that identify this group's metrics; the same in every run of the application."""

    @property
    @abc.abstractmethod
    def all_variables(self) -> Mapping[str, str]:
        """``variables`` and those that change with each run (application id, run id): for events, spans."""

    def metric_identifier(self, name: str, delimiter: str = ".") -> str:
        """Return the full dotted name of a metric in this group."""
        return delimiter.join((*self.scope_components, name))


class ReadOnlyGroup(MetricGroup):
    """A group as reporters see it: read-only."""

    @property
    def all_variables(self) -> Mapping[str, str]:
        """The variables of metrics; a metric has no others."""
        return self.variables

    def add_group(self, key: str, value: str | None = None) -> MetricGroup:
        """Not for reporters."""
        raise TypeError("a reporter cannot add to the scope tree")

    def register(self, name: str, metric: M) -> M:
        """Not for reporters."""
        raise TypeError("a reporter cannot add to the scope tree")

    def add_event(self, event: EventBuilder) -> None:
        """Not for reporters."""
        raise TypeError("a reporter cannot add to the scope tree")

    def add_span(self, span: SpanBuilder) -> None:
        """Not for reporters."""
        raise TypeError("a reporter cannot add to the scope tree")

    def close(self) -> None:
        """Not for reporters."""
        raise TypeError("a reporter cannot close a group of the scope tree")
