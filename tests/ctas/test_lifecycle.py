"""What a transaction hears of the statement that it is for."""

from __future__ import annotations

from typing import Any, cast

from spark_events.ctas.lifecycle import CtasJobStatusHook
from spark_events.ctas.two_phase import TwoPhaseCatalogTable
from tests.support.plugins import TextlessError


class _Table:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def abort(self, reason: str) -> None:
        self.reasons.append(reason)


def test_an_error_without_a_text_aborts() -> None:
    """A check of the user's may raise anything; the transaction is ended whatever that says."""
    table: Any = _Table()

    CtasJobStatusHook(cast(TwoPhaseCatalogTable, table)).on_failed("job", TextlessError())

    assert table.reasons == ["TextlessError: <its str() raised RuntimeError>"]
