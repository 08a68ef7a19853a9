"""Reads which reporters a configuration asks for, and with which settings around them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_events.api import ApplicationInfo, ConfigError, Option, ReporterConfig, ReporterFactory
from spark_events.api import option_types as types
from spark_events.api.sending import JOURNAL_DIR, JOURNAL_FSYNC, JOURNAL_MAX_AGE, JOURNAL_MAX_BYTES
from spark_events.runtime.bounded_queue import QueueBounds
from spark_events.runtime.filters import Filter, Pattern, parse_patterns
from spark_events.runtime.journal import Bounds
from spark_events.runtime.kinds import METRICS, Kind
from spark_events.runtime.plugins import installed, load_factory

FACTORY = Option.optional("factory.class", types.STRING, "an entry point's name, or module:Class")
INTERVAL = Option(
    "interval", types.at_least(1, types.DURATION), 10_000, "how often a pushing metric reporter reports"
)
DELIMITER = Option("scope.delimiter", types.STRING, ".", "joins the components of a scope")
METRICS_DELIMITER = replace(DELIMITER, doc="scope.delimiter of reporters that do not set it")
"""Flink's ``metrics.scope.delimiter``; the same name as the reporters' own, below ``spark.metrics.``."""
EXCLUDED: Option[tuple[str, ...]] = Option(
    "scope.variables.excludes", types.LIST, (), "variables that are left out"
)
ADDITIONAL: Option[Mapping[str, str]] = Option(
    "scope.variables.additional", types.MAP, {}, "variables that are added to all that is reported"
)
INCLUDES = Option("filter.includes", types.STRING, "*", "what is reported: <scope>[:<name>[,<name>]];…")
EXCLUDES = Option("filter.excludes", types.STRING, "", "what is not reported; wins over filter.includes")
QUEUE_SIZE = Option(
    "queue.size", types.at_least(1, types.INT), 10_000, "how many items wait before some are dropped"
)
QUEUE_BYTES = Option(
    "queue.bytes",
    types.at_least(65_536, types.SIZE),
    16 << 20,
    "how much memory they may take, roughly, before some are dropped",
)
DROP_POLICY = Option(
    "drop.policy",
    types.DROP_POLICY,
    "oldest",
    "what a full queue or journal drops: the oldest items, or those that come new",
)
MAX_SERIES = Option(
    "max.series",
    types.at_least(1, types.INT),
    20_000,
    "how many series a metric reporter has; more of a metric go into one",
)
MAX_SERIES_OF_METRIC = Option(
    "max.series.per.metric", types.at_least(1, types.INT), 2_000, "how many series one metric has"
)
COMMON: tuple[Option[Any], ...] = (
    FACTORY,
    INTERVAL,
    DELIMITER,
    EXCLUDED,
    ADDITIONAL,
    INCLUDES,
    EXCLUDES,
    QUEUE_SIZE,
    QUEUE_BYTES,
    DROP_POLICY,
    MAX_SERIES,
    MAX_SERIES_OF_METRIC,
)
_LISTENERS = (FACTORY, QUEUE_SIZE, QUEUE_BYTES, DROP_POLICY)


@dataclass(frozen=True)
class ReporterSetup:
    """One reporter as it is configured, before it is created.

    Attributes:
        kind: events, spans or metrics.
        name: the reporter's name in the configuration.
        factory: creates it.
        config: its own options.
        filter: what it gets to see.
        additional: variables that are added for it.
        excluded: variables that it does not get to see.
        delimiter: what joins scope components for it.
        interval_ms: how often a pushing metric reporter reports, in ms.
        queue: what may wait for it in memory.
        max_series: how many series a metric reporter has.
        max_series_of_metric: how many of one metric.
        journal_dir: where what it sends is kept; None keeps it in memory.
        journal: what may be kept there.
    """

    kind: Kind
    name: str
    factory: ReporterFactory
    config: ReporterConfig
    filter: Filter = field(default_factory=Filter)
    additional: Mapping[str, str] = field(default_factory=dict)
    excluded: frozenset[str] = frozenset()
    delimiter: str = "."
    interval_ms: int = INTERVAL.default
    queue: QueueBounds = field(default_factory=QueueBounds)
    max_series: int = MAX_SERIES.default
    max_series_of_metric: int = MAX_SERIES_OF_METRIC.default
    journal_dir: Path | None = None
    journal: Bounds = field(default_factory=Bounds)

    def variables_for(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables as this reporter shall see them."""
        if not self.additional and not self.excluded:
            return variables
        kept = {key: value for key, value in variables.items() if key not in self.excluded}
        return {**kept, **self.additional}


def read_setups(
    conf: Mapping[str, str], kind: Kind, application: ApplicationInfo | None = None
) -> tuple[list[ReporterSetup], list[ConfigError]]:
    """Read all reporters of a kind; a wrong one costs itself alone.

    Args:
        conf: Spark's configuration.
        kind: events, spans or metrics.
        application: whose events they will report.

    Returns:
        The reporters that can be created, and one error for each mistake.
    """
    setups: list[ReporterSetup] = []
    errors: list[ConfigError] = []
    for name, own in _chosen(conf, kind, errors).items():
        values = {**_shared(conf, kind), **own}
        config = ReporterConfig(f"{kind.prefix}{name}.", values, application or ApplicationInfo())
        try:
            setups.append(_read_setup(kind, name, config))
        except ConfigError as error:
            errors.append(error)
    return setups, errors


