"""All transactions of a session: begins them, finds them in the journal, and ends abandoned ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from spark_events.api.event import now_ms
from spark_events.ctas.errors import CtasError, FencedError, JournalError, NotAtomicError
from spark_events.ctas.jvm import check_running, entry_of
from spark_events.ctas.settings import read_settings
from spark_events.ctas.tables.publisher import Publisher
from spark_events.ctas.tables.publishers import publisher_name, publishers_of
from spark_events.ctas.transactions.calls_later import CallsLater
from spark_events.ctas.transactions.entries import Damage
from spark_events.ctas.transactions.journal import TransactionJournal
from spark_events.ctas.transactions.journaled_table import JournaledTable, TableContext, first_line, repaired
from spark_events.ctas.transactions.recovery import (
    CatalogStatus,
    OwnerStatus,
    Recovered,
    RecoveryAction,
    RecoveryDecision,
    RecoveryRequest,
    consider_catalog,
    decide,
    note_on,
)
from spark_events.ctas.transactions.transaction import Level, Purpose, State, TablePath, Transaction, new_txid
from spark_events.ctas.two_phase import TableDefinition
from spark_events.runtime.log_once import logger
from spark_events.runtime.redaction import read_patterns
from spark_events.spark.owner import Owner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEASES_PER_LEASE = 4
_collections = CallsLater("spark-events-ctas-collect")


class Transactions:
    """The transactions of one session's catalogs (a ``TwoPhaseCatalog`` for each of them).

    Args:
        spark: a SparkSession whose driver is in reach.

    Raises:
        ConfigError: a key below ``spark.events.ctas.`` has a wrong value.
        CtasError: there is no driver in reach.

    Attributes:
        spark: the session.
        entry: its ``Entry.java``.
        settings: what is configured.
        journal: where the transactions are written down.
    """

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self.entry = entry = entry_of(spark)
        conf = dict(spark.sparkContext.getConf().getAll())
        warehouse = str(spark.conf.get("spark.sql.warehouse.dir"))
        self.settings = read_settings({**conf, "spark.sql.warehouse.dir": warehouse})
        self._secret_keys, _, _ = read_patterns(conf)
        storage = entry.storage()
        leases = entry.leases(storage, self.settings.lease_ms // _LEASES_PER_LEASE)
        self._owner = Owner.this_process(str(spark.sparkContext.applicationId))
        self.journal = TransactionJournal(storage, leases, self.settings, self._owner)
        self._publishers = publishers_of(spark, entry)
        self._warned: set[Damage] = set()

    # -- FLIP-305's interface ----------------------------------------------------------------------------

    def create_two_phase_table(
        self, path: TablePath, table: TableDefinition, ignore_if_exists: bool, is_streaming: bool
    ) -> JournaledTable | None:
        """Return the table of a new transaction; None if an existing table will do (IF NOT EXISTS).

        Raises:
            NotAtomicError: its catalog has no way to make it; the message says why.
            CtasError: the existing table cannot be replaced.
            pyspark.errors.AnalysisException: the table exists, or there is none to replace.
        """
        publisher = self._publishers[publisher_name(table)]
        previous = publisher.existing_table(table)
        if previous is not None and ignore_if_exists and not table.purpose.replaces:
            return None
        self._check_previous(path, table.purpose, previous)
        level = publisher.level(table, previous)
        if is_streaming and level not in (Level.POINTER, Level.RENAME):
            raise NotAtomicError(
                f"{path}: a stream writes files, and catalog {path.catalog!r} cannot adopt existing "
                "files; name a table of the session catalog"
            )
        transaction = self._new_transaction(publisher, path, table, level, previous, is_streaming)
        return self._table(transaction, table.statement)

    def resumed(self, table: TableDefinition) -> JournaledTable | None:
        """Take over the same stream's transaction from a killed driver; return None if there is none."""
        publisher = self._publishers[publisher_name(table)]
        catalog_id = publisher.catalog_id(table.path.catalog)
        same = (table.path, table.purpose, table.fields)
        for transaction in self.journal.unfinished():
            is_same = (transaction.path, transaction.purpose, transaction.table) == same
            if is_same and transaction.is_resumable and self.journal.is_abandoned(transaction):
                publisher.check_own(transaction)
                return self._table(self.journal.adopt(transaction, catalog_id), table.statement)
        return None

    def table_of(self, descriptor: str) -> JournaledTable:
        """Return the table of a descriptor, in the state recorded in the journal.

        Raises:
            ValueError: it is not a descriptor.
            JournalError: the journal does not know the transaction.
        """
        transaction = self.journal.read(Transaction.from_json(descriptor).txid)
        self._publishers[transaction.publisher].check_own(transaction)
        return self._table(transaction)

    # -- recovery ----------------------------------------------------------------------------------------

    def listed(self) -> list[tuple[Transaction, str]]:
        """Return all transactions, oldest first, without secrets, each with a note."""
        return [
            (transaction.masked(self._secret_keys), note_on(transaction, self._owner_status(transaction)))
            for transaction in self.journal.all()
        ]

    def recover(self, txids: Iterable[str] = (), force: bool = False) -> list[Recovered]:
        """End transactions of drivers that are gone, and remove the files of replaced tables when due.

        It also registers the partitions of committed tables of which the catalog has lost all.

        Args:
            txids: which ones; all by default.
            force: include those whose owner may be alive.

        Raises:
            JournalError: the journal knows no such transaction.
        """
        named = [self.journal.read(txid) for txid in txids]
        request = RecoveryRequest.NAMED if named else RecoveryRequest.SWEEP
        if force:
            request = RecoveryRequest.FORCED
        known = named or self.journal.all()
        outcomes = self._end_all(named or self.journal.unfinished(), request)
        committed = (transaction for transaction in known if transaction.state is State.COMMITTED)
        return [*outcomes, *repaired(self._table(transaction) for transaction in committed)]

    def abort(self, txid: str) -> Recovered:
        """Abort a transaction, even if its owner is alive; the owner's commit then fails.

        Raises:
            JournalError: there is no such transaction, or it is committed.
        """
        transaction = self.journal.read(txid)
        if transaction.state is State.COMMITTED:
            raise JournalError(
                f"transaction {txid} is committed, and {transaction.path} exists; drop the table instead"
            )
        outcome = self._recover(transaction, RecoveryRequest.FORCED)
        return outcome or Recovered(transaction, "was already aborted")

    def sweep(self) -> None:
        """End what can be ended before a statement begins; log what cannot."""
        try:
            for recovered in self._end_all(self.journal.unfinished(), RecoveryRequest.SWEEP):
                log = logger.warning if recovered.failed else logger.info
                log("%s (%s): %s", recovered.transaction.path, recovered.transaction.txid, recovered.done)
        except Exception as error:
            logger.warning(
                "could not end transactions that other drivers left in %s: %s",
                self.journal.folder,
                first_line(error),
            )
        for damage in self.journal.damage():
            if damage not in self._warned:
                self._warned.add(damage)
                logger.warning("%s", damage)

    def collect_later(self, transaction: Transaction) -> None:
        """Remove what a commit left for readers once their time is over, if the driver lives that long."""
        if not transaction.collect_after_ms:
            return

        def collect() -> None:
            try:
                self.recover([transaction.txid])
            except Exception as error:  # the driver may have ended, or another process was faster
                logger.debug(
                    "what transaction %s left behind is removed later: %s",
                    transaction.txid,
                    first_line(error),
                )

        _collections.after(max(0, transaction.collect_after_ms - now_ms()) / 1000, collect)

    def _end_all(self, transactions: Iterable[Transaction], request: RecoveryRequest) -> list[Recovered]:
        outcomes = []
        for transaction in transactions:
            try:
                outcomes.append(self._recover(transaction, request))
            except FencedError:  # it has come further since it was read
                outcomes.append(
                    Recovered(transaction, "was taken on by another process, session or thread meanwhile")
                )
            except Exception as error:  # a transaction that cannot be ended must not block the others
                failure = f"could not be ended: {first_line(error)}"
                outcomes.append(Recovered(transaction, failure, failed=True))
        self.journal.forget_old()
        return [outcome for outcome in outcomes if outcome is not None]

    def _recover(self, transaction: Transaction, request: RecoveryRequest) -> Recovered | None:
        """Carry out the decision on a transaction; return None if there is nothing to do or to report."""
        decision = self._decide(transaction, request)
        if decision.action not in (RecoveryAction.IGNORE, RecoveryAction.LEAVE):
            self._publishers[transaction.publisher].check_own(transaction)
        table = self._table(transaction)
        match decision.action:
            case RecoveryAction.IGNORE:
                return None
            case RecoveryAction.LEAVE:
                return Recovered(transaction, decision.reason)
            case RecoveryAction.COLLECT:
                table.collect()
                return Recovered(table.transaction, "the previous table was removed")
            case RecoveryAction.ROLL_BACK:
                table.abort(decision.reason)
            case RecoveryAction.RESOLVE:
                table.resolve()
        ended = table.transaction
        if ended.state is not State.COMMITTED:
            return Recovered(ended, "rolled back")
        self._recover(ended, request)  # the time for readers of the previous table may already be over
        return Recovered(ended, "committed")

    def _decide(self, transaction: Transaction, request: RecoveryRequest) -> RecoveryDecision:
        decision = decide(transaction, self._owner_status(transaction), request, now_ms())
        if decision.changes_catalog:
            return consider_catalog(decision, transaction, self._catalog_status(transaction))
        return decision

    def _owner_status(self, transaction: Transaction) -> OwnerStatus:
        if transaction.state.terminal or self.journal.is_abandoned(transaction):
            return OwnerStatus.GONE
        return OwnerStatus.SELF if transaction.owner == self._owner else OwnerStatus.ALIVE

    def _catalog_status(self, transaction: Transaction) -> CatalogStatus:
        if transaction.catalog_id.startswith("memory") and transaction.owner != self._owner:
            return CatalogStatus.LOST
        publisher = self._publishers[transaction.publisher]
        is_same = publisher.catalog_id(transaction.path.catalog) == transaction.catalog_id
        return CatalogStatus.IN_REACH if is_same else CatalogStatus.ELSEWHERE

    # -- tables ------------------------------------------------------------------------------------------

    def _check_previous(self, path: TablePath, purpose: Purpose, previous: Mapping[str, Any] | None) -> None:
        """Raise if the existing table, or its absence, does not fit the purpose."""
        if previous is None:
            if purpose is Purpose.REPLACE:
                self.entry.isMissing(path.database, path.name)
        elif not purpose.replaces:
            self.entry.alreadyExists(path.database, path.name)
        elif previous.get("type") == "VIEW":
            raise CtasError(f"{path} is a view, which REPLACE TABLE does not replace; drop it first")

    def _new_transaction(
        self,
        publisher: Publisher,
        path: TablePath,
        table: TableDefinition,
        level: Level,
        previous: Mapping[str, Any] | None,
        is_streaming: bool,
    ) -> Transaction:
        txid = new_txid()
        stage, location = publisher.stage(txid, table)
        now = now_ms()
        return Transaction(
            txid=txid,
            state=State.INTENT,
            number=-1,
            at_ms=now,
            begun_ms=now,
            owner=self._owner,
            publisher=publisher.name,
            catalog_id=publisher.catalog_id(path.catalog),
            level=level,
            purpose=table.purpose,
            path=path,
            table=table.fields,
            stage=stage,
            location=location,
            previous=previous,
            checkpoint=f"{self.journal.folder}/{txid}.checkpoint" if is_streaming else "",
        )

    def _table(self, transaction: Transaction, statement: Any = None) -> JournaledTable:
        context = TableContext(
            self.journal,
            self.settings.grace_ms,
            lambda holder: self._recover(holder, RecoveryRequest.NAMED),
            self.entry.post,
        )
        publisher = self._publishers[transaction.publisher]
        return JournaledTable(transaction, publisher, context, statement)


_OF_SESSION = "_spark_events_transactions"


def transactions_of(spark: SparkSession) -> Transactions:
    """Return the transactions of a session, the same ones each time.

    Args:
        spark: a SparkSession whose driver is in reach.

    Example::

        for transaction, note in transactions_of(spark).listed():
            print(transaction.txid, transaction.state, note)

    Raises:
        ConfigError: a key below ``spark.events.ctas.`` has a wrong value.
        CtasError: there is no driver in reach, or the session is stopped.
    """
    check_running(spark)
    transactions: Transactions | None = getattr(spark, _OF_SESSION, None)
    if transactions is None:
        transactions = Transactions(spark)
        setattr(spark, _OF_SESSION, transactions)  # they live as long as the session
    return transactions
