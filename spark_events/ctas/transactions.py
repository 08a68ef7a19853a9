"""All transactions of a session: begins them, finds them in the journal, and ends those that were left."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from spark_events.api.event import now_ms
from spark_events.ctas.errors import CtasError, JournalError, NotAtomicError
from spark_events.ctas.jdbc_tables import JdbcPublisher
from spark_events.ctas.journal import Journal
from spark_events.ctas.jvm import entry_of
from spark_events.ctas.native_tables import NativePublisher
from spark_events.ctas.publisher import Publisher
from spark_events.ctas.record import Level, State, TablePath, Transaction, new_txid
from spark_events.ctas.session_tables import FilesPublisher, HivePublisher, refuse_view
from spark_events.ctas.settings import read_settings
from spark_events.ctas.transaction import JournaledTable, first_line
from spark_events.ctas.two_phase import TableDefinition
from spark_events.runtime.log_once import logger
from spark_events.runtime.owner import Owner
from spark_events.runtime.redaction import read_patterns

_LEASES_PER_LEASE = 4


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a transaction that was left.

    Attributes:
        transaction: as it is now.
        done: one phrase: what was done, or why nothing.
        failed: whether it could not be ended, and is left as it was.
    """

    transaction: Transaction
    done: str
    failed: bool = False


