"""What another process has to know to tell the end of an application."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from spark_events.sources.driver.ending import testament, witness
from spark_events.sources.driver.ending.process_exit import ProcessExit


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


def test_however_many_executors_there_are_the_applications_start_is_known() -> None:
    """Without it, nobody could tell the end of a large application."""
    heir = Heir()
    left = testament.Testament(heir, {}, 1_000)  # type: ignore[arg-type]
    left.take({"Event": "SparkListenerApplicationStart", "App ID": "app-1"})
    for number in range(testament._MOST + 1):
        left.take({"Event": "SparkListenerExecutorAdded", "Executor ID": str(number)})
        left.tell()
    left.take({"Event": "SparkListenerExecutorAdded", "Executor ID": "9"})  # it is known: nothing has to go
    left.tell()
    assert "head SparkListenerApplicationStart" in heir.known
    executors = [place for place in heir.known if place.startswith("executor ")]
    assert len(executors) == testament._MOST - 1
    assert "executor 9" in executors


def test_the_word_of_the_next_application_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one's last delivery may be over only once the second one is attached."""
    known = ProcessExit()
    monkeypatch.setattr(witness, "PROCESS_EXIT", known)
    monkeypatch.setattr(witness, "is_kernel", lambda: False)
    context, bridge = SimpleNamespace(_gateway=None, master="local"), Mock()
    first = witness.JvmWitness(context, bridge)
    second = witness.JvmWitness(context, bridge)
    first.ended()
    assert known.word is not None
    second.ended()
    assert known.word is None
