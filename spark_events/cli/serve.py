"""Serves the page of a report over HTTP: the options of ``report --serve``, and what it does."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_events.api import ConfigError, ServerAuthentication, ServerTls
from spark_events.api.option_types import SECRET
from spark_events.api.toolkit.formatting import cut
from spark_events.cli.console import err, print_warnings, say
from spark_events.history.options import Engine

if TYPE_CHECKING:
    from spark_events.history.options import ReportOptions

_LAST_PORT, _LONGEST_SHOWN = 65_535, 300
_PORT = re.compile(r"\d{1,5}", re.ASCII)
Serve = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Serve the page over HTTP, up to date, until Ctrl-C; on this machine's loopback address "
        "unless a host is given.",
    ),
]
ServeEvery = Annotated[str, typer.Option(help="With --serve: how often to look for new events.")]
ServeToken = Annotated[
    str | None,
    typer.Option(
        help="With --serve: a token that requests must have, as env:NAME or file:PATH. Browsers ask for "
        "it as the password of the user 'token'."
    ),
]
ServeUsername = Annotated[str | None, typer.Option(help="With --serve: the user of basic authentication.")]
ServePassword = Annotated[
    str | None, typer.Option(help="With --serve: the user's password, as env:NAME or file:PATH.")
]
ServeCertificate = Annotated[
    Path | None, typer.Option(help="With --serve: PEM file of a certificate; the page is then at https.")
]
ServeKey = Annotated[Path | None, typer.Option(help="With --serve: PEM file of that certificate's key.")]
ServeClientAuthorities = Annotated[
    Path | None,
    typer.Option(help="With --serve: PEM file of the authorities whose clients may connect, by TLS."),
]


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Who may read a page that is served, as the options ``--serve-…`` of these names say it."""

    token: str | None = None
    username: str | None = None
    password: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_authorities: Path | None = None

    def demand_none(self) -> None:
        """Check that no option is given.

        Raises:
            ConfigError: one is.
        """
        for each in fields(self):
            if getattr(self, each.name) is not None:
                option = f"--serve-{each.name.replace('_', '-')}"
                raise ConfigError(f"{option}: only with --serve, which says where to serve the page")

    def tls(self) -> ServerTls | None:
        """Return the TLS of the server; None for plain HTTP.

        Raises:
            ConfigError: a file is missing, or cannot be used.
        """
        files = self.certificate, self.key, self.client_authorities
        if files == (None, None, None):
            return None
        if self.certificate is None or self.key is None:
            missing = "--serve-certificate" if self.certificate is None else "--serve-key"
            raise ConfigError(f"{missing}: missing; TLS needs a certificate and its key")
        try:
            return ServerTls(self.certificate, self.key, self.client_authorities)
        except OSError as error:
            names = ", ".join(str(path) for path in files if path)
            raise ConfigError(f"{names}: cannot be used as PEM files of TLS: {error}") from error

    def authentication(self) -> ServerAuthentication:
        """Return what requests must have.

        Raises:
            ConfigError: a user or a password is missing, or a secret cannot be used.
        """
        if (self.username is None) != (self.password is None):
            missing = "--serve-username" if self.username is None else "--serve-password"
            raise ConfigError(f"{missing}: missing; basic authentication needs a user and a password")
        secrets = {}
        for option, where in (("--serve-token", self.token), ("--serve-password", self.password)):
            try:
                secrets[option] = None if where is None else SECRET.parse(where)
            except ValueError:
                raise ConfigError(f"{option}: cannot be used; expected {SECRET.allowed}") from None
        # Browsers ask for a user and a password alone.
        users = ((self.username or "", secrets["--serve-password"]), ("token", secrets["--serve-token"]))
        passwords = {user: secret for user, secret in users if secret is not None}
        return ServerAuthentication("report", secrets["--serve-token"], passwords)


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
        ConfigError: an option cannot be used, a port is taken, or there is nothing to read.
    """
    from spark_events.history.run import check_outputs

    tls, authentication = access.tls(), access.authentication()
    check_outputs(replace(options, html=Path("page.html")))  # it needs what a page needs
    if options.engine is Engine.SPARK or options.html or options.json or options.parquet:
        raise ConfigError("--serve reads with DuckDB and writes no files: leave out --html, --json and so on")
    from spark_events.history.page.live_page import LivePage, View
    from spark_events.history.page.report_server import ReportServer
    from spark_events.history.reading.local_files import state_of_files

    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not _PORT.fullmatch(port) or int(port) > _LAST_PORT:
        shown = cut(address, _LONGEST_SHOWN)
        raise ConfigError(f"--serve {shown}: expected [HOST:]PORT, with a port from 0 to {_LAST_PORT}")
    page = LivePage(options, every_ms / 1_000, lambda: state_of_files(options.paths))
    try:
        server = ReportServer(host, int(port), page.html, authentication, tls)
    except OSError as error:
        raise ConfigError(f"--serve {address}: {error.strerror or error}") from error
    with err.status("reading events"):
        page.html(View())
    guarded = authentication.needed or (tls is not None and tls.asks_clients)
    if not guarded and not _is_loopback(host):
        print_warnings(["everybody who reaches this port can read the page: see --serve-token"])
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if tls else "http"
    say(f"the report is at {scheme}://{shown}:{server.port}/ (Ctrl-C ends it)")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say("ended")
    finally:
        server.server_close()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"
