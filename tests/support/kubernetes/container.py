"""A container: a process with namespaces of its own, this machine's files below its own, and a limit of memory."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from tests.support.kubernetes.api import Object
from tests.support.kubernetes.image import Image
from tests.support.kubernetes.volumes import expanded
from tests.support.memory_cgroup import MemoryCgroup, new_memory_cgroup

_KILLED = 128 + signal.SIGKILL
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_JOINS_CGROUP = 'echo $$ > "$1"; exec unshare -m -u -p -f --kill-child /bin/bash "$2"'


class Container:
    """One container of a pod.

    Args:
        spec: of the pod.
        image: what it begins with.
        folder: for its files.
        log: for what it writes.
        name: unlike that of any other container.
    """

    def __init__(self, spec: Object, image: Image, folder: Path, log: Path, name: str) -> None:
        self._spec, self._image, self._folder, self._log = spec, image, folder, log
        self._name = name
        self._entry_point = image.entry_point(spec["image"])
        self._process: subprocess.Popen[bytes] | None = None
        self._cgroup: MemoryCgroup | None = None
        self._began = ""
        self._over_limit = self._killed = False
        self._state: Object = {
            "waiting": {"reason": "ContainerCreating" if self.has_image else "ErrImagePull"}
        }

    @property
    def has_image(self) -> bool:
        """Whether there is its image."""
        return self._entry_point is not None

    @property
    def process(self) -> int | None:
        """Its first process, as this machine numbers it; None where it does not run."""
        if self._process is None or self._process.poll() is not None:
            return None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with suppress(OSError, IndexError):  # it ends just now, or has not begun
            return int(children.read_text().split()[0])
        return None

    def start(
        self, environment: dict[str, str], mounts: Sequence[tuple[Path, str]], hosts: str, hostname: str
    ) -> None:
        """Start it.

        Args:
            environment: its variables.
            mounts: files and folders, each with the path at which it sees it.
            hosts: what is to be in its /etc/hosts.
            hostname: its own.
        """
        for name in ("upper/etc", "work", "root"):
            (self._folder / name).mkdir(parents=True)
        (self._folder / "upper/etc/hosts").write_text(hosts)
        script = self._folder / "start.sh"
        script.write_text("\n".join(self._script(environment, mounts, hostname)) + "\n")
        self._cgroup = new_memory_cgroup(self._name, _bytes(self._spec["resources"]["limits"]["memory"]))
        self._began = now()
        command = ["/bin/bash", "-c", _JOINS_CGROUP, "-", str(self._cgroup.procs), str(script)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._state = {"running": {"startedAt": self._began}}

    def has_ended(self) -> bool:
        """Return whether it has ended; if it was for memory, all of it has, as with memory.oom.group."""
        if self._process is None or self._cgroup is None:
            return True
        code = self._process.poll()
        if self._cgroup.kills and not self._over_limit:
            self._over_limit = True
            self.signal(signal.SIGKILL)
        if code is None:
            return False
        self._cgroup.remove()
        self._cgroup = None
        # unshare cannot end by SIGKILL, as its child has.
        code = _KILLED if self._killed else code
        reason = "OOMKilled" if self._over_limit else "Completed" if code == 0 else "Error"
        times = {"startedAt": self._began, "finishedAt": now()}
        self._state = {"terminated": {"exitCode": code, "reason": reason, **times}}
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its first process, without which none of the others goes on."""
        if (process := self.process) is not None:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process, number)
                self._killed = self._killed or number == signal.SIGKILL

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return (self._state.get("terminated") or {}).get("exitCode")

    def status(self) -> Object:
        """Return what the API server is to say of it."""
        running = "running" in self._state
        own = {"name": self._spec["name"], "image": self._spec["image"], "imageID": "", "restartCount": 0}
        return {**own, "ready": running, "started": running, "state": self._state}

    def _script(
        self, environment: dict[str, str], mounts: Sequence[tuple[Path, str]], hostname: str
    ) -> Iterator[str]:
        root = self._folder / "root"
        layers = f"lowerdir={self._image.layer}:/,upperdir={self._folder}/upper,workdir={self._folder}/work"
        yield "set -e"
        yield f"mount -t overlay overlay -o {layers} {root}"
        yield f"cd {root}"
        yield "mount --rbind /dev dev; mount --rbind /sys sys; mount -t proc proc proc"
        yield f"hostname {shlex.quote(hostname)}"
        own = [(path, str(path)) for path in self._image.shown]
        for source, path in (*own, *mounts):
            # Of what is a link, such as /var/run, the file system's own place.
            place = shlex.quote(f"{root}{os.path.realpath(path)}")
            make = f"mkdir -p {place}" if source.is_dir() else f"mkdir -p $(dirname {place}); touch {place}"
            yield f"{make}; mount --bind {shlex.quote(str(source))} {place}"
        command = self._spec.get("command") or [str(self._entry_point)]
        words = [*command, *(expanded(word, environment) for word in self._spec.get("args") or ())]
        variables = [f"{name}={value}" for name, value in environment.items()]
        where = self._spec.get("workingDir", self._image.work_dir)
        inner = f"cd {where}; exec env -i {shlex.join(variables)} {shlex.join(words)}"
        yield f"exec chroot {root} /bin/bash -c {shlex.quote(inner)}"


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _bytes(quantity: str) -> int:
    match = re.fullmatch(r"([0-9.]+)(\w*)", quantity)
    assert match is not None, quantity
    return int(float(match[1]) * _UNITS[match[2]])
