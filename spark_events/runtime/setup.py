"""Reads which reporters a configuration asks for, and the settings that all reporters have."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spark_events.api import ApplicationInfo, ConfigError, Option, ReporterConfig, ReporterFactory
from spark_events.api import option_types as types
from spark_events.api.reporter import JOURNAL_DIR, JOURNAL_FSYNC, JOURNAL_MAX_AGE, JOURNAL_MAX_BYTES
from spark_events.runtime.filters import Filter, SeenVariables, parse_patterns
from spark_events.runtime.foreign_errors import describe
from spark_events.runtime.journal import Bounds
from spark_events.runtime.plugins import KINDS, METRICS, Kind, installed, load_factory
from spark_events.runtime.settings import declared_in, key_of, read_declared, setting
from spark_events.runtime.workers.inbox import QueueBounds


@dataclass(frozen=True)
class ReporterSettings:
    """The options that all reporters have besides their own; durations are in ms, sizes in bytes."""

    factory_class: str | None = setting(
        "factory.class",
        types.STRING,
        None,
        "Name of an entry point (`spark-events plugins` lists them), or `module:Class`.",
        example="file_log",
    )
    interval_ms: int = setting(
        "interval",
        types.at_least(1, types.DURATION),
        10_000,
        "For reporters that push metrics: how often they report.",
    )
    delimiter: str = setting(
        "scope.delimiter",
        types.STRING,
        ".",
        "Joins the parts of a metric's dotted name. `spark.metrics.scope.delimiter` sets it for all metric "
        "reporters.",
    )
    additional_variables: Mapping[str, str] = setting(
        "scope.variables.additional",
        types.MAP,
        {},
        "`key:value,key:value`, added to all events, spans and metrics.",
    )
    excluded_variables: tuple[str, ...] = setting(
        "scope.variables.excludes", types.LIST, (), "Names of variables to leave out, separated by `;`."
    )
    includes: str = setting(
        "filter.includes",
        types.STRING,
        "*",
        "What to report: `<scope>[:<name>[,<name>][:<type>[,<type>]]]`, several separated by `;`. `*` is any "
        "text; only metrics have a type.",
    )
    excludes: str = setting(
        "filter.excludes",
        types.STRING,
        "",
        "What to leave out, in the same form; overrides filter.includes.",
    )
    queue_size: int = setting(
        "queue.max-items",
        types.at_least(1, types.INT),
        10_000,
        "Maximum number of queued items; beyond it, items are dropped and counted. What waits to be sent "
        "again has left the queue: `queue.max-bytes` bounds it, or the journal.",
    )
    queue_bytes: int = setting(
        "queue.max-bytes",
        types.at_least(65_536, types.SIZE),
        16 << 20,
        "Approximate memory that waiting items may take before some are dropped and counted.",
    )
    drop_policy: str = setting(
        "drop.policy",
        types.DROP_POLICY,
        "oldest",
        "What a full queue or journal drops: `oldest` or `newest`. A queue drops routine items first, "
        "failures and ends last; a journal, and what waits to be sent again, go by age alone.",
    )
    max_series: int = setting(
        "max-series",
        types.at_least(1, types.INT),
        20_000,
        "For metric reporters: the most series of one application. Beyond it, the counters and histograms of "
        'a metric share one series with `otel.metric.overflow="true"`, for at most 100 metrics; all others, '
        "and all gauges, are left out. `spark_reporter_series_above_limit` counts all of these.",
    )
    max_series_of_metric: int = setting(
        "max-series-per-metric", types.at_least(1, types.INT), 2_000, "The same limit for one metric."
    )

    @property
    def drop_oldest(self) -> bool:
        """Whether a full queue or journal drops its oldest items, or else the new ones."""
        return self.drop_policy == "oldest"


@dataclass(frozen=True)
class SharedSettings:
    """The settings that apply to all metric reporters at once."""

    delimiter: str = setting(
        "spark.metrics.scope.delimiter",
        types.STRING,
        ".",
        "The scope.delimiter of metric reporters that do not set it.",
    )


FACTORY = declared_in(ReporterSettings)["factory_class"].option
_OPTIONS = {name: declared.option for name, declared in declared_in(ReporterSettings).items()}
_OF_LISTENERS = ("factory_class", "queue_size", "queue_bytes", "drop_policy")


@dataclass(frozen=True)
class ReporterSetup:
    """One reporter as it is configured, before it is created.

    Attributes:
        kind: events, spans or metrics.
        name: the reporter's name in the configuration.
        factory: creates it.
        config: its own options.
        settings: the options that all reporters have.
        filter: decides what it sees.
        journal_dir: the folder that keeps what it sends; None keeps it in memory.
        journal: how much may be kept there.
        ignored: a sentence for each of its keys that nothing reads.
    """

    kind: Kind
    name: str
    factory: ReporterFactory
    config: ReporterConfig
    settings: ReporterSettings = ReporterSettings()
    filter: Filter = field(default_factory=Filter)
    journal_dir: Path | None = None
    journal: Bounds = field(default_factory=Bounds)
    ignored: tuple[str, ...] = ()

    @property
    def queue(self) -> QueueBounds:
        """The bounds of what may wait for it in memory."""
        settings = self.settings
        if self.kind is METRICS:
            # The queue holds notices that a series was added or removed; none of these may be lost.
            items = settings.queue_size + 4 * settings.max_series
            return QueueBounds(items, 1 << 62, settings.drop_oldest)
        return QueueBounds(settings.queue_size, settings.queue_bytes, settings.drop_oldest)

    @property
    def variables(self) -> SeenVariables:
        """The variables that it sees."""
        return SeenVariables(self.settings.excluded_variables, self.settings.additional_variables)


def read_all_setups(
    conf: Mapping[str, str], application: ApplicationInfo | None = None
) -> tuple[list[ReporterSetup], list[ConfigError]]:
    """Read the reporters of all kinds; a misconfigured one does not affect the others.

    Returns:
        The reporters that can be created, and one error for each mistake.
    """
    setups: list[ReporterSetup] = []
    errors: list[ConfigError] = []
    for kind in KINDS:
        of_kind, wrong = read_setups(conf, kind, application)
        setups += of_kind
        errors += wrong
    return setups, errors


def read_setups(
    conf: Mapping[str, str], kind: Kind, application: ApplicationInfo | None = None
) -> tuple[list[ReporterSetup], list[ConfigError]]:
    """Read all reporters of a kind; a misconfigured one does not affect the others.

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
        values = {**_shared_by_all(conf, kind), **own}
        config = ReporterConfig(f"{kind.prefix}{name}.", values, application or ApplicationInfo(), conf)
        try:
            setups.append(_read_setup(kind, name, config))
        except ConfigError as error:
            errors.append(error)
        except Exception as error:
            key, what = config.key(FACTORY.name), "its factory or an option of it raised"
            errors.append(ConfigError(f"{key}: {own.get(FACTORY.name)!r}: {what} {describe(error)}"))
    return setups, errors


