"""The command ``doctor``; what it needs is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_events.cli.terminal.console import err, plain, print_error, print_json, print_warnings, say
from spark_events.cli.terminal.options import Conf, PropertiesFile

_WIDTH = 22


def doctor(
    properties_file: PropertiesFile = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what a bug report needs: versions, extras, the configuration found, ports and folders reached.

    It tries the ports, folders and endpoints of all configured reporters, as check --connect does. Secrets
    are not shown. Always exits 0.
    """
    from spark_events.configuration.installation import describe_installation

    with err.status("looking"):
        installation = describe_installation(properties_file, conf or ())
    if as_json:
        print_json(installation)
        return
    for title in ("versions", "extras", "configuration", "reporters"):
        say(f"[bold]{title}[/]")
        for name, value in installation[title].items():
            say(f"  {plain(name):<{_WIDTH}} {plain(value)}")
        if not installation[title]:
            say("  none")
    print_warnings(installation["warnings"])
    for problem in installation["problems"]:
        print_error(problem)
