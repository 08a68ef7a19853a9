"""The queue of a worker: bounded in items and bytes, in order, lasting items last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_events.api import Event
from spark_events.runtime.workers.inbox import BoundedQueue, Item, QueueBounds, estimate_bytes


def item(name: object, size: int = 1, routine: bool = False) -> Item:
    return Item(str(name), (), size, routine)


def names(queue: BoundedQueue) -> list[str]:
    return [found.method for found in queue.take(1_000)]


def test_oldest_routine_items_go_first() -> None:
    """A lasting item is dropped only where there is no routine one."""
    queue = BoundedQueue(QueueBounds(max_items=3))
    dropped = [queue.put(item(n, routine=n in (0, 2))) for n in range(6)]

    assert dropped == [0, 0, 0, 1, 1, 1]
    assert names(queue) == ["3", "4", "5"]


def test_newest_go_where_that_is_the_policy() -> None:
    """A full queue takes nothing new; its last quarter is for lasting items."""
    queue = BoundedQueue(QueueBounds(max_items=4, drop_oldest=False))
    dropped = [queue.put(item(n, routine=n < 5)) for n in range(8)]

    assert dropped == [0, 0, 0, 1, 1, 0, 1, 1]
    assert names(queue) == ["0", "1", "2", "5"]


def test_bytes_are_bounded() -> None:
    """A large item drops several small ones; one that is larger than all is alone."""
    queue = BoundedQueue(QueueBounds(max_bytes=10))
    for n in range(5):
        queue.put(item(n, size=2))
    assert queue.put(item("large", size=6)) == 3
    assert queue.bytes == 10
    assert queue.put(item("huge", size=100)) == 3

    assert names(queue) == ["huge"]
    assert queue.bytes == 0


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()) | st.none(), max_size=60),
    st.integers(1, 8),
    st.integers(9, 40),
    st.booleans(),
)
def test_whatever_comes(
    steps: list[tuple[int, bool] | None], max_items: int, max_bytes: int, drop_oldest: bool
) -> None:
    """Never above a bound, always in order, and each item is taken or counted as dropped."""
    queue = BoundedQueue(QueueBounds(max_items, max_bytes, drop_oldest))
    taken, dropped, put = [], 0, 0
    for step in steps:
        if step is None:
            taken += [int(found.method) for found in queue.take(2)]
        else:
            dropped += queue.put(item(put, *step))
            put += 1
        assert len(queue) <= max_items
        assert queue.bytes <= max_bytes
    taken += [int(name) for name in names(queue)]

    assert taken == sorted(taken)
    assert len(taken) + dropped == put
    assert queue.bytes == 0


def test_the_size_of_many_parts_counts() -> None:
    """They need more memory than their texts."""
    event = Event.builder("scope", "E").set_attribute("key", ["x" * 100] * 1_000 + [1] * 1_000).build({})
    assert estimate_bytes(event) > 150_000


def test_the_size_of_names_counts() -> None:
    """Of the event and of its attributes."""
    event = Event.builder("scope", "E" * 10_000).set_attribute("k" * 10_000, 1).build({})
    assert estimate_bytes(event) > 20_000
