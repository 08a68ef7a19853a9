"""A two-phase table whose every step is recorded in the journal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from spark_events.api.event import now_ms
from spark_events.ctas.errors import CtasError, FencedError
from spark_events.ctas.fault_points import reached
from spark_events.ctas.tables.publisher import Publisher, created_meanwhile
from spark_events.ctas.transactions.journal import TransactionJournal
from spark_events.ctas.transactions.recovery import Recovered
from spark_events.ctas.transactions.transaction import Level, Purpose, State, Transaction
from spark_events.ctas.two_phase import TwoPhaseCatalogTable, Written
from spark_events.runtime.log_once import logger
from spark_events.spark.sql_errors import OF_PY4J

_POSTED = (State.PREPARED, State.COMMITTED, State.ABORTED)
_EXISTS = ("TABLE_OR_VIEW_ALREADY_EXISTS", "TABLE_ALREADY_EXISTS")


@dataclass(frozen=True, slots=True)
class TableContext:
    """What the tables of a session share.

    Attributes:
        journal: takes their states.
        grace_ms: how long the files of a replaced table stay, in ms.
        end_other: ends a transaction that holds the table but whose owner is gone.
        post: tells Spark's listeners about a state, as JSON.
    """

    journal: TransactionJournal
    grace_ms: int
    end_other: Callable[[Transaction], object]
    post: Callable[[str], object]


class JournaledTable(TwoPhaseCatalogTable):
    """The table of one transaction.

    Args:
        transaction: its current state; before it begins, the number is -1.
        publisher: that of its catalog.
        context: that of its session.
        statement: writes the rows; None if the transaction is only to be ended.
    """

    def __init__(
        self, transaction: Transaction, publisher: Publisher, context: TableContext, statement: Any = None
    ) -> None:
        self.transaction = transaction
        self._publisher = publisher
        self._context = context
        self._journal = context.journal
        self._statement = statement
        self._written = Written()
        self._is_own = False

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
            return  # it continues where another driver left off
        begun = self.transaction.advanced(State.INTENT)
        self._journal.begin(begun)
        self.transaction = begun
        self._is_own = True
        self._post_transition()
        reached("after_begin")

    def write(self) -> Written:
        return self.write_by(lambda: self._publisher.write(self.transaction, self._statement))

    def write_by(self, write: Callable[[], Written]) -> Written:
        """Have the caller's function write the rows into ``transaction.stage``."""
        reached("before_write")
        self._written = write()
        reached("after_write")
        return self._written

    def written(self) -> Any:
        return self._publisher.read(self.transaction)

    def prepare(self) -> None:
        amounts = {name: value for name, value in asdict(self._written).items() if value is not None}
        self._advance(State.PREPARED, written=amounts)
        reached("after_prepared")

    def commit(self) -> bool:
        if self.transaction.state is State.COMMITTED:
            return True
        if self.transaction.purpose.replaces:
            self._journal.lock(self.transaction, self._context.end_other)
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
        has_begun = state is State.COMMITTING or self.transaction.is_uncertain
        may_be_published = has_begun or self._publisher.commits_on_write
        if may_be_published and self._publisher.is_published(self.transaction):
            self._finish()
            return
        if state is not State.ABORTING:
            try:
                self._begin_abort(reason, may_free_first=self._is_own and not may_be_published)
            except FencedError as error:
                logger.warning("%s", error)
                return
        self._publisher.discard(self.transaction)
        self._advance(State.ABORTED)

    def _begin_abort(self, reason: str, may_free_first: bool) -> None:
        """Record that the transaction is rolled back, which the disk may have no room for.

        What fills the disk may be what the transaction has written. Nobody but its owner would commit that,
        who may remove it first.
        """
        from py4j.protocol import Py4JJavaError

        try:
            self._advance(State.ABORTING, reason=reason)
        except Py4JJavaError:
            if not may_free_first or self._journal.read(self.txid).number != self.transaction.number:
                raise
            self._publisher.discard(self.transaction)
            self._advance(State.ABORTING, reason=reason)

    def resolve(self) -> None:
        """End a transaction that was abandoned between two states.

        If the catalog was not called yet, it is rolled back. Otherwise it is completed: the call may still
        be in progress, and making it a second time changes nothing.

        Raises:
            FencedError: it has come further since it was read; nothing was changed.
            CtasError: its catalog does not say whether it was published; nothing was changed.
        """
        from pyspark.errors import AnalysisException

        if self.transaction.state is not State.COMMITTING:
            self.abort(self.transaction.reason or "its driver is gone")
            return
        # Before the catalog is called: its owner may have ended it, and removed its files, since it was read.
        self._advance(State.COMMITTING)
        try:
            self.commit()
        except (AnalysisException, CtasError) as error:
            logger.warning("%s can no longer be committed: %s", self.transaction.path, first_line(error))
            self.abort(first_line(error))

    def collect(self) -> None:
        """Remove the remains of the previous table, unless somebody else has done so meanwhile."""
        reached("before_collect")
        # Spark's MSCK REPAIR TABLE writes a table back as it has read it.
        with self._journal.collecting(self.transaction, self._context.end_other):
            self.transaction = self._journal.read(self.txid)
            if not self.transaction.collect_after_ms:
                return
            self._publisher.collect(self.transaction)
            with contextlib.suppress(FencedError):  # somebody else has, while this process was frozen
                self._advance(State.COMMITTED, collect_after_ms=0)

    def repair(self) -> bool:
        """Register the table's partitions if its catalog has none of them; return whether it had none."""
        if not self._publisher.lacks_partitions(self.transaction):
            return False
        with self._journal.collecting(self.transaction, self._context.end_other):
            if not self._publisher.lacks_partitions(self.transaction):
                return False
            self._publisher.repair(self.transaction)
        return True

    def _publish(self) -> bool:
        """Publish the table; return False if ``IF NOT EXISTS`` finds an existing one."""
        try:
            self._publisher.publish(self.transaction)
        except Exception as error:
            if not self._publisher.is_published(self.transaction):
                if _exists_already(error) and self.transaction.purpose is Purpose.CREATE_IF_NOT_EXISTS:
                    self.abort("the table already existed when the commit began")
                    return False
                if _exists_already(error) and self.transaction.purpose.replaces:
                    raise created_meanwhile(self.transaction.path) from error
                raise
            logger.warning("%s is published, despite %s", self.transaction.path, first_line(error))
        return True

    def _finish(self) -> None:
        """Do the remaining work for a published table; recovery repeats later what fails here."""
        try:
            reached("after_catalog")
            self._publisher.finish(self.transaction)
            reached("before_committed")
            has_leftovers = self._publisher.has_leftovers(self.transaction)
            collect_after_ms = now_ms() + self._context.grace_ms if has_leftovers else 0
            self._advance(State.COMMITTED, collect_after_ms=collect_after_ms)
            reached("after_committed")
        except Exception as error:
            logger.warning(
                "%s is published and complete, but its cleanup failed: %s; "
                "the next statement, or spark-events ctas recover, finishes it",
                self.transaction.path,
                first_line(error),
            )

    def _advance(self, state: State, **changes: Any) -> None:
        is_new = state is not self.transaction.state
        self.transaction = self._journal.advance(self.transaction, state, **changes)
        if state in _POSTED and is_new:
            self._post_transition()

    def _post_transition(self) -> None:
        """Tell Spark's listeners about the state; the table does not depend on this."""
        transaction = self.transaction
        transition = {
            "txid": transaction.txid,
            "table": str(transaction.path),
            "state": transaction.state.value,
            "level": transaction.level.value,
            "purpose": transaction.purpose.value,
            "timeMs": transaction.at_ms,
            "durationMs": max(0, transaction.at_ms - transaction.begun_ms),
            "reason": transaction.reason,
            **transaction.written,
        }
        try:
            self._context.post(orjson.dumps(transition).decode())
        except Exception as error:
            logger.warning(
                "could not tell listeners that %s is %s: %s", transaction.path, transaction.state.value, error
            )


def repaired(tables: Iterable[JournaledTable]) -> Iterator[Recovered]:
    """Repair tables whose catalog has lost their partitions, and yield those; the others stay as they are."""
    for table in tables:
        try:
            if table.repair():
                done = "its catalog had lost its partitions, and has them again"
                yield Recovered(table.transaction, done)
        except Exception as error:  # a table that cannot be repaired must not block the others
            failure = f"its partitions could not be repaired: {first_line(error)}"
            yield Recovered(table.transaction, failure, failed=True)


def _exists_already(error: BaseException) -> bool:
    get_condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    condition = (get_condition() if get_condition else None) or ""
    return condition.split(".")[0] in _EXISTS


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; of what py4j passes on, that of Java's error."""
    return (OF_PY4J.sub("", str(error)).strip() or type(error).__name__).splitlines()[0]