def common_options(kind: Kind) -> tuple[Option[Any], ...]:
    """Return the options that all plugins of a kind have."""
    return COMMON if kind.scoped else _LISTENERS


def _shared(conf: Mapping[str, str], kind: Kind) -> Mapping[str, str]:
    """Return what is set for all reporters of a kind at once."""
    delimiter = conf.get(f"spark.{kind.name}.{METRICS_DELIMITER.name}") if kind is METRICS else None
    return {} if delimiter is None else {DELIMITER.name: delimiter}


def _chosen(
    conf: Mapping[str, str], kind: Kind, errors: list[ConfigError]
) -> Mapping[str, Mapping[str, str]]:
    """Group the keys by reporter, and keep those that the list of names asks for."""
    found: dict[str, dict[str, str]] = {}
    for key, value in conf.items():
        if key.startswith(kind.prefix):
            name, dot, option = key.removeprefix(kind.prefix).partition(".")
            if name and dot and option:
                found.setdefault(name, {})[option] = value
            else:
                errors.append(ConfigError(f"{key}: no option; expected {kind.prefix}<name>.<option>"))
    listed = conf.get(kind.names_key, conf.get(kind.flinks_names_key))
    if listed is None:
        return found
    names = types.LIST.parse(listed)
    if not kind.scoped:
        # As in Flink, a listener's factory may stand in the list itself.
        for name in names:
            found.setdefault(name, {}).setdefault(FACTORY.name, name)
    errors += [
        ConfigError(
            f"{kind.names_key}: {name!r} is not configured; set {kind.prefix}{name}.factory.class "
            f"to one of {_factories(kind)}"
        )
        for name in names
        if name not in found
    ]
    return {name: found[name] for name in dict.fromkeys(names) if name in found}


def _read_setup(kind: Kind, name: str, config: ReporterConfig) -> ReporterSetup:
    factory_name = config.get(FACTORY)
    factory_key = config.key(FACTORY.name)
    if not factory_name:
        raise ConfigError(f"{factory_key}: missing; set it to one of {_factories(kind)}, or to module:Class")
    factory = load_factory(kind, factory_name, factory_key)
    problems: list[str] = []
    for option in (*common_options(kind), *(factory.options or ())):
        try:
            config.get(option)
        except ConfigError as error:
            problems += error.problems
    problems += _unknown_options(kind, factory, config)
    setup = ReporterSetup(kind, name, factory, _own_options(kind, config))
    try:
        setup = _with_settings(setup, config)
    except ConfigError as error:
        problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise ConfigError.of_all(problems)
    return setup


def _with_settings(setup: ReporterSetup, config: ReporterConfig) -> ReporterSetup:
    def patterns(option: Option[str]) -> list[Pattern]:
        return parse_patterns(config.get(option), config.key(option.name), setup.kind.typed)

    excluded = config.get(EXCLUDED)
    drop_oldest = config.get(DROP_POLICY) == "oldest"
    # Options that the factory does not declare are not looked at: another's journal.dir is no journal.
    journaled = JOURNAL_DIR in (setup.factory.options or ())
    return replace(
        setup,
        filter=Filter(patterns(INCLUDES), patterns(EXCLUDES)),
        additional={_bare(key): value for key, value in config.get(ADDITIONAL).items()},
        excluded=frozenset(map(_bare, excluded)),
        delimiter=config.get(DELIMITER),
        interval_ms=config.get(INTERVAL),
        queue=_queue_bounds(setup.kind, config, drop_oldest),
        max_series=config.get(MAX_SERIES),
        max_series_of_metric=config.get(MAX_SERIES_OF_METRIC),
        journal_dir=config.get(JOURNAL_DIR) if journaled else None,
        journal=_journal_bounds(config, drop_oldest) if journaled else Bounds(),
    )


def _queue_bounds(kind: Kind, config: ReporterConfig, drop_oldest: bool) -> QueueBounds:
    if kind is METRICS:
        # What is queued is that a series has come or gone, and none of that may be lost.
        return QueueBounds(config.get(QUEUE_SIZE) + 4 * config.get(MAX_SERIES), 1 << 62, drop_oldest)
    return QueueBounds(config.get(QUEUE_SIZE), config.get(QUEUE_BYTES), drop_oldest)


def _journal_bounds(config: ReporterConfig, drop_oldest: bool) -> Bounds:
    return Bounds(
        config.get(JOURNAL_MAX_BYTES), config.get(JOURNAL_MAX_AGE), drop_oldest, config.get(JOURNAL_FSYNC)
    )


def _own_options(kind: Kind, config: ReporterConfig) -> ReporterConfig:
    common = {option.name for option in common_options(kind)} - {INTERVAL.name}
    own = {key: value for key, value in config.values.items() if key not in common}
    return replace(config, values=own)


def _unknown_options(kind: Kind, factory: ReporterFactory, config: ReporterConfig) -> list[str]:
    if factory.options is None:
        return []
    known = sorted({option.name for option in (*factory.options, *common_options(kind))})
    problems = []
    for key in config.values:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            problems.append(f"{config.key(key)}: unknown option; {hint}allowed: {', '.join(known)}")
    return problems


def _factories(kind: Kind) -> str:
    return ", ".join(installed(kind.entry_points)) or "(none is installed)"


def _bare(variable: str) -> str:
    """Flink writes variables in angle brackets; both forms are taken."""
    return variable.removeprefix("<").removesuffix(">")
