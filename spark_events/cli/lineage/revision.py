"""Files as they are in another revision of their Git repository, such as the base of a pull request."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator, Sequence
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
        path = path.resolve()
        where = path if path.is_dir() else path.parent
        root = Path(os.fsdecode(self._git(where, "rev-parse", "--show-toplevel").rstrip(b"\n"))).resolve()
        commit, inner = self._commit(root), path.relative_to(root)
        listed = self._git(root, "ls-tree", "-r", "--name-only", "-z", commit, "--", inner)
        names = [name for name in listed.split(b"\0") if name and b"\n" not in name]
        copies = self.folder / commit / root.name
        for name, content in self._contents(root, commit, names):
            copy = copies / os.fsdecode(name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        return copies / inner if names else None

    def _contents(self, root: Path, commit: str, names: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the names of files, or of links to files of the repository, and what is in each.

        ``git archive`` would leave out what is not to be exported.
        """
        asked = b"".join(b"%s:%s\n" % (commit.encode(), name) for name in names)
        answer = io.BytesIO(self._git(root, "cat-file", "--batch", "--follow-symlinks", given=asked))
        for name in names:
            head = answer.readline().rstrip(b"\n")
            if head.endswith(b" missing"):
                continue
            *kind, length = head.split(b" ")
            content = answer.read(int(length))
            answer.readline()
            if kind[-1] == b"blob":  # and no folder, and no link to elsewhere
                yield name, content

    def _commit(self, root: Path) -> str:
        try:
            name = f"{self.name}^{{commit}}"
            return self._git(root, "rev-parse", "--verify", "--end-of-options", name).decode().strip()
        except UsageError:
            raise UsageError(
                f"--base {self.name}: {root} has no such branch, tag or commit; a shallow "
                "clone has to fetch it"
            ) from None

    def _git(self, where: Path, *arguments: str | Path, given: bytes = b"") -> bytes:
        command = ["git", "-C", where, *arguments]
        try:
            done = subprocess.run(command, input=given, capture_output=True, check=False)
        except FileNotFoundError:
            raise ConfigError(f"--base {self.name}: git is not installed, or not on the PATH") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise UsageError(f"--base {self.name}: git -C {where} {arguments[0]}: {said[-1]}")
        return done.stdout
