"""A file system that can be full, and read-only, for a while."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until


class Disk:
    """A small file system of its own, where that can be mounted; otherwise a folder."""

    _MOST = "64m"

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        mount = ["mount", "-t", "tmpfs", "-o", f"size={self._MOST}", "tmpfs", str(folder)]
        self.mounted = (
            os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )

    def close(self) -> None:
        """Unmount it."""
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)

    def full(self) -> Any:
        """Leave no room while a block runs."""
        return _Full(self._folder / "filler")

    def read_only(self) -> Any:
        """Allow no writes while a block runs."""
        return _ReadOnly(self._folder)


class _Full:
    def __init__(self, filler: Path) -> None:
        self._filler = filler

    def __enter__(self) -> None:
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 65_536):
                    pass
            except OSError:
                return

    def __exit__(self, *_: object) -> None:
        self._filler.unlink()


class _ReadOnly:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        wait_until(lambda: self._remount("ro"), "nobody has a file open for writing")

    def __exit__(self, *_: object) -> None:
        assert self._remount("rw")

    def _remount(self, how: str) -> bool:
        command = ["mount", "-o", f"remount,{how}", str(self._folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
