"""The commands ``plugins`` and ``paths``: what is installed, and where."""

from __future__ import annotations

import enum
import sysconfig
from pathlib import Path
from typing import Annotated

import typer

from spark_events.api import ConfigError
from spark_events.cli.terminal.console import plain, print_json, say
from spark_events.configuration.installed_plugins import InstalledPlugin, installed_plugins


def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the installed plugins with their packages and options."""
    if as_json:
        print_json(list(installed_plugins()))
        return
    for plugin in installed_plugins():
        _print(plugin)


def _print(plugin: InstalledPlugin) -> None:
    origin = f"{plugin.distribution} {plugin.version}  {plugin.target}"
    say(f"[bold]{plain(plugin.name)}[/]  {plugin.kind}  [dim]{plain(origin)}[/]")
    if plugin.problem:
        say(f"    [red]{plain(plugin.problem)}[/]")
    for option in plugin.options:
        default = "" if option["default"] is None else f" (default {option['default']})"
        required = " [yellow]required[/]" if option["required"] else ""
        head = f"{option['name']}: {option['type']}{required}{plain(default)}"
        say(f"    {head} [dim]{plain(option['doc'])}[/]")


_CLONE = Path(__file__).parents[2]
_INSTALLED = Path(sysconfig.get_path("data")) / "share" / "spark-events"


class Shipped(str, enum.Enum):
    """A folder that comes with spark-events."""

    CONF = "conf"
    GRAFANA = "grafana"


def paths(
    folder: Annotated[
        Shipped | None, typer.Argument(metavar="conf|grafana", help="Print only the path of this folder.")
    ] = None,
) -> None:
    """Print where the example configurations and the dashboards are."""
    if folder is not None:
        typer.echo(_shipped(folder.value))
        return
    for each in Shipped:
        say(f"{each.value}: {_shipped(each.value)}")


def _shipped(name: str) -> Path:
    folder = next((root / name for root in (_CLONE, _INSTALLED) if (root / name).is_dir()), None)
    if folder is None:
        raise ConfigError(f"{name}: not installed with spark-events; reinstall spark-events from its wheel")
    return folder
