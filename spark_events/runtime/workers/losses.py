"""Reports what was dropped: in the log and as an event, at most once a minute for each place and cause."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spark_events.api import Event, EventBuilder, MetricGroup, Severity
from spark_events.api.toolkit.formatting import counted
from spark_events.runtime import event_names
from spark_events.runtime.log_once import logger

CLASS_SCOPE = "spark_events.runtime.Losses"
_EVERY_S = 60.0


@dataclass
class Watched:
    """A place where things are dropped.

    Attributes:
        group: the group whose variables the events carry.
        read: returns how many have been dropped so far, by cause.
        causes: by cause, a clause that gives the reason and names the key to set.
        note_told: called with a cause and how many have been reported; returns how many of these an earlier
            process dropped, which ended without an event of them.
        reported: by cause, how many have been reported so far.
        reported_at: by cause, when they were last reported; a time of ``time.monotonic``.
    """

    title: str
    group: MetricGroup
    read: Callable[[], Mapping[str, int]]
    causes: Mapping[str, str]
    note_told: Callable[[str, int], int] = lambda cause, count: 0
    reported: dict[str, int] = field(default_factory=dict)
    reported_at: dict[str, float] = field(default_factory=dict)


class Losses:
    """Watches the places where things are dropped."""

    def __init__(self, add_event: Callable[[MetricGroup, EventBuilder], None]) -> None:
        self._add_event = add_event
        self._places: list[Watched] = []

    def watch(
        self,
        title: str,
        group: MetricGroup,
        read: Callable[[], Mapping[str, int]],
        causes: Mapping[str, str],
        note_told: Callable[[str, int], int] = lambda cause, count: 0,
    ) -> None:
        """Watch a place from now on; see ``Watched``."""
        self._places.append(Watched(title, group, read, causes, note_told))

    def report(self, *, lately: bool = False, as_events: bool = True) -> None:
        """Report new losses.

        Args:
            lately: include causes reported less than a minute ago: there may be no later occasion.
            as_events: also as events, and not only in the log.
        """
        now = time.monotonic()
        for place in self._places:
            for cause, total in place.read().items():
                count = total - place.reported.get(cause, 0)
                was_lately = now < place.reported_at.get(cause, -_EVERY_S) + _EVERY_S
                if count <= 0 or (was_lately and not lately):
                    continue
                place.reported[cause], place.reported_at[cause] = total, now
                self._report_cause(place, cause, count, total, as_events)

    def _report_cause(self, place: Watched, cause: str, count: int, total: int, as_event: bool) -> None:
        why = place.causes.get(cause, cause)
        if earlier := place.note_told(cause, total):
            why += f"; {earlier:,} of them in an earlier process, which ended without an event of them"
        logger.warning(
            "%s dropped %s, %d in total, because %s", place.title, counted(count, "item"), total, why
        )
        if not as_event:
            return
        body = f"{place.title} dropped {counted(count, 'item')} because {why}"
        event = (
            Event.builder(CLASS_SCOPE, event_names.RECORDS_DROPPED).set_severity(Severity.WARN).set_body(body)
        )
        event.set_attribute("cause", cause).set_attribute("count", count).set_attribute("total", total)
        self._add_event(place.group, event)
