"""Journals in folders of their own, and transactions for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from spark_events import ctas
from spark_events.ctas.settings import CtasSettings
from spark_events.ctas.transactions.journal import TransactionJournal
from spark_events.ctas.transactions.transaction import Level, Purpose, State, TablePath, Transaction, new_txid
from spark_events.spark.owner import Owner

ME = Owner.this_process("app-1")
OTHER = replace(ME, host="elsewhere", pid=7)


def journal_at(session: Any, folder: Path, owner: Owner, **settings: int) -> TransactionJournal:
    entry = ctas.transactions_of(session).entry
    storage = entry.storage()
    own = CtasSettings(str(folder), **{"lease_ms": 60_000, "lock_timeout_ms": 300, **settings})
    return TransactionJournal(storage, entry.leases(storage, 1_000), own, owner)


def transaction(owner: Owner = ME, name: str = "t") -> Transaction:
    return Transaction(
        txid=new_txid(),
        state=State.INTENT,
        number=0,
        at_ms=1,
        begun_ms=1,
        owner=owner,
        publisher="files",
        catalog_id="memory",
        level=Level.POINTER,
        purpose=Purpose.CREATE,
        path=TablePath("spark_catalog", "default", name),
        table={"provider": "parquet"},
    )
