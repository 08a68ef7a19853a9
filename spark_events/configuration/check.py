"""Checks a configuration before a job is submitted with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_events.api import ConfigError, probe_folder
from spark_events.api.reporter import JOURNAL_DIR
from spark_events.api.toolkit.daemon_executor import call_within
from spark_events.configuration.python_daemon import unused_daemon, wrong_daemon
from spark_events.configuration.unknown_keys import unknown_keys
from spark_events.ctas.settings import problems_of
from spark_events.listeners.settings import turned_off
from spark_events.runtime.plugins import EVENTS
from spark_events.runtime.setup import FACTORY, ReporterSetup
from spark_events.runtime.stats import describe
from spark_events.sources.configuration import read_configuration
from spark_events.spark.metrics_sink import missing_lines

_PROBE_S = 15.0


@dataclass(frozen=True, slots=True)
class CheckedReporter:
    """One reporter that is configured well; ``reached`` is what a probe reached, if one was asked for."""

    kind: str
    name: str
    factory: str
    reached: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check has to say: which reporters would start, and sentences as of ``Configuration``."""

    reporters: list[CheckedReporter]
    problems: list[str]
    warnings: list[str]


def check(conf: Mapping[str, str], connect: bool) -> CheckResult:
    """Check a configuration, as ``attach`` would read it; ``connect`` also tries what is to be reached."""
    configuration = read_configuration(conf)
    problems = [*configuration.problems, *problems_of(conf), *unknown_keys(conf), *wrong_daemon(conf)]
    reporters: list[CheckedReporter] = []
    for setup in configuration.setups:
        _check_reporter(setup, connect, reporters, problems)
    off = turned_off(conf)
    if not configuration.setups and not problems and not off:
        problems.append(
            f"no reporter is configured; set {EVENTS.prefix}<name>.{FACTORY.name}, as in "
            "conf/spark-defaults.conf (see spark-events paths)"
        )
    settings = configuration.settings
    missing = missing_lines(conf, settings.sink_ports, settings.sink_token)
    return CheckResult(
        reporters,
        [configuration.redactor.text(problem) for problem in problems],
        [
            *([f"nothing is reported: {off} turns spark-events off"] if off else []),
            *configuration.warnings,
            *filter(None, [missing]),
            *unused_daemon(conf, settings),
        ],
    )


def _check_reporter(
    setup: ReporterSetup,
    connect: bool,
    reporters: list[CheckedReporter],
    problems: list[str],
) -> None:
    title = f"{setup.kind.prefix}{setup.name}"
    try:
        # What create finds wrong, a missing package say, shows only there.
        call_within(_PROBE_S, lambda: setup.factory.create(setup.config))
        reached = call_within(_PROBE_S, lambda: _probe(setup)) if connect else ""
    except Exception as error:
        text = describe(error)
        problems.append(text if text.startswith("spark.") else f"{title}: {text}")
        return
    factory = setup.settings.factory_class or setup.name
    reporters.append(CheckedReporter(setup.kind.name, setup.name, factory, str(reached)))


def _probe(setup: ReporterSetup) -> str:
    reached = setup.factory.probe(setup.config)
    if setup.journal_dir is None:
        return reached
    try:
        return f"{reached}; {probe_folder(setup.journal_dir)}"
    except OSError as error:
        raise ConfigError(f"{setup.config.key(JOURNAL_DIR.name)}: {error}") from error
