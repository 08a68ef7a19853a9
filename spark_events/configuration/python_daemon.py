"""Checks the daemon of Python workers, of which a mistake would fail every Python task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from spark_events.listeners.settings import ListenerSettings

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
        yield f"{_KEY}: {_OURS} has nothing to do, because spark.events.task is false"
    if conf.get("spark.python.use.daemon", "true").lower() == "false":
        yield f"{_KEY}: {_OURS} does not run, because spark.python.use.daemon is false"
    if settings.ship_task_module:
        yield (
            f"{_KEY}: {_OURS} has to be installed on executors, or every Python task fails; "
            "spark.events.task.ship comes too late for it"
        )
