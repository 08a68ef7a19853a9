"""The command ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_events.cli.terminal.console import (
    CONFIGURATION,
    err,
    plain,
    print_error,
    print_warnings,
    say,
    show_table,
)
from spark_events.cli.terminal.options import Conf, PropertiesFile
from spark_events.configuration.first_lines import hint_at_unread_file
from spark_events.spark.conf import hint_at_byte_order_mark, read_conf

if TYPE_CHECKING:
    from spark_events.configuration.check import CheckResult


def check(
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also try every endpoint, port and path.")
    ] = False,
) -> None:
    """Check a configuration. Exits 3 if anything is wrong."""
    from spark_events.configuration.check import check as check_conf

    given, path = read_conf(properties_file, conf or ())
    result = check_conf(given, connect)
    if result.reporters:
        show_table(_table(result, connect))
    print_warnings([*filter(None, [hint_at_byte_order_mark(path)]), *result.warnings])
    for problem in result.problems:
        print_error(problem)
    source = plain(str(path)) if path else "no spark-defaults.conf was found"
    if path is None and (hint := hint_at_unread_file()):
        source += f". {plain(hint)}"
    if result.problems:
        problems = _count(len(result.problems), "problem")
        say(f"{problems} found ({source}; {_count(len(conf or ()), '--conf option')})", err)
        raise typer.Exit(CONFIGURATION)
    say(f"[green]ok[/] {_count(len(result.reporters), 'reporter')} ({source})")
    if not result.off:
        say(
            "[dim]They report on applications that spark-events run starts, or that call "
            "spark_events.attach(spark).[/]"
        )


def _table(result: CheckResult, connect: bool) -> Table:
    table = Table("kind", "reporter", "factory", *(["reached"] if connect else []))
    for reporter in result.reporters:
        row = [reporter.kind, reporter.name, reporter.factory]
        table.add_row(*map(plain, row + ([reporter.reached] if connect else [])))
    return table


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