class Transactions:
    """The transactions of one session's catalogs (a ``TwoPhaseCatalog`` for each of them).

    Args:
        spark: a SparkSession whose driver is in reach.

    Raises:
        ConfigError: a key below ``spark.events.ctas.`` has a wrong value.
        CtasError: there is no driver in reach.

    Attributes:
        settings: what is configured.
        journal: where the transactions are written down.
        secret_keys: what the keys of secrets match.
    """

    def __init__(self, spark: Any) -> None:
        self.entry = entry = entry_of(spark)
        conf = dict(spark.sparkContext.getConf().getAll())
        warehouse = str(spark.conf.get("spark.sql.warehouse.dir"))
        self.settings = read_settings({**conf, "spark.sql.warehouse.dir": warehouse})
        self.secret_keys, _, _ = read_patterns(conf)
        storage = entry.storage()
        leases = entry.leases(storage, self.settings.lease_ms // _LEASES_PER_LEASE)
        self._owner = Owner.this_process(str(spark.sparkContext.applicationId))
        self.journal = Journal(storage, leases, self.settings, self._owner)
        publishers: tuple[Publisher, ...] = (
            FilesPublisher(spark, entry),
            HivePublisher(spark, entry),
            JdbcPublisher(spark, entry),
            NativePublisher(spark, entry),
        )
        self._publishers = {publisher.name: publisher for publisher in publishers}

    # -- FLIP-305's interface ----------------------------------------------------------------------------

    def create_two_phase_table(
        self, path: TablePath, table: TableDefinition, ignore_if_exists: bool, is_streaming: bool
    ) -> JournaledTable | None:
        """Return the table of a new transaction; None where there is such a table, and that is as good.

        Raises:
            NotAtomicError: its catalog has no way to make it; says why.
            CtasError: what is there cannot be replaced.
            pyspark.errors.AnalysisException: there is such a table, or none that could be replaced.
        """
        publisher = self._publisher_of(table)
        previous = publisher.look(table)
        if previous is not None and not table.purpose.replaces:
            if ignore_if_exists:
                return None
            self.entry.alreadyExists(path.database, path.name)
        refuse_view(path, table.purpose, previous)
        if previous is None and table.purpose.value == "REPLACE":
            self.entry.isMissing(path.database, path.name)
        level = publisher.level(table, previous)
        if is_streaming and level not in (Level.POINTER, Level.RENAME):
            raise NotAtomicError(
                f"{path}: a stream writes files, and catalog {path.catalog!r} does not take files that are "
                "there; name a table of the session catalog"
            )
        txid = new_txid()
        stage, location = publisher.stage(txid, table)
        now = now_ms()
        begun = Transaction(
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
        return self._table(begun, table.statement)

    def resumed(self, table: TableDefinition) -> JournaledTable | None:
        """Take over the transaction of the same stream whose driver was killed; None where there is none."""
        catalog = self._publisher_of(table).catalog_id(table.path.catalog)
        for transaction in self.journal.unfinished():
            same = (transaction.path, transaction.purpose, transaction.table) == (
                table.path,
                table.purpose,
                table.fields,
            )
            if same and transaction.is_resumable and self.journal.is_abandoned(transaction):
                return self._table(self.journal.adopt(transaction, catalog), table.statement)
        return None

    def table_of(self, descriptor: str) -> JournaledTable:
        """Return the table of a descriptor, in the state that the journal has of it.

        Raises:
            ValueError: it is no descriptor.
            JournalError: the journal does not know the transaction.
        """
        return self._table(self.journal.read(Transaction.from_json(descriptor).txid))

    # -- recovery ----------------------------------------------------------------------------------------

    def recover(self, txids: Iterable[str] = (), force: bool = False) -> list[Recovered]:
        """End what was left by drivers that are gone, and remove the files of replaced tables in time.

        Args:
            txids: which ones; all by default.
            force: also those whose owner may be alive.

        Raises:
            JournalError: the journal knows no such transaction.
        """
        named = [self.journal.read(txid) for txid in txids]
        wanted = named or self.journal.unfinished()
        found = [self._recover_one(transaction, force, bool(named)) for transaction in wanted]
        self.journal.forget_old()
        return [recovered for recovered in found if recovered is not None]

    def abort(self, txid: str) -> Recovered:
        """Abort a transaction, even of an owner that is alive; its commit then fails.

        Raises:
            JournalError: there is no such transaction, or it is committed.
        """
        transaction = self.journal.read(txid)
        if transaction.state is State.COMMITTED:
            raise JournalError(
                f"transaction {txid} is committed: {transaction.path} is there; drop it instead"
            )
        return self._recover(transaction, True) or Recovered(transaction, "was aborted already")

    def collect_later(self, transaction: Transaction) -> None:
        """Remove what a commit has left for readers when their time is over, if the driver lives so long."""
        if transaction.collect_after_ms:
            wait_s = max(0, transaction.collect_after_ms - now_ms()) / 1000
            timer = threading.Timer(wait_s, self._collect_now, (transaction.txid,))
            timer.name = "spark-events-ctas-collect"
            timer.daemon = True
            timer.start()

    def _collect_now(self, txid: str) -> None:
        try:
            self.recover([txid])
        except Exception as error:  # the driver may have ended, or another process was faster
            logger.debug("what %s has left is removed later: %s", txid, first_line(error))

    def sweep(self) -> None:
        """Do what recovery finds to be done, on the way; what it cannot do is logged."""
        try:
            for recovered in self.recover():
                log = logger.warning if recovered.failed else logger.info
                log("%s (%s): %s", recovered.transaction.path, recovered.transaction.txid, recovered.done)
        except Exception as error:
            logger.warning("transactions that were left could not be ended: %s", first_line(error))

    def _recover_one(self, transaction: Transaction, force: bool, named: bool) -> Recovered | None:
        """Recover a transaction; one that cannot be does not hold up the others."""
        try:
            return self._recover(transaction, force, named)
        except Exception as error:
            return Recovered(transaction, f"could not be ended: {first_line(error)}", failed=True)

    def _recover(self, transaction: Transaction, force: bool, named: bool = True) -> Recovered | None:
        if transaction.state is State.ABORTED:
            return None
        if transaction.state is State.COMMITTED:
            return self._collect(transaction)
        if not force and not self.journal.is_abandoned(transaction):
            return None if self._is_own(transaction) else Recovered(transaction, "its owner is alive")
        if transaction.is_resumable and not (named or force):
            return Recovered(
                transaction,
                "its statement, run again, goes on from its checkpoint; given its id, it is rolled back",
            )
        publisher = self._publishers[transaction.publisher]
        table = self._table(transaction)
        gone = transaction.catalog_id.startswith("memory") and not self._is_own(transaction)
        if not gone and publisher.catalog_id(transaction.path.catalog) != transaction.catalog_id:
            return Recovered(
                transaction,
                f"its catalog {transaction.path.catalog!r} ({transaction.catalog_id or 'unknown'}) is not "
                "one of this session's: recover it with the configuration of the application that began it",
            )
        if gone:
            table.abort("its catalog was in the memory of its driver, which is gone")
        else:
            table.resolve()
        now = table.transaction
        if now.state is not State.COMMITTED:
            return Recovered(now, "rolled back")
        self._collect(now)
        return Recovered(now, "committed")

    def _collect(self, transaction: Transaction) -> Recovered | None:
        if not transaction.collect_after_ms:
            return None
        if now_ms() < transaction.collect_after_ms:
            return None
        publisher = self._publishers[transaction.publisher]
        mine = publisher.catalog_id(transaction.path.catalog) == transaction.catalog_id
        if not mine and not transaction.catalog_id.startswith("memory"):
            return Recovered(transaction, "the files of the table before stay: its catalog is not in reach")
        table = self._table(transaction)
        table.collect()
        return Recovered(table.transaction, "the table before was removed")

    def _is_own(self, transaction: Transaction) -> bool:
        return transaction.owner == self._owner

    def _table(self, transaction: Transaction, statement: Any = None) -> JournaledTable:
        return JournaledTable(
            transaction,
            self._publishers[transaction.publisher],
            self.journal,
            self.settings.grace_ms,
            lambda other: self._recover(other, False),
            self.entry.post,
            statement,
        )

    def _publisher_of(self, table: TableDefinition) -> Publisher:
        kind = table.fields["kind"]
        if kind == "v2":
            jdbc = table.fields["catalog_class"].endswith(".JDBCTableCatalog")
            return self._publishers["jdbc" if jdbc else "native"]
        if kind not in self._publishers:
            raise CtasError(
                f"Spark makes {kind} of the statement, which is no CREATE TABLE AS SELECT known here"
            )
        return self._publishers[kind]


_OF_SESSION = "_spark_events_transactions"


def transactions_of(spark: Any) -> Transactions:
    """Return the transactions of a session, the same ones each time.

    Args:
        spark: a SparkSession whose driver is in reach.

    Raises:
        ConfigError: a key below ``spark.events.ctas.`` has a wrong value.
        CtasError: there is no driver in reach.
    """
    found: Transactions | None = getattr(spark, _OF_SESSION, None)
    if found is None:
        found = Transactions(spark)
        setattr(spark, _OF_SESSION, found)  # they live as long as the session
    return found
