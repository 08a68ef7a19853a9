"""The files of TLS: they must be there, and are read again when they change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ConfigError, Option, ReporterConfig


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

    def check(self, config: ReporterConfig, options: tuple[Option[Path | None], ...]) -> None:
        """Hold them against what TLS needs.

        Args:
            config: what they come from.
            options: the options of the three, for error messages.

        Raises:
            ConfigError: a file cannot be read, or one of certificate and key is given without the other.
                Without the check other authorities would be trusted than those that were asked for.
        """
        for option, path in zip(options, (self.authorities, self.certificate, self.key), strict=True):
            try:
                if path is not None:
                    path.read_bytes()
            except OSError as error:
                key = config.key(option.name)
                raise ConfigError.of_value(key, str(path), f"a PEM file ({error.strerror})") from error
        config.both_or_none(*options[1:])

    def stamp(self) -> tuple[int, ...]:
        """Return what changes when a file does."""
        return tuple(
            path.stat().st_mtime_ns
            for path in (self.authorities, self.certificate, self.key)
            if path is not None
        )

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
