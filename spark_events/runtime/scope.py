"""The scope tree as the runtime keeps it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from spark_events.api import EventBuilder, Gauge, Metric, MetricGroup, SpanBuilder
from spark_events.api.metric_group import M, ReadOnlyGroup
from spark_events.api.toolkit.read_only import ReadOnly
from spark_events.api.wrong_values import count_dropped, drop, is_a, text_of
from spark_events.runtime.log_once import logger

Reading = tuple[Callable[[], float | int | None], str, str]
"""What a gauge reads, its unit, and its description."""

_NO_NAMES: frozenset[str] = frozenset()
# Of thousands of groups, most have one metric and nothing below them: they share what is empty.
_NO_CHILDREN: dict[tuple[object, ...], ScopeGroup] = {}
_NO_METRICS: dict[str, Metric] = {}


class Sink(Protocol):
    """What a group hands things to; the registry is one."""

    def add_event(self, group: MetricGroup, event: EventBuilder) -> None:
        """Dispatch an event to the event reporters."""

    def add_span(self, group: MetricGroup, span: SpanBuilder) -> None:
        """Dispatch a span to the span reporters."""

    def add_metric(self, group: MetricGroup, name: str, metric: Metric) -> None:
        """Announce a metric to the metric reporters."""

    def remove_metric(self, group: MetricGroup, name: str, metric: Metric) -> None:
        """Tell the metric reporters that a metric is gone."""


class ScopeGroup(MetricGroup):
    """One node of the scope tree.

    Args:
        sink: takes what is added.
        logical: the scope without variables.
        components: the scope with the variables' values.
        variables: those that are the same in every run; they become labels of metrics.
        instance: those that change with each run; they become attributes of events and spans only.
        lock: of the whole tree; None makes one.
    """

    __slots__ = (
        "_all_variables",
        "_children",
        "_clashed",
        "_closed",
        "_components",
        "_identity",
        "_instance",
        "_lock",
        "_logical",
        "_metrics",
        "_parent",
        "_sink",
        "_variables",
    )

    def __init__(
        self,
        sink: Sink,
        logical: tuple[str, ...],
        components: tuple[str, ...],
        variables: Mapping[str, str],
        instance: Mapping[str, str],
        lock: Any = None,
    ) -> None:
        self._sink = sink
        self._logical = logical
        self._components = components
        # Nobody changes these: of thousands of groups, most have the same as their parents.
        self._variables = variables if isinstance(variables, ReadOnly) else ReadOnly(variables)
        self._instance = instance
        self._all_variables: Mapping[str, str] | None = None if instance else self._variables
        self._children = _NO_CHILDREN
        self._metrics = _NO_METRICS
        self._clashed = _NO_NAMES
        self._closed = False
        self._lock = lock or threading.RLock()
        self._parent: ScopeGroup | None = None
        self._identity: tuple[object, ...] = ()

    def add_group(self, key: str, value: str | None = None) -> ScopeGroup:
        """Return the child group of this name; see ``MetricGroup``."""
        key, value = text_of(key), None if value is None else text_of(value)
        added = (key,) if value is None else (key, value)
        return self.child(key, components=added, variables={} if value is None else {key: value})

    def child(
        self,
        name: str = "",
        components: tuple[str, ...] = (),
        variables: Mapping[str, str] | None = None,
        instance: Mapping[str, str] | None = None,
    ) -> ScopeGroup:
        """Return the child with these parts, creating it the first time it is asked for.

        Args:
            name: what it adds to the logical scope; empty adds nothing, for children that differ in
                their variables alone.
            components: what it adds to the scope components.
            variables: what it adds to the variables.
            instance: what it adds to the variables of events and spans.
        """
        more, changing = dict(variables or {}), dict(instance or {})
        identity = (name, components, *sorted(more.items()), *sorted(changing.items()))
        with self._lock:
            child = self._children.get(identity)
            if child is None:
                child = self.detached(name, components, more, changing)
                if not self._closed:
                    self._keep(child, identity)
            return child

    def detached(
        self,
        name: str,
        components: tuple[str, ...],
        variables: Mapping[str, str],
        instance: Mapping[str, str],
    ) -> ScopeGroup:
        """Return a child like ``child`` does, but kept only once it has metrics: for what ends soon."""
        child = ScopeGroup(
            self._sink,
            (*self._logical, name) if name else self._logical,
            (*self._components, *components),
            ReadOnly({**self._variables, **variables}) if variables else self._variables,
            {**self._instance, **instance} if instance else self._instance,
            self._lock,
        )
        child._parent = self
        child._closed = self._closed
        return child

    def register(self, name: str, metric: M) -> M:
        """Add a metric; see ``MetricGroup``."""
        if not is_a(metric, Metric):
            drop("metric", "MetricGroup.register", metric, "is not a metric")
            return metric
        name = text_of(name)
        with self._lock:
            if self._is_below_closed():
                return metric
            if self._parent is not None and not self._identity:
                self._parent._keep(self, (id(self),))
            if name in self._metrics:
                self._warn_of_clash(name)
                return metric
            if self._metrics is _NO_METRICS:
                self._metrics = {}
            self._metrics[name] = metric
            self._sink.add_metric(self, name, metric)  # before another thread can close the group
        return metric

    def _is_below_closed(self) -> bool:
        group: ScopeGroup | None = self
        while group is not None and not group._closed:
            group = group._parent
        return group is not None

    def _keep(self, child: ScopeGroup, identity: tuple[object, ...]) -> None:
        child._identity = identity
        if self._children is _NO_CHILDREN:
            self._children = {}
        self._children[identity] = child

    def _warn_of_clash(self, name: str) -> None:
        if name not in self._clashed:
            self._clashed |= {name}
            count_dropped("metric")
            scope = ".".join(self._components or self._logical)
            logger.warning("metric %r is not reported: %s already has a metric of that name", name, scope)

    def add_event(self, event: EventBuilder) -> None:
        """Report an event; see ``MetricGroup``."""
        if self._closed:
            return
        try:
            self._sink.add_event(self, event)
        except Exception as error:
            drop("event", "MetricGroup.add_event", event, f"failed with {type(error).__name__}")

    def add_span(self, span: SpanBuilder) -> None:
        """Report a span; see ``MetricGroup``."""
        if self._closed:
            return
        try:
            self._sink.add_span(self, span)
        except Exception as error:
            drop("span", "MetricGroup.add_span", span, f"failed with {type(error).__name__}")

    def close(self) -> None:
        """Close this group and all below it; see ``MetricGroup``."""
        with self._lock:
            self._closed = True
            children, self._children = list(self._children.values()), _NO_CHILDREN
            metrics, self._metrics = self._metrics, _NO_METRICS
            if self._parent is not None and self._parent._children.get(self._identity) is self:
                del self._parent._children[self._identity]
            for group in children:
                group.close()
            for name, metric in metrics.items():
                self._sink.remove_metric(self, name, metric)

    def withdraw_metrics(self) -> None:
        """Remove the metrics of this group and all below it; it goes on to take events and spans."""
        with self._lock:
            children = list(self._children.values())
            metrics, self._metrics = self._metrics, _NO_METRICS
            for group in children:
                group.withdraw_metrics()
            for name, metric in metrics.items():
                self._sink.remove_metric(self, name, metric)

    @property
    def logical_scope(self) -> tuple[str, ...]:
        """The scope without variables."""
        return self._logical

    @property
    def scope_components(self) -> tuple[str, ...]:
        """The scope with the variables' values."""
        return self._components

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables of metrics."""
        return self._variables

    @property
    def all_variables(self) -> Mapping[str, str]:
        """The variables of events and spans."""
        if self._all_variables is None:  # most groups only have metrics
            self._all_variables = ReadOnly({**self._variables, **self._instance})
        return self._all_variables


def register_gauges(group: MetricGroup, readings: Mapping[str, Reading]) -> None:
    """Register a gauge of each name."""
    for name, (read, unit, description) in readings.items():
        group.register(name, Gauge(read, unit, description))


def register_below(group: MetricGroup, path: Sequence[str], metric: M) -> M:
    """Register a metric under the last name of a path, in the groups that the others name."""
    for name in path[:-1]:
        group = group.add_group(name)
    return group.register(path[-1], metric)


class ReporterGroupView(ReadOnlyGroup):
    """A group as one reporter sees it: with its additional and without its excluded variables."""

    def __init__(self, group: MetricGroup, variables: Mapping[str, str], delimiter: str) -> None:
        self._group = group
        self._variables = variables
        self._delimiter = delimiter

    def metric_identifier(self, name: str, delimiter: str = "") -> str:
        """Return the full name, joined by the reporter's configured delimiter unless one is given."""
        return super().metric_identifier(name, delimiter or self._delimiter)

    @property
    def logical_scope(self) -> tuple[str, ...]:
        """The scope without variables."""
        return self._group.logical_scope

    @property
    def scope_components(self) -> tuple[str, ...]:
        """The scope with the variables' values."""
        return self._group.scope_components

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables of metrics, as configured for the reporter."""
        return self._variables