def common_options(kind: Kind) -> Mapping[str, Option[Any]]:
    """Return the options that all plugins of a kind have, by the fields of ``ReporterSettings``."""
    return {name: option for name, option in _OPTIONS.items() if kind.scoped or name in _OF_LISTENERS}


def _shared_by_all(conf: Mapping[str, str], kind: Kind) -> Mapping[str, str]:
    """Return the settings that apply to all reporters of a kind at once."""
    delimiter = conf.get(key_of(SharedSettings, "delimiter")) if kind is METRICS else None
    return {} if delimiter is None else {_OPTIONS["delimiter"].name: delimiter}


def _chosen(
    conf: Mapping[str, str], kind: Kind, errors: list[ConfigError]
) -> Mapping[str, Mapping[str, str]]:
    """Group the keys by reporter, and keep the reporters that the list of names asks for."""
    by_name: dict[str, dict[str, str]] = {}
    for key, value in conf.items():
        if key.startswith(kind.prefix):
            name, dot, option = key.removeprefix(kind.prefix).partition(".")
            if name and dot and option:
                by_name.setdefault(name, {})[option] = value
            else:
                errors.append(ConfigError(f"{key}: not an option; expected {kind.prefix}<name>.<option>"))
    lists = {key: conf[key] for key in (kind.names_key, kind.flinks_names_key) if key and key in conf}
    if not lists:
        return by_name
    listed = next(iter(lists.values()))
    if len(set(lists.values())) > 1:
        first, second = lists
        said = f"{second}: {lists[second]!r} is ignored, for {first} is set, too: list all names there"
        errors.append(ConfigError(said))
    names = types.LIST.parse(listed)
    if not kind.scoped:
        # As in Flink, the list may name a listener's factory directly.
        for name in names:
            by_name.setdefault(name, {}).setdefault(FACTORY.name, name)
    errors += [
        ConfigError(
            f"{kind.names_key}: {name!r} is not configured; set {kind.prefix}{name}.factory.class "
            f"to one of {_factories(kind)}"
        )
        for name in names
        if name not in by_name
    ]
    return {name: by_name[name] for name in dict.fromkeys(names) if name in by_name}


