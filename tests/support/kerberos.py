"""A Kerberos of the tests' own: a key distribution center on loopback, and all of its files in one folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import free_port, is_listening, wait_until

HOST = "localhost"
"""What services are called: tickets are for names, not for addresses."""
REALM = "SPARK.TEST"
USER = "alice"
_CLIENT = """\
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
# Java would ask over UDP first.
udp_preference_limit = 1
default_ccache_name = FILE:{folder}/tickets
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
"""
_SERVER = """\
[kdcdefaults]
kdc_listen = ""
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
  database_name = {folder}/principals
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
}}
[logging]
kdc = FILE:{folder}/kdc.log
"""


class Kdc:
    """A key distribution center that knows the services of Hadoop, and one user.

    Args:
        folder: for its files.

    Attributes:
        conf: the file that says where it is.
        services: the keytab of all services.
        user: the keytab of the user.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self.conf, self._server_conf = folder / "krb5.conf", folder / "kdc.conf"
        for file, text in ((self.conf, _CLIENT), (self._server_conf, _SERVER)):
            file.write_text(text.format(realm=REALM, folder=folder, port=self._port))
        self.services, self.user = folder / "services.keytab", folder / f"{USER}.keytab"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which MIT's programs and libraries find it; tickets are not the user's own."""
        return {"KRB5_CONFIG": str(self.conf), "KRB5CCNAME": f"FILE:{self._folder}/tickets"}

    @property
    def java_option(self) -> str:
        """The same for Java, which knows no such variable."""
        return f"-Djava.security.krb5.conf={self.conf}"

    def start(self) -> None:
        """Make its database and the keytabs, and wait until it gives tickets."""
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of no importance")
        services = [f"{service}/{HOST}" for service in ("hdfs", "yarn", "HTTP")]
        for keytab, names in ((self.services, services), (self.user, [USER])):
            for name in names:
                self._run("kadmin.local", "-q", f"addprinc -randkey {name}")
                self._run("kadmin.local", "-q", f"ktadd -k {keytab} {name}")
        log = (self._folder / "kdc.err").open("wb")
        self._process = subprocess.Popen(
            ["krb5kdc", "-n", "-P", str(self._folder / "kdc.pid")],
            env=self._environment(),
            stdout=log,
            stderr=log,
        )
        wait_until(lambda: is_listening("127.0.0.1", self._port), "the KDC gives tickets", 20)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)

    def log_in(
        self,
        name: str = USER,
        keytab: Path | None = None,
        lifetime_s: int = 3600,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """Do what a user does with ``kinit``.

        Args:
            name: who gets the ticket.
            keytab: of that name; None is the user's.
            lifetime_s: of the ticket.
            more: variables, such as where the ticket is to lie.
        """
        self._run("kinit", "-l", f"{lifetime_s}s", "-kt", str(keytab or self.user), name, more=more)

    def log_out(self) -> None:
        """Throw the ticket away."""
        self._run("kdestroy", "-q")

    def _run(self, *command: str, more: Mapping[str, str] | None = None) -> None:
        environment = {**self._environment(), **(more or {})}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, **self.environment, "KRB5_KDC_PROFILE": str(self._server_conf)}


@contextmanager
def running_kdc(folder: Path) -> Iterator[Kdc]:
    """Give a KDC; where this machine has none, skip the test: in CI as well, where nothing installs it.

    Args:
        folder: for its files.
    """
    packages = {"krb5kdc": "krb5-kdc", "kadmin.local": "krb5-admin-server", "kinit": "krb5-user"}
    for command, package in packages.items():
        if shutil.which(command) is None:
            pytest.skip(f"no {command} on the PATH: apt-get install {package}")
    kdc = Kdc(folder)
    try:
        kdc.start()
        yield kdc
    finally:
        kdc.stop()


def need_requests_kerberos() -> None:
    """Skip the test where Python cannot ask over HTTP with a ticket."""
    if importlib.util.find_spec("requests_kerberos") is None:
        pytest.skip(
            "no requests-kerberos: apt-get install libkrb5-dev, pip install requests-kerberos (4 min)"
        )
