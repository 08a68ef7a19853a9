"""The command ``serve``: the page of a report over HTTP, up to date."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_events.api import ConfigError, ServerAuthentication, ServerTls
from spark_events.api.errors import UsageError
from spark_events.api.toolkit.formatting import cut
from spark_events.cli.reports.options import (
    Earliest,
    EventPaths,
    Latest,
    Now,
    Retain,
    SelectionAsked,
    Since,
    Store,
    report_options,
)
from spark_events.cli.terminal.console import err, print_warnings, say
from spark_events.cli.terminal.options import App, From, Query, SlaOption, Until, duration_of, secret_of

if TYPE_CHECKING:
    from spark_events.history.options import ReportOptions

_ACCESS = "Who may read it"
_LAST_PORT, _LONGEST_SHOWN = 65_535, 300
_PORT = re.compile(r"\d{1,5}", re.ASCII)
_EVENTS_EVERY = "5s"
_ENDS_WITHIN_S = 2


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Who may read a page that is served, as the options of these names say it."""

    token: str | None = None
    username: str | None = None
    password: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_authorities: Path | None = None

    def tls(self) -> ServerTls | None:
        """Return the TLS of the server; None for plain HTTP.

        Raises:
            UsageError: a file is missing, or cannot be used.
        """
        files = self.certificate, self.key, self.client_authorities
        if files == (None, None, None):
            return None
        if self.certificate is None or self.key is None:
            missing = "--certificate" if self.certificate is None else "--key"
            raise UsageError(f"{missing}: missing; TLS needs a certificate and its key")
        try:
            return ServerTls(self.certificate, self.key, self.client_authorities)
        except OSError as error:
            names = ", ".join(str(path) for path in files if path)
            raise UsageError(
                f"{names}: cannot be used as PEM files of TLS: {error.strerror or error}"
            ) from error

    def authentication(self) -> ServerAuthentication:
        """Return what requests must have.

        Raises:
            UsageError: a user or a password is missing, or a secret cannot be used.
        """
        if (self.username is None) != (self.password is None):
            missing = "--username" if self.username is None else "--password"
            raise UsageError(f"{missing}: missing; basic authentication needs a user and a password")
        secrets = {}
        for option, where in (("--token", self.token), ("--password", self.password)):
            secrets[option] = None if where is None else secret_of(option, where)
        # Browsers ask for a user and a password alone.
        users = ((self.username or "", secrets["--password"]), ("token", secrets["--token"]))
        passwords = {user: secret for user, secret in users if secret is not None}
        return ServerAuthentication("report", secrets["--token"], passwords)


def serve(
    paths: EventPaths = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Where to listen; on this machine's loopback address unless a host is given.",
        ),
    ] = "8080",
    sla: SlaOption = None,
    app: App = None,
    query: Query = None,
    since: Since = None,
    begin: From = None,
    until: Until = None,
    now: Now = False,
    store: Store = None,
    retain: Retain = None,
    earliest: Earliest = None,
    latest: Latest = None,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="How often to look for new events.")
    ] = _EVENTS_EVERY,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            help="The token that requests must have: env:NAME, file:PATH or (visible in the process list) "
            "the token itself. Browsers ask for it as the password of the user 'token'.",
            rich_help_panel=_ACCESS,
        ),
    ] = None,
    username: Annotated[
        str | None,
        typer.Option(metavar="USER", help="The user of basic authentication.", rich_help_panel=_ACCESS),
    ] = None,
    password: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            help="The user's password: env:NAME, file:PATH or (visible in the process list) the password "
            "itself.",
            rich_help_panel=_ACCESS,
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PEM file of a certificate; the page is then at https.",
            rich_help_panel=_ACCESS,
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PEM file of that certificate's key.", rich_help_panel=_ACCESS),
    ] = None,
    client_authorities: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="PEM file of the certificate authorities whose clients may connect (mutual TLS).",
            rich_help_panel=_ACCESS,
        ),
    ] = None,
) -> None:
    """Serve the report of stored events as a web page that stays up to date, until Ctrl-C.

    It reads with DuckDB, and writes nothing but a --store. Exits 0 at Ctrl-C, 4 if there is nothing to read.
    """
    asked = SelectionAsked(app, query, since, begin, until, now)
    options = report_options(paths, sla, asked, store, retain, earliest, latest)
    access = PageAccess(token, username, password, certificate, key, client_authorities)
    serve_report(options, listen, duration_of("--every", every), access)


def serve_report(
    options: ReportOptions,
    address: str,
    every_ms: int,
    access: PageAccess,
) -> None:
    """Serve a report until Ctrl-C.

    Args:
        options: of the report.
        address: to listen on, as ``[HOST:]PORT``.
        every_ms: how often to look for new events, in ms.
        access: who may read the page.

    Raises:
        UsageError: an option cannot be used.
        ConfigError: the address cannot be listened on.
        NothingToReadError: there are no events.
    """
    from spark_events.history.run import check_outputs

    tls, authentication = access.tls(), access.authentication()
    check_outputs(replace(options, html=Path("page.html")))  # it needs what a page needs
    from spark_events.history.page.live_page import LivePage, View
    from spark_events.history.page.report_server import ReportServer
    from spark_events.history.reading.local_files import state_of_files

    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not _PORT.fullmatch(port) or int(port) > _LAST_PORT:
        shown = cut(address, _LONGEST_SHOWN)
        raise UsageError(f"--listen {shown}: expected [HOST:]PORT, with a port from 0 to {_LAST_PORT}")
    page = LivePage(options, every_ms / 1_000, lambda: state_of_files(options.paths))
    try:
        server = ReportServer(host, int(port), page.html, authentication, tls)
    except (OSError, TypeError, ValueError) as error:  # the last two of what can be no name
        raise ConfigError(f"--listen {address}: {getattr(error, 'strerror', None) or error}") from error
    with err.status("reading events"):
        page.html(View())
    guarded = authentication.needed or (tls is not None and tls.asks_clients)
    if not guarded and not _is_loopback(host):
        print_warnings(["anyone who can reach this port can read the page: see --token"])
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if tls else "http"
    try:
        say(f"the report is at {scheme}://{shown}:{server.port}/ (Ctrl-C ends it)")
        server.serve_forever()
    except KeyboardInterrupt:
        say("ended")
        if not page.close(_ENDS_WITHIN_S):
            _leave_at_once()
    finally:
        server.server_close()


def _leave_at_once() -> None:
    """End the process although a page is being made: DuckDB would abort it with a core dump."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"
