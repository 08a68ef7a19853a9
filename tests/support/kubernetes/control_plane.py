"""etcd, and Kubernetes' API server on it."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes.api import Api, ApiError
from tests.support.paths import REPO
from tests.support.requirements import need
from tests.support.waiting import free_port, http_get, wait_until

HOST = "127.0.0.1"
_BINARY = REPO / ".cache" / "kube-apiserver"
_ISSUER = "https://kubernetes.default.svc"


class ControlPlane:
    """An API server that knows who may do what, and notes who has done what.

    It has no scheduler and no controllers.

    Args:
        folder: for its files.
        host: its address.
        enter: what a command begins with that runs where that address is.

    Attributes:
        api: what asks it as an administrator.
    """

    def __init__(self, folder: Path, host: str = HOST, enter: Sequence[str] = ()) -> None:
        self._host, self._enter = host, enter
        self._etcd = need("etcd", "etcd-server")
        if not _BINARY.exists():
            # In CI as well, where it is built beside the tests that come first.
            pytest.skip("no .cache/kube-apiserver: .ci/build-kubernetes kube-apiserver builds it (needs Go)")
        self._folder = folder
        self._store = f"http://{host}:{free_port()}"
        self._port = free_port()
        token = secrets.token_hex(16)
        self.api = Api(f"https://{host}:{self._port}", token, folder / "certificates" / "apiserver.crt")
        (folder / "tokens.csv").write_text(f'{token},administrator,1,"system:masters"\n')
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start both, and wait until the API server is ready."""
        self._start_etcd()
        self._make_key()
        self._start_api_server()
        wait_until(self._is_ready, "Kubernetes' API server is ready", 120)

    def stop(self) -> None:
        """End both."""
        for server in reversed(self._servers.values()):
            server.kill()
            server.wait(20)

    def requests(self, user: str) -> Iterator[dict[str, Any]]:
        """Return what a user has asked, as the audit log has it."""
        for line in (self._folder / "audit.log").read_text().splitlines():
            request = json.loads(line)
            if request["user"].get("username") == user:
                yield request

    def _start_etcd(self) -> None:
        peers = f"http://{self._host}:{free_port()}"
        options = {
            "data-dir": self._folder / "etcd",
            "listen-client-urls": self._store,
            "advertise-client-urls": self._store,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"default={peers}",
        }
        self._start("etcd", [self._etcd, *_options(options), "--unsafe-no-fsync"])
        wait_until(lambda: '"health"' in http_get(f"{self._store}/health"), "etcd is ready")

    def _start_api_server(self) -> None:
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata"}],
        }
        (self._folder / "audit.json").write_text(json.dumps(policy))
        options = {
            "etcd-servers": self._store,
            "bind-address": self._host,
            "advertise-address": self._host,
            "secure-port": self._port,
            "cert-dir": self.api.authority.parent,
            "token-auth-file": self._folder / "tokens.csv",
            "authorization-mode": "RBAC",
            "service-account-key-file": self._folder / "key.pem",
            "service-account-signing-key-file": self._folder / "key.pem",
            "service-account-issuer": _ISSUER,
            "service-cluster-ip-range": "10.0.0.0/24",
            "endpoint-reconciler-type": "none",
            # Both want objects that controllers would have made.
            "disable-admission-plugins": "DefaultTolerationSeconds,Priority",
            # etcd before 3.4.31 cannot do what it is built on, and each watch would fail.
            "feature-gates": "WatchList=false",
            "audit-policy-file": self._folder / "audit.json",
            "audit-log-path": self._folder / "audit.log",
        }
        self._start("kube-apiserver", [str(_BINARY), *_options(options)])

    def _make_key(self) -> None:
        """Make the key that signs the tokens of service accounts."""
        openssl = need("openssl", "openssl")
        command = [openssl, "genrsa", "-out", str(self._folder / "key.pem"), "2048"]
        subprocess.run(command, check=True, capture_output=True)

    def _is_ready(self) -> bool:
        for name, server in self._servers.items():
            assert server.poll() is None, f"{name} has ended:\n{self._log(name).read_text()[-3000:]}"
        if not self.api.authority.exists():
            return False
        try:
            # Only then can be asked for what all of Kubernetes' namespaces have.
            return bool(self.api.ask("GET", "/api/v1/namespaces/default"))
        except (ApiError, OSError):
            return False

    def _start(self, name: str, command: list[str]) -> None:
        with self._log(name).open("wb") as log:
            self._servers[name] = subprocess.Popen(
                [*self._enter, *command], stdout=log, stderr=log, cwd=self._folder
            )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


def _options(options: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]
