"""An entry of the journal that names folders of others: whoever recovers it neither deletes nor moves them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_events import ctas
from spark_events.ctas.transactions.transaction import Level, Purpose, State, TablePath, Transaction, new_txid
from spark_events.spark.owner import Owner

pytestmark = pytest.mark.spark
ME = Owner.this_process("app-1")
TABLE = {"provider": "parquet", "properties": {}, "managed": True, "partition_by": []}


def planted(session: Any, stage: Path, **fields: Any) -> Transaction:
    """Return a transaction as somebody who can write to the journal would put it there."""
    transactions = ctas.transactions_of(session)
    txid = new_txid()
    transaction = Transaction(
        txid=txid,
        state=State.INTENT,
        number=0,
        at_ms=1,
        begun_ms=1,
        owner=ME,
        publisher="files",
        catalog_id="hive",
        level=Level.POINTER,
        purpose=Purpose.CREATE,
        path=TablePath("spark_catalog", "default", "t"),
        table=TABLE,
        stage=f"file:{stage}".replace("TXID", txid),
        location=f"file:{stage}".replace("TXID", txid),
    )
    transaction = replace(transaction, **fields)
    publisher = transactions._publishers[transaction.publisher]
    transaction = replace(
        transaction, catalog_id=publisher.catalog_id("spark_catalog"), owner=transactions._owner
    )
    transactions.journal.begin(transaction)
    transactions.journal.let_go(transaction)
    return transaction


@pytest.fixture(autouse=True)
def nothing_is_left(session: Any) -> Iterator[None]:
    """End what was planted: other tests of the session would try to recover it, and be refused."""
    yield
    journal = ctas.transactions_of(session).journal
    for transaction in journal.unfinished():
        journal.advance(transaction, State.ABORTED, collect_after_ms=0)


def recovered(session: Any, transaction: Transaction) -> str:
    (outcome,) = ctas.transactions_of(session).recover([transaction.txid])
    return outcome.done


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    return tmp_path / "precious"


@pytest.mark.parametrize("publisher", ["files", "native"])
def test_a_stage_that_is_none(session: Any, precious: Path, publisher: str) -> None:
    transaction = planted(session, precious, publisher=publisher, at_ms=2**53)

    assert "is not where transactions have one" in recovered(session, transaction)
    assert (precious / "thesis.txt").exists()


def test_a_stage_that_would_be_moved(session: Any, precious: Path, tmp_path: Path) -> None:
    there = f"file:{tmp_path}/open"
    transaction = planted(session, precious, location=there, state=State.COMMITTING)

    assert "is not where transactions have one" in recovered(session, transaction)
    assert (precious / "thesis.txt").exists()


def test_a_checkpoint_that_is_none(session: Any, precious: Path, tmp_path: Path) -> None:
    transaction = planted(session, tmp_path / "t-TXID", checkpoint=f"file:{precious}")

    assert "is not where transactions have one" in recovered(session, transaction)
    assert (precious / "thesis.txt").exists()


def test_a_previous_table_elsewhere(session: Any, precious: Path, tmp_path: Path) -> None:
    previous = {"type": "MANAGED", "location": f"file:{precious}", "txid": "", "partition_by": []}
    transaction = planted(
        session, tmp_path / "t-TXID", previous=previous, state=State.COMMITTED, collect_after_ms=1
    )

    assert "is not where transactions have one" in recovered(session, transaction)
    assert (precious / "thesis.txt").exists()


def test_a_stage_of_its_own_is_removed(session: Any, tmp_path: Path) -> None:
    transaction = planted(session, tmp_path / "t-TXID")
    stage = tmp_path / f"t-{transaction.txid}"
    stage.mkdir()

    assert recovered(session, transaction) == "rolled back"
    assert not stage.exists()
