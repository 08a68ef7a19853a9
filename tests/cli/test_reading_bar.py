"""The bar while events are read: what it shows, and that it ends with what it is about."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from spark_events.cli.terminal import reading_bar
from spark_events.history.reading.on_duckdb import DuckDb
from tests.support.waiting import wait_until


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    shown = io.StringIO()
    monkeypatch.setattr(reading_bar, "err", Console(file=shown, force_terminal=True, width=100))
    return shown


def watchers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "spark-events-reading-bar"]


def test_how_far_it_is(terminal: io.StringIO) -> None:
    with reading_bar.reading_bar(lambda: 42.0):
        wait_until(lambda: "42%" in terminal.getvalue(), "it says how far it is")
    assert not watchers()


def test_where_nobody_knows(terminal: io.StringIO) -> None:
    """It says that something goes on."""
    asked = threading.Event()

    def unknown() -> None:
        asked.set()

    with reading_bar.reading_bar(unknown):
        assert asked.wait(30)
        wait_until(lambda: "reading events" in terminal.getvalue(), "it shows something")


def test_it_ends_with_an_error(terminal: io.StringIO) -> None:
    with pytest.raises(ZeroDivisionError), reading_bar.reading_bar(lambda: None):
        1 / 0  # noqa: B018 - it raises
    assert not watchers()


def test_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with reading_bar.reading_bar(lambda: 1 / 0):
        pass
    assert capsys.readouterr().err == ""


def test_a_database_that_does_nothing() -> None:
    database = DuckDb()
    try:
        assert database.progress() is None
    finally:
        database.close()
