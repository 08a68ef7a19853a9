"""The command line."""

from __future__ import annotations

import logging
import signal
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from spark_events.api import ConfigError, MissingExtraError, Option, ReporterFactory
from spark_events.check import CheckResult
from spark_events.check import check as check_conf
from spark_events.command_options import Conf, PropertiesFile
from spark_events.ctas.commands import app as ctas
from spark_events.demo.run import DemoOptions, run_demo
from spark_events.event_logs.commands import follow, replay
from spark_events.history.commands import report
from spark_events.lineage_logs.commands import lineage
from spark_events.listeners.enrichers import ENTRY_POINTS as ENRICHERS
from spark_events.runtime.kinds import KINDS
from spark_events.runtime.plugins import Plugin, installed, load_class
from spark_events.spark_conf import read_conf
from spark_events.sql_runner.commands import app as sql
from spark_events.submit import HELP, asks_for_help, submit
from spark_events.texts import plain, plain_lines

_WRONG = 2
_UNITS = {"duration": "ms", "size": "bytes"}
app = typer.Typer(
    help="Flink's reporter framework for Apache Spark: metrics, spans and events.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)


def main() -> None:
    """Run the command line; a configuration error is one message and exit code 2."""
    try:
        app()
    except ConfigError as error:
        for problem in error.problems:
            _err.print(f"[bold red]error[/] {plain_lines(problem)}", soft_wrap=True)
        sys.exit(_WRONG)


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
    add_help_option=False,
)
def run(context: typer.Context) -> None:
    """Submit an application with its reporters attached: run [spark-submit options] app.py [arguments]."""
    if asks_for_help(context.args):
        _out.print(HELP, markup=False, soft_wrap=True)
        sys.stdout.flush()
    submit(context.args)


@app.command()
def check(
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    connect: Annotated[bool, typer.Option("--connect", help="Also try endpoints, ports and paths.")] = False,
) -> None:
    """Check a configuration; exits 2 if anything in it is wrong."""
    found, path = read_conf(properties_file, conf or ())
    result = check_conf(found, connect)
    if result.reporters:
        _out.print(_checked_table(result, connect))
    for warning in result.warnings:
        _err.print(f"[bold yellow]warning[/] {plain_lines(warning)}", soft_wrap=True)
    for problem in result.problems:
        _err.print(f"[bold red]error[/] {plain_lines(problem)}", soft_wrap=True)
    source = plain(str(path)) if path else "no spark-defaults.conf"
    if result.problems:
        _err.print(
            f"{len(result.problems)} problem(s); read: {source} and {len(conf or ())} --conf", soft_wrap=True
        )
        raise typer.Exit(_WRONG)
    _out.print(f"[green]ok[/] {len(result.reporters)} reporter(s); read: {source}", soft_wrap=True)
    _out.print(
        "They report on applications that spark-events run starts, or that call spark_events.attach(spark).",
        style="dim",
        soft_wrap=True,
    )


@app.command()
def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the installed plugins by kind, with their packages and options."""
    rows = [
        _described(kind.title, plugin, kind.factory) for kind in KINDS for plugin in _all(kind.entry_points)
    ]
    rows += [_described("failure enricher", plugin, None) for plugin in _all(ENRICHERS)]
    if as_json:
        sys.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    for row in rows:
        origin = f"{row['distribution']} {row['version']}  {row['target']}"
        _out.print(f"[bold]{plain(row['name'])}[/]  {row['kind']}  [dim]{plain(origin)}[/]", soft_wrap=True)
        if row["problem"]:
            _out.print(f"    [red]{plain(row['problem'])}[/]", soft_wrap=True)
        for option in row["options"]:
            default = "" if option["default"] is None else f" (default {option['default']})"
            must = " [yellow]required[/]" if option["required"] else ""
            head = f"{option['name']}: {option['type']}{must}{plain(default)}"
            _out.print(f"    {head} [dim]{plain(option['doc'])}[/]", soft_wrap=True)


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Keep the files in this folder.")] = None,
    otlp_endpoint: Annotated[str | None, typer.Option(help="Also send to a collector at this URL.")] = None,
    otlp_protocol: Annotated[str, typer.Option(help="grpc or http.")] = "grpc",
    prometheus_port: Annotated[
        str, typer.Option(help="Port or range of the metrics endpoint.")
    ] = "9249-9260",
    sla: Annotated[str, typer.Option(help="The longest time between two checkpoints.")] = "5s",
) -> None:
    """Run a batch job and a streaming query that fails once, on local Spark, and show their events."""
    # As for Ctrl-C: the session is stopped, and what happened so far is delivered and shown.
    signal.signal(signal.SIGTERM, _interrupt)
    # Py4J's own account of a call that Ctrl-C cut off says nothing to a person.
    logging.getLogger().addFilter(lambda record: record.module != "java_gateway")
    try:
        run_demo(DemoOptions(out, otlp_endpoint, otlp_protocol, prometheus_port, sla), _out)
    except KeyboardInterrupt:
        _err.print("interrupted")
        raise typer.Exit(130) from None


@app.command()
def paths() -> None:
    """Print where the configuration examples and the dashboards lie."""
    for name in ("conf", "grafana"):
        for root in (Path(__file__).parents[1], Path(sysconfig.get_path("data")) / "share" / "spark-events"):
            if (root / name).is_dir():
                _out.print(f"{name}: {root / name}", soft_wrap=True)
                break
        else:
            raise ConfigError(f"{name}: not installed beside spark-events; reinstall it from its wheel")


app.command()(replay)
app.command()(follow)
app.command()(report)
app.command()(lineage)
app.add_typer(ctas, name="ctas")
app.add_typer(sql, name="sql")


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _all(group: str) -> Iterable[Plugin]:
    return installed(group).values()


def _described(kind: str, plugin: Plugin, base: type[ReporterFactory] | None) -> dict[str, Any]:
    options: list[dict[str, Any]] = []
    problem = ""
    if base is not None:
        try:
            found = load_class(plugin.target, base, plugin.name).options or ()
            options = [
                {
                    "name": option.name,
                    "type": option.type.name,
                    "default": _shown(option),
                    "required": option.required,
                    "doc": option.doc,
                }
                for option in found
            ]
        except (ConfigError, MissingExtraError) as error:
            problem = str(error)
    return {
        "name": plugin.name,
        "kind": kind,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "target": plugin.target,
        "options": options,
        "problem": problem,
    }


def _shown(option: Option[Any]) -> str | None:
    default = option.default
    if isinstance(default, range):
        return f"{default[0]}-{default[-1]}"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int):
        return f"{default} {_UNITS[option.type.name]}" if option.type.name in _UNITS else str(default)
    return str(default) if default else None


def _checked_table(result: CheckResult, connect: bool) -> Table:
    table = Table("kind", "reporter", "factory", *(["reached"] if connect else []))
    for reporter in result.reporters:
        row = [reporter.kind, reporter.name, reporter.factory]
        table.add_row(*map(plain, row + ([reporter.reached] if connect else [])))
    return table


if __name__ == "__main__":
    main()