def _read_setup(kind: Kind, name: str, config: ReporterConfig) -> ReporterSetup:
    values, errors = read_declared(ReporterSettings, config)
    settings = ReporterSettings(**values)
    factory_key = config.key(FACTORY.name)
    if not settings.factory_class:
        near = difflib.get_close_matches(FACTORY.name, config.values, n=1, cutoff=0.8)
        instead = f"; found {near[0]!r}" if near else ""
        raise ConfigError(
            f"{factory_key}: missing; set it to one of {_factories(kind)}, or to module:Class{instead}"
        )
    factory = load_factory(kind, settings.factory_class, factory_key)
    problems = [problem for error in errors for problem in error.problems]
    problems += config.problems(factory.options or ()).values()
    unknown = _unknown_options(kind, factory, config)
    ignored = [text for text, protects in unknown.items() if not protects]
    problems += [text for text, protects in unknown.items() if protects]
    filters = []
    for text, option in ((settings.includes, "includes"), (settings.excludes, "excludes")):
        try:
            filters.append(parse_patterns(text, config.key(_OPTIONS[option].name), kind.typed))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError.of_all([*problems, *ignored])
    # Undeclared options are ignored: a factory that does not declare journal.dir has no journal.
    journaled = JOURNAL_DIR in (factory.options or ())
    return ReporterSetup(
        kind,
        name,
        factory,
        _own_options(kind, config),
        replace(
            settings,
            additional_variables={_bare(key): value for key, value in settings.additional_variables.items()},
            excluded_variables=tuple(map(_bare, settings.excluded_variables)),
        ),
        Filter(*filters),
        config.get(JOURNAL_DIR) if journaled else None,
        _journal_bounds(config, settings.drop_oldest) if journaled else Bounds(),
        tuple(ignored),
    )


def _journal_bounds(config: ReporterConfig, drop_oldest: bool) -> Bounds:
    return Bounds(
        config.get(JOURNAL_MAX_BYTES), config.get(JOURNAL_MAX_AGE), drop_oldest, config.get(JOURNAL_FSYNC)
    )


def _own_options(kind: Kind, config: ReporterConfig) -> ReporterConfig:
    common = {option.name for option in common_options(kind).values()} - {_OPTIONS["interval_ms"].name}
    own = {key: value for key, value in config.values.items() if key not in common}
    return replace(config, values=own)


def _unknown_options(kind: Kind, factory: ReporterFactory, config: ReporterConfig) -> dict[str, bool]:
    """Return a sentence for each option that there is not, and whether it was to protect what is reported."""
    if factory.options is None:
        return {}
    options = {option.name: option for option in (*factory.options, *common_options(kind).values())}
    known = sorted(options)
    problems = {}
    for key in config.values:
        if key not in options:
            close = difflib.get_close_matches(_spelled(key), known, n=1) or _of_same_end(key, known)
            hint = f"did you mean {close[0]!r}? " if close else ""
            text = f"{config.key(key)}: unknown option; {hint}allowed: {', '.join(known)}"
            problems[text] = bool(close) and _protects(options[close[0]])
    return problems


def _spelled(key: str) -> str:
    """Return an option nearly as our own are spelled: ``max.bytes`` for ``maxBytes`` and ``MAX_BYTES``."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1.\2", key).replace("_", ".").lower()


def _of_same_end(key: str, known: Sequence[str]) -> list[str]:
    """Return the one option that ends with the same word; none if there are several."""
    same = [each for each in known if each.rpartition(".")[2] == _spelled(key).rpartition(".")[2]]
    return same if len(same) == 1 else []


def _protects(option: Option[Any]) -> bool:
    """Return whether a reporter without this option might show too much, or to too many."""
    return (
        option.type.secret
        or option.name in (_OPTIONS["excluded_variables"].name, "bind.address")
        or any(word in option.name for word in ("filter.", "tls.", "auth."))
    )


def _factories(kind: Kind) -> str:
    return ", ".join(installed(kind.entry_points)) or "(none is installed)"


def _bare(variable: str) -> str:
    """Return a variable's name without the angle brackets that Flink writes; both forms are accepted."""
    return variable.removeprefix("<").removesuffix(">")
