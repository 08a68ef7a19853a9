"""TLS of a server, whose certificate may be renewed while it runs."""

from __future__ import annotations

import ssl
from pathlib import Path


class ServerTls:
    """The server's side of TLS; its files are read again when they change.

    Args:
        certificate, key: PEM files of the server's certificate and its key.
        client_authorities: PEM file of those whose clients may connect; None asks clients for nothing.

    Attributes:
        files: these three.

    Raises:
        OSError: a file cannot be read, or is no PEM file of its kind.
    """

    def __init__(self, certificate: Path, key: Path, client_authorities: Path | None) -> None:
        self.files = (certificate, key, client_authorities)
        self._stamp = self._file_times()
        self._context = self._load()

    @property
    def asks_clients(self) -> bool:
        """Whether clients need a certificate."""
        return self.files[2] is not None

    @property
    def context(self) -> ssl.SSLContext:
        """For the next connection; files that cannot be read just now leave the one before."""
        try:
            stamp = self._file_times()
            if stamp != self._stamp:
                self._context, self._stamp = self._load(), stamp
        except OSError:
            pass  # being replaced; the next connection tries again
        return self._context

    def _load(self) -> ssl.SSLContext:
        certificate, key, client_authorities = self.files
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
        if client_authorities is not None:
            context.load_verify_locations(client_authorities)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _file_times(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns for path in self.files if path is not None)
