"""Who hears a record, in which order, and what an exception of one means to the others."""

from __future__ import annotations

from typing import Any

from spark_events.listeners.listener import Handlers, Timeless, early, late
from spark_events.listeners.spark_listeners import Dispatcher


class Heard(Timeless):
    """Writes down what it hears."""

    def __init__(self, name: str, heard: list[str]) -> None:
        self._name = name
        self._heard = heard

    def hear(self, record: dict[str, Any], time_ms: int) -> None:
        self._heard.append(f"{self._name} {time_ms}")
        if record.get("hurts") == self._name:
            raise ValueError(self._name)


class Plain(Heard):
    @property
    def handlers(self) -> Handlers:
        return {"Began": self.hear, "Ended": self.hear}


class Around(Heard):
    """Hears the end twice, around the others."""

    @property
    def handlers(self) -> Handlers:
        return {"Ended": (late(self.hear), early(self.hear))}


class Ticking(Plain):
    def tick(self, now_ms: int) -> None:
        self.hear({"hurts": self._name}, now_ms)


def test_phases() -> None:
    """Early, normal and late; within a phase, as they were given."""
    heard: list[str] = []
    listeners = [Plain("a", heard), Around("b", heard), Plain("c", heard)]
    errors: list[tuple[str, str]] = []
    dispatcher = Dispatcher(listeners, lambda name, error: errors.append((name, str(error))))

    dispatcher.hand("Began", {}, 1)
    dispatcher.hand("Ended", {"hurts": "a"}, 2)
    dispatcher.hand("Unknown", {}, 3)
    assert heard == ["a 1", "c 1", "b 2", "a 2", "c 2", "b 2"]
    assert errors == [("Ended", "a")]
    assert dispatcher.hears("Began")
    assert not dispatcher.hears("Unknown")


def test_time_passes() -> None:
    """For those to which it makes a difference; one that raises does not stop the others."""
    heard: list[str] = []
    errors: list[str] = []
    listeners = [Ticking("a", heard), Plain("b", heard), Ticking("c", heard)]
    Dispatcher(listeners, lambda name, error: errors.append(name)).tick(5)
    assert heard == ["a 5", "c 5"]
    assert errors == ["tick", "tick"]
