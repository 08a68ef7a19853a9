"""What waits for a reporter between the threads: each item is taken, or counted once as dropped."""

from __future__ import annotations

from spark_events.runtime.workers.inbox import Inbox, Item, QueueBounds
from spark_events.runtime.workers.stats import ReporterStats


class Made:
    """An inbox of three items, with the counts of what it dropped."""

    def __init__(self, items: int = 3) -> None:
        self.stats = ReporterStats()
        self.inbox = Inbox(QueueBounds(max_items=3), self.stats)
        for number in range(items):
            self.inbox.put(Item("call", (number,)))

    @property
    def dropped(self) -> dict[str, int]:
        return {cause: c.count for cause, c in self.stats.dropped_by_cause.items() if c.count}


def test_what_waits_can_be_taken_after_the_close() -> None:
    """Nothing new comes in, and when all is taken the end is told from a wait in vain."""
    made = Made()
    assert Made(0).inbox.take(2) is None
    made.inbox.close()
    made.inbox.put(Item("late", ()))

    assert [item.arguments[0] for item in made.inbox.take(2) or ()] == [0, 1]
    assert made.inbox.pending == 3
    made.inbox.finish_batch()
    assert [item.arguments[0] for item in made.inbox.take(2) or ()] == [2]
    made.inbox.finish_batch()
    assert made.inbox.take(2) == []
    assert made.dropped == {"close": 1}


def test_a_reporter_that_is_not_open_drops_all() -> None:
    """What waits and what comes; after the close the end is the cause."""
    made = Made(5)
    made.inbox.refuse()
    made.inbox.put(Item("late", ()))
    made.inbox.close()
    made.inbox.put(Item("later", ()))

    assert made.dropped == {"queue_full": 2, "not_open": 4, "close": 1}


def test_items_are_given_up_once() -> None:
    """By the reporter's thread, or by the one that leaves it behind, and never by both."""
    given_up = Made()
    given_up.inbox.take(2)
    assert given_up.inbox.give_up(in_hand=2) == 3
    assert given_up.inbox.abandon() == 0

    left_behind = Made()
    left_behind.inbox.take(2)
    assert left_behind.inbox.abandon() == 3
    assert left_behind.inbox.give_up(in_hand=2) is None
    assert given_up.dropped == left_behind.dropped == {"close": 3}
