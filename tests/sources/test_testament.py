"""What another process has to know to tell the end of an application."""

from __future__ import annotations

from collections.abc import Mapping

from spark_events.sources.driver.ending import testament


class Heir:
    """Keeps what it is told, as a witness does."""

    def __init__(self) -> None:
        self.known: dict[str, bytes] = {}

    def tell(self, changed: Mapping[str, bytes | None]) -> None:
        for place, text in changed.items():
            if text is None:
                del self.known[place]
            else:
                self.known[place] = text


def test_an_executor_is_known_until_its_end_is_heard_no_more() -> None:
    """The bridge gives what was fetched last once more, if nothing was fetched since."""
    heir = Heir()
    left = testament.Testament(heir, {}, 1_000)  # type: ignore[arg-type]
    left.take({"Event": "SparkListenerExecutorAdded", "Executor ID": "1"})
    left.tell()
    left.take({"Event": "SparkListenerExecutorRemoved", "Executor ID": "1"})
    left.tell()
    assert "executor 1" in heir.known
    left.tell()  # something else was fetched, or nothing
    left.tell()
    assert sorted(heir.known) == ["head"]


def test_an_executor_that_comes_and_goes_at_once() -> None:
    heir = Heir()
    left = testament.Testament(heir, {}, 1_000)  # type: ignore[arg-type]
    left.take({"Event": "SparkListenerExecutorAdded", "Executor ID": "1"})
    left.take({"Event": "SparkListenerExecutorRemoved", "Executor ID": "1"})
    left.tell()
    assert "executor 1" in heir.known
    left.tell()
    left.tell()
    assert sorted(heir.known) == ["head"]
