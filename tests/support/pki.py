"""Authorities and certificates for tests of TLS."""

from __future__ import annotations

from pathlib import Path

import trustme


class Pki:
    """PEM files: ``authorities`` vouches for ``server`` and ``client``; ``others`` for nobody here.

    Args:
        folder: where the files are written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._authority = trustme.CA()
        self.authorities = folder / "authorities.pem"
        self._authority.cert_pem.write_to_path(str(self.authorities))
        self.others = folder / "others.pem"
        trustme.CA().cert_pem.write_to_path(str(self.others))
        self.server, self.server_key = self.issue("server", "127.0.0.1")
        self.client, self.client_key = self.issue("client", "driver@example.org")

    def issue(self, name: str, identity: str) -> tuple[Path, Path]:
        """Issue a certificate, and return its file and its key's."""
        issued = self._authority.issue_cert(identity)
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}-key.pem"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(key))
        return certificate, key
