"""Explains the applications of event logs: replays each, and follows its records besides."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from spark_events.api import ApplicationInfo, ConfigError, Event
from spark_events.api.errors import NothingToReadError
from spark_events.api.toolkit.formatting import counted, path_without_secrets
from spark_events.listeners.context import ListenerContext
from spark_events.listeners.issues.application_timeline import ApplicationTimeline
from spark_events.listeners.listener import Listener
from spark_events.listeners.settings import read_settings
from spark_events.listeners.spark_listeners import SparkListeners
from spark_events.runtime.event_names import JOB_FAILURE, PERFORMANCE_ISSUE
from spark_events.runtime.log_once import OnceLog, logger
from spark_events.runtime.registry import Registry
from spark_events.sources.assembly import read_checked
from spark_events.sources.configuration import read_configuration
from spark_events.sources.event_log.reading.files import EventLog, LogFiles
from spark_events.sources.event_log.replay import LogReplay, Tap
from spark_events.why.explanation import LEAST, SMALL_MS, Explanation, explain
from spark_events.why.longest_stages import LongestStages
from spark_events.why.reading.clock_steps import ClockSteps
from spark_events.why.reading.heap_use import HeapUse
from spark_events.why.reading.run_figures import RunFigures
from spark_events.why.reading.told_failures import ToldFailure, sentences, told_failure


def explain_logs(
    paths: Sequence[str],
    conf: Mapping[str, str],
    app: str | None = None,
    on_read: Callable[[int, int], None] = lambda read, size: None,
) -> tuple[list[Explanation], list[str]]:
    """Return the explanation of each application in event logs, and what could not be read of them.

    Args:
        paths: logs, folders or globs.
        conf: Spark's configuration; its thresholds apply, its reporters do not.
        app: only applications of this name or id; None for all.
        on_read: called with how many bytes of how many have been read.

    Raises:
        ConfigError: the configuration is wrong.
        NothingToReadError: there is nothing at a path, or no log among it.
    """
    read_checked(conf)
    logs = [(files, log) for files in map(LogFiles, paths) for log in files.find()]
    if not logs:
        raise NothingToReadError(f"no event log at {', '.join(map(path_without_secrets, paths))}")
    size, read = sum(log.size for _, log in logs), 0
    explanations, notes = [], []
    for files, log in logs:
        reading = _Reading(files, log, conf)
        try:
            for block in reading.run():
                read += block
                on_read(read, size)
            explanation = reading.explanation()
            if explanation is not None and app in (None, explanation.app_name, explanation.app_id):
                explanations.append(_looked_at_closely(explanation, files, log, conf, reading.said))
        except ConfigError:
            raise
        except Exception as error:  # one damaged log is no reason to tell nothing of the others
            logger.debug("%s: cannot be explained", log.path, exc_info=True)
            reason = f"{type(error).__name__}: {error}"
            notes.append(
                f"{path_without_secrets(log.path)}: cannot be explained: a record of it is damaged, or met a "
                f"fault of spark-events ({reason})"
            )
        notes += reading.notes
    return explanations, notes


def _looked_at_closely(
    explanation: Explanation, files: LogFiles, log: EventLog, conf: Mapping[str, str], said: OnceLog
) -> Explanation:
    """Return the explanation with what costs a fair share of the run.

    What one stage or execution loses is looked for in smaller pieces: all those of one place, as the turns of
    a loop, may lose that much together.
    """
    thresholds = read_settings(conf)[0].thresholds
    worth_ms = max(SMALL_MS, round(thresholds.min_share * explanation.duration_ms))
    piece_ms = max(_LEAST_PIECE_MS, round(_PIECE * explanation.duration_ms))
    if LEAST in conf or piece_ms >= thresholds.min_time_ms:
        return explanation
    reading = _Reading(files, log, {**conf, LEAST: f"{piece_ms}ms"}, worth_ms, said)
    for _ in reading.run():
        pass
    return reading.explanation() or explanation


_MOST_FAILURES = 1_000
_PIECE, _LEAST_PIECE_MS = 0.0001, 100
"""What one stage has to lose, as a share of the run and in ms, if all of one place lose more."""


class _Reading:
    """One log.

    Args:
        worth_ms: what an issue costs at least that is told, in ms; None for what the configuration says.
        said: what was logged of it before.

    Attributes:
        said: what is logged of it, each kind of trouble once.
    """

    def __init__(
        self,
        files: LogFiles,
        log: EventLog,
        conf: Mapping[str, str],
        worth_ms: int | None = None,
        said: OnceLog | None = None,
    ) -> None:
        self.said = said or OnceLog()
        self._conf = conf
        self._worth_ms = worth_ms or read_settings(conf)[0].thresholds.min_time_ms
        self._events: list[Event] = []
        self._failures: deque[ToldFailure] = deque(maxlen=_MOST_FAILURES)
        self._timeline = ApplicationTimeline(bounded=False)
        self._figures = RunFigures()
        self._heap = HeapUse()
        self._clock = ClockSteps(self._timeline)
        self._longest = LongestStages()
        self._replay = LogReplay(files, log, self._listeners, self._take_event, with_unfinished=True)

    def run(self) -> Iterator[int]:
        return self._replay.run()

    @property
    def notes(self) -> list[str]:
        """What could not be read; that an application has no end is not a fault of the log."""
        result = self._replay.result
        skipped = [
            f"{counted(count, 'line')} skipped: {reason}" for reason, count in result.counts.lost().items()
        ]
        whole = result.application is not None and not result.unreadable
        more = filter(None, (result.compacted, self._clock.said))
        notes = (*([] if whole else result.notes), *more, *skipped)
        return [f"{result.path}: {note}" for note in notes]

    def explanation(self) -> Explanation | None:
        result = self._replay.result
        if result.application is None:
            return None
        name, app_id = result.application.name, result.application.id
        # What was a warning while it ran is told as what it came to.
        issues = [event for event in self._events if not (result.ended and event.all_attributes.get("live"))]
        return explain(
            name,
            app_id,
            self._timeline,
            self._figures,
            self._heap,
            self._longest,
            result.ended,
            issues,
            self._worth_ms,
            sentences(self._failures),
            sum(result.counts.skipped.values()),
        )

    def _listeners(self, application: ApplicationInfo, tap: Tap, own: Mapping[str, str]) -> SparkListeners:
        configuration = read_configuration(self._conf, application)
        registry = Registry([], configuration.redactor, tap=tap)
        registry.log = self.said

        def follow(context: ListenerContext, registry: Registry, spark_version: str) -> Sequence[Listener]:
            self._figures.spark_version = spark_version
            self._longest.run = context.run
            return self._timeline, self._figures, self._heap, self._longest, self._clock

        return SparkListeners(
            registry,
            configuration.settings,
            [],
            extension=follow,
            with_all_sums=True,
        )

    def _take_event(self, event: Event) -> None:
        if event.name == PERFORMANCE_ISSUE:
            self._events.append(event)
        elif event.name == JOB_FAILURE:
            attributes = event.all_attributes
            self._failures.append(told_failure(event.id, event.time_ms, attributes, event.body))
