"""Files as they are in another revision of their Git repository, such as the base of a pull request."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from spark_events.api import ConfigError
from spark_events.api.errors import UsageError


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision, whose files are copied to a folder.

    Args:
        name: what Git knows it by: a branch, a tag, a commit.
        folder: an empty one, for the copies.
    """

    name: str
    folder: Path

    def copy(self, path: Path) -> Path | None:
        """Copy a file, or a folder with all that it has; return the copy, or None if it is not there.

        Raises:
            UsageError: the path is in no repository, or that does not know the revision.
            ConfigError: Git is missing, or fails.
        """
        where = path if path.is_dir() else path.parent
        root = Path(os.fsdecode(self._git(where, "rev-parse", "--show-toplevel").rstrip(b"\n")))
        inner = path.resolve().relative_to(root.resolve())
        commit = self._commit(root)
        copies = self.folder / commit / root.name
        if not self._git(root, "ls-tree", "-r", "--name-only", "-z", commit, "--", inner):
            return None
        archive = self._git(root, "archive", "--format=tar", commit, "--", inner)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None:
                    copy = copies / member.name
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(file.read())
        return copies / inner

    def _commit(self, root: Path) -> str:
        try:
            name = f"{self.name}^{{commit}}"
            return self._git(root, "rev-parse", "--verify", "--end-of-options", name).decode().strip()
        except UsageError:
            raise UsageError(
                f"--base {self.name}: {root} has no such branch, tag or commit; a shallow "
                "clone has to fetch it"
            ) from None

    def _git(self, where: Path, *arguments: str | bytes | Path) -> bytes:
        try:
            done = subprocess.run(["git", "-C", where, *arguments], capture_output=True, check=False)
        except FileNotFoundError:
            raise ConfigError(f"--base {self.name}: git is not installed, or not on the PATH") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise UsageError(f"--base {self.name}: git -C {where} {arguments[0]!s}: {said[-1]}")
        return done.stdout
