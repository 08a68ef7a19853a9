"""A table in two phases whose every step is in the journal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson

from spark_events.api.event import now_ms
from spark_events.ctas.errors import CtasError, FencedError
from spark_events.ctas.fault_points import reached
from spark_events.ctas.journal import Journal
from spark_events.ctas.publisher import Publisher
from spark_events.ctas.record import Level, Purpose, State, Transaction
from spark_events.ctas.two_phase import TwoPhaseCatalogTable, Written
from spark_events.runtime.log_once import logger

_TOLD = (State.PREPARED, State.COMMITTED, State.ABORTED)
_EXISTS = ("TABLE_OR_VIEW_ALREADY_EXISTS", "TABLE_ALREADY_EXISTS")


class JournaledTable(TwoPhaseCatalogTable):
    """One transaction.

    Args:
        transaction: as it is now; one that has not begun has the number -1.
        publisher: of its catalog.
        journal: takes its states.
        grace_ms: how long the files of a table that it replaces stay, in ms.
        end_other: ends a transaction that holds the table, and whose owner is gone.
        tell: told of each state, as JSON has it.
        statement: writes the rows; None where it is only ended.
    """

    def __init__(
        self,
        transaction: Transaction,
        publisher: Publisher,
        journal: Journal,
        grace_ms: int,
        end_other: Callable[[Transaction], object],
        tell: Callable[[str], object],
        statement: Any = None,
    ) -> None:
        self.transaction = transaction
        self._publisher = publisher
        self._journal = journal
        self._grace_ms = grace_ms
        self._end_other = end_other
        self._tell_json = tell
        self._statement = statement
        self._written: Written | None = None

    @property
    def level(self) -> Level:
        return self.transaction.level

    @property
    def txid(self) -> str:
        return self.transaction.txid

    @property
    def publishes_by_itself(self) -> bool:
        """Whether its catalog publishes what it writes at once."""
        return self._publisher.commits_on_write

    def descriptor(self) -> str:
        return self.transaction.to_json()

    def begin_transaction(self) -> None:
        if self.transaction.number >= 0:
            return  # it goes on where another driver has left it
        begun = self.transaction.advanced(State.INTENT)
        self._journal.begin(begun)
        self.transaction = begun
        self._tell()
        reached("after_begin")

    def write(self) -> Written:
        return self.write_by(lambda: self._publisher.write(self.transaction, self._statement))

    def write_by(self, write: Callable[[], Written]) -> Written:
        """Let somebody else write the rows, to where ``transaction.stage`` says."""
        reached("before_write")
        self._written = write()
        reached("after_write")
        return self._written

    def written(self) -> Any:
        return self._publisher.read(self.transaction)

    def prepare(self) -> None:
        amounts = {
            name: value for name, value in asdict(self._written or Written()).items() if value is not None
        }
        self._advance(State.PREPARED, written=amounts)
        reached("after_prepared")

    def commit(self) -> bool:
        if self.transaction.state is State.COMMITTED:
            return True
        if self.transaction.purpose.replaces:
            self._journal.lock(self.transaction, self._end_other)
        if self.transaction.state is not State.COMMITTING:
            self._advance(State.COMMITTING)
        reached("before_catalog")
        if not self._publish():
            return False
        self._finish()
        self._journal.let_go(self.transaction)
        return True

    def abort(self, reason: str = "") -> None:
        try:
            self._abort(reason)
        finally:
            self._journal.let_go(self.transaction)

    def _abort(self, reason: str) -> None:
        state = self.transaction.state
        if self.transaction.number < 0 or state.terminal:
            return
        decided = state is State.COMMITTING or self._publisher.commits_on_write
        if decided and self._publisher.is_published(self.transaction):
            self._finish()
            return
        if state is not State.ABORTING:
            try:
                self._advance(State.ABORTING, reason=reason)
            except FencedError as error:
                logger.warning("%s", error)
                return
        self._publisher.discard(self.transaction)
        self._advance(State.ABORTED)

    def resolve(self) -> bool:
        """End a transaction that was left between two states; tells whether its table is there.

        Before the catalog was called it is rolled back, from then on it goes forward: the call may be on
        its way still, and of a call that is made twice the second one changes nothing.

        Raises:
            CtasError: its catalog says neither yes nor no; nothing was changed.
        """
        from pyspark.errors import AnalysisException

        if self.transaction.state is not State.COMMITTING:
            self.abort(self.transaction.reason or "its driver is gone")
            return self.transaction.state is State.COMMITTED
        try:
            return self.commit()
        except (AnalysisException, CtasError) as error:
            logger.warning("%s cannot be committed any more: %s", self.transaction.path, first_line(error))
            self.abort(first_line(error))
            return False

    def collect(self) -> None:
        """Remove what is left of the table before."""
        reached("before_collect")
        self._publisher.collect(self.transaction)
        with contextlib.suppress(FencedError):  # somebody else has done the same
            self._advance(State.COMMITTED, collect_after_ms=0)

    def _publish(self) -> bool:
        """Make the table; false where IF NOT EXISTS finds that there is one."""
        try:
            self._publisher.publish(self.transaction)
        except Exception as error:
            if not self._publisher.is_published(self.transaction):
                if exists_already(error) and self.transaction.purpose is Purpose.CREATE_IF_NOT_EXISTS:
                    self.abort("there was such a table when it was to be committed")
                    return False
                raise
            logger.warning("%s is there, although %s", self.transaction.path, first_line(error))
        return True

    def _finish(self) -> None:
        """Do what is left to do for a table that is there: what fails here is recovered later."""
        try:
            reached("after_catalog")
            self._publisher.finish(self.transaction)
            reached("before_committed")
            left = self._publisher.has_leftovers(self.transaction)
            self._advance(State.COMMITTED, collect_after_ms=now_ms() + self._grace_ms if left else 0)
            reached("after_committed")
        except Exception as error:
            logger.warning(
                "%s is there and whole, but not all is finished: %s; "
                "the next statement, or spark-events ctas recover, does the rest",
                self.transaction.path,
                first_line(error),
            )

    def _advance(self, state: State, **changes: Any) -> None:
        again = state is self.transaction.state
        self.transaction = self._journal.advance(self.transaction, state, **changes)
        if state in _TOLD and not again:
            self._tell()

    def _tell(self) -> None:
        """Tell Spark's listeners; what becomes of the table does not hang on it."""
        now = self.transaction
        told = {
            "txid": now.txid,
            "table": str(now.path),
            "state": now.state.value,
            "level": now.level.value,
            "purpose": now.purpose.value,
            "timeMs": now.at_ms,
            "durationMs": max(0, now.at_ms - now.begun_ms),
            "reason": now.reason,
            **now.written,
        }
        try:
            self._tell_json(orjson.dumps(told).decode())
        except Exception as error:
            logger.warning("listeners were not told that %s is %s: %s", now.path, now.state.value, error)


def exists_already(error: BaseException) -> bool:
    """Tell whether an error says that there is such a table."""
    ask = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    name = (ask() if ask else None) or ""
    return name.split(".")[0] in _EXISTS


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
