"""Checks a configuration before a job is submitted with it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TypeVar

from spark_events.api import ConfigError, probe_folder
from spark_events.api.option_types import LOCAL_PATH
from spark_events.api.reporter import JOURNAL_DIR
from spark_events.api.toolkit.daemon_executor import call_within
from spark_events.ctas.settings import OF_CTAS, problems_of
from spark_events.diagnosis.earlier_runs.run_folder import probe_run_folder
from spark_events.diagnosis.thresholds import Thresholds
from spark_events.listeners.settings import STATE_DIR, ListenerSettings, turned_off, wrong_switch
from spark_events.runtime.foreign_errors import describe
from spark_events.runtime.plugins import EVENTS, create_reporter
from spark_events.runtime.settings import key_of
from spark_events.runtime.setup import FACTORY, ReporterSetup
from spark_events.sources.attaching.unknown_keys import OF_THE_FRAMEWORK, unknown_keys
from spark_events.sources.configuration import read_configuration
from spark_events.spark.metrics_sink import missing_lines

_PROBE_S = 15.0
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CheckedReporter:
    """One reporter that is configured well; ``reached`` is what a probe reached, if one was asked for."""

    kind: str
    name: str
    factory: str
    reached: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check has to say: which reporters would start, and sentences as of ``Configuration``.

    Attributes:
        off: what turns everything off; empty for nothing.
    """

    reporters: list[CheckedReporter]
    problems: list[str]
    warnings: list[str]
    off: str = ""


def check(conf: Mapping[str, str], connect: bool) -> CheckResult:
    """Check a configuration, as ``attach`` would read it; ``connect`` also tries what is to be reached."""
    configuration = read_configuration(conf)
    problems = [
        *configuration.problems,
        *problems_of(conf),
        *unknown_keys(conf, (*OF_THE_FRAMEWORK, *OF_CTAS)),
        *wrong_daemon(conf),
        *quoted(conf),
    ]
    reporters: list[CheckedReporter] = []
    for setup in configuration.setups:
        _check_reporter(setup, connect, reporters, problems)
    if connect:
        problems += _unwritable(configuration.settings)
    if problem := wrong_switch():
        problems.append(problem)
    off = turned_off(conf)
    if not configuration.setups and not problems and not off:
        problems.append(
            f"no reporter is configured; set {EVENTS.prefix}<name>.{FACTORY.name}. `spark-events init` "
            "writes a first configuration; `spark-events paths` shows an example with every key."
        )
    settings = configuration.settings
    missing = missing_lines(conf, settings.sink_ports)
    return CheckResult(
        reporters,
        [configuration.redactor.text(problem) for problem in problems],
        [
            *([f"nothing is reported: {off}"] if off else []),
            *configuration.warnings,
            *filter(None, [missing]),
            *unused_daemon(conf, settings),
            *sparks_own_folders(conf, configuration.setups),
        ],
        off,
    )


def _unwritable(settings: ListenerSettings) -> Iterator[str]:
    """Yield a sentence for each folder of the listeners that cannot be written."""
    probes: list[tuple[str, Callable[[], object]]] = []
    if (state_dir := settings.state_dir) is not None:
        probes.append((STATE_DIR, lambda: probe_folder(state_dir)))
    if settings.thresholds.compares_runs and (past_dir := settings.thresholds.past_dir):
        probes.append((key_of(Thresholds, "past_dir"), lambda: probe_run_folder(past_dir)))
    for key, probe in probes:
        try:
            call_within(_PROBE_S, probe)
        except Exception as error:
            yield f"{key}: {describe(error)}"


def _check_reporter(
    setup: ReporterSetup,
    connect: bool,
    reporters: list[CheckedReporter],
    problems: list[str],
) -> None:
    title = f"{setup.kind.prefix}{setup.name}"
    try:
        # What create finds wrong, a missing package say, shows only there.
        _of_plugin(lambda: create_reporter(setup.kind, setup.factory, setup.config))
        reached = _of_plugin(lambda: _probe(setup)) if connect else ""
    except Exception as error:
        text = describe(error)
        problems.append(text if text.startswith("spark.") else f"{title}: {text}")
        return
    factory = setup.settings.factory_class or setup.name
    reporters.append(CheckedReporter(setup.kind.name, setup.name, factory, str(reached)))


