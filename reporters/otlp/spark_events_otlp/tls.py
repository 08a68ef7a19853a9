"""The files of TLS: they must be there, and are read again when they change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ConfigError, ReporterConfig
from spark_events_otlp.options import CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files; None where none is configured.

    Attributes:
        authorities: whom to trust; the system's authorities by default.
        certificate: the client's own, for mutual TLS.
        key: the certificate's key.
    """

    authorities: Path | None
    certificate: Path | None
    key: Path | None

    def stamp(self) -> tuple[int, ...]:
        """Return the times of change of the files, in ns: another value when one of them is replaced.

        Raises:
            OSError: a file is gone.
        """
        paths = (self.authorities, self.certificate, self.key)
        return tuple(path.stat().st_mtime_ns for path in paths if path is not None)

    def read(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """Return authorities, key and certificate chain, in the order in which gRPC takes them.

        Raises:
            OSError: a file cannot be read.
        """
        authorities, key, certificate = (
            path.read_bytes() if path is not None else None
            for path in (self.authorities, self.key, self.certificate)
        )
        return authorities, key, certificate


def tls_files_from(config: ReporterConfig) -> TlsFiles:
    """Return the configured files.

    Raises:
        ConfigError: a file cannot be read, or one of certificate and key is given without the other. Without
            the check other authorities would be trusted than those that were asked for.
    """
    for option in (CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY):
        path = config.get(option)
        try:
            if path is not None:
                path.read_bytes()
        except OSError as error:
            key = config.key(option.name)
            raise ConfigError.of_value(key, str(path), f"a PEM file ({error.strerror})") from error
    config.both_or_none(CLIENT_CERTIFICATE, CLIENT_KEY)
    return TlsFiles(config.get(CERTIFICATE), config.get(CLIENT_CERTIFICATE), config.get(CLIENT_KEY))
