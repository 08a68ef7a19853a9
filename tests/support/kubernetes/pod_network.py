"""A network for pods: a network namespace of its own with a bridge, which this machine is connected to."""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path

from tests.support.requirements import missing

_BRIDGE = "cni0"


class PodNetwork:
    """A network namespace in which a node is, its API server, and its pods with addresses of their own.

    Attributes:
        node: the address of the node.
        here: the address of this machine, for whatever runs outside of pods.
        enter: what a command begins with that runs on the node.
    """

    def __init__(self) -> None:
        # Two may run at the same time, if rarely with the same number.
        self._number = number = 16 + secrets.randbelow(200)
        self._name, self._link = f"spark-events-{number}", f"se-{number}"
        self._subnet = f"10.88.{number}"
        self.node, self.here = f"{self._subnet}.1", f"{self._subnet}.254"
        # "ip netns exec" would mount another /sys, without the cgroups.
        self.enter = ("nsenter", f"--net=/run/netns/{self._name}")

    def start(self) -> None:
        """Make it; where this machine does not allow that, skip the test or, in CI, fail it."""
        made = subprocess.run(["ip", "netns", "add", self._name], capture_output=True, text=True, check=False)
        if made.returncode:
            missing(f"no network namespace can be made here: {made.stderr.strip()}")
        inner = f"{self._link}-pods"
        # Without one of its own, a bridge takes the lowest address of its ports, which come and go with pods: those
        # who reach it by the one before would wait for up to a minute.
        own = f"0a:58:0a:58:{self._number:02x}:01"
        for words in (
            "link set lo up",
            f"link add {_BRIDGE} address {own} type bridge",
            f"addr add {self.node}/24 dev {_BRIDGE}",
            f"link set {_BRIDGE} up",
        ):
            _run(*self.enter, "ip", *words.split())
        _run("ip", "link", "add", self._link, "type", "veth", "peer", "name", inner, "netns", self._name)
        _run(*self.enter, "ip", "link", "set", inner, "master", _BRIDGE, "up")
        _run("ip", "addr", "add", f"{self.here}/24", "dev", self._link)
        _run("ip", "link", "set", self._link, "up")

    def stop(self) -> None:
        """Remove it, and with it all that is connected to it."""
        subprocess.run(["ip", "link", "del", self._link], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self._name], capture_output=True, check=False)

    def configure(self, folder: Path) -> None:
        """Write what CNI's plugins are to do for each pod.

        Args:
            folder: for the file, and for what they note.
        """
        ranges = [[{"subnet": f"{self._subnet}.0/24", "rangeEnd": f"{self._subnet}.250"}]]
        plugin = {
            "type": "bridge",
            "bridge": _BRIDGE,
            "isGateway": True,
            "ipMasq": False,
            "ipam": {"type": "host-local", "ranges": ranges, "dataDir": str(folder / "addresses")},
        }
        conf = {"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}
        (folder / "pods.conflist").write_text(json.dumps(conf))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