def _of_plugin(call: Callable[[], _Result]) -> _Result:
    """Call a plugin, which may take only so long, and whose ``sys.exit`` does not end this process.

    Raises:
        ConfigError: it raises what is no Exception.
        Exception: what it raises, or TimeoutError.
    """

    def on_its_thread() -> _Result:
        try:
            return call()
        except Exception:
            raise
        except BaseException as error:
            raise ConfigError(describe(error)) from None

    return call_within(_PROBE_S, on_its_thread)


def _probe(setup: ReporterSetup) -> str:
    reached = setup.factory.probe(setup.config)
    if setup.journal_dir is None:
        return reached
    try:
        return f"{reached}; {probe_folder(setup.journal_dir)}"
    except ConfigError as error:
        raise ConfigError(f"{setup.config.key(JOURNAL_DIR.name)}: {error}") from error


_OUR_KEYS = re.compile(r"spark\.((events|traces|job-status-changed)\.|metrics\.report)")


def quoted(conf: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each of our values that has quotation marks around it: Spark leaves them there."""
    for key, value in conf.items():
        if _OUR_KEYS.match(key) and len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            yield f"{key}: begins with a quotation mark; spark-defaults.conf takes values without quotes"


_KEY = "spark.python.daemon.module"
_OURS = "spark_events.task.daemon"


def wrong_daemon(conf: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence if the daemon is to be one of ours that there is not."""
    module = conf.get(_KEY, "")
    if not module.startswith("spark_events") or module == _OURS:
        return
    try:
        there = find_spec(module) is not None
    except ImportError:
        there = False
    if not there:
        yield f"{_KEY}: {module!r} is not a module; did you mean {_OURS!r}?"


def unused_daemon(conf: Mapping[str, str], settings: ListenerSettings) -> Iterator[str]:
    """Yield a sentence for each setting that does not go together with our daemon."""
    if conf.get(_KEY) != _OURS:
        return
    if not settings.task_reports:
        yield f"{_KEY}: {_OURS} has nothing to do, because spark.events.task.enabled is false"
    if conf.get("spark.python.use.daemon", "true").lower() == "false":
        yield f"{_KEY}: {_OURS} does not run, because spark.python.use.daemon is false"
    if settings.ship_task_module:
        yield (
            f"{_KEY}: {_OURS} has to be installed on executors, or every Python task fails; "
            "spark.events.task.ship-module comes too late for it"
        )


_EVENT_LOGS = {
    "spark.eventLog.dir": "/tmp/spark-events",
    "spark.history.fs.logDirectory": "/tmp/spark-events",
}
"""Where Spark writes its event logs, and its history server looks for them, with their defaults."""


def sparks_own_folders(conf: Mapping[str, str], setups: Iterable[ReporterSetup]) -> Iterator[str]:
    """Yield a sentence for each reporter that writes into the folder of Spark's own event logs."""
    theirs = {_local(conf.get(key, default)): key for key, default in reversed(_EVENT_LOGS.items())}
    for setup in setups:
        for option in setup.factory.options or ():
            folder = setup.config.get(option) if option.type is LOCAL_PATH else None
            if folder is not None and (key := theirs.get(_local(str(folder)))):
                yield (
                    f"{setup.config.key(option.name)}: {folder} is also the folder of Spark's own event logs "
                    f"({key}), which have another format; give this reporter a folder of its own, such as "
                    "/var/log/spark-reports"
                )


def _local(url: str) -> str:
    """Return a local folder, however it is written; a URL of another file system as it is."""
    path = re.sub(r"^file:(//)?", "", url)
    return url if "://" in path else os.path.normpath(path)
