"""The page of a report that stays up to date: made again when the stored events have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlencode

from spark_events.api import SparkEventsError
from spark_events.history.history import history_of
from spark_events.history.options import Engine, ReportOptions
from spark_events.history.page.headline import wrong_now
from spark_events.history.page.page import environment, page
from spark_events.history.page.turns import Turns
from spark_events.history.reading.facts import Reading
from spark_events.history.reading.local_files import LocalFiles
from spark_events.history.reading.plausible import PossibleTimes
from spark_events.history.report import Report, collect
from spark_events.history.run import add_to_store, make_report, open_database
from spark_events.history.store.store import HistoryStore
from spark_events.history.table import Row, rows_of_query
from spark_events.history.tables.all_tables import Tables
from spark_events.runtime.log_once import logger

_MOST_VIEWS = 8
_MOST_PAGES = 16
_MOST_WAITED_FOR = 16
"""Different views that readers wait for; each may take as long as a report."""
_MOST_REPORTS = 32
"""Of facts that were read once."""
_READ_SHARE = 5
_NOW_AGAIN_S = 15
"""How often the page is made again without new events where it goes until now: silence grows meanwhile."""
_MOST_CHOICES = 100
_INTERVALS, _DURATIONS = "intervals", "durations"
"""Of a report, beside its tables."""
_HOUR_MS = 3_600_000
_SPANS = {
    "hour": _HOUR_MS,
    "day": 24 * _HOUR_MS,
    "week": 7 * 24 * _HOUR_MS,
    "30 days": 30 * 24 * _HOUR_MS,
    "all": None,
}


class View(NamedTuple):
    """What of the history is shown.

    Attributes:
        app, query: only the application, and the streaming query, of this name; empty for all.
        span_ms: only so much time before the last event, in ms; None for all.
    """

    app: str = ""
    query: str = ""
    span_ms: int | None = None


@dataclass(slots=True)
class _Made:
    """A report of one span, and the state of the files and of the store that it was made from."""

    report: Report
    files: object
    stored: object
    made_at: float
    looked_at: float


class _Facts:
    """The facts of some files, read once for reports of all spans; a database of its own keeps them.

    Args:
        options: of the report.
        files: the state of the files.
    """

    def __init__(self, options: ReportOptions, files: object) -> None:
        self.files = files
        self._opened = ExitStack()
        self._reports = 0
        self._read_ms = time.time_ns() // 1_000_000
        try:
            self._database = self._opened.enter_context(open_database(options, Engine.LOCAL))
            self._facts, self._reading = self._database.read_facts(
                options.paths, options.times or PossibleTimes()
            )
        except BaseException:
            self.close()
            raise

    @property
    def is_used_up(self) -> bool:
        """Whether it is time to begin afresh.

        Each report leaves something in the database, and what was in the future may no longer be there.
        """
        read_ms_ago = time.time_ns() // 1_000_000 - self._read_ms
        return self._reports >= _MOST_REPORTS or read_ms_ago > _HOUR_MS

    def report(self, options: ReportOptions) -> Report:
        """Return the report of a span.

        Raises:
            ConfigError: there is no fact.
        """
        self._reports += 1
        history = history_of(
            self._database, self._facts, self._reading, options.paths, options.sla, options.selection
        )
        return collect(history, history.tables(), [self._reading])

    def close(self) -> None:
        """Close the database."""
        self._opened.close()


class LivePage:
    """Makes pages of stored events, at most one at a time, and keeps what has not changed.

    Args:
        options: of the report; its files are not written.
        every_s: how often to look for new events, in seconds; seldomer where reading takes long.
        files: returns the state of the stored events; another one means that there is something new.
    """

    def __init__(self, options: ReportOptions, every_s: float, files: Callable[[], object]) -> None:
        self._options = replace(options, html=None, json=None, parquet=None)
        self._every_s = every_s
        self._files = files
        self._turns = Turns(_MOST_WAITED_FOR)
        self._made: dict[int | None, _Made] = {}
        self._added: tuple[object, list[Reading]] = None, []
        self._took_s = 0.0
        self._facts: _Facts | None = None
        self._pages: dict[View, tuple[Report, str, str]] = {}
        self.problem = ""

    def html(self, view: View, is_wanted: Callable[[], bool] = lambda: True) -> str:
        """Return the page of a view.

        Args:
            view: it.
            is_wanted: asked after it has waited for other pages; returns whether its reader still waits.

        Raises:
            ConfigError: the events cannot be read, and never could.
            BusyError: too many other views are waited for, or nobody wants this one any more.
        """
        if (kept := self._kept(view)) is not None:
            return kept
        with self._turns.taken(view, is_wanted):
            report, problem = self._report(view.span_ms), self.problem
            known = self._pages.pop(view, None)
            # A hundred readers of one view cost as much as one.
            if known is None or known[0] is not report or known[1] != problem:
                known = report, problem, self._page(view, report, problem)
            self._pages[view] = known
            if len(self._pages) > _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
        return known[2]

    def _kept(self, view: View) -> str | None:
        """Return the page of a view if it is not time to look for new events; None otherwise."""
        made, known = self._made.get(view.span_ms), self._pages.get(view)
        if made is None or known is None or self._is_due(made, time.monotonic()):
            return None
        return known[2] if known[0] is made.report and known[1] == self.problem else None

    def close(self, within_s: float) -> bool:
        """Make no page any more; return whether the one that is being made has ended in time, in s."""
        has_ended = self._turns.close(within_s)
        if has_ended and self._facts is not None:
            self._facts.close()
        return has_ended

    def _page(self, view: View, report: Report, problem: str) -> str:
        shown = filtered(report, view)
        pairs = {(str(row["app_name"]), str(row["query_name"] or "")) for row in report.tables.uptime}
        template = environment("spark_events.history.page").get_template("live.html.j2")
        top = template.render(
            every_s=max(1, round(self._every_s)),
            applications=_choices(
                view.app,
                (app for app, _ in pairs),
                lambda value: _possible(view._replace(app=value), view._replace(app=value, query=""), pairs),
            ),
            queries=_choices(
                view.query,
                (query for _, query in pairs),
                lambda value: _possible(view._replace(query=value), View("", value, view.span_ms), pairs),
            ),
            spans=[
                (text, _link(view._replace(span_ms=span_ms)), span_ms == view.span_ms)
                for text, span_ms in _SPANS.items()
            ],
            bad=wrong_now(shown),
            absent=_absent(view, shown),
            problem=problem,
        )
        head = f'<meta http-equiv="refresh" content="{max(1, round(self._every_s))}">'

        def failures_of(row: Row) -> str:
            return _link(View(row["app_name"], row["query_name"] or "", view.span_ms)) + "#failed"

        text = page(shown, failures_of)
        return text.replace("<title>", f"{head}\n<title>", 1).replace("<body>", f"<body>\n{top}", 1)

    def _report(self, span_ms: int | None) -> Report:
        made, now = self._made.get(span_ms), time.monotonic()
        if made is not None and not self._is_due(made, now):
            return made.report
        try:
            files = self._files()
            if (
                made is None
                or self._is_old(made, now)
                or (made.files, made.stored) != (files, self._stored())
            ):
                made = self._made[span_ms] = self._make(span_ms, files)
                if len(self._made) > _MOST_VIEWS:
                    others = (span for span in self._made if span not in (span_ms, *_SPANS.values()))
                    del self._made[next(others, next(iter(self._made)))]
            made.looked_at, self.problem = now, ""
        except SparkEventsError as error:
            if made is None:
                raise
            logger.warning("the page is not up to date: %s", error)
            self.problem = str(error)
        return made.report

    def _is_due(self, made: _Made, now: float) -> bool:
        """Return whether to look for new events; what takes minutes must not take all the time."""
        return now - made.looked_at >= max(self._every_s, _READ_SHARE * self._took_s)

    def _is_old(self, made: _Made, now: float) -> bool:
        return self._options.selection.until_now and now - made.made_at >= _NOW_AGAIN_S

    def _make(self, span_ms: int | None, files: object) -> _Made:
        began = time.monotonic()
        selection = (
            self._options.selection
            if not span_ms
            else replace(self._options.selection, span_ms=span_ms, since_ms=None)
        )
        options = replace(self._options, selection=selection)
        if not options.store:
            report = self._facts_of(options, files).report(options)
            self._took_s = time.monotonic() - began
            return _Made(report, files, self._stored(), began, began)
        with open_database(options, Engine.LOCAL) as database:
            if self._added[0] != files:
                store = HistoryStore(database, options.store, options.times)
                self._added = files, add_to_store(store, options)
            stored = self._stored()
            report = make_report(database, options, self._added[1])
        self._took_s = time.monotonic() - began
        return _Made(report, files, stored, began, began)

    def _facts_of(self, options: ReportOptions, files: object) -> _Facts:
        """Return the facts of the files as they are now; they are read again only if they have changed."""
        if self._facts is None or self._facts.files != files or self._facts.is_used_up:
            before, self._facts = self._facts, None
            if before is not None:
                before.close()
            self._facts = _Facts(options, files)
        return self._facts

    def _stored(self) -> object:
        """Return another value whenever something was added to the store, by whatever process."""
        names = LocalFiles(self._options.store).names() if self._options.store else []
        return [name for name in names if name.endswith(".json")]


def filtered(report: Report, view: View) -> Report:
    """Return the parts of a report that are about a view's application and query."""
    if not view.app and not view.query:
        return report

    def shown(rows: list[Row]) -> list[Row]:
        return [row for row in rows if view.app in ("", row["app_name"])]

    tables = {**report.tables, _INTERVALS: report.intervals, _DURATIONS: report.durations}
    parts = {name: shown(rows) for name, rows in tables.items()}
    parts = rows_of_query(parts, view.query) if view.query else parts
    intervals, durations = parts.pop(_INTERVALS), parts.pop(_DURATIONS)
    return replace(report, tables=Tables(parts), intervals=intervals, durations=durations)


def _absent(view: View, shown: Report) -> str:
    """Return what to say of a view that has nothing: its name may be an old one, or misspelt."""
    if shown.tables.uptime or not (view.app or view.query):
        return ""
    query = f"query {view.query!r}" if view.query else ""
    application = f"application {view.app!r}" if view.app else ""
    return f"no {' of '.join(filter(None, (query, application)))} is known"


def _possible(view: View, other: View, pairs: Collection[tuple[str, str]]) -> View:
    """Return a view, or another one if its application has no query of this name: it would be empty."""
    is_empty = view.app and view.query and (view.app, view.query) not in pairs
    return other if is_empty else view


def _choices(
    current: str, values: Iterable[str], view_of: Callable[[str], View]
) -> list[tuple[str, str, bool]]:
    """Return links to the views of some values, and of all: text, address, whether it is the current."""
    shown = sorted({value for value in values if value})[:_MOST_CHOICES]
    return [(value or "all", _link(view_of(value)), value == current) for value in ("", *shown)]


def _link(view: View) -> str:
    parts = {"app": view.app, "query": view.query, "since": f"{view.span_ms}ms" if view.span_ms else ""}
    return "?" + urlencode({key: value for key, value in parts.items() if value})
