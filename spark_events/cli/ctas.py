"""The command line of ``ctas``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from spark_events.api import ConfigError
from spark_events.api.toolkit.formatting import moment
from spark_events.cli.terminal.commands import Group
from spark_events.cli.terminal.console import (
    FAILED,
    AsWide,
    err,
    out,
    plain,
    print_error,
    print_warnings,
    say,
)
from spark_events.cli.terminal.options import Conf, PropertiesFile
from spark_events.cli.terminal.registering import command
from spark_events.ctas.errors import JournalError
from spark_events.ctas.transactions.recovery import Recovered
from spark_events.ctas.transactions.session_transactions import Transactions, transactions_of
from spark_events.ctas.transactions.transaction import Transaction
from spark_events.spark.conf import read_conf
from spark_events.spark.session import QUIET, start_session

app = typer.Typer(
    cls=Group,
    help="List and recover transactions of atomic CREATE TABLE AS SELECT.",
    no_args_is_help=True,
)


@command(app, "spark-events ctas list --json", name="list")
def list_(
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """List the transactions in the journal, oldest first.

    It starts a Spark session with the configuration that names the warehouse, as all commands here do.
    Exits 1 if files of the journal are damaged, so that a transaction is not listed, 3 if the configuration
    is wrong.
    """
    with _transactions(properties_file, conf) as transactions:
        listed = transactions.listed()
    if as_json:
        for transaction, _ in listed:
            typer.echo(transaction.to_json())
    elif listed:
        show_transactions((_cells(transaction, note) for transaction, note in listed), out)
    elif not transactions.journal.damage():
        say(f"no transactions in {plain(transactions.journal.folder)}")
    if _show_damage(transactions):
        raise typer.Exit(FAILED)


@command(app, "spark-events ctas recover")
def recover(
    txids: Annotated[
        list[str] | None, typer.Argument(metavar="TXID", help="Transaction ids; all by default.")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="End them even if their owner may be alive; its commit then fails."),
    ] = False,
    properties_file: PropertiesFile = None,
    conf: Conf = None,
) -> None:
    """Finish or roll back dead drivers' transactions, and delete replaced tables' files once due.

    A transaction whose commit has begun is committed, any other is rolled back. Files are due once their
    grace period is over. Exits 3 if there is no such transaction, 1 if one cannot be ended, or cannot be read
    because files of the journal are damaged.
    """
    with _transactions(properties_file, conf) as transactions:
        outcomes = transactions.recover(txids or (), force)
    is_damaged = _show_damage(transactions)
    _show_outcomes(outcomes, is_damaged)


@command(app, "spark-events ctas abort 0f3c1d2e")
def abort(
    txid: Annotated[str, typer.Argument(metavar="TXID", help="Transaction id.")],
    properties_file: PropertiesFile = None,
    conf: Conf = None,
) -> None:
    """Roll back a transaction, even one whose owner is alive: its commit then fails.

    Exits 3 if there is no such transaction, or if it is committed.
    """
    with _transactions(properties_file, conf) as transactions:
        outcomes = [transactions.abort(txid)]
    _show_outcomes(outcomes)


def show_transactions(rows: Iterable[Iterable[str]], console: Console) -> None:
    """Print transactions, one a line on a terminal of any width: ids are copied, and lines are searched."""
    table = Table(box=None, pad_edge=False)
    for name in ("transaction", "table", "state", "since", "level", "owner", ""):
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    console.print(AsWide(table), crop=False)


@contextmanager
def _transactions(properties_file: Path | None, conf: list[str] | None) -> Iterator[Transactions]:
    """Yield the transactions of a session of the command's own.

    Raises:
        ConfigError: Spark cannot be started so, or the journal cannot do what is asked for.
    """
    given, _ = read_conf(properties_file, conf or ())
    with err.status("starting Spark"):
        session = start_session("ctas", {**QUIET, **given})
    try:
        yield transactions_of(session)
    except JournalError as error:
        raise ConfigError(str(error)) from error
    finally:
        session.stop()


def _cells(transaction: Transaction, note: str) -> list[str]:
    return [
        transaction.txid,
        str(transaction.path),
        transaction.state.value,
        moment(transaction.at_ms),
        transaction.level.value,
        str(transaction.owner),
        note,
    ]


def _show_damage(transactions: Transactions) -> bool:
    """Print the damaged files of the journal; return whether they hide a transaction."""
    damage = transactions.journal.damage()
    print_warnings(str(each) for each in damage if each.used)
    lost = [each for each in damage if not each.used]
    for each in lost:
        print_error(str(each))
    return bool(lost)


def _show_outcomes(outcomes: list[Recovered], is_damaged: bool = False) -> None:
    if not outcomes and not is_damaged:
        say("nothing to do")
    for outcome in outcomes:
        transaction = outcome.transaction
        say(f"{transaction.txid} {plain(str(transaction.path))}: {plain(outcome.done)}")
    if is_damaged or any(outcome.failed for outcome in outcomes):
        raise typer.Exit(FAILED)
