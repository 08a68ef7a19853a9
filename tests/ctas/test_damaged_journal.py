"""Damaged files of the journal, as a power cut leaves them: those of one transaction hold up no other."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_events import ctas
from spark_events.cli import ctas as commands
from spark_events.cli.main import app
from spark_events.ctas.errors import JournalError
from spark_events.ctas.transactions.journal import TransactionJournal
from spark_events.ctas.transactions.transaction import State, new_txid
from tests.support.ctas_journals import ME, journal_at, transaction

pytestmark = pytest.mark.spark
each_damage = pytest.mark.parametrize(
    "content",
    ["\0" * 400, '{"txid": "2026', "<<<<<<< HEAD", "[]", '{"txid": "x"}'],
    ids=["zeros", "cut", "no JSON", "a list", "other values"],
)


@pytest.fixture
def journal(session: Any, tmp_path: Path) -> TransactionJournal:
    return journal_at(session, tmp_path, ME)


@each_damage
def test_the_entry_before_it_is_used(journal: TransactionJournal, tmp_path: Path, content: str) -> None:
    torn, other = transaction(), transaction(name="u")
    for each in (torn, other):
        journal.begin(each)
    journal.advance(torn, State.PREPARED)
    (tmp_path / f"{torn.txid}.0001.json").write_text(content)

    known = replace(torn, number=1, is_uncertain=True)
    for listed in (journal.all(), journal.unfinished()):
        assert {each.txid: each for each in listed} == {torn.txid: known, other.txid: other}
    (damage,) = journal.damage()
    assert str(damage).startswith(f"{tmp_path}/{torn.txid}.0001.json: is damaged (")
    assert str(damage).endswith(f"; the entry before it, {torn.txid}.0000.json, is used instead")
    journal.advance(journal.advance(journal.read(torn.txid), State.ABORTING), State.ABORTED)
    assert journal.read(torn.txid).state is State.ABORTED
    assert journal.damage() == []


@each_damage
def test_a_transaction_without_another_entry_is_named(
    journal: TransactionJournal, tmp_path: Path, content: str
) -> None:
    lost, other = transaction(), transaction(name="u")
    for each in (lost, other):
        journal.begin(each)
    (tmp_path / f"{lost.txid}.0000.json").write_text(content)

    assert (journal.all(), journal.unfinished()) == ([other], [other])
    with pytest.raises(JournalError) as raised:
        journal.read(lost.txid)
    assert [str(damage) for damage in journal.damage()] == [str(raised.value)]
    assert str(raised.value).startswith(f"{tmp_path}/{lost.txid}.0000.json: is damaged (")
    assert f"restore the file, or remove {tmp_path}/{lost.txid}.*" in str(raised.value)


@each_damage
def test_a_lock_counts_as_free(
    journal: TransactionJournal, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    over, commits = transaction(), transaction()
    for each in (over, commits):
        journal.begin(each)
    journal.lock(over, print)
    (lock,) = tmp_path.glob("lock.*.json")
    lock.write_text(content)
    with caplog.at_level(logging.WARNING, "spark_events"):
        journal.lock(commits, print)

    (lock_now,) = tmp_path.glob("lock.*.json")
    assert json.loads(lock_now.read_text())["txid"] == commits.txid
    is_object = content == '{"txid": "x"}'
    assert (f"{lock}: is damaged" in caplog.text) is not is_object


def test_a_table_that_was_published_is_not_rolled_back(spark: Any, warehouse: Path) -> None:
    """Its files would be removed: what it had come to is asked of the catalog."""
    txid = ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 1 AS id").txid
    *_, prepared, committing, committed = sorted((warehouse / ".ctas").glob(f"{txid}.*.json"))
    assert json.loads(prepared.read_text())["state"] == "PREPARED"
    committing.write_text("\0" * 400)
    committed.unlink()
    (warehouse / ".ctas" / f"{txid}.lease").write_text("")

    (outcome,) = ctas.transactions_of(spark).recover([txid])

    assert (outcome.done, outcome.failed) == ("committed", False)
    assert spark.table("t").collect() == [(1,)]
    assert not (warehouse / ".ctas" / f"{txid}.lease").exists()


@pytest.fixture
def lost(spark: Any, warehouse: Path) -> Iterator[Path]:
    """Give the only entry of a transaction that has not ended."""
    txid = new_txid()
    entry, lease = (warehouse / ".ctas" / f"{txid}{suffix}" for suffix in (".0000.json", ".lease"))
    entry.parent.mkdir(exist_ok=True)
    for file in (entry, lease):
        file.write_text("\0" * 400)
    yield entry
    for file in (entry, lease):
        file.unlink()


def test_statements_go_on_and_warn_once(spark: Any, lost: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "spark_events"):
        for name in ("t", "u"):
            ctas.sql(spark, f"CREATE TABLE {name} USING parquet AS SELECT 1 AS id")
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    definition = ctas.statement.parse(
        ctas.transactions_of(spark).entry, "CREATE TABLE v USING parquet AS SELECT 1", rows
    )

    assert spark.table("u").count() == 1
    assert caplog.text.count(f"{lost.name}: is damaged") == 1
    assert ctas.transactions_of(spark).resumed(definition) is None


@pytest.mark.parametrize("command", ["list", "recover"])
def test_commands_do_all_others_and_exit_1(
    spark: Any, lost: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    @contextmanager
    def own(*_: object) -> Iterator[Any]:
        yield ctas.transactions_of(spark)

    monkeypatch.setattr(commands, "_transactions", own)
    txid = ctas.sql(spark, "CREATE TABLE t USING parquet AS SELECT 1 AS id").txid

    result = CliRunner().invoke(app, ["ctas", command], env={"COLUMNS": "1000"})

    assert result.exit_code == 1, result.output
    assert f"{lost.name}: is damaged" in result.stderr
    assert (txid in result.stdout) is (command == "list")
    assert "nothing to do" not in result.output
